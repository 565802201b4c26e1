//! `--threshold auto`: T to each peer, from the delays of the path to it (paper, sections 3.2 and 7.1).
//! Pure; the daemon writes the result into the data path.
use std::{collections::BTreeMap, net::IpAddr};

use onramp_status::Reasons;

/// The largest T that the data path can store.
const LONGEST_NS: i64 = u32::MAX as i64;

/// Terms of T beside the peer's minimum delay, ns.
#[derive(Clone, Copy, Debug)]
pub struct Margin {
    pub headroom_ns: i64,
    pub sigma_ns: i64,
    pub burst_ns: i64,
}

/// T by peer. `probed` and `acked` are the minimum delays measured by probes and by OR-ACKs. Both are of
/// the last half minute. Probes take precedence because data often waits in a queue that it has built itself.
/// An error of the clocks can make a minimum negative; then 0 is used.
pub fn thresholds(
    probed: &[(IpAddr, i64)],
    acked: &[(IpAddr, i64)],
    margin: Margin,
) -> BTreeMap<IpAddr, Reasons> {
    let headroom_ns = margin.headroom_ns.max(margin.sigma_ns.saturating_mul(2));
    let reasons = |min_ns: i64, by_probes| {
        let min_ns = min_ns.max(0);
        let sum = min_ns
            .saturating_add(headroom_ns)
            .saturating_add(margin.burst_ns);
        Reasons {
            threshold_ns: sum.clamp(1, LONGEST_NS),
            min_ns,
            by_probes,
            headroom_ns,
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
        let margin = |sigma_ns| Margin {
            headroom_ns: 10_000,
            sigma_ns,
            burst_ns: 13_000,
        };
        let calm = thresholds(&[(a, 20_000)], &[(a, 15_000), (b, -300)], margin(200));
        assert_eq!(calm[&a].threshold_ns, 20_000 + 10_000 + 13_000);
        assert!(calm[&a].by_probes && !calm[&b].by_probes);
        assert_eq!(calm[&b].threshold_ns, 23_000);
        let unsure = thresholds(&[(a, 20_000)], &[], margin(50_000));
        assert_eq!(unsure[&a].threshold_ns, 20_000 + 100_000 + 13_000);
        let absurd = thresholds(&[(a, i64::MAX)], &[], margin(i64::MAX));
        assert_eq!(absurd[&a].threshold_ns, LONGEST_NS);
    }
}
