// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `--threshold auto`: T to each peer, from the delays of the path to it (paper, sections 3.2 and 7.1).
//! Pure; the daemon writes the result into the data path.
use std::{collections::BTreeMap, net::IpAddr};

use onramp_status::Reasons;

/// The largest T that the data path can store.
const LONGEST_NS: i64 = u32::MAX as i64;
/// T grows with the error of the clocks in steps of this length.
const STEP_NS: f64 = 100.0;

/// Terms of T beside the peer's minimum delay, ns.
#[derive(Clone, Copy, Debug)]
pub struct Margin {
    pub headroom_ns: i64,
    /// The most that the clocks make a delay wrong by.
    pub clock_error_ns: i64,
    pub burst_ns: i64,
}

impl Margin {
    /// What the error of the clocks adds to the headroom. The headroom is for the noise of an idle path, which has another
    /// cause, so their squares add. Rounded up, because each change of T is written into the data path.
    fn clocks_ns(&self) -> i64 {
        let (headroom_ns, error_ns) = (self.headroom_ns as f64, self.clock_error_ns as f64);
        let added_ns = libm::hypot(headroom_ns, error_ns) - headroom_ns;
        ((added_ns / STEP_NS).ceil() * STEP_NS) as i64
    }
}

/// T by peer. `probed` and `acked` are the minimum delays measured by probes and by OR-ACKs. Both are of
/// the last half minute. Probes take precedence because data often waits in a queue that it has built itself.
/// An error of the clocks can make a minimum negative; then 0 is used.
pub fn thresholds(
    probed: &[(IpAddr, i64)],
    acked: &[(IpAddr, i64)],
    margin: Margin,
) -> BTreeMap<IpAddr, Reasons> {
    let clocks_ns = margin.clocks_ns();
    let reasons = |min_ns: i64, by_probes| {
        let min_ns = min_ns.max(0);
        let sum = min_ns
            .saturating_add(margin.headroom_ns)
            .saturating_add(clocks_ns)
            .saturating_add(margin.burst_ns);
        Reasons {
            threshold_ns: sum.clamp(1, LONGEST_NS),
            min_ns,
            by_probes,
            headroom_ns: margin.headroom_ns,
            clocks_ns,
            burst_ns: margin.burst_ns,
        }
    };
    let by = |list: &[(IpAddr, i64)], by_probes| -> Vec<(IpAddr, Reasons)> {
        let entry = |(addr, min_ns): &(IpAddr, i64)| (*addr, reasons(*min_ns, by_probes));
        list.iter().map(entry).collect()
    };
    by(acked, false)
        .into_iter()
        .chain(by(probed, true))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_the_sum_of_its_reasons() {
        let (a, b): (IpAddr, IpAddr) = ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
        let margin = |clock_error_ns| Margin {
            headroom_ns: 10_000,
            clock_error_ns,
            burst_ns: 13_000,
        };
        let right = thresholds(&[(a, 20_000)], &[(a, 15_000), (b, -300)], margin(0));
        assert_eq!(right[&a].threshold_ns, 20_000 + 10_000 + 13_000);
        assert!(right[&a].by_probes && !right[&b].by_probes);
        assert_eq!(right[&b].threshold_ns, 23_000);
        let unsure = thresholds(&[(a, 20_000)], &[], margin(24_000));
        assert_eq!(unsure[&a].clocks_ns, 16_000, "10, 24 and 26 us");
        assert_eq!(unsure[&a].threshold_ns, 20_000 + 26_000 + 13_000);
        let absurd = thresholds(&[(a, i64::MAX)], &[], margin(i64::MAX));
        assert_eq!(absurd[&a].threshold_ns, LONGEST_NS);
    }

    /// Sigma is 0.1 to 0.3 us then, a delay wrong by up to 6 sigma.
    #[test]
    fn clocks_of_an_idle_fleet_add_less_than_a_microsecond() {
        let added_ns = |clock_error_ns| {
            let (headroom_ns, burst_ns) = (10_000, 0);
            let margin = Margin {
                headroom_ns,
                clock_error_ns,
                burst_ns,
            };
            margin.clocks_ns()
        };
        assert_eq!([0, 600, 1_800].map(added_ns), [0, 100, 200]);
    }
}
