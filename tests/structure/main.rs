// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The structure of the workspace: the modules of a folder do not import each other in circles, files, functions and types
//! stay small, tests do not depend on the machine that runs them, results not on its mathematics, and each source names its
//! licence.
//!
//! A room is a module at the top of a crate: a folder or a file of `src/`. `lib.rs` and `main.rs` put rooms
//! together and are none themselves, as `mod.rs` with the modules of its folder; unit tests may use everything. Lines of
//! code are counted without blank lines and without lines that are only a comment. Public fields are those with any `pub`.

mod licences;
mod machine;
mod mathematics;
mod pages;
mod rooms;
mod sizes;
mod sources;

use sources::{crates, sources, sources_in, FOLDERS};

/// Circles that are meant, as they are found: a run consists of traffic, and a kind of traffic is told about its run.
const MEANT: [&str; 1] = ["crates/scenario/src: traffic, types"];
/// Most lines of code in a source file.
const MOST_LINES: usize = 500;
/// Most lines of code in a function.
const MOST_LINES_OF_FUNCTION: usize = 70;
/// Most public fields of a type.
const MOST_FIELDS: usize = 15;

#[test]
fn modules_of_a_folder_do_not_import_each_other_in_circles() {
    let found: Vec<String> = crates()
        .iter()
        .flat_map(|(_, folder)| rooms::cycles(folder))
        .collect();
    let is_meant = |found: &String| MEANT.iter().any(|meant| found.ends_with(meant));
    let cycles: Vec<&String> = found.iter().filter(|found| !is_meant(found)).collect();
    assert!(cycles.is_empty(), "import cycles: {cycles:#?}");
    assert_eq!(found.len(), MEANT.len(), "a circle that is meant is gone");
}

#[test]
fn no_source_file_is_longer_than_500_lines_of_code() {
    let long: Vec<String> = sources(&["rs", "c", "h"])
        .iter()
        .map(|file| (file, sizes::lines_of_code(&file.text)))
        .filter(|(_, lines)| *lines > MOST_LINES)
        .map(|(file, lines)| format!("{}: {lines} lines of code", file.path))
        .collect();
    assert!(long.is_empty(), "above {MOST_LINES}:\n{}", long.join("\n"));
}

#[test]
fn no_function_is_longer_than_70_lines_of_code() {
    let long: Vec<String> = sources(&["rs", "c", "h"])
        .iter()
        .flat_map(|file| {
            let functions = sizes::functions(&file.text).into_iter();
            functions.map(|(name, lines)| (format!("{}: {name}", file.path), lines))
        })
        .filter(|(_, lines)| *lines > MOST_LINES_OF_FUNCTION)
        .map(|(name, lines)| format!("{name} has {lines} lines of code"))
        .collect();
    assert!(
        long.is_empty(),
        "above {MOST_LINES_OF_FUNCTION}:\n{}",
        long.join("\n")
    );
}

#[test]
fn no_type_has_more_than_15_public_fields() {
    let wide: Vec<String> = sources(&["rs"])
        .iter()
        .flat_map(|file| {
            let wide = sizes::public_fields(&file.text).into_iter();
            wide.map(|(name, fields)| (format!("{}: {name}", file.path), fields))
        })
        .filter(|(_, fields)| *fields > MOST_FIELDS)
        .map(|(name, fields)| format!("{name} has {fields} public fields"))
        .collect();
    assert!(wide.is_empty(), "above {MOST_FIELDS}:\n{}", wide.join("\n"));
}

#[test]
fn results_do_not_depend_on_the_platforms_mathematics() {
    let calls = mathematics::calls(&sources(&["rs"]));
    assert!(
        calls.is_empty(),
        "their last bit depends on the processor and on glibc:\n{}\nUse the function of the libm crate",
        calls.join("\n")
    );
}

#[test]
fn tests_do_not_depend_on_the_machine() {
    let found = machine::unexplained(&sources(&["rs", "sh", "py", ""]));
    assert!(
        found.is_empty(),
        "a busy machine, or another program's port, can fail these tests:\n{}\nWait for an event (`until` of \
         tests/machine.rs). Take port 0, or `addresses` of tests/machine.rs. If the line can fail no test, say why, on \
         it or in the comment above it: // machine: WHY",
        found.join("\n")
    );
}

#[test]
fn every_source_names_its_licence() {
    let mut files = sources(&["rs", "c", "h", "sh", "py", "cc", "css", "js"]);
    files.extend(sources_in(
        &["fuzz", "figures", "deploy"],
        &["rs", "py", "lua"],
    ));
    let scripts = sources_in(&FOLDERS, &[""]).into_iter();
    files.extend(scripts.filter(|file| file.text.starts_with("#!")));
    files.retain(|file| !file.path.ends_with(".min.js"));
    let lacking = licences::lacking(&files);
    assert!(
        lacking.is_empty(),
        "run tools/spdx:\n{}",
        lacking.join("\n")
    );
}

#[test]
fn files_that_pages_name_exist() {
    let others = ["fuzz", "figures", "deploy", "examples", "scenarios"];
    let folders: Vec<&str> = FOLDERS.iter().chain(&others).copied().collect();
    let files = sources_in(&folders, &pages::EXTENSIONS).into_iter();
    let files: Vec<String> = files.map(|file| file.path).collect();
    let missing = pages::missing(&sources_in(&["docs"], &["md"]), &files);
    assert!(missing.is_empty(), "no such files:\n{}", missing.join("\n"));
}
