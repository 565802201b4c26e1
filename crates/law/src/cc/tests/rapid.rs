// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
use super::{MBIT, Q16, US};
use crate::cc::*;
use proptest::prelude::*;

const PACKET: u64 = 1448;
const MS: u64 = 1_000_000;

/// The paper's parameters.
fn paper() -> RapidCfg {
    RapidCfg {
        min_rate: MBIT / 10,
        max_rate: 100_000 * MBIT,
        tau_ns: 10 * MS,
        fall_q16: (Q16 / 3.0) as u32,
        spread_q16: (1.15 * Q16) as u32,
        start_spread_q16: (2.0 * Q16) as u32,
        each: 16,
        gamma: 3,
        patience: 16,
        packet_bytes: PACKET as u32,
        least_run: 4,
        least_rise_ns: US,
        spike_rise_ns: 30 * US,
        spike_fall_ns: 20 * US,
        passes: 3,
        standing_ns: 200 * US,
        cap_packets: 1000,
    }
}

/// A connection.
#[derive(Debug)]
struct Law {
    cfg: RapidCfg,
    flow: Rapid,
    stream: Box<RapidStream>,
}

impl Law {
    fn begin(cfg: RapidCfg, bytes_per_s: u64) -> Law {
        let (mut flow, mut stream) = (Rapid::default(), Box::default());
        rapid_begin(&cfg, &mut flow, &mut stream, bytes_per_s, 0);
        Law { cfg, flow, stream }
    }

    fn mbit(&self) -> f64 {
        self.flow.rate as f64 / MBIT as f64
    }

    fn gap_ns(&mut self, number: u32) -> f64 {
        rapid_gap_ns(&self.cfg, &mut self.flow, number) as f64
    }

    fn arrived(&mut self, arrival: &RapidArrival) -> RapidNews {
        rapid_arrived(&self.cfg, &mut self.flow, &mut self.stream, arrival)
    }
}

/// One in its normal streams at this mean rate.
fn at(mbit: u64, cfg: RapidCfg) -> Law {
    let mut law = Law::begin(cfg, mbit * MBIT);
    law.flow.in_start = 0;
    law.flow.each = cfg.each;
    law
}

/// The next packet in order, which was sent and arrived at the same time.
fn in_order(number: u32, at_ns: u64, rtt_ns: u64) -> RapidArrival {
    RapidArrival {
        number,
        are_all: 1,
        is_limited: 0,
        next: number + 1,
        sent_ns: at_ns,
        arrived_ns: at_ns,
        rtt_ns,
    }
}

/// A link with cross traffic as a fluid: what is sent faster than `available` queues, and the queue drains at what is
/// left. The receiver waits for `coalescing` and acknowledges `each` packets at once.
struct Path {
    available_bytes_per_s: f64,
    each: u32,
    coalescing_ns: f64,
    now_ns: f64,
    link_free_ns: f64,
}

impl Path {
    fn new(available_mbit: f64) -> Path {
        Path {
            available_bytes_per_s: available_mbit * 1e6 / 8.0,
            each: 2,
            coalescing_ns: 0.0,
            now_ns: 0.0,
            link_free_ns: 0.0,
        }
    }

    /// Sends `packets`, and hands each report to the law at once. Returns the estimates, in Mbit/s.
    fn run(&mut self, law: &mut Law, packets: std::ops::Range<u32>) -> Vec<f64> {
        let mut estimates = Vec::new();
        for number in packets {
            self.now_ns += law.gap_ns(number);
            let took = PACKET as f64 / self.available_bytes_per_s * 1e9;
            self.link_free_ns = self.link_free_ns.max(self.now_ns) + took;
            if number % self.each != self.each - 1 {
                continue;
            }
            let mut arrived = self.link_free_ns;
            if self.coalescing_ns > 0.0 {
                arrived = (arrived / self.coalescing_ns).ceil() * self.coalescing_ns;
            }
            let news = law.arrived(&RapidArrival {
                arrived_ns: arrived as u64,
                ..in_order(number, self.now_ns as u64, (arrived - self.now_ns) as u64)
            });
            if news == RapidNews::Estimate {
                estimates.push(law.flow.last_estimate as f64 / MBIT as f64);
            }
        }
        estimates
    }
}

