// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Sources of figures and scenarios: the binary, or a directory with the layout of the repository.

use std::io;
use std::path::PathBuf;

/// Paths from the repository's root, and texts.
static BUILT_IN: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/built_in.rs"));

/// Files of `figures/` and `scenarios/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Library {
    /// Files that are built into the binary.
    BuiltIn,
    /// Files in a directory.
    Directory(PathBuf),
}

impl Library {
    /// The text of `path`, which is relative to the repository's root: `figures/f9.toml`.
    ///
    /// # Errors
    /// It does not exist, or cannot be read.
    pub fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        match self {
            Library::Directory(root) => std::fs::read(root.join(path)),
            Library::BuiltIn => {
                let path = without_dots(path);
                let found = BUILT_IN.iter().find(|(name, _)| *name == path);
                let text = found.ok_or(io::ErrorKind::NotFound)?.1;
                Ok(text.as_bytes().to_vec())
            }
        }
    }

    /// Figures by id, in the paper's order: f2 before f10, tables and sections last.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn ids(&self) -> io::Result<Vec<String>> {
        let names: Vec<String> = match self {
            Library::BuiltIn => {
                let of_figures =
                    |(path, _): &(&str, &str)| path.strip_prefix("figures/").map(Into::into);
                BUILT_IN.iter().filter_map(of_figures).collect()
            }
            Library::Directory(root) => {
                let entries = std::fs::read_dir(root.join("figures"))?;
                let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
                names.collect()
            }
        };
        let id = |name: &String| name.strip_suffix(".toml").map(str::to_owned);
        let mut ids: Vec<String> = names.iter().filter_map(id).collect();
        ids.sort_by_key(|id| natural(id));
        Ok(ids)
    }
}

/// `path` without the parts `.` and `..`.
fn without_dots(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// A sort key for natural order, `f5` before `f15`: digits count as a number.
pub fn natural(text: &str) -> Vec<(u64, String)> {
    let is_digit = |c: char| c.is_ascii_digit();
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let word = rest.find(is_digit).unwrap_or(rest.len());
        let digits = rest[word..]
            .find(|c| !is_digit(c))
            .map_or(rest.len(), |n| word + n);
        parts.push((0, rest[..word].to_owned()));
        parts.push((rest[word..digits].parse().unwrap_or(0), String::new()));
        rest = &rest[digits..];
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_in_the_papers_order() {
        let mut ids = ["table1", "f10", "sec4", "f9"];
        ids.sort_by_key(|id| natural(id));
        assert_eq!(ids, ["f9", "f10", "sec4", "table1"]);
        let mut paths = ["r/f10/x", "r/table1/x", "r/f5/x", "r/f1/x"];
        paths.sort_by_key(|path| natural(path));
        assert_eq!(paths, ["r/f1/x", "r/f5/x", "r/f10/x", "r/table1/x"]);
    }

    #[test]
    fn what_is_built_in_is_what_the_repository_has() {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
        let (here, built_in) = (Library::Directory(root), Library::BuiltIn);
        assert_eq!(here.ids().unwrap(), built_in.ids().unwrap());
        assert!(built_in.read("figures/none.toml").is_err());
    }
}
