// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Keys of configurations: each is declared once, as the field of a struct. Its type reads, bounds and prints its value;
//! the struct, the parser, the command line and the documentation follow from the declaration.
//!
//! ```
//! use onramp_keys::{choice, section, Absent::{Is, Without}, Section, Source};
//! use onramp_units::Span;
//!
//! choice! {
//!     /// What happens to a packet.
//!     pub enum Fate { Pass = "pass", Drop = "drop", }
//! }
//!
//! section! {
//!     /// How packets leave.
//!     #[derive(Debug)]
//!     pub struct Leave in "leave" with () {
//!         fate: Fate = Is("pass"), (), "What happens to packets.";
//!         delay: Option<Span> [Span::ZERO, Span::from_s(1)] = Without("none"), (), "They wait.";
//!     }
//! }
//!
//! struct Texts(&'static str);
//! impl Source for Texts {
//!     fn texts(&self, path: &str) -> Option<Vec<String>> {
//!         (path == Leave::fate).then(|| vec![self.0.to_owned()])
//!     }
//! }
//! let leave = Leave::read(&Texts("drop")).unwrap();
//! assert_eq!((leave.fate, leave.delay), (Fate::Drop, None));
//! assert_eq!(Leave::KEYS[1].words(), "a time, 0 s to 1 s");
//! let wrong = Leave::KEYS[1].form.check("2 s").unwrap_err();
//! assert_eq!(wrong.to_string(), "above max 1 s");
//! ```
//!
//! Does not: know which keys there are, read files, or report mistakes.
#![warn(missing_docs)]

mod choice;
mod field;
mod key;
mod section;
mod source;
mod value;
mod written;

pub use field::{Field, Form, Of};
pub use key::{Absent, Key};
pub use section::Section;
pub use source::Source;
pub use value::{alternatives, read_or, words_or, OrOff, Value, Wrong, ANY_NUMBER};
pub use written::{kind, shown, text_of, Toml};