#[test]
fn a_stream_has_the_mean_rate_and_four_rates_15_percent_apart() {
    let mut law = at(1000, paper());
    let gaps: Vec<f64> = (0..64).map(|n| law.gap_ns(n)).collect();
    let mean_ns = gaps.iter().sum::<f64>() / 64.0;
    assert!((mean_ns - 1448.0 * 8.0).abs() < 2.0, "{mean_ns} ns");
    for pair in [(0, 16), (16, 32), (32, 48)] {
        assert!((gaps[pair.0] / gaps[pair.1] - 1.15).abs() < 0.002);
    }
    let parts: Vec<f64> = (0..4).map(|i| mean_ns / gaps[16 * i]).collect();
    for (part, facts) in parts.iter().zip([0.8208, 0.9439, 1.0855, 1.2483]) {
        assert!((part - facts).abs() < 0.001, "{parts:?}");
    }
}

#[test]
fn the_estimate_is_the_rate_before_packets_queue() {
    // Rates of 821, 944, 1085 and 1248 Mbit/s.
    for (available, estimate) in [
        (700.0, 821.0),
        (900.0, 821.0),
        (1000.0, 944.0),
        (1100.0, 1085.0),
        (2000.0, 1248.0),
    ] {
        let cfg = RapidCfg {
            gamma: 1000,
            ..paper()
        };
        let mut law = at(1000, cfg);
        let found = Path::new(available).run(&mut law, 0..640);
        assert!(found.len() >= 8, "{found:?}");
        for one in &found[1..] {
            assert!(
                (one - estimate).abs() < 0.01 * estimate,
                "{available}: {found:?}"
            );
        }
    }
}

/// Mean estimate of 900 Mbit/s behind a receiver that waits 100 us.
fn estimated_behind_waits(passes: u32) -> f64 {
    let cfg = RapidCfg {
        gamma: 1000,
        passes,
        ..paper()
    };
    let mut path = Path::new(900.0);
    path.coalescing_ns = 100_000.0;
    let found = path.run(&mut at(1000, cfg), 0..6400);
    assert!(found.len() > 90, "{found:?}");
    found.iter().sum::<f64>() / found.len() as f64
}

#[test]
fn waits_do_not_hide_the_queue() {
    for passes in [0, 3] {
        let estimated = estimated_behind_waits(passes);
        assert!((estimated - 900.0).abs() < 90.0, "{passes}: {estimated}");
    }
}

#[test]
fn denoising_fills_an_idle_line_behind_a_receiver_that_waits() {
    let after = |passes: u32| {
        let cfg = RapidCfg { passes, ..paper() };
        let mut law = at(600, cfg);
        let mut path = Path::new(1000.0);
        path.coalescing_ns = 100_000.0;
        path.run(&mut law, 0..40_000);
        law.mbit()
    };
    let (raw, denoised) = (after(0), after(3));
    assert!((880.0..1000.0).contains(&denoised), "{denoised} Mbit/s");
    assert!(raw < denoised, "{raw} and {denoised} Mbit/s");
}

#[test]
fn the_start_finds_the_rate_of_an_idle_line_in_less_than_half_a_second() {
    let mut law = Law::begin(paper(), rapid_first_rate(&paper(), 30 * MS));
    let mut path = Path::new(1000.0);
    path.each = 1;
    let mut sent = 0;
    while law.flow.in_start == 1 {
        assert!(path.now_ns < 0.5e9, "{law:?}");
        path.run(&mut law, sent..sent + 1);
        sent += 1;
    }
    let now = law.mbit();
    assert!((250.0..1000.0).contains(&now), "{now} Mbit/s");
    path.run(&mut law, sent..sent + 20_000);
    let then = law.mbit();
    assert!((800.0..=1030.0).contains(&then), "{then} Mbit/s");
}

#[test]
fn the_rate_rises_in_tau_and_falls_by_a_third_of_the_way() {
    let after_a_stream = |available| {
        let cfg = RapidCfg {
            gamma: 1,
            ..paper()
        };
        let (mut law, mut path) = (at(1000, cfg), Path::new(available));
        let mut sent = 0;
        while law.flow.seen == 0 {
            path.run(&mut law, sent..sent + 1);
            sent += 1;
        }
        law.mbit()
    };
    // 0.74 of 10 ms up to 1248 Mbit/s, and down to 821.
    let (risen, fallen) = (after_a_stream(2000.0), after_a_stream(700.0));
    assert!((risen - 1018.4).abs() < 1.0, "{risen}");
    assert!((fallen - 940.3).abs() < 1.0, "{fallen}");
}

