// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What flows to each peer did in an hour. Pure.
use std::collections::BTreeMap;
use std::net::IpAddr;

use onramp_law::abi::ONR_MAX_PEERS;
use onramp_trace::Hour;

use super::follow::Step;
use super::Now;

const HOUR_S: u64 = 3_600;

/// The peers of the present hour.
#[derive(Default)]
pub struct Hours {
    from: Option<(u64, i64)>,
    peers: BTreeMap<IpAddr, PeerHour>,
    /// Since the daemon began.
    held_ns: BTreeMap<IpAddr, u64>,
}

/// A peer in the present hour.
#[derive(Default, Clone)]
pub struct PeerHour {
    from_unix_s: u64,
    from_mono_ns: i64,
    size_bytes: u64,
    samples: u64,
    min_ns: i64,
    max_ns: i64,
    sum_ns: i128,
    samples_above: u64,
    above_ns: i128,
    held_ns: i64,
    threshold_ns: i64,
}

impl Hours {
    /// The peers of the hour before, if another has begun.
    pub fn advance(&mut self, now: &Now<'_>) -> Vec<(IpAddr, PeerHour)> {
        let (from_s, _) = *self.from.get_or_insert((now.unix_s, now.mono_ns));
        if from_s / HOUR_S == now.unix_s / HOUR_S {
            return vec![];
        }
        self.end(now)
    }

    /// The peers of the present hour, which ends.
    pub fn end(&mut self, now: &Now<'_>) -> Vec<(IpAddr, PeerHour)> {
        let (from_unix_s, from_mono_ns) = self.from.unwrap_or((now.unix_s, now.mono_ns));
        self.from = Some((now.unix_s, now.mono_ns));
        let of_hour = |(addr, peer): (IpAddr, PeerHour)| {
            let peer = PeerHour {
                from_unix_s,
                from_mono_ns,
                threshold_ns: (now.threshold_ns)(addr).unwrap_or(0),
                ..peer
            };
            (addr, peer)
        };
        let peers = std::mem::take(&mut self.peers);
        peers.into_iter().map(of_hour).collect()
    }

    /// Adds what a look at a flow to the peer gave.
    pub fn add(&mut self, peer: IpAddr, step: &Step, look_ns: i64, now: &Now<'_>) {
        let is_idle = step.new_bytes == 0 && step.delay_ns.is_none() && !step.is_held;
        let is_full = self.peers.len() >= ONR_MAX_PEERS as usize;
        if is_idle || is_full && !self.peers.contains_key(&peer) {
            return;
        }
        let hour = self.peers.entry(peer).or_default();
        hour.size_bytes += step.new_bytes;
        if let Some(ns) = step.delay_ns {
            hour.sample(ns, (now.threshold_ns)(peer));
        }
        if step.is_held {
            hour.held_ns += look_ns;
            *self.held_ns.entry(peer).or_default() += look_ns as u64;
        }
    }

    /// For how long flows to a peer were held since the daemon began; none if no look saw that.
    pub fn held_ns(&self, peer: IpAddr) -> Option<u64> {
        self.held_ns.get(&peer).copied()
    }
}

impl PeerHour {
    fn sample(&mut self, ns: i64, threshold_ns: Option<i64>) {
        let is_first = self.samples == 0;
        self.min_ns = if is_first { ns } else { self.min_ns.min(ns) };
        self.max_ns = if is_first { ns } else { self.max_ns.max(ns) };
        self.samples += 1;
        self.sum_ns += i128::from(ns);
        if let Some(t_ns) = threshold_ns.filter(|t_ns| ns > *t_ns) {
            self.samples_above += 1;
            self.above_ns += i128::from(ns - t_ns);
        }
    }

    pub fn record(&self, to: String, now: &Now<'_>) -> Hour {
        let mean = |sum: i128| (sum / i128::from(self.samples.max(1))) as i64;
        Hour {
            from_unix_s: self.from_unix_s,
            span_ns: now.mono_ns - self.from_mono_ns,
            to,
            size_bytes: self.size_bytes,
            samples: self.samples,
            owd_min_ns: self.min_ns,
            owd_mean_ns: mean(self.sum_ns),
            owd_max_ns: self.max_ns,
            threshold_ns: self.threshold_ns,
            samples_above: self.samples_above,
            above_mean_ns: mean(self.above_ns),
            held_ns: self.held_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_has_what_its_looks_saw_and_the_next_begins_empty() {
        let peer: IpAddr = "10.0.0.2".parse().unwrap();
        let threshold = |_| Some(100);
        let now = |unix_s: u64| Now {
            mono_ns: unix_s as i64,
            offset_ns: 0,
            unix_s,
            threshold_ns: &threshold,
        };
        let step = |delay_ns| Step {
            new_bytes: 10,
            delay_ns,
            is_held: true,
            ..Step::default()
        };
        let mut hours = Hours::default();
        assert!(hours.advance(&now(3_500)).is_empty());
        for delay in [Some(40), Some(160), None] {
            hours.add(peer, &step(delay), 7, &now(3_501));
        }
        hours.add(peer, &Step::default(), 7, &now(3_502));
        assert!(hours.advance(&now(3_599)).is_empty());
        let ended = hours.advance(&now(3_601));
        let hour = ended[0].1.record("b".into(), &now(3_601));
        assert_eq!(
            (hour.from_unix_s, hour.span_ns, hour.size_bytes),
            (3_500, 101, 30)
        );
        assert_eq!((hour.samples, hour.samples_above), (2, 1));
        let delays = (hour.owd_min_ns, hour.owd_mean_ns, hour.owd_max_ns);
        assert_eq!(delays, (40, 100, 160));
        assert_eq!(
            (hour.above_mean_ns, hour.held_ns, hour.threshold_ns),
            (30, 21, 100)
        );
        assert!(hours.end(&now(3_700)).is_empty());
        assert_eq!(hours.held_ns(peer), Some(21));
    }
}
