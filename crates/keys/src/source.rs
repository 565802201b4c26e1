// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Where sections are read from.

/// Where values are read from.
pub trait Source {
    /// The texts of a key, one or those of a list, which its form has checked: what is written, or the default. `None`:
    /// there is neither.
    fn texts(&self, path: &str) -> Option<Vec<String>>;

    /// The text of a key that is no list.
    fn text(&self, path: &str) -> Option<String> {
        self.texts(path)?.pop()
    }
}
