// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The state of one flow and one transmission of it: [`Flow`], [`Record`].

use crate::{raw, Config, Hint, Verdict};
use onramp_units::{Mono, Span, Time};

/// The law's state of one flow; the default is a new flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flow(pub(crate) raw::onr_flow);

/// The record of one transmission, kept until its OR-ACK comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Record(raw::onr_record);

impl Record {
    /// The configuration under which it was made.
    pub fn first_byte(&self) -> u32 {
        self.0.seq
    }
}

/// What comes with an OR-ACK besides the sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PathState {
    /// Least delay to the flow's peer, if it is known.
    pub least: Option<Span>,
    /// Fleet time less the sender's monotonic time.
    pub fleet_ahead: Span,
    /// What the receiver says about its port.
    pub hint: Hint,
}

impl Flow {
    /// Sets what comes with the next OR-ACK. `level` and the guard use it.
    pub fn set_path(&mut self, path: &PathState) {
        let least_ns = path.least.map_or(raw::ONR_NO_OWD as i64, Span::as_ns);
        // SAFETY: the reference is valid for the call, which does not keep it.
        unsafe {
            raw::onr_path_set(
                &mut self.0,
                least_ns,
                path.fleet_ahead.as_ns(),
                path.hint.bits().into(),
            );
        }
    }

    /// Bytes `seq .. seq + len` are handed to the device. Use this if the transport keeps the
    /// record with the packet, and [`crate::Records::sent`] otherwise.
    pub fn sent(&mut self, config: &Config, now: Time<Mono>, seq: u32, len: u32) -> Record {
        let mut record = raw::onr_record::default();
        // SAFETY: the references are valid for the call, which keeps none of them.
        unsafe {
            raw::onr_segment_sent(&config.0, &mut self.0, now.ticks(), seq, len, &mut record);
        }
        Record(record)
    }

    /// An OR-ACK: the receiver had byte `seq` of `record` at `received`, on this host's clock.
    pub fn orack(
        &mut self,
        config: &Config,
        record: &Record,
        seq: u32,
        now: Time<Mono>,
        received: Time<Mono>,
    ) -> Verdict {
        let (now, rx) = (now.ticks(), received.ticks());
        // SAFETY: as in `sent`; C returns only values of the enum.
        unsafe { raw::onr_orack_arrived(&config.0, &mut self.0, &record.0, seq, now, rx) }
    }

    /// `None`: the head may go. Otherwise the time of the next decision: after `now`, and at most the longest
    /// pause after the first refusal of the head. `now` is not negative.
    pub fn may_go(&mut self, config: &Config, now: Time<Mono>) -> Option<Time<Mono>> {
        // SAFETY: as in `sent`.
        let again_ns = unsafe { raw::onr_may_go(&config.0, &mut self.0, now.ticks()) };
        (again_ns != 0).then(|| Time::from_ticks(again_ns))
    }

    /// Sets T to this flow's peer, in whole ns of at most 4 s; zero: the configuration's T.
    pub fn set_threshold(&mut self, threshold: Span) {
        let ns = threshold.as_ns().clamp(0, u32::MAX.into());
        self.0.threshold_ns = ns as u32;
    }

    /// One-way delay of the last sample used.
    pub fn owd(&self) -> Option<Span> {
        (self.0.sampled != 0).then(|| Span::from_ns(self.0.sample_owd_ns))
    }

    /// beta of eq. 3 in units of 2^-16, 0 to 65536.
    pub fn beta_q16(&self) -> u32 {
        self.0.beta_q16
    }

    /// A(now): total time of asserted pause since the flow began.
    pub fn paused(&self, now: Time<Mono>) -> Span {
        // SAFETY: as in `sent`.
        let ns = unsafe { raw::onr_pause_clock(&self.0, now.ticks()) };
        Span::from_ns(i64::try_from(ns).unwrap_or(i64::MAX))
    }

    /// Whether the head may go only because it was held for the longest pause.
    pub fn capped(&self) -> bool {
        self.0.capped != 0
    }

    /// The C structure.
    pub fn abi(&self) -> &raw::onr_flow {
        &self.0
    }
}

impl Record {
    /// The C structure.
    pub fn abi(&self) -> &raw::onr_record {
        &self.0
    }
}

impl From<raw::onr_record> for Record {
    fn from(record: raw::onr_record) -> Record {
        Record(record)
    }
}
