// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The configuration of a law: [`Config`].

use crate::{defaults, raw, Law};
use onramp_units::{Bytes, Rate, Span};

/// The parameters of one device. Spans are taken in whole nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config(pub(crate) raw::onr_cfg);

impl Config {
    /// `law` with threshold T and the defaults of law/state.h: g = 1/16, no hold longer than 5 ms,
    /// delays above 100 ms absurd, the gate's tau 1 ms and a 1448 B; line rate unknown; no guard.
    pub fn new(law: Law, threshold: Span) -> Config {
        Config(raw::onr_cfg {
            threshold_ns: threshold.as_ns(),
            max_pause_ns: defaults::MAX_PAUSE.as_ns(),
            max_owd_ns: defaults::MAX_OWD.as_ns(),
            gate_tau_ns: defaults::GATE_TAU.as_ns(),
            guard_window_ns: 0,
            law: law as u32,
            gain_q16: defaults::GAIN_Q16,
            line_ns_per_byte_q16: 0,
            gate_allowance_bytes: defaults::GATE_ALLOWANCE.get() as u32,
        })
    }

    /// Each flow has its own T. A flow without T is not held.
    pub fn threshold_of_peer(mut self) -> Config {
        self.0.threshold_ns = raw::ONR_THRESHOLD_OF_PEER as i64;
        self
    }

    /// Longest hold of a head, whatever arrives; zero holds nothing.
    pub fn max_pause(mut self, longest: Span) -> Config {
        self.0.max_pause_ns = longest.as_ns();
        self
    }

    /// Largest plausible delay, of either sign; a larger sample is absurd.
    pub fn max_owd(mut self, largest: Span) -> Config {
        self.0.max_owd_ns = largest.as_ns();
        self
    }

    /// g of eq. 3 in units of 2^-16, limited to 1.
    pub fn gain_q16(mut self, gain: u32) -> Config {
        self.0.gain_q16 = gain;
        self
    }

    /// The device's rate: corrects delays inside GSO segments. The gate needs it.
    pub fn line_rate(mut self, rate: Rate) -> Config {
        self.0.line_ns_per_byte_q16 = ns_per_byte_q16(rate);
        self
    }

    /// The gate's averaging time of the delivery rate, at most 2^30 ns.
    pub fn gate_tau(mut self, tau: Span) -> Config {
        self.0.gate_tau_ns = tau.as_ns();
        self
    }

    /// The gate's allowance a: bytes in flight that it does not count; saturates at 4 GiB.
    pub fn gate_allowance(mut self, allowance: Bytes) -> Config {
        self.0.gate_allowance_bytes = u32::try_from(allowance.get()).unwrap_or(u32::MAX);
        self
    }

    /// The guard judges after this time whether holding has an effect; zero: no guard.
    pub fn guard(mut self, window: Span) -> Config {
        self.0.guard_window_ns = window.as_ns();
        self
    }

    /// The law; an unknown number is `Off`.
    pub fn law(&self) -> Law {
        let number = self.0.law as usize;
        Law::all().nth(number).unwrap_or(Law::Off)
    }

    /// Whether it has a guard.
    pub fn has_guard(&self) -> bool {
        self.0.guard_window_ns > 0
    }

    /// The C structure.
    pub fn abi(&self) -> &raw::onr_cfg {
        &self.0
    }
}

/// Time of a byte at `rate`, in units of 2^-16 ns, rounded down to at least 1; saturates.
pub fn ns_per_byte_q16(rate: Rate) -> u32 {
    // The time of 2^16 bytes in ns is the time of one in units of 2^-16 ns.
    let q16 = rate.time_to_send(Bytes::new(1 << 16)).as_ns();
    u32::try_from(q16).unwrap_or(u32::MAX).max(1)
}

impl From<raw::onr_cfg> for Config {
    fn from(cfg: raw::onr_cfg) -> Config {
        Config(cfg)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_rate_is_the_time_of_a_byte() {
        let q16 = |rate: &str| {
            let rate = rate.parse().unwrap();
            let config = Config::new(Law::Off, Span::ZERO).line_rate(rate);
            assert_eq!(config.abi().line_ns_per_byte_q16, ns_per_byte_q16(rate));
            ns_per_byte_q16(rate)
        };
        assert_eq!(q16("10 Gbit/s"), 52_428); // 0.8 ns * 65536, rounded down
        assert_eq!(q16("100 Mbit/s"), 80 << 16);
        assert_eq!(q16("1 bit/s"), u32::MAX);
        assert_eq!(q16("1000 Tbit/s"), 1); // 0 is an unknown rate
    }
}
