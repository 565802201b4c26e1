// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What a flow that is alone on its path pays for each law.
use std::{thread, time::Duration};

use crate::{
    agent::Agent,
    net::{Plan, Star},
    tcp::{Load, Transfer},
};

/// A line of four times the port's rate.
const LINE: &[&str] = &["--line-rate", "400Mbit/s", "--gate-tau", "20ms"];
/// The receiver counts a flow for 8 tau.
const FORGOTTEN: Duration = Duration::from_millis(200);
/// Part of a lone flow's throughput and of the time of its transfers.
const LONE: f64 = 0.02;

/// Throughput for 3 s, and the median time of transfers of 1 MB, of a flow that is alone. Its host's line is faster than
/// the port.
fn alone(law: &str, options: &[&str]) -> (f64, f64) {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    star.switch.run(&format!(
        "tc qdisc replace dev {} root netem delay 1ms rate 100mbit limit 400",
        to.port
    ));
    let options = [LINE, &["--law", law], options].concat();
    let [from_agent, _to] = [from, to].map(|host| Agent::start(host, &options));
    let mbit_per_s = Transfer::start(from, to, Load::seconds(3.0))
        .finish()
        .mbit_per_s();
    let transfer = |_| {
        thread::sleep(FORGOTTEN);
        Transfer::start(from, to, Load::bytes(1_000_000)).finish()
    };
    let mut took: Vec<f64> = (0..5)
        .map(transfer)
        .map(|received| received.took.as_secs_f64() * 1e3)
        .collect();
    took.sort_by(f64::total_cmp);
    from_agent.assert_harmless();
    println!(
        "{law}: {mbit_per_s:.2} Mbit/s, 1 MB in {:.2} ms, {} holds",
        took[2],
        from_agent.counter("holds")
    );
    (mbit_per_s, took[2])
}

pub fn a_lone_flow_pays_at_most_two_percent() {
    let (mbit_per_s, took_ms) = alone("off", &[]);
    for (law, threshold) in [
        ("level", "5ms"),
        ("level", "2500us"),
        ("level", "50us"),
        ("final", "5ms"),
        ("final", "2500us"),
        ("final", "50us"),
        ("strawman", "2500us"),
        ("gate", "2500us"),
    ] {
        let options = ["--threshold", threshold, "--guard", "50ms"];
        let (with_mbit_per_s, with_took_ms) = alone(law, &options);
        assert!(
            with_mbit_per_s > (1.0 - LONE) * mbit_per_s,
            "{law}, T = {threshold}: {with_mbit_per_s} of {mbit_per_s} Mbit/s"
        );
        assert!(
            with_took_ms < (1.0 + LONE) * took_ms,
            "{law}, T = {threshold}: 1 MB took {with_took_ms} ms, {took_ms} ms without a law"
        );
    }
}
