// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
use super::*;
use proptest::prelude::*;

const PACKET: u64 = 1448;

fn rate(mbit_per_s: u64) -> Rate {
    Rate::from_bits_per_s(mbit_per_s * 1_000_000).expect("above zero")
}

/// The paper's parameters.
fn paper() -> RapidConfig {
    RapidConfig {
        bounds: (Rate::from_bits_per_s(100_000).unwrap(), rate(100_000)),
        tau: Span::from_ms(10),
        fall: 1.0 / 3.0,
        spread: (1.15, 2.0),
        each: 16,
        gamma: 3,
        patience: 16,
        packet_bytes: PACKET as u32,
        least: (4, Span::from_us(1)),
        spike: (Span::from_us(30), Span::from_us(20), 3),
        standing: Span::from_us(200),
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
    reported: u32,
}

impl Path {
    fn new(available_mbit: f64) -> Path {
        Path {
            available_bytes_per_s: available_mbit * 1e6 / 8.0,
            each: 2,
            coalescing_ns: 0.0,
            now_ns: 0.0,
            link_free_ns: 0.0,
            reported: 0,
        }
    }

    /// Sends `packets`, and hands each report to the law at once. Returns the estimates.
    fn run(&mut self, law: &mut Rapid, packets: std::ops::Range<u32>) -> Vec<f64> {
        let mut estimates = Vec::new();
        for number in packets {
            self.now_ns += law.gap(number).as_ps() as f64 / 1000.0;
            let took = PACKET as f64 / self.available_bytes_per_s * 1e9;
            self.link_free_ns = self.link_free_ns.max(self.now_ns) + took;
            if number % self.each != self.each - 1 {
                continue;
            }
            let mut arrived = self.link_free_ns;
            if self.coalescing_ns > 0.0 {
                arrived = (arrived / self.coalescing_ns).ceil() * self.coalescing_ns;
            }
            let news = law.arrived(&Arrival {
                number,
                are_all: true,
                is_limited: false,
                next: number + 1,
                sent_ns: self.now_ns as u64,
                arrived_ns: arrived as u64,
                rtt: Span::from_ns((arrived - self.now_ns) as i64),
            });
            self.reported = number;
            if news == Estimate::Rapid_estimate {
                estimates.push(law.last_estimate().0 as f64 * 8e-6);
            }
        }
        estimates
    }
}

/// A law in its normal streams at this mean rate.
fn at(mbit: u64, config: &RapidConfig) -> Rapid {
    let mut law = Rapid::new(config);
    law.begin(mbit * 125_000, 0);
    law.state.in_start = 0;
    law.state.each = config.each;
    law
}

#[test]
fn a_stream_has_the_mean_rate_and_four_rates_15_percent_apart() {
    let mut law = at(1000, &paper());
    let gaps: Vec<f64> = (0..64).map(|n| law.gap(n).as_ps() as f64).collect();
    let mean_ps = gaps.iter().sum::<f64>() / 64.0;
    assert!((mean_ps - 1448.0 * 8000.0).abs() < 2000.0, "{mean_ps} ps");
    for pair in [(0, 16), (16, 32), (32, 48)] {
        assert!((gaps[pair.0] / gaps[pair.1] - 1.15).abs() < 0.002);
    }
    let parts: Vec<f64> = (0..4).map(|i| mean_ps / gaps[16 * i]).collect();
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
        let mut law = at(
            1000,
            &RapidConfig {
                gamma: 1000,
                ..paper()
            },
        );
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
    let config = RapidConfig {
        gamma: 1000,
        spike: (Span::from_us(30), Span::from_us(20), passes),
        ..paper()
    };
    let mut path = Path::new(900.0);
    path.coalescing_ns = 100_000.0;
    let found = path.run(&mut at(1000, &config), 0..6400);
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
        let config = RapidConfig {
            spike: (Span::from_us(30), Span::from_us(20), passes),
            ..paper()
        };
        let mut law = at(600, &config);
        let mut path = Path::new(1000.0);
        path.coalescing_ns = 100_000.0;
        path.run(&mut law, 0..40_000);
        law.bytes_per_s().unwrap() as f64 * 8e-6
    };
    let (raw, denoised) = (after(0), after(3));
    assert!((880.0..1000.0).contains(&denoised), "{denoised} Mbit/s");
    assert!(raw < denoised, "{raw} and {denoised} Mbit/s");
}

