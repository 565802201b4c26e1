//! Verbs that this build leaves out: they say how to get them.
use std::ffi::OsString;

use anyhow::{bail, Result};

/// Takes whatever the verb would.
#[derive(clap::Args)]
pub struct Args {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    given: Vec<OsString>,
}

/// The error of a verb that needs `feature`, one of crates/onramp/Cargo.toml.
pub fn refuse<T>(feature: &str) -> Result<T> {
    bail!(
        "this onramp was built without its feature `{feature}`; for all features build it with \
         `cargo build --release -p onramp`, which needs clang-19 and libelf (`make setup` installs them)"
    )
}
