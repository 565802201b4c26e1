// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Mistakes of a configuration: each names its place, the value, the bound and the fix. All are told at once.

use super::key::Key;

/// All mistakes of a configuration, those of the file first, by line; never empty.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{}", heading(list), lines(file, list))]
pub struct Errors {
    file: String,
    list: Vec<Error>,
}

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Error {
    pub place: Origin,
    /// With the name of the key or option.
    pub text: String,
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The file as a whole.
    File,
    /// A line of the file, from 1.
    Line(usize),
    /// The command line.
    Option,
    /// The table of keys.
    Default,
}

impl Origin {
    /// The name of a key there: that of the file, or its option.
    pub fn name(self, key: &Key) -> String {
        match self {
            Origin::Option => format!("--{}", key.option),
            _ => key.path.to_owned(),
        }
    }

    /// What a person writes there to set a key.
    pub fn set(self, key: &Key, value: &str) -> String {
        match self {
            Origin::Option => format!("--{} {value}", key.option),
            _ if key.form.is_quoted() => format!("{} = \"{value}\"", key.path),
            _ => format!("{} = {value}", key.path),
        }
    }
}

impl Errors {
    /// The mistakes in the order of their places, each once; `Ok` if there are none.
    ///
    /// # Errors
    /// `list` has some.
    pub fn check(file: &str, mut list: Vec<Error>) -> Result<(), Errors> {
        list.sort();
        list.dedup();
        match list.is_empty() {
            true => Ok(()),
            false => Err(Errors {
                file: file.to_owned(),
                list,
            }),
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.list.len()
    }
}

fn heading(list: &[Error]) -> String {
    match list.len() {
        1 => String::new(),
        many => format!("the configuration has {many} mistakes:\n"),
    }
}

fn lines(file: &str, list: &[Error]) -> String {
    let line = |Error { place, text }: &Error| match place {
        Origin::File => format!("{file}: {text}"),
        Origin::Line(line) => format!("{file}:{line}: {text}"),
        Origin::Option | Origin::Default => text.clone(),
    };
    list.iter().map(line).collect::<Vec<_>>().join("\n")
}
