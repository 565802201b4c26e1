// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The source files of the workspace.

use std::fs;
use std::path::{Path, PathBuf};

/// Where sources are.
pub const FOLDERS: [&str; 7] = ["law", "bpf", "crates", "tests", "bench", "tools", "python"];
/// Folders whose sources are made by programs, and files that the kernel's authors wrote.
const LEFT_OUT: [&str; 3] = ["target", "generated", "vmlinux.h"];

/// A source file.
pub struct Source {
    /// From the workspace's folder.
    pub path: String,
    pub text: String,
}

/// The workspace's folder.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("a crate is two folders below the workspace")
        .to_owned()
}

/// The crates: the name and the `src` folder of each.
pub fn crates() -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(root().join("crates")).expect("there are crates");
    let crates = entries.map(|entry| {
        let entry = entry.expect("it can be read");
        let name = entry.file_name().to_string_lossy().into_owned();
        (name, entry.path().join("src"))
    });
    let mut crates: Vec<(String, PathBuf)> = crates.filter(|(_, src)| src.is_dir()).collect();
    crates.sort();
    crates
}

/// The workspace's sources with one of these extensions.
pub fn sources(extensions: &[&str]) -> Vec<Source> {
    let found = sources_in(&FOLDERS, extensions);
    assert!(found.len() > 100, "{} sources", found.len());
    found
}

/// The files below these folders with one of these extensions.
pub fn sources_in(folders: &[&str], extensions: &[&str]) -> Vec<Source> {
    let root = root();
    let folders = folders.iter().map(|folder| root.join(folder));
    let mut found = Vec::new();
    for folder in folders.filter(|folder| folder.is_dir()) {
        for file in files_in(&folder, extensions) {
            let path = file.strip_prefix(&root).expect("it is below the root");
            found.push(Source {
                path: path.display().to_string(),
                text: read(&file),
            });
        }
    }
    found
}

/// The files below a folder with one of these extensions, in order.
pub fn files_in(folder: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder can be read");
    let mut paths: Vec<PathBuf> = entries.map(|e| e.expect("it can be read").path()).collect();
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if LEFT_OUT.contains(&&*name) || name.starts_with('.') {
            continue;
        }
        let extension = path.extension().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            found.extend(files_in(&path, extensions));
        } else if extensions.contains(&&*extension) {
            found.push(path);
        }
    }
    found
}

/// A file's text.
pub fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}
