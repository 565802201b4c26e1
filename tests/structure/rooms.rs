// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The graph of imports between the rooms of a crate.

use crate::sources::{files_in, read};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// By room: the rooms that it imports.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// Import cycles of the crate with this `src` folder: the rooms of each.
pub fn cycles(src: &Path) -> Vec<String> {
    let graph = graph(src);
    let mut seen: BTreeSet<&String> = BTreeSet::new();
    let mut found = Vec::new();
    for room in graph.keys() {
        if seen.contains(room) {
            continue;
        }
        let there = reachable(&graph, room);
        let circle: Vec<&String> = graph
            .keys()
            .filter(|other| there.contains(*other) && reachable(&graph, other).contains(room))
            .collect();
        if circle.len() > 1 {
            let names: Vec<&str> = circle.iter().map(|name| name.as_str()).collect();
            found.push(format!("{}: {}", src.display(), names.join(", ")));
        }
        seen.extend(circle);
    }
    found
}

fn reachable(graph: &Graph, from: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![from.to_owned()];
    while let Some(room) = open.pop() {
        for next in graph.get(&room).into_iter().flatten() {
            if found.insert(next.clone()) {
                open.push(next.clone());
            }
        }
    }
    found
}

fn graph(src: &Path) -> Graph {
    let files = files_in(src, &["rs"]);
    let modules: Vec<(Vec<String>, String)> = files
        .iter()
        .map(|file| {
            let path = file.strip_prefix(src).expect("it is in the folder");
            (module_of(path), read(file))
        })
        .collect();
    let mut graph: Graph = modules
        .iter()
        .filter_map(|(module, _)| Some((module.first()?.clone(), BTreeSet::new())))
        .collect();
    for (module, text) in &modules {
        let Some(room) = module.first() else { continue };
        if module.last().is_some_and(|name| name == "tests") {
            continue;
        }
        for import in imports(text, module) {
            if import != *room && graph.contains_key(&import) {
                graph.entry(room.clone()).or_default().insert(import);
            }
        }
    }
    graph
}

/// The module that a file is: none for the crate's root.
fn module_of(path: &Path) -> Vec<String> {
    let mut names: Vec<String> = path
        .with_extension("")
        .iter()
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    if names
        .last()
        .is_some_and(|name| ["mod", "lib", "main"].contains(&name.as_str()))
    {
        names.pop();
    }
    names
}

/// The rooms that a module names, unit tests not counted.
fn imports(text: &str, module: &[String]) -> BTreeSet<String> {
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or("");
    let lines = code.lines().filter(|line| !line.trim().starts_with("//"));
    let code: String = lines.collect::<Vec<_>>().join("\n");
    // So many times `super` from here is the crate's root.
    let root = "super::".repeat(module.len());
    let mut found = BTreeSet::new();
    for prefix in ["crate::", root.as_str()] {
        for (at, _) in code.match_indices(prefix) {
            let is_longer = code[..at].ends_with("super::") || code[..at].ends_with('$');
            if !is_longer {
                found.extend(first_names(&code[at + prefix.len()..]));
            }
        }
    }
    found
}

/// The first names of a path, or of each path in braces.
fn first_names(path: &str) -> Vec<String> {
    let name = |path: &str| -> String {
        let is_name = |c: &char| c.is_alphanumeric() || *c == '_';
        path.trim_start().chars().take_while(is_name).collect()
    };
    let Some(group) = path.strip_prefix('{') else {
        return vec![name(path)];
    };
    let (mut depth, mut names) = (0, vec![name(group)]);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => names.push(name(&group[at + 1..])),
            _ => {}
        }
    }
    names
}

#[test]
fn imports_are_found_in_every_spelling() {
    let text = "use crate::a::B;\nuse crate::{c, d::{e, f}, g};\n// use crate::h;\nuse super::super::i::J;\n\
                fn k() { crate::l::m() }\n#[cfg(test)]\nmod tests {\n    use crate::n::O;\n}\n";
    let module = ["x".to_owned(), "y".to_owned()];
    let found: Vec<String> = imports(text, &module).into_iter().collect();
    assert_eq!(found, ["a", "c", "d", "g", "i", "l"]);
}

#[test]
fn a_circle_is_found_whatever_its_length() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let graph: Graph = [
        ("a", names(&["b"])),
        ("b", names(&["c"])),
        ("c", names(&["a"])),
    ]
    .map(|(room, imports)| (room.to_owned(), imports))
    .into();
    assert!(reachable(&graph, "a").contains("a"));
    assert!(!reachable(&[("a".to_owned(), names(&["b"]))].into(), "a").contains("a"));
}
