// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Commands that this build does not have: their error gives the command that builds them.
use std::ffi::OsString;

use anyhow::{bail, Result};

/// Accepts all arguments of the missing command.
#[derive(clap::Args)]
pub struct Args {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    given: Vec<OsString>,
}

/// The error of a command that needs `feature` of crates/onramp/Cargo.toml.
pub fn refuse<T>(feature: &str) -> Result<T> {
    bail!(
        "this onramp was built without its feature `{feature}`; for all features build it with \
         `cargo build --release -p onramp`, which needs clang-19 and libelf (`make setup` installs them)"
    )
}
