// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The sampled transmissions a flow remembers: [`Records`].

use crate::{raw, Config, Flow, Verdict, SAMPLE_BYTES};
use onramp_units::{Mono, Time};

/// A ring of the 64 newest sampled transmissions of one flow (1.5 KiB).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Records {
    ring: Box<raw::onr_records>,
    every: u32,
}

impl Default for Records {
    /// With the default distance of samples.
    fn default() -> Records {
        Records::sampling(SAMPLE_BYTES)
    }
}

impl Records {
    /// Empty. Multiples of `every` bytes, at least 1, are sampled.
    pub fn sampling(every: u32) -> Records {
        Records {
            ring: Box::default(),
            every: every.max(1),
        }
    }

    /// Bytes `seq .. seq + len` are handed to the device. The law counts them, and a record is kept if they
    /// are sampled and new.
    pub fn sent(&mut self, config: &Config, flow: &mut Flow, now: Time<Mono>, seq: u32, len: u32) {
        self.handed_down(config, flow, (now, now), seq, len);
    }

    /// As `sent`, to a device that will send the first byte later: `(now, then)`. The record's stamp is then.
    pub fn handed_down(
        &mut self,
        config: &Config,
        flow: &mut Flow,
        (now, leaves): (Time<Mono>, Time<Mono>),
        seq: u32,
        len: u32,
    ) {
        let (now, leaves) = (now.ticks(), leaves.ticks());
        // SAFETY: the references are valid for the call, which keeps none of them.
        unsafe {
            let ring = &mut *self.ring;
            raw::onr_records_sent(
                &config.0,
                &mut flow.0,
                ring,
                now,
                leaves,
                seq,
                len,
                self.every,
            );
        }
    }

    /// An OR-ACK: the receiver had byte `seq` at `received`, on this host's clock.
    pub fn orack(
        &mut self,
        config: &Config,
        flow: &mut Flow,
        seq: u32,
        now: Time<Mono>,
        received: Time<Mono>,
    ) -> Verdict {
        let (now, rx) = (now.ticks(), received.ticks());
        // SAFETY: as in `sent`; C returns only values of the enum.
        unsafe { raw::onr_records_orack(&config.0, &mut flow.0, &mut *self.ring, seq, now, rx) }
    }

    /// Forgets everything, as for a new connection on the same ports.
    pub fn reset(&mut self) {
        // SAFETY: as in `sent`.
        unsafe { raw::onr_records_reset(&mut *self.ring) }
    }

    /// Searches for the record of the next OR-ACK from the newest on, for tests.
    #[doc(hidden)]
    pub fn forget_awaited(&mut self) {
        self.ring.awaited = self.ring.next;
    }

    /// The C structure.
    pub fn abi(&self) -> &raw::onr_records {
        &self.ring
    }
}

/// The sampled byte of `seq .. seq + len`, the last one if there are several: multiples of `every`
/// bytes, at least 1, are.
pub fn sampled_byte(seq: u32, len: u32, every: u32) -> Option<u32> {
    let every = every.max(1);
    // SAFETY: pure functions of integers, which divide by no zero.
    unsafe {
        (raw::onr_sampled(seq, len, every) != 0).then(|| raw::onr_sampled_byte(seq, len, every))
    }
}

/// The first multiple of `every` bytes, at least 1, at or after `seq`.
pub fn next_sampled_byte(seq: u32, every: u32) -> u32 {
    // SAFETY: as in `sampled_byte`.
    unsafe { raw::onr_sampled_next(seq, every.max(1)) }
}
