// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `clock.source = "system"`: fleet time is this host's system clock, CLOCK_REALTIME, which another program (chrony, phc2sys)
//! keeps right within a bound that the operator states.
//!
//! Does not: set the clock. What ends or begins a doubt: `trust`.
use nix::libc;
use nix::time::ClockId;
use onramp_clock::stamps::{now_mono_ns, Ahead};
use onramp_clock::status::FleetClock;
use onramp_sync::synthetic::Oscillator;
use onramp_units::Span;

use super::trust::{Doubt, Trust};

/// The kernel adds 500 us per second to its largest error while no program sets the clock: this much after 200 s.
const MOST_ERROR_NS: i64 = 100_000_000;
const NOT_ALLOWED: &str = "this process may not ask the kernel about the system clock (adjtimex); under systemd allow it \
                           with ProtectClock=no and SystemCallFilter=@clock";

/// What the kernel says about its clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reading {
    is_readable: bool,
    is_synchronised: bool,
    max_error_ns: i64,
    /// It was set since the last reading.
    has_stepped: bool,
}

impl Reading {
    fn doubt(&self) -> Option<Doubt> {
        if self.has_stepped {
            Some(Doubt::Stepped)
        } else if !self.is_readable {
            Some(Doubt::Unreadable(NOT_ALLOWED.to_owned()))
        } else if !self.is_synchronised {
            Some(Doubt::Unsynchronised)
        } else if self.max_error_ns > MOST_ERROR_NS {
            let most_ns = MOST_ERROR_NS;
            Some(Doubt::MaxError { most_ns })
        } else {
            None
        }
    }
}

/// The system clock as a source.
pub struct System {
    pub(super) trust: Trust,
    /// An error that tests add.
    oscillator: Oscillator,
    ahead: Ahead,
}

impl System {
    pub fn new(lease: Span, bound: Span, oscillator: Oscillator) -> System {
        let mut ahead = Ahead::of(ClockId::CLOCK_REALTIME);
        ahead.changed();
        System {
            trust: Trust::new("the system clock", lease, bound, now_mono_ns()),
            oscillator,
            ahead,
        }
    }

    /// The clock now; none while it is doubted.
    pub fn clock(&mut self) -> Option<FleetClock> {
        let has_stepped = self.ahead.changed();
        let now = now_mono_ns();
        let doubt = read(has_stepped).doubt();
        self.trust.judge(doubt, now).then(|| FleetClock {
            reference_mono_ns: now,
            offset_ns: self.ahead.ns() + self.oscillator.read(now) - now,
            // The kernel slews CLOCK_MONOTONIC with CLOCK_REALTIME.
            drift: self.oscillator.drift_at(now),
            sigma_ns: self.trust.bound_ns(),
            heard_mono_ns: now,
            valid_until_mono_ns: now + self.trust.lease_ns(),
        })
    }
}

/// Asks the kernel.
fn read(has_stepped: bool) -> Reading {
    // SAFETY: plain numbers, for which zero is valid.
    let mut timex: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: `timex` lives during the call, and with modes 0 the kernel only writes it.
    let state = unsafe { libc::adjtimex(&mut timex) };
    Reading {
        is_readable: state >= 0,
        is_synchronised: timex.status & libc::STA_UNSYNC == 0,
        max_error_ns: timex.maxerror.saturating_mul(1_000),
        has_stepped,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: Reading = Reading {
        is_readable: true,
        is_synchronised: true,
        max_error_ns: MOST_ERROR_NS,
        has_stepped: false,
    };

    #[test]
    fn a_clock_is_doubted_that_is_not_synchronised_or_that_nobody_has_set_for_long() {
        assert_eq!(GOOD.doubt(), None);
        let bad = Reading {
            is_synchronised: false,
            ..GOOD
        };
        assert_eq!(bad.doubt(), Some(Doubt::Unsynchronised));
        let old = Reading {
            max_error_ns: MOST_ERROR_NS + 1,
            ..GOOD
        };
        assert!(matches!(old.doubt(), Some(Doubt::MaxError { .. })));
    }

    #[test]
    fn a_clock_that_was_set_or_may_not_be_asked_is_doubted() {
        let stepped = Reading {
            has_stepped: true,
            is_synchronised: false,
            ..GOOD
        };
        assert_eq!(stepped.doubt(), Some(Doubt::Stepped));
        let refused = Reading {
            is_readable: false,
            ..GOOD
        };
        let Some(Doubt::Unreadable(why)) = refused.doubt() else {
            panic!("{:?}", refused.doubt());
        };
        assert!(why.contains("SystemCallFilter"), "{why}");
    }
}
