// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A failure that may last is logged when it begins and when it ends, not each second between.
use anyhow::Result;
use tracing::{info, warn};

/// Something that the daemon does again and again, and that must not end it.
pub struct Trouble {
    /// What is the matter while it fails.
    what: &'static str,
    lasts: bool,
}

impl Trouble {
    pub fn of(what: &'static str) -> Trouble {
        Trouble { what, lasts: false }
    }

    /// Takes the outcome of one attempt.
    pub fn note(&mut self, outcome: Result<()>) {
        match &outcome {
            Err(error) if !self.lasts => warn!("{}: {error:#}", self.what),
            Ok(()) if self.lasts => info!("no longer: {}", self.what),
            _ => {}
        }
        self.lasts = outcome.is_err();
    }
}
