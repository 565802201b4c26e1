// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The queue of a drop-tail port, reconstructed between arrivals: the kernel says how many bytes
//! each arrival found queued, the line drains them at a known rate in between. From that follow
//! the queueing delay at every instant (not only at arrivals), idle time and drops.

use super::Busy;
use onramp_units::{Bytes, Rate};
use serde::{Deserialize, Serialize};

/// Number of intervals of the histogram of delays, from none to a full buffer.
const BINS: usize = 4096;

/// Points of the port's load over the window.
const LOAD_POINTS: usize = 2000;

/// A port: its line and its buffer.
#[derive(Debug, Clone, Copy)]
pub struct Port {
    /// The line's rate.
    pub rate: Rate,
    /// Bytes that may wait, the one in transmission not counted.
    pub buffer_bytes: u64,
}

impl Port {
    fn wire_ns(self, bytes: u64) -> f64 {
        self.rate.time_to_send(Bytes::new(bytes)).as_ps() as f64 / 1e3
    }
}

/// Queueing delay of a port over time: how long an arrival at that instant would wait for the
/// line, the rest of the frame in transmission included.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct QueueDelay {
    /// Time-weighted mean.
    pub mean: f64,
    /// Not exceeded half of the time.
    pub p50: f64,
    /// Not exceeded 90 % of the time.
    pub p90: f64,
    /// Not exceeded 95 % of the time.
    pub p95: f64,
    /// Not exceeded 99 % of the time.
    pub p99: f64,
    /// Largest.
    pub max: f64,
}

/// Follows a port through its arrivals.
#[derive(Debug, Clone)]
pub struct QueueTracker {
    port: Port,
    from_ns: i64,
    until_ns: i64,
    at_ns: i64,
    /// Time until the line is free, at `at_ns`.
    work_ns: f64,
    bin_ns: f64,
    /// Time spent in each bin: whole crossings as differences, parts on their own.
    crossings: Vec<f64>,
    parts: Vec<f64>,
    idle_ns: f64,
    area_ns2: f64,
    max_ns: f64,
    /// When the line was sending, in the window.
    pub load: Busy,
    /// Bytes that arrived in the window and were admitted.
    pub admitted_bytes: u64,
    /// Arrivals in the window.
    pub arrivals: u64,
    /// Arrivals in the window for which there was no room.
    pub dropped: u64,
}

impl QueueTracker {
    /// Measures within [`from_ns`, `until_ns`); arrivals outside only move the queue.
    pub fn new(port: Port, from_ns: i64, until_ns: i64) -> QueueTracker {
        let largest_ns = port.wire_ns(port.buffer_bytes + 2 * 1514);
        QueueTracker {
            port,
            from_ns,
            until_ns,
            at_ns: i64::MIN,
            work_ns: 0.0,
            bin_ns: largest_ns / BINS as f64,
            crossings: vec![0.0; BINS + 2],
            parts: vec![0.0; BINS + 1],
            idle_ns: 0.0,
            area_ns2: 0.0,
            max_ns: 0.0,
            load: Busy::new(from_ns, until_ns, LOAD_POINTS),
            admitted_bytes: 0,
            arrivals: 0,
            dropped: 0,
        }
    }

    /// A frame of `bytes` arrives and finds `queued_bytes`. Returns the queueing delay that it
    /// meets, ns. Arrivals come in order of time.
    pub fn arrive(&mut self, now_ns: i64, bytes: u64, queued_bytes: u64) -> f64 {
        self.advance(now_ns);
        // What the kernel says is true; how much of the frame on the wire is left, it does not say.
        let least = self.port.wire_ns(queued_bytes);
        let wait_ns = self.work_ns.clamp(least, least + self.port.wire_ns(1514));
        let measured = (self.from_ns..self.until_ns).contains(&now_ns);
        let fits = queued_bytes + bytes <= self.port.buffer_bytes;
        self.work_ns = if fits {
            wait_ns + self.port.wire_ns(bytes)
        } else {
            wait_ns
        };
        if measured {
            self.max_ns = self.max_ns.max(self.work_ns);
            self.arrivals += 1;
            self.dropped += u64::from(!fits);
            self.admitted_bytes += if fits { bytes } else { 0 };
        }
        wait_ns
    }

    /// The queue of the window so far; none before it has begun. Delays in ns.
    pub fn delay(&mut self) -> Option<QueueDelay> {
        self.advance(self.until_ns);
        let total_ns = (self.until_ns - self.from_ns) as f64;
        (total_ns > 0.0).then(|| QueueDelay {
            mean: self.area_ns2 / total_ns,
            p50: self.quantile(0.5 * total_ns),
            p90: self.quantile(0.9 * total_ns),
            p95: self.quantile(0.95 * total_ns),
            p99: self.quantile(0.99 * total_ns),
            max: self.max_ns,
        })
    }

    /// Time in the window when the line had nothing to send, ns.
    pub fn idle_ns(&self) -> f64 {
        self.idle_ns
    }

    fn advance(&mut self, now_ns: i64) {
        let before = self.at_ns;
        self.at_ns = now_ns.max(before);
        if before == i64::MIN {
            // Nothing has arrived before: the port was idle.
            self.idle_from_window_start(now_ns);
            return;
        }
        let passed = (now_ns - before).max(0) as f64;
        let skipped = (self.from_ns - before).clamp(0, (now_ns - before).max(0)) as f64;
        let counted_until = (self.until_ns.min(now_ns) - before).max(0) as f64;
        self.load.add(before, self.work_ns.min(passed));
        let work = |after: f64| (self.work_ns - after).max(0.0);
        let (high, low) = (work(skipped), work(counted_until.max(skipped)));
        self.work_ns = work(passed);
        self.spend(high, low, counted_until - skipped);
    }