#[test]
fn the_start_finds_the_rate_of_an_idle_line_in_less_than_half_a_second() {
    let mut law = Rapid::new(&paper());
    law.begin_after(Span::from_ms(30), 0);
    let mut path = Path::new(1000.0);
    path.each = 1;
    let mut sent = 0;
    while law.state.in_start == 1 {
        assert!(path.now_ns < 0.5e9, "{law:?}");
        path.run(&mut law, sent..sent + 1);
        sent += 1;
    }
    let now = law.bytes_per_s().unwrap() as f64 * 8e-6;
    assert!((250.0..1000.0).contains(&now), "{now} Mbit/s");
    path.run(&mut law, sent..sent + 20_000);
    let then = law.bytes_per_s().unwrap() as f64 * 8e-6;
    assert!((800.0..=1030.0).contains(&then), "{then} Mbit/s");
}

#[test]
fn the_rate_rises_in_tau_and_falls_in_three_updates() {
    let mut law = at(1000, &paper());
    let set = |law: &mut Rapid, mbit: u64, lasted_us: u64| {
        // SAFETY: reads the configuration, writes the state.
        unsafe {
            raw::onr_rapid_adapt(
                &law.config,
                &mut law.state,
                mbit * 125_000,
                lasted_us * 1000,
            )
        };
        law.bytes_per_s().unwrap() / 125_000
    };
    assert_eq!(set(&mut law, 2000, 1000), 1099, "a tenth of tau");
    assert_eq!(set(&mut law, 2099, 50_000), 2099, "longer than tau");
    assert_eq!(set(&mut law, 1799, 1000), 1999, "a third of the way down");
}

/// 18 streams of 1 Gbit/s, each of which loses a packet.
fn lose_in_each_stream(law: &mut Rapid, rtt: impl Fn(u32) -> Span) -> Vec<Estimate> {
    let is_lost = |number: &u32| number % 64 == 30;
    let report = |number| {
        law.arrived(&Arrival {
            number,
            are_all: number % 64 != 31,
            is_limited: false,
            next: number + 1,
            sent_ns: u64::from(number) * 11_584,
            arrived_ns: u64::from(number) * 11_584,
            rtt: rtt(number),
        })
    };
    (0..64 * 18).filter(|n| !is_lost(n)).map(report).collect()
}

#[test]
fn a_stream_with_a_lost_packet_has_no_estimate_and_many_of_them_halve_the_rate() {
    let mut law = at(1000, &paper());
    let news = lose_in_each_stream(&mut law, |_| Span::from_ms(1));
    assert!(!news.contains(&Estimate::Rapid_estimate));
    assert_eq!(law.bytes_per_s(), Some(62_500_000));
}

#[test]
fn a_stream_with_a_lost_packet_drains_a_queue_that_stands() {
    let mut law = at(1000, &paper());
    let news = lose_in_each_stream(&mut law, |number| {
        Span::from_ms(if number < 64 { 1 } else { 3 })
    });
    assert!(news.contains(&Estimate::Rapid_estimate));
    assert!(law.bytes_per_s() < Some(62_500_000));
}

#[test]
fn a_stream_of_an_application_without_data_changes_nothing() {
    let mut law = at(1000, &paper());
    for number in 0..64 * 40 {
        law.arrived(&Arrival {
            number,
            are_all: true,
            is_limited: number % 64 == 5,
            next: number + 1,
            sent_ns: u64::from(number) * 1_000_000,
            arrived_ns: u64::from(number) * 1_000_000,
            rtt: Span::ZERO,
        });
    }
    assert_eq!(law.bytes_per_s(), Some(125_000_000));
}

proptest! {
    #[test]
    fn the_rate_stays_within_its_bounds_whatever_is_reported(
        reports in prop::collection::vec(
            (any::<u32>(), 0u32..200, any::<(bool, bool)>(), any::<u64>(), any::<u64>(), 0u8..20), 1..400),
        each in 1u32..=48, passes in 0u32..10, gamma in 1u32..10,
    ) {
        let config = RapidConfig { each, gamma, spike: (Span::from_us(30), Span::from_us(20), passes), ..paper() };
        let mut law = Rapid::new(&config);
        law.begin(1, 0);
        let mut number = 0u32;
        for (jump, step, (are_all, is_limited), sent_ns, arrived_ns, what) in reports {
            number = if what == 0 { jump } else { number.wrapping_add(step) };
            law.gap(number);
            law.arrived(&Arrival { number, are_all, is_limited, next: number.wrapping_add(1), sent_ns, arrived_ns, rtt: Span::ZERO });
            if what == 1 {
                law.back_off(number);
            }
            let rate = law.bytes_per_s().unwrap();
            prop_assert!((12_500..=12_500_000_000).contains(&rate), "{rate}");
        }
    }
}
