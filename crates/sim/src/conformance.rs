// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What every registered part does, of these crates or of another one. Who adds a part runs these checks in a test
//! (`examples/outside`).
//!
//! Each check panics if a part deviates. The message names the part and what it did.

use crate::flows::flow::Outcome;
use crate::run::{build, build_in_parts, run, FlowLimits, Parts, Watch};
use crate::{Counters, Simulation};
use onramp_cc::law::ControlLaw;
use onramp_cc::{path, switch, Cc};
use onramp_scenario::{plan, Run, Scenario, ShapeKind};
use onramp_units::{Bytes, Rate, Sim, Span, Time};
use std::collections::HashMap;

/// Payload of two flows together is at least this part of the line: their rates may swing.
const FILLED_BY_TWO: f64 = 0.8;

/// A congestion control stays within its window and its pace, fills an idle link, and shares a link with itself.
///
/// # Panics
/// It does not.
pub fn congestion_control(cc: Cc) {
    keeps_its_limits(cc);
    fills_an_idle_link(cc);
    shares_a_link(cc);
}

/// Under a rule of switches all flows of an incast end, as long as the ends repair what it drops.
///
/// # Panics
/// One does not, or [`scenario`] does.
pub fn switch_rule(rule: &switch::Entry) {
    let mut set = vec![("network.rule", rule.name)];
    if rule.marks {
        set.push(("host.cc", "dctcp"));
    }
    let text = incast("topology = { kind = \"leaf_spine\", hosts = 8, leaves = 2, spines = 2 }");
    all_flows_end(&parsed(&text, &set, &format!("{rule:?}")));
}

/// Under a control law all flows of an incast end, on kernel hosts and on NICs, and beside hosts without it.
///
/// # Panics
/// One does not, or [`scenario`] does.
pub fn control_law(law: ControlLaw) {
    let network = "topology = { kind = \"star\", hosts = 7 }";
    let some = "[[hosts]]\nrange = \"1-3\"\nonramp.law = \"off\"\n";
    let threshold = ("onramp.threshold", "30 us");
    let nics = [
        ("host.kind", "nic"),
        ("host.cc", "dcqcn"),
        ("network.buffer", "32 MB"),
    ];
    for (beside, kind) in [("", &[][..]), (some, &[]), ("", &nics)] {
        let set = [&[("onramp.law", law.name()), threshold], kind].concat();
        all_flows_end(&parsed(&(incast(network) + beside), &set, law.name()));
    }
}

/// With a choice of paths all flows of an incast end, between racks too.
///
/// # Panics
/// One does not, or [`scenario`] does.
pub fn path_choice(choice: &path::Entry) {
    let text = incast("topology = { kind = \"leaf_spine\", hosts = 8, leaves = 4, spines = 3 }");
    let set = [("network.paths", choice.name)];
    all_flows_end(&parsed(&text, &set, &format!("{choice:?}")));
}

/// On a small topology of a shape, with counts of two where it takes them, all flows of an incast from all hosts end.
///
/// # Panics
/// One does not, or [`scenario`] does.
pub fn shape(kind: &ShapeKind) {
    let counts: Vec<u32> = kind
        .counts
        .iter()
        .map(|count| 2.clamp(count.bounds.0, count.bounds.1))
        .collect();
    let hosts = 2 * (kind.racks)(&counts).max(2);
    let keys = kind.counts.iter().zip(&counts).map(|(count, value)| {
        let name = count.key.rsplit('.').next().expect("a key has a name");
        format!(", {name} = {value}")
    });
    let keys: String = keys.collect();
    let topology = format!(
        "topology = {{ kind = \"{}\", hosts = {hosts}{keys} }}",
        kind.name
    );
    let fanout = (hosts - 1).to_string();
    let set = [("traffic.0.fanout", fanout.as_str())];
    all_flows_end(&parsed(&incast(&topology), &set, &format!("{kind:?}")));
}

/// A scenario runs to its end with the same results on one thread and on two, and is the same when it is written and read
/// again. For parts that a scenario of one's own names: kinds of traffic, metrics, keys.
///
/// # Panics
/// It does not.
pub fn scenario(scenario: &Scenario) {
    for planned in scenario.runs() {
        let title = &planned.title;
        let done = run(planned, 0, Watch::default(), &mut |_| true);
        let report = done.unwrap_or_else(|e| panic!("{title}: {e}"));
        if let Some(mistake) = report.mistake {
            panic!("{title}: {mistake}");
        }
        assert_eq!(
            on(planned, 1),
            on(planned, 2),
            "{title}: on one thread, and on two"
        );
        let text = planned.to_toml();
        let again = Scenario::parse(&text, title).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(
            again.runs()[0].to_toml(),
            text,
            "{title}: written, and read again"
        );
    }
}

/// What a run comes to on so many threads.
fn on(run: &Run, threads: usize) -> (Vec<Outcome>, Counters) {
    let built = build_in_parts(run, &plan(run), Parts::Forced(threads));
    let mut simulation = built.unwrap_or_else(|e| panic!("{}: {e}", run.title));
    simulation.run_until(Time::ZERO + run.duration);
    (simulation.outcomes(), simulation.counters())
}

/// An incast of 1.2 MB on this network, with time to repair losses.
fn incast(topology: &str) -> String {
    format!(
        r#"title = "Conformance"
duration = "5 s"
[network]
{topology}
link = {{ rate = "10 Gbit/s", delay = "1 us" }}
buffer = "300 kB"
[host]
kind = "kernel"
[onramp]
law = "off"
[[traffic]]
kind = "incast"
fanout = 6
size = "200 kB"
interval = "1 ms"
requests = 1
"#
    )
}

fn parsed(text: &str, set: &[(&str, &str)], part: &str) -> Scenario {
    let set = [&[("title", part)], set].concat();
    Scenario::parse_with(text, part, &set).unwrap_or_else(|e| panic!("{part}: {e}"))
}

fn all_flows_end(given: &Scenario) {
    scenario(given);
    let run = &given.runs()[0];
    let (outcomes, counters) = on(run, 1);
    let open = outcomes.iter().filter(|flow| flow.acked.is_none()).count();
    let title = &run.title;
    assert!(
        open == 0,
        "{title}: {open} of {} flows do not end: {counters:?}",
        outcomes.len()
    );
}

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

fn fills_an_idle_link(cc: Cc) {
    let filled = TIMES
        .iter()
        .any(|times| goodputs(cc, 1, *times)[0] >= cc.fills());
    assert!(
        filled,
        "{cc:?}: {:?} of the line",
        goodputs(cc, 1, TIMES[1])
    );
}

fn shares_a_link(cc: Cc) {
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

fn keeps_its_limits(cc: Cc) {
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
