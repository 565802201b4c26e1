// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What a receiver says about its own port, as law/receiver.h counts it: [`Receiver`], [`Hint`].

use crate::{raw, Config};
use onramp_units::{Mono, Time};

/// The 16 bits of a receiver in an OR-ACK. The default: unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hint(u16);

impl Hint {
    /// The bits as they are in an OR-ACK; any number is safe.
    pub fn of_bits(bits: u16) -> Hint {
        Hint(bits)
    }

    /// As they are in an OR-ACK.
    pub fn bits(self) -> u16 {
        self.0
    }
}

/// What one device counts of what arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Receiver(raw::onr_receiver);

impl Receiver {
    /// A packet of `bytes` has arrived; `managed`: of a host with On-Ramp. `config` has the rate of the line and tau.
    pub fn arrived(&mut self, config: &Config, now: Time<Mono>, bytes: u32, managed: bool) {
        let managed_bytes = if managed { bytes } else { 0 };
        // SAFETY: the references are valid for the call, which keeps none of them.
        unsafe {
            raw::onr_receiver_arrived(&config.0, &mut self.0, now.ticks(), bytes, managed_bytes);
        }
    }

    /// A sample of a managed flow with this number, or hash, has arrived. Returns what its OR-ACK says.
    pub fn sampled(&mut self, config: &Config, flow: u32) -> Hint {
        // SAFETY: as in `arrived`.
        let bits = unsafe {
            raw::onr_receiver_flow(&mut self.0, flow);
            raw::onr_receiver_says(&config.0, &self.0)
        };
        Hint(bits as u16)
    }
}
