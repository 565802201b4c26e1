//! `clock.source = "system"`: fleet time is this host's system clock, CLOCK_REALTIME, which another program (chrony, phc2sys)
//! keeps right within a bound that the operator states. When there is doubt about the clock, nothing is held.
//!
//! Does not: set the clock, or measure its error. A delay that is impossible within the bound proves the bound wrong.
use std::{
    fmt,
    mem::{self, discriminant},
    net::IpAddr,
};

use nix::libc;
use nix::time::ClockId;
use onramp_clock::stamps::{now_mono_ns, Ahead};
use onramp_clock::status::FleetClock;
use onramp_law::abi::onr_peer;
use onramp_sync::synthetic::Oscillator;
use onramp_units::Span;
use tracing::{info, warn};

/// The kernel adds 500 us per second to its largest error while no program sets the clock: this much after 200 s.
const MOST_ERROR_NS: i64 = 100_000_000;
/// Nothing is held for so long after the bound was proved wrong. Without OR-ACKs nothing would show that it is right again.
const DISTRUST_NS: i64 = 60_000_000_000;

/// What the kernel says about its clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reading {
    is_readable: bool,
    is_synchronised: bool,
    max_error_ns: i64,
    /// It was set since the last reading.
    has_stepped: bool,
}

/// Why the clock is not believed.
#[derive(Debug, Clone, Copy)]
enum Doubt {
    Unreadable,
    Unsynchronised,
    MaxError,
    Stepped,
    Contradicted { peer: IpAddr, owd_ns: i64 },
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Doubt::Unreadable => write!(
                f,
                "this process may not ask the kernel about the system clock (adjtimex); under systemd allow it with \
                 ProtectClock=no and SystemCallFilter=@clock"
            ),
            Doubt::Unsynchronised => write!(
                f,
                "the kernel says that the system clock is not synchronised; does chrony or phc2sys run?"
            ),
            Doubt::MaxError => write!(
                f,
                "the kernel's largest error of the system clock is above {}: no program has set it for long",
                Span::from_ns(MOST_ERROR_NS)
            ),
            Doubt::Stepped => write!(f, "the system clock was stepped"),
            Doubt::Contradicted { peer, owd_ns } => write!(
                f,
                "the delay to {peer} is {}, which clock.bound does not allow here and there: one of the two clocks is wrong, or \
                 the bound is too small",
                Span::from_ns(*owd_ns)
            ),
        }
    }
}

/// The system clock as a source.
pub struct System {
    lease_ns: i64,
    bound_ns: i64,
    /// Of tests.
    oscillator: Oscillator,
    ahead: Ahead,
    doubt: Option<Doubt>,
    /// Earliest end of the doubt.
    doubted_until_mono_ns: i64,
    doubts: u64,
    /// When delays were looked at last.
    looked_mono_ns: i64,
}

impl System {
    pub fn new(lease: Span, bound: Span, oscillator: Oscillator) -> System {
        let mut ahead = Ahead::of(ClockId::CLOCK_REALTIME);
        ahead.changed();
        System {
            lease_ns: lease.as_ns(),
            bound_ns: bound.as_ns(),
            oscillator,
            ahead,
            doubt: None,
            doubted_until_mono_ns: 0,
            doubts: 0,
            looked_mono_ns: now_mono_ns(),
        }
    }

    pub fn lease_ns(&self) -> i64 {
        self.lease_ns
    }

    /// Times that the clock was doubted.
    pub fn doubts(&self) -> u64 {
        self.doubts
    }

    /// Why it is doubted now.
    pub fn doubt(&self) -> Option<String> {
        self.doubt.map(|doubt| doubt.to_string())
    }

    /// The clock now; none while it is doubted.
    pub fn clock(&mut self) -> Option<FleetClock> {
        let has_stepped = self.ahead.changed();
        let now = now_mono_ns();
        let reading = read(has_stepped);
        self.judge(reading, now).then(|| FleetClock {
            reference_mono_ns: now,
            offset_ns: self.ahead.ns() + self.oscillator.read(now) - now,
            // The kernel slews CLOCK_MONOTONIC with CLOCK_REALTIME.
            drift: self.oscillator.drift_at(now),
            sigma_ns: self.bound_ns,
            heard_mono_ns: now,
            valid_until_mono_ns: now + self.lease_ns,
        })
    }

    /// Takes what the kernel says. Returns whether the clock is believed.
    fn judge(&mut self, reading: Reading, now: i64) -> bool {
        if reading.has_stepped {
            self.begin(Doubt::Stepped, now + self.lease_ns);
        } else if !reading.is_readable {
            self.begin(Doubt::Unreadable, now);
        } else if !reading.is_synchronised {
            self.begin(Doubt::Unsynchronised, now);
        } else if reading.max_error_ns > MOST_ERROR_NS {
            self.begin(Doubt::MaxError, now);
        } else if now >= self.doubted_until_mono_ns && self.doubt.take().is_some() {
            info!("clock: the system clock is believed again");
        }
        self.doubt.is_none()
    }

