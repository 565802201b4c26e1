// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The guard on a real kernel, over a grid of laws, paths, thresholds and clocks: what a flow keeps of its throughput,
//! alone and beside a flow that nobody holds. Prints the table of docs/law.md.
use std::{thread, time::Duration};

use crate::{
    agent::Agent,
    maps::{step_clock, LONG_LEASE},
    net::{Plan, Star},
    tcp::{finish_all, Load, Transfer},
};

const LAWS: [&str; 2] = ["final", "gate"];
/// Delays of the path, one way, without its queue.
const DELAYS_MS: [u32; 2] = [1, 10];
/// Over the idle delay in a threshold that fits: two frames at the port and the line, 10 us, and a segment at the line.
const HEADROOM_US: u32 = 900;
/// The threshold, and by how much the receiver's clock is ahead.
const WRONG: [(&str, i64); 4] = [("50us", 0), ("5ms", 0), ("5ms", 20), ("5ms", -20)];
/// The daemon's defaults, on a line that is twice as fast as the port.
const OPTIONS: &[&str] = &["--shape", "200Mbit/s", "--flows", "256"];
/// Measured, after the first.
const SECONDS: usize = 3;
/// Part of its least second with a threshold that fits.
const ALONE: f64 = 0.9;
/// Part of half of what the two flows have together without On-Ramp. A single one has 0.8 or 1.4 of that half in a few seconds.
const BESIDE_UNMANAGED: f64 = 0.5;

/// Mbit/s of each flow in each second after the first.
type Goodputs = Vec<Vec<f64>>;

/// Throughput of a flow from host 1 to host 2. `beside`: and of one from host 3, without On-Ramp, to host 2.
fn goodputs(star: &Star, beside: bool) -> Goodputs {
    let load = Load::seconds(SECONDS as f64 + 1.5);
    let from = &star.hosts[..1 + 2 * usize::from(beside)];
    let flows: Vec<Transfer> = from
        .iter()
        .step_by(2)
        .map(|from| Transfer::start(from, &star.hosts[1], load))
        .collect();
    let received: Vec<Vec<u64>> = (0..=SECONDS)
        .map(|_| {
            thread::sleep(Duration::from_secs(1));
            flows.iter().map(Transfer::received).collect()
        })
        .collect();
    let number = flows.len();
    finish_all(flows);
    let rates = |flow: usize| {
        let seconds = received.windows(2);
        let rate = |at: &[Vec<u64>]| (at[1][flow] - at[0][flow]) as f64 * 8e-6;
        seconds.map(rate).collect()
    };
    (0..number).map(rates).collect()
}

fn least(goodputs: &[f64]) -> f64 {
    goodputs.iter().copied().fold(f64::MAX, f64::min)
}

fn mean(goodputs: &[f64]) -> f64 {
    goodputs.iter().sum::<f64>() / goodputs.len() as f64
}

/// The pair's daemons, with clocks that the test sets.
fn agents(star: &Star, options: &[&str], ahead_ms: i64) -> [Agent; 2] {
    let (from, to) = star.pair();
    let options = [OPTIONS, LONG_LEASE, options].concat();
    let agents = [from, to].map(|host| Agent::start_exactly(host, &options));
    step_clock(&agents[1], ahead_ms * 1_000_000);
    agents
}

pub fn no_threshold_and_no_clock_costs_a_flow_its_throughput() {
    let star = Star::build(&Plan {
        hosts: 3,
        ..Plan::USUAL
    });
    let port = &star.hosts[1].port;
    println!("| law | path, ms | T | receiver's clock, ms | alone, of a T that fits | alone, of none | beside, of half | beside, of its own |");
    let mut too_low = vec![];
    for delay_ms in DELAYS_MS {
        star.switch.run(&format!(
            "tc qdisc replace dev {port} root netem delay {delay_ms}ms rate 100mbit limit 400"
        ));
        let without = [false, true].map(|beside| goodputs(&star, beside));
        let half = (mean(&without[1][0]) + mean(&without[1][1])) / 2.0;
        for law in LAWS {
            let fit = format!("{}us", 1000 * delay_ms + HEADROOM_US);
            let daemons = agents(
                &star,
                &["--law", law, "--threshold", &fit, "--guard", "off"],
                0,
            );
            let fits = goodputs(&star, false);
            drop(daemons);
            for (threshold, ahead_ms) in WRONG {
                let daemons = agents(&star, &["--law", law, "--threshold", threshold], ahead_ms);
                let with = [false, true].map(|beside| goodputs(&star, beside));
                daemons[0].assert_harmless();
                let alone = least(&with[0][0]) / least(&fits[0]);
                let of_none = least(&with[0][0]) / least(&without[0][0]);
                let beside = mean(&with[1][0]) / half;
                let of_own = mean(&with[1][0]) / mean(&without[1][0]);
                let row = format!("| {law} | {delay_ms} | {threshold} | {ahead_ms:+} | {alone:.2} | {of_none:.2} | {beside:.2} | {of_own:.2} |");
                println!("{row}");
                if alone < ALONE || beside < BESIDE_UNMANAGED {
                    too_low.push(format!(
                        "{row} {with:?}, {fits:?} with T = {fit}, {without:?} without"
                    ));
                }
            }
        }
    }
    assert!(too_low.is_empty(), "{too_low:#?}");
}
