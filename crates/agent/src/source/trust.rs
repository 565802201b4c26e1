// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Whether a clock is believed that another program keeps right within a bound, which the operator states. While there is a
//! doubt about the clock, nothing is held.
//!
//! Does not: read a clock, or measure its error. A delay that is impossible within the bound proves the bound wrong.
use std::{fmt, mem, mem::discriminant, net::IpAddr};

use onramp_law::abi::onr_peer;
use onramp_units::Span;
use tracing::{info, warn};

/// Nothing is held for so long after the bound was proved wrong. Without OR-ACKs nothing would show that it is right again.
const DISTRUST_NS: i64 = 60_000_000_000;

/// Why a clock is not believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Doubt {
    /// It does not answer; the reason.
    Unreadable(String),
    /// The kernel says so.
    Unsynchronised,
    /// By the kernel, its error may be larger than this.
    MaxError { most_ns: i64 },
    /// It was set.
    Stepped,
    /// Its readings are less exact than the bound.
    Slow { error_ns: i64 },
    /// A delay that the bound does not allow.
    Contradicted { peer: IpAddr, owd_ns: i64 },
}

/// A doubt about a clock, in words.
struct Words<'a> {
    clock: &'static str,
    doubt: &'a Doubt,
}

impl fmt::Display for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Words { clock, doubt } = self;
        match doubt {
            Doubt::Unreadable(why) => f.write_str(why),
            Doubt::Unsynchronised => write!(
                f,
                "the kernel says that {clock} is not synchronised; does chrony or phc2sys run?"
            ),
            Doubt::MaxError { most_ns } => write!(
                f,
                "the kernel's largest error of {clock} is above {}: no program has set it for long",
                Span::from_ns(*most_ns)
            ),
            Doubt::Stepped => write!(f, "{clock} was stepped"),
            Doubt::Slow { error_ns } => write!(
                f,
                "reading {clock} takes so long that its time is known within {} only, which is more than clock.bound",
                Span::from_ns(*error_ns)
            ),
            Doubt::Contradicted { peer, owd_ns } => write!(
                f,
                "the delay to {peer} is {}, which clock.bound does not allow here and there: one of the two clocks is wrong, or \
                 the bound is too small",
                Span::from_ns(*owd_ns)
            ),
        }
    }
}

/// What is thought of a clock.
pub struct Trust {
    /// Its name in messages.
    clock: &'static str,
    lease_ns: i64,
    bound_ns: i64,
    doubt: Option<Doubt>,
    /// Earliest end of the doubt.
    doubted_until_mono_ns: i64,
    doubts: u64,
    /// When delays were compared last.
    compared_mono_ns: i64,
}

impl Trust {
    /// Trusts a clock that is right within `bound`, until something contradicts.
    pub fn new(clock: &'static str, lease: Span, bound: Span, now: i64) -> Trust {
        Trust {
            clock,
            lease_ns: lease.as_ns(),
            bound_ns: bound.as_ns(),
            doubt: None,
            doubted_until_mono_ns: 0,
            doubts: 0,
            compared_mono_ns: now,
        }
    }

    pub fn lease_ns(&self) -> i64 {
        self.lease_ns
    }

    pub fn bound_ns(&self) -> i64 {
        self.bound_ns
    }

    /// Times that the clock was doubted.
    pub fn doubts(&self) -> u64 {
        self.doubts
    }

    /// Why it is doubted now.
    pub fn doubt(&self) -> Option<String> {
        let words = |doubt| Words {
            clock: self.clock,
            doubt,
        };
        self.doubt.as_ref().map(|doubt| words(doubt).to_string())
    }

    /// Takes what a reading of the clock says against it. Returns whether it is believed.
    pub fn judge(&mut self, found: Option<Doubt>, now: i64) -> bool {
        if let Some(doubt) = found {
            self.begin(doubt, now);
        } else if now >= self.doubted_until_mono_ns && self.doubt.take().is_some() {
            info!("clock: {} is believed again", self.clock);
        }
        self.doubt.is_none()
    }

    /// Compares the delays of peers that were heard since the last comparison with the bound, which holds at both ends.
    pub fn compare(&mut self, peers: &[(IpAddr, onr_peer)], now: i64) {
        let since = mem::replace(&mut self.compared_mono_ns, now);
        let least_ns = -2 * self.bound_ns;
        let is_impossible =
            |peer: &onr_peer| peer.heard_mono_ns >= since && peer.owd_last_ns < least_ns;
        if let Some((peer, of)) = peers.iter().find(|(_, peer)| is_impossible(peer)) {
            let doubt = Doubt::Contradicted {
                peer: *peer,
                owd_ns: of.owd_last_ns,
            };
            self.begin(doubt, now);
        }
    }

    /// Begins a doubt, or goes on with the one that stands: more delays that are impossible are no further doubt.
    fn begin(&mut self, doubt: Doubt, now: i64) {
        let lasts_ns = match doubt {
            Doubt::Stepped => self.lease_ns,
            Doubt::Contradicted { .. } => DISTRUST_NS,
            _ => 0,
        };
        self.doubted_until_mono_ns = self.doubted_until_mono_ns.max(now + lasts_ns);
        let is_other = self.doubt.as_ref().map(discriminant) != Some(discriminant(&doubt));
        self.doubt = Some(doubt);
        if is_other {
            self.doubts += 1;
            let why = self.doubt().unwrap_or_default();
            warn!("clock: nothing is held: {why}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    fn trust() -> Trust {
        Trust::new("the clock", Span::from_s(5), Span::from_us(5), S)
    }

    #[test]
    fn a_doubt_is_counted_once_and_ends_with_its_cause() {
        let mut trust = trust();
        assert!(trust.judge(None, S));
        for at in [2 * S, 3 * S] {
            assert!(!trust.judge(Some(Doubt::Unsynchronised), at));
        }
        assert_eq!(trust.doubts(), 1);
        assert!(trust.judge(None, 4 * S));
        assert_eq!(trust.doubt(), None);
        let why = Doubt::Unreadable("no such clock".to_owned());
        assert!(!trust.judge(Some(why), 5 * S));
        assert_eq!(trust.doubt().unwrap(), "no such clock");
        assert_eq!(trust.doubts(), 2);
    }

    #[test]
    fn a_step_is_doubted_for_a_lease() {
        let mut trust = trust();
        assert!(!trust.judge(Some(Doubt::Stepped), 10 * S));
        assert!(!trust.judge(None, 15 * S - 1));
        assert!(trust.judge(None, 15 * S));
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
        let mut trust = trust();
        trust.compare(&peer(2 * S, -10_000), 3 * S);
        assert!(trust.judge(None, 3 * S), "both ends may be 5 us off");
        trust.compare(&peer(2 * S, -20_000), 4 * S);
        assert!(trust.judge(None, 4 * S), "it was not heard since");
        trust.compare(&peer(5 * S, -10_001), 5 * S);
        trust.compare(&peer(5 * S, -10_002), 5 * S);
        assert_eq!(trust.doubts(), 1, "the second is no news");
        assert!(!trust.judge(None, 64 * S));
        assert!(trust.doubt().unwrap().contains("10.0.0.2"));
        assert!(trust.judge(None, 65 * S));
    }
}
