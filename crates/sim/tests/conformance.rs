// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What every registered congestion control does in the simulator: it stays within its limits, fills an
//! idle link, and shares a link with itself. No test names one.

use onramp_cc::Cc;
use onramp_scenario::{plan, Scenario};
use onramp_sim::run::{build, FlowLimits};
use onramp_sim::Simulation;
use onramp_units::{Bytes, Rate, Sim, Span, Time};
use std::collections::HashMap;

/// Payload of two flows together is at least this part of the line: their rates may swing.
const FILLED_BY_TWO: f64 = 0.8;

/// `flows` long flows to host 0, under `cc` on hosts that have it.
fn simulation(cc: Cc, flows: usize) -> Simulation {
    let kind = if cc.is_nic() { "nic" } else { "kernel" };
    let link = if cc.is_nic() {
        "100 Gbit/s"
    } else {
        "10 Gbit/s"
    };
    let text = format!(
        r#"title = "t"
duration = "{duration}"
[network]
topology = {{ kind = "star", hosts = {hosts} }}
link = {{ rate = "{link}", delay = "1 us" }}
buffer = "300 kB"
[host]
kind = "{kind}"
cc = "{cc}"
[[traffic]]
kind = "long"
flows = {flows}
"#,
        duration = END,
        hosts = flows + 1,
    );
    let mut set = vec![("onramp.law", "off")];
    if cc.is_nic() {
        set.extend([("network.sharing", "lossless"), ("network.buffer", "32 MB")]);
    }
    if cc.needs_marks() {
        set.push(("network.ecn.threshold", "65 kB"));
    }
    if cc.needs_short_segments() {
        set.push(("host.gso", "16 kB"));
    }
    let scenario = Scenario::parse_with(&text, "t", &set).unwrap_or_else(|e| panic!("{cc:?}: {e}"));
    let run = &scenario.runs()[0];
    build(run, &plan(run)).unwrap_or_else(|e| panic!("{cc:?}: {e}"))
}

const END: &str = "2 s";
/// Some begin at a low rate, and are given more time.
const TIMES: [i64; 2] = [1, 5];

fn at(span: Span) -> Time<Sim> {
    Time::ZERO + span
}

/// Mean goodput of each flow, as a part of the line, over the second half of the time, which is `times` the usual one.
fn goodputs(cc: Cc, flows: usize, times: i64) -> Vec<f64> {
    let (half, line) = match cc.is_nic() {
        true => (Span::from_ms(10) * times, 100e9),
        false => (Span::from_ms(200) * times, 10e9),
    };
    let mut simulation = simulation(cc, flows);
    simulation.run_until(at(half));
    let before = simulation.received();
    simulation.run_until(at(half * 2));
    let received = simulation.received().into_iter().zip(before);
    let bits = received.map(|(after, before)| (after.get() - before.get()) as f64 * 8.0);
    bits.map(|bits| bits / half.as_s_f64() / line).collect()
}

#[test]
fn one_flow_fills_an_idle_link() {
    for cc in Cc::all() {
        let filled = TIMES
            .iter()
            .any(|times| goodputs(cc, 1, *times)[0] >= cc.fills());
        assert!(
            filled,
            "{cc:?}: {:?} of the line",
            goodputs(cc, 1, TIMES[1])
        );
    }
}

#[test]
fn two_flows_share_a_link_and_fill_it() {
    for cc in Cc::all() {
        let sum = |goodputs: &[f64]| goodputs.iter().sum::<f64>();
        let usual = goodputs(cc, 2, TIMES[0]);
        let goodputs = match sum(&usual) >= FILLED_BY_TWO {
            true => usual,
            false => goodputs(cc, 2, TIMES[1]),
        };
        let sum = sum(&goodputs);
        let squares: f64 = goodputs.iter().map(|goodput| goodput * goodput).sum();
        // Jain's index: 1 if all have the same, 1/2 if one of two has all.
        let index = sum * sum / (goodputs.len() as f64 * squares);
        assert!(
            index >= cc.fairness(),
            "{cc:?}: {goodputs:?}, index {index}"
        );
        assert!(sum >= FILLED_BY_TWO, "{cc:?}: {goodputs:?} of the line");
    }
}

/// What is known of a flow since its last packet.
struct Seen {
    sent: u64,
    /// When something was sent last, how much, and the highest rate since.
    last: Option<(Time<Sim>, u64, Rate)>,
    window: u64,
}

/// Looks at a flow after each event.
fn check(cc: Cc, seen: &mut Seen, flow: &FlowLimits, now: Time<Sim>) {
    let window = flow.window.map_or(u64::MAX, |window| window.get());
    let sent = flow.sent.get().saturating_sub(seen.sent);
    if sent > 0 {
        // A packet may go while the window is open, so it may pass the end of the window.
        let packet = if cc.is_nic() { 1000 } else { 0 };
        let most = window.max(seen.window).saturating_add(packet);
        assert!(flow.in_flight.get() <= most, "{cc:?}: {flow:?} at {now:?}");
    }
    if let (true, 0, Some(rate)) = (cc.is_nic(), flow.burst.get(), flow.rate) {
        if let Some((at, bytes, highest)) = &mut seen.last {
            *highest = rate.max(*highest);
            let gap = highest.time_to_send(Bytes::new(*bytes));
            assert!(sent == 0 || now - *at >= gap, "{cc:?}: {flow:?} at {now:?}");
        }
        if sent > 0 {
            seen.last = Some((now, sent, rate));
        }
    }
    (seen.sent, seen.window) = (flow.sent.get(), window);
}

#[test]
fn no_flow_sends_beyond_its_window_or_above_its_pace() {
    for cc in Cc::all() {
        let end = match cc.is_nic() {
            true => at(Span::from_us(300)),
            false => at(Span::from_ms(5)),
        };
        let mut simulation = simulation(cc, 3);
        let mut flows: HashMap<u32, Seen> = HashMap::new();
        let mut packets = 0;
        let last = end + Span::from_ms(500);
        while simulation.step(last).is_some() {
            let now = simulation.now();
            if now > end && packets > 30 {
                break;
            }
            for flow in simulation.limits() {
                let seen = flows.entry(flow.plan).or_insert(Seen {
                    sent: 0,
                    last: None,
                    window: 0,
                });
                packets += u64::from(flow.sent.get() > seen.sent);
                check(cc, seen, &flow, now);
            }
        }
        assert!(packets > 30, "{cc:?}: {packets} times something was sent");
    }
}
