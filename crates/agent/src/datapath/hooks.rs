// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Where our two programs of a device are attached: tcx, or before Linux 6.6 filters of clsact.
use std::os::fd::BorrowedFd;

use anyhow::{Context, Result};

use super::{pins::Pins, tc::Filters, tcx::Tcx};

/// The attached programs. Dropping it detaches them, unless they are pinned.
pub enum Hooks {
    Tcx(Tcx),
    #[allow(dead_code)] // dropping it detaches
    Tc(Filters),
}

impl Hooks {
    /// Attaches both programs, with tcx in the pinned links of a former daemon or in front of all others.
    ///
    /// # Errors
    /// The kernel has neither tcx nor clsact, or privileges lack.
    pub fn attach(
        ifindex: i32,
        ingress: BorrowedFd<'_>,
        egress: BorrowedFd<'_>,
        pins: Option<&Pins>,
    ) -> Result<Self> {
        match Tcx::attach(ifindex, ingress, egress, pins) {
            Ok(tcx) => Ok(Hooks::Tcx(tcx)),
            Err(error) => Filters::attach(ifindex, ingress, egress)
                .map(Hooks::Tc)
                .with_context(|| format!("{error:#}")),
        }
    }

    /// Pins both programs with their links. Filters end with their daemon.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn pin(&self, pins: &Pins) -> Result<()> {
        match self {
            Hooks::Tcx(tcx) => tcx.pin(pins),
            Hooks::Tc(_) => Ok(()),
        }
    }

    /// The ids of the programs before ours, in either chain. Not known of filters.
    ///
    /// # Errors
    /// The kernel does not list the programs.
    pub fn before_us(&self) -> Result<Vec<u32>> {
        match self {
            Hooks::Tcx(tcx) => tcx.before_us(),
            Hooks::Tc(_) => Ok(vec![]),
        }
    }

    /// False once the device has gone. Not known of filters.
    pub fn are_attached(&self) -> bool {
        match self {
            Hooks::Tcx(tcx) => tcx.is_attached(),
            Hooks::Tc(_) => true,
        }
    }

    /// Puts both programs in front of all others again. Filters stay where they are.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn move_to_front(&mut self) -> Result<()> {
        match self {
            Hooks::Tcx(tcx) => tcx.move_to_front(),
            Hooks::Tc(_) => Ok(()),
        }
    }
}