    fn idle_from_window_start(&mut self, now_ns: i64) {
        let idle = (now_ns.min(self.until_ns) - self.from_ns).max(0) as f64;
        self.idle_ns += idle;
        self.parts[0] += idle;
    }

    /// `time_ns` passes, in which the delay falls from `high` to `low`.
    fn spend(&mut self, high: f64, low: f64, time_ns: f64) {
        if time_ns <= 0.0 {
            return;
        }
        let idle = (time_ns - (high - low)).max(0.0);
        self.idle_ns += idle;
        self.parts[0] += idle;
        self.area_ns2 += (high * high - low * low) / 2.0;
        let bin = |delay: f64| ((delay / self.bin_ns) as usize).min(BINS);
        let (top, bottom) = (bin(high), bin(low));
        if top == bottom {
            self.parts[top] += high - low;
        } else {
            self.parts[top] += high - top as f64 * self.bin_ns;
            self.parts[bottom] += (bottom + 1) as f64 * self.bin_ns - low;
            self.crossings[bottom + 1] += self.bin_ns;
            self.crossings[top] -= self.bin_ns;
        }
    }

    fn quantile(&self, target_ns: f64) -> f64 {
        // Idle time is at delay 0 exactly, not somewhere in the first bin.
        if self.idle_ns >= target_ns {
            return 0.0;
        }
        let (mut passed, mut whole) = (0.0, 0.0);
        for bin in 0..=BINS {
            whole += self.crossings[bin];
            passed += self.parts[bin] + whole;
            if passed >= target_ns {
                return (bin + 1) as f64 * self.bin_ns;
            }
        }
        self.max_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 8 Gbit/s: a byte a nanosecond.
    const PORT: Port = Port {
        rate: Rate::from_bits_per_s(8_000_000_000).expect("not zero"),
        buffer_bytes: 10_000,
    };

    #[test]
    fn an_unused_port_is_idle() {
        let mut queue = QueueTracker::new(PORT, 0, 1000);
        let delay = queue.delay().unwrap();
        assert_eq!((delay.mean, delay.p99, queue.idle_ns()), (0.0, 0.0, 1000.0));
    }

    #[test]
    fn a_frame_makes_the_next_wait_for_its_rest() {
        let mut queue = QueueTracker::new(PORT, 0, 4000);
        assert_eq!(queue.arrive(0, 1000, 0), 0.0);
        assert_eq!(queue.arrive(400, 1000, 0), 600.0);
        // Busy from 0 to 2000.
        queue.delay();
        assert_eq!(queue.idle_ns(), 2000.0);
        assert_eq!(queue.admitted_bytes, 2000);
        let sent: f64 = queue.load.fractions().map(|part| part.value).sum();
        assert!((sent / LOAD_POINTS as f64 - 0.5).abs() < 1e-9, "{sent}");
        assert_eq!(queue.delay().unwrap().max, 1600.0);
    }

    #[test]
    fn the_mean_delay_is_the_area_over_time() {
        let mut queue = QueueTracker::new(PORT, 0, 2000);
        queue.arrive(0, 1000, 0);
        // A triangle of 1000 ns by 1000 ns over 2000 ns.
        assert_eq!(queue.delay().unwrap().mean, 250.0);
    }

    #[test]
    fn percentiles_are_weighted_by_time() {
        let mut queue = QueueTracker::new(PORT, 0, 10_000);
        queue.arrive(0, 5000, 0);
        let delay = queue.delay().unwrap();
        // Falls from 5000 to 0 in half of the time, then 0: half of the time at 0.
        assert_eq!(delay.p50, 0.0);
        for (quantile, ns) in [
            (delay.p90, 4000.0),
            (delay.p95, 4500.0),
            (delay.p99, 4900.0),
        ] {
            assert!((quantile - ns).abs() < 10.0, "{delay:?}");
        }
    }

    #[test]
    fn what_does_not_fit_is_dropped_and_adds_no_delay() {
        let mut queue = QueueTracker::new(PORT, 0, 100_000);
        queue.arrive(0, 1500, 9000);
        assert_eq!(queue.dropped, 1);
        assert_eq!(queue.arrive(0, 1000, 9000), 9000.0);
        assert_eq!(
            (queue.arrivals, queue.dropped, queue.admitted_bytes),
            (2, 1, 1000)
        );
    }

    #[test]
    fn only_the_window_counts() {
        let mut queue = QueueTracker::new(PORT, 1000, 2000);
        queue.arrive(0, 1500, 0);
        let delay = queue.delay().unwrap();
        assert_eq!(queue.arrivals, 0);
        // 500 ns of rest at the start of the window.
        assert_eq!(delay.mean, 125.0);
        assert_eq!(queue.idle_ns(), 500.0);
    }

    #[test]
    fn the_kernels_count_corrects_the_model() {
        let mut queue = QueueTracker::new(PORT, 0, 100_000);
        queue.arrive(0, 1500, 0);
        // The model says the line is free; the kernel says 3000 B wait.
        assert_eq!(queue.arrive(5000, 1500, 3000), 3000.0);
    }
}
