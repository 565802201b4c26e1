// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The parsers answer every file of the corpus and changes of it. A file whose name begins with `valid` is valid.
//! Random changes are the same in each run. `make fuzz` looks further, under cargo-fuzz.

use std::fs;
use std::path::PathBuf;

use onramp_fuzz::{Target, TARGETS};

/// Changed copies of each file.
const CHANGED: u64 = 200;

/// Name and bytes of each file of a target's corpus.
fn corpus(target: &Target) -> Vec<(String, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target.name);
    let entries =
        fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let file = |entry: std::io::Result<fs::DirEntry>| {
        let path = entry.expect("it is readable").path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        (name, fs::read(path).expect("it is a file"))
    };
    let mut files: Vec<_> = entries.map(file).collect();
    files.sort();
    files
}

/// Pseudo-random numbers (xorshift).
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }
}

/// One to four bytes are changed, removed, inserted or repeated.
fn changed(bytes: &[u8], draws: &mut Draws) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=draws.below(4) {
        let at = draws.below(bytes.len() + 1);
        let end = (at + draws.below(16)).min(bytes.len());
        match draws.below(4) {
            0 if at < bytes.len() => bytes[at] = draws.below(256) as u8,
            1 => drop(bytes.drain(at..end)),
            2 => bytes.insert(at, draws.below(256) as u8),
            _ => bytes.splice(at..at, bytes[at..end].to_vec()).for_each(drop),
        }
    }
    bytes
}

#[test]
fn valid_files_of_the_corpus_are_valid() {
    for target in &TARGETS {
        let files = corpus(target);
        let is_valid = |name: &String| name.starts_with("valid");
        assert!(
            files.iter().any(|(name, _)| is_valid(name)),
            "{}",
            target.name
        );
        assert!(
            files.iter().any(|(name, _)| !is_valid(name)),
            "{}",
            target.name
        );
        for (name, bytes) in &files {
            assert_eq!(
                (target.run)(bytes),
                is_valid(name),
                "{}/{name}",
                target.name
            );
        }
    }
}

#[test]
fn changed_files_of_the_corpus_are_answered() {
    for target in &TARGETS {
        let mut draws = Draws(1);
        for (_, bytes) in corpus(target) {
            for _ in 0..CHANGED {
                (target.run)(&changed(&bytes, &mut draws));
            }
        }
    }
}