    /// Compares the delays of peers that were heard since the last comparison with the bound, which holds at both ends.
    pub fn compare(&mut self, peers: &[(IpAddr, onr_peer)], now: i64) {
        let since = mem::replace(&mut self.looked_mono_ns, now);
        let least_ns = -2 * self.bound_ns;
        let is_impossible =
            |peer: &onr_peer| peer.heard_mono_ns >= since && peer.owd_last_ns < least_ns;
        if let Some((peer, of)) = peers.iter().find(|(_, peer)| is_impossible(peer)) {
            let doubt = Doubt::Contradicted {
                peer: *peer,
                owd_ns: of.owd_last_ns,
            };
            self.begin(doubt, now + DISTRUST_NS);
        }
    }

    /// Begins a doubt, or goes on with the one that stands: more delays that are impossible are no further doubt.
    fn begin(&mut self, doubt: Doubt, until_mono_ns: i64) {
        self.doubted_until_mono_ns = self.doubted_until_mono_ns.max(until_mono_ns);
        let former = self.doubt.replace(doubt);
        if former.map(|of| discriminant(&of)) != Some(discriminant(&doubt)) {
            self.doubts += 1;
            warn!("clock: nothing is held: {doubt}");
        }
    }
}

/// Asks the kernel.
fn read(has_stepped: bool) -> Reading {
    let mut timex = empty();
    // SAFETY: `timex` lives during the call, and with modes 0 the kernel only writes it.
    let state = unsafe { libc::adjtimex(&mut timex) };
    Reading {
        is_readable: state >= 0,
        is_synchronised: timex.status & libc::STA_UNSYNC == 0,
        max_error_ns: timex.maxerror.saturating_mul(1_000),
        has_stepped,
    }
}

fn empty() -> libc::timex {
    // SAFETY: plain numbers, for which zero is valid.
    unsafe { std::mem::zeroed() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;
    const GOOD: Reading = Reading {
        is_readable: true,
        is_synchronised: true,
        max_error_ns: 1_000_000,
        has_stepped: false,
    };

    fn system() -> System {
        System::new(Span::from_s(5), Span::from_us(5), Oscillator::default())
    }

    #[test]
    fn an_unsynchronised_clock_is_doubted_once_and_believed_when_it_is_synchronised() {
        let mut clock = system();
        assert!(clock.judge(GOOD, S));
        let bad = Reading {
            is_synchronised: false,
            ..GOOD
        };
        assert!(!clock.judge(bad, 2 * S) && !clock.judge(bad, 3 * S));
        assert_eq!(clock.doubts(), 1);
        assert!(clock.judge(GOOD, 4 * S));
        assert_eq!(clock.doubt(), None);
        let refused = Reading {
            is_readable: false,
            ..GOOD
        };
        assert!(!clock.judge(refused, 5 * S));
        assert!(clock.doubt().unwrap().contains("SystemCallFilter"));
    }

    #[test]
    fn a_clock_that_nobody_has_set_for_long_is_doubted() {
        let mut clock = system();
        let at = |max_error_ns| Reading {
            max_error_ns,
            ..GOOD
        };
        assert!(clock.judge(at(MOST_ERROR_NS), S));
        assert!(!clock.judge(at(MOST_ERROR_NS + 1), S));
    }

    #[test]
    fn a_step_is_doubted_for_a_lease() {
        let mut clock = system();
        let stepped = Reading {
            has_stepped: true,
            ..GOOD
        };
        assert!(!clock.judge(stepped, 10 * S));
        assert!(!clock.judge(GOOD, 15 * S - 1));
        assert!(clock.judge(GOOD, 15 * S));
    }

    #[test]
    fn a_delay_below_both_bounds_is_doubted_for_a_minute() {
        let peer = |heard_mono_ns, owd_last_ns| {
            let of = onr_peer {
                heard_mono_ns,
                owd_last_ns,
                ..onr_peer::default()
            };
            [(IpAddr::from([10, 0, 0, 2]), of)]
        };
        let mut clock = system();
        clock.looked_mono_ns = S;
        clock.compare(&peer(2 * S, -10_000), 3 * S);
        assert!(clock.judge(GOOD, 3 * S), "both ends may be 5 us off");
        clock.compare(&peer(2 * S, -20_000), 4 * S);
        assert!(clock.judge(GOOD, 4 * S), "it was not heard since");
        clock.compare(&peer(5 * S, -10_001), 5 * S);
        clock.compare(&peer(5 * S, -10_002), 5 * S);
        assert_eq!(clock.doubts(), 1, "the second is no news");
        assert!(!clock.judge(GOOD, 64 * S));
        assert!(clock.doubt().unwrap().contains("10.0.0.2"));
        assert!(clock.judge(GOOD, 65 * S));
    }
}
