// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! One-way delays of the data packets that arrive.

use crate::host::delays::Delays;
use onramp_units::Span;

/// The delays of data packets to the hosts of a domain.
pub(crate) struct Arrivals {
    /// By node: the longest since the last call.
    longest: Vec<Span>,
    /// The host whose delays are all kept, if any.
    measured: Option<(u32, Delays)>,
}

impl Arrivals {
    pub fn new(nodes: usize) -> Arrivals {
        Arrivals {
            longest: vec![Span::ZERO; nodes],
            measured: None,
        }
    }

    /// Adds the `delay` of a data packet that arrives at `host`.
    #[inline]
    pub fn note(&mut self, host: u32, delay: Span) {
        let longest = &mut self.longest[host as usize];
        *longest = (*longest).max(delay);
        if let Some((measured, delays)) = &mut self.measured {
            if *measured == host {
                delays.note(delay);
            }
        }
    }

    /// The longest delay at `host` since the last call.
    pub fn take_longest(&mut self, host: u32) -> Span {
        std::mem::take(&mut self.longest[host as usize])
    }

    /// Keeps all delays of `host` from now on.
    pub fn measure(&mut self, host: u32) {
        self.measured = Some((host, Delays::new()));
    }

    /// Stops the recording and returns its delays.
    pub fn take_measured(&mut self) -> Option<Delays> {
        Some(self.measured.take()?.1)
    }
}
