// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The types that fields of sections have: a value, one that may be absent, or a list; and what tables of keys know of
//! such a type.

use std::any::TypeId;
use toml::de::DeValue;

use crate::value::{Value, Wrong};
use crate::written::{kind, text_of, Toml};

/// The type of a field of a [`Section`](crate::Section).
pub trait Field: Sized {
    /// The type of its value, or of each one of a list.
    type Value: Value + 'static;

    /// Whether it is a list.
    const IS_LIST: bool = false;

    /// Reads texts that [`Form::check`] has passed. `None`: it needs one, and there is none.
    fn from_texts(texts: Option<&[String]>, bounds: <Self::Value as Value>::Bounds)
        -> Option<Self>;
}

impl<T: Value + 'static> Field for T {
    type Value = T;

    fn from_texts(texts: Option<&[String]>, bounds: T::Bounds) -> Option<T> {
        T::read(texts?.first()?, bounds).ok()
    }
}

impl<T: Value + 'static> Field for Option<T> {
    type Value = T;

    fn from_texts(texts: Option<&[String]>, bounds: T::Bounds) -> Option<Option<T>> {
        match texts {
            None => Some(None),
            texts => T::from_texts(texts, bounds).map(Some),
        }
    }
}

/// A key that is not set is an empty list.
impl<T: Value + 'static> Field for Vec<T> {
    type Value = T;
    const IS_LIST: bool = true;

    fn from_texts(texts: Option<&[String]>, bounds: T::Bounds) -> Option<Vec<T>> {
        let read = |text: &String| T::read(text, bounds).ok();
        texts.unwrap_or_default().iter().map(read).collect()
    }
}

/// The type of a field with the bounds of its key, as tables of keys have it.
pub trait Form: Sync {
    /// A text as the value is printed.
    ///
    /// # Errors
    /// It is no value, or out of bounds.
    fn check(&self, text: &str) -> Result<String, Wrong>;

    /// What to write for a value, or for each one of a list.
    fn words(&self) -> String;

    /// See [`Value::PLACEHOLDER`].
    fn placeholder(&self) -> &'static str;

    /// See [`Value::WRITTEN`].
    fn written(&self) -> &'static [Toml];

    /// See [`Value::names`].
    fn names(&self) -> &'static [&'static str];

    /// See [`Value::meanings`].
    fn meanings(&self) -> String;

    /// Whether it is a list.
    fn is_list(&self) -> bool;

    /// The type of its value, or of each one of a list.
    fn value_type(&self) -> TypeId;
}

impl dyn Form {
    /// A scalar of TOML as the value is printed.
    ///
    /// # Errors
    /// It has another type, is no value, or out of bounds.
    pub fn read(&self, value: &DeValue<'_>) -> Result<String, Wrong> {
        let fits = Toml::of(value).is_some_and(|toml| self.written().contains(&toml));
        match text_of(value).filter(|_| fits) {
            Some(text) => self.check(&text),
            None => Err(Wrong::Other(format!("which is {}", kind(value)))),
        }
    }

    /// Whether its value, or each one of a list, is a `T`.
    pub fn is<T: Value + 'static>(&self) -> bool {
        self.value_type() == TypeId::of::<T>()
    }

    /// Whether TOML writes it in quotes.
    pub fn is_quoted(&self) -> bool {
        self.written().contains(&Toml::Text)
    }
}

/// The form of fields of type `F`.
pub struct Of<F: Field>(pub <F::Value as Value>::Bounds);

impl<F: Field> Form for Of<F> {
    fn check(&self, text: &str) -> Result<String, Wrong> {
        F::Value::read(text, self.0).map(|value| value.text())
    }

    fn words(&self) -> String {
        F::Value::words(self.0)
    }

    fn placeholder(&self) -> &'static str {
        F::Value::PLACEHOLDER
    }

    fn written(&self) -> &'static [Toml] {
        F::Value::WRITTEN
    }

    fn names(&self) -> &'static [&'static str] {
        F::Value::names()
    }

    fn meanings(&self) -> String {
        F::Value::meanings()
    }

    fn is_list(&self) -> bool {
        F::IS_LIST
    }

    fn value_type(&self) -> TypeId {
        TypeId::of::<F::Value>()
    }
}
