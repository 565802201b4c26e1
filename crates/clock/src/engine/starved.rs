// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Whether this host had a processor when it needed one. It hears so from its own timers, which end late, and from what the
//! kernel says of the thread and of the machine.

use crate::machine::Lacked;

/// Part of a window in which a host may lack a processor. With more, the window counts as starved.
const STARVED: f64 = 0.25;
/// Longest time without a processor; a longer one makes the window starved. Neighbours take 100 ms now and then.
const LONGEST_NS: i64 = 200_000_000;
/// The same for a leader: beyond these its verdicts are late.
const UNFIT: f64 = 0.5;
const UNFIT_NS: i64 = 1_000_000_000;

/// What a window has shown.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Window {
    /// Part of the window for which the host lacked a processor, 0 to 1.
    pub part: f64,
    /// Longest delay of a timer, ns.
    pub longest_ns: i64,
    /// The kernel says neither how long the thread waited nor what the hypervisor took.
    pub is_silent: bool,
}

impl Window {
    /// Whether it lacked a processor for so long that stamps and lines may be late.
    pub fn is_starved(&self) -> bool {
        self.part > STARVED || self.longest_ns > LONGEST_NS
    }

    /// Whether it lacked a processor for too long to lead a fleet.
    pub fn is_unfit(&self) -> bool {
        self.part > UNFIT || self.longest_ns > UNFIT_NS
    }
}

/// Counts delays over a window.
#[derive(Debug)]
pub(super) struct Starved {
    since_mono_ns: i64,
    late_ns: i64,
    longest_ns: i64,
    lacked: Lacked,
}

impl Starved {
    /// Counts from `now` on.
    pub fn since(now: i64) -> Starved {
        Starved {
            since_mono_ns: now,
            late_ns: 0,
            longest_ns: 0,
            lacked: Lacked::default(),
        }
    }

    /// The host wanted to be woken at `due`, and was at `now`.
    pub fn woken(&mut self, due: i64, now: i64) {
        let late_ns = now.saturating_sub(due).max(0);
        self.late_ns = self.late_ns.saturating_add(late_ns);
        self.longest_ns = self.longest_ns.max(late_ns);
    }

    /// Ends the window.
    pub fn end_window(&mut self, lacked: Lacked, now: i64) -> Window {
        let grown = |is: Option<i64>, was: Option<i64>| Some(is?.saturating_sub(was?).max(0));
        let delays = [
            grown(lacked.waited_ns, self.lacked.waited_ns),
            grown(lacked.stolen_ns, self.lacked.stolen_ns),
        ];
        let most_ns = delays.into_iter().flatten().fold(self.late_ns, i64::max);
        let window_ns = now.saturating_sub(self.since_mono_ns).max(1);
        let window = Window {
            part: (most_ns as f64 / window_ns as f64).min(1.0),
            longest_ns: self.longest_ns,
            is_silent: lacked == Lacked::default(),
        };
        *self = Starved {
            lacked,
            ..Starved::since(now)
        };
        window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    fn lacked(waited_ns: i64, stolen_ns: i64) -> Lacked {
        Lacked {
            waited_ns: Some(waited_ns),
            stolen_ns: Some(stolen_ns),
        }
    }

    #[test]
    fn late_timers_waiting_and_steal_each_show_it() {
        let mut starved = Starved::since(0);
        let calm = starved.end_window(lacked(50 * S, 90 * S), 2 * S);
        assert!(
            !calm.is_starved(),
            "what was before it began does not count"
        );
        let waited = starved.end_window(lacked(51 * S, 90 * S), 4 * S);
        assert!(waited.is_starved() && !waited.is_unfit(), "{waited:?}");
        let stolen = starved.end_window(lacked(51 * S, 92 * S), 6 * S);
        assert!(stolen.is_unfit(), "{stolen:?}");
        starved.woken(7 * S, 7 * S + 300_000_000);
        let late = starved.end_window(lacked(51 * S, 92 * S), 8 * S);
        assert!(late.is_starved() && !late.is_unfit(), "{late:?}");
    }

    #[test]
    fn a_kernel_that_says_nothing_leaves_the_timers() {
        let mut starved = Starved::since(0);
        starved.woken(S, 2 * S + 1);
        let window = starved.end_window(Lacked::default(), 2 * S);
        assert!(window.is_silent && window.is_unfit());
        // A clock that goes back, and counters that do.
        starved.woken(9 * S, S);
        let window = starved.end_window(Lacked::default(), S);
        assert!(!window.is_starved(), "{window:?}");
        starved.end_window(lacked(5, 5), 3 * S);
        assert_eq!(starved.end_window(lacked(0, 0), 5 * S).part, 0.0);
    }
}