/// 18 streams of 1 Gbit/s, each of which loses a packet.
fn lose_in_each_stream(law: &mut Law, rtt_ms: impl Fn(u32) -> u64) -> Vec<RapidNews> {
    let is_lost = |number: &u32| number % 64 == 30;
    let report = |number| {
        law.arrived(&RapidArrival {
            are_all: (number % 64 != 31).into(),
            ..in_order(number, u64::from(number) * 11_584, rtt_ms(number) * MS)
        })
    };
    (0..64 * 18).filter(|n| !is_lost(n)).map(report).collect()
}

#[test]
fn a_stream_with_a_lost_packet_has_no_estimate_and_many_of_them_halve_the_rate() {
    let mut law = at(1000, paper());
    let news = lose_in_each_stream(&mut law, |_| 1);
    assert!(!news.contains(&RapidNews::Estimate));
    assert_eq!(law.flow.rate, 500 * MBIT);
}

#[test]
fn a_stream_with_a_lost_packet_drains_a_queue_that_stands() {
    let mut law = at(1000, paper());
    let news = lose_in_each_stream(&mut law, |number| if number < 64 { 1 } else { 3 });
    assert!(news.contains(&RapidNews::Estimate));
    assert!(law.flow.rate < 500 * MBIT);
}

#[test]
fn a_stream_of_an_application_without_data_changes_nothing() {
    let mut law = at(1000, paper());
    for number in 0..64 * 40 {
        law.arrived(&RapidArrival {
            is_limited: (number % 64 == 5).into(),
            ..in_order(number, u64::from(number) * MS, 0)
        });
    }
    assert_eq!(law.flow.rate, 1000 * MBIT);
}

/// A step or a jump to a packet, flags, times, and what else happens.
type Report = (u32, u32, (bool, bool), u64, u64, u8);

fn take(law: &mut Law, number: &mut u32, report: &Report) {
    let &(jump, step, (are_all, is_limited), sent_ns, arrived_ns, what) = report;
    *number = if what % 20 == 0 {
        jump
    } else {
        number.wrapping_add(step % 200)
    };
    law.gap_ns(*number);
    law.arrived(&RapidArrival {
        number: *number,
        are_all: are_all.into(),
        is_limited: is_limited.into(),
        next: number.wrapping_add(1),
        sent_ns,
        arrived_ns,
        rtt_ns: 0,
    });
    if what % 20 == 1 {
        rapid_back_off(&law.cfg, &mut law.flow, &mut law.stream, *number);
    }
}

proptest! {
    #[test]
    fn the_rate_stays_within_its_bounds_whatever_is_reported(
        reports in prop::collection::vec(any::<Report>(), 1..400), each in 1u32..=48, passes in 0u32..10, gamma in 1u32..10,
    ) {
        let mut law = Law::begin(RapidCfg { each, gamma, passes, ..paper() }, 1);
        let mut number = 0;
        for report in &reports {
            take(&mut law, &mut number, report);
            let rate = law.flow.rate;
            prop_assert!((MBIT / 10..=100_000 * MBIT).contains(&rate), "{rate}");
        }
    }

    /// A division by zero, or an index that is none, would end the test.
    #[test]
    fn any_configuration_is_answered(
        cfg in any::<[u64; 10]>(), reports in prop::collection::vec(any::<Report>(), 1..400), rate: u64,
    ) {
        let (mut law, mut number) = (Law::begin(bytemuck::cast(cfg), rate), 0);
        for report in &reports {
            take(&mut law, &mut number, report);
        }
    }

    #[test]
    fn a_configuration_of_zeros_is_answered(reports in prop::collection::vec(any::<Report>(), 1..400)) {
        let (mut law, mut number) = (Law::begin(RapidCfg::default(), 0), 0);
        for report in &reports {
            take(&mut law, &mut number, report);
        }
    }
}
