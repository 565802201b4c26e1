// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Kinds of traffic of another crate: their keys, errors, documentation and flows are as those of built-in ones.

use onramp_keys::Absent::{Is, Required};
use onramp_keys::{section, Section};
use onramp_scenario::{
    explain_markdown, plan, rack_limits, register_traffic, simulated, Generator, HostId, OneHost,
    Plan, Receivers, Run, Scenario, Scope, TrafficKind, Work,
};
use onramp_units::{Bytes, Span};
use std::sync::{Arc, Once};

static KIND: TrafficKind =
    TrafficKind::new("drip", "a flow every now and then", Drip::KEYS, |entry| {
        let drip: Drip = entry.read()?;
        if drip.silent {
            return None;
        }
        entry.refuse_itself(onramp_scenario::Sources::Host(drip.from.0), drip.to);
        Some(Arc::new(drip))
    });

section! {
    #[derive(Debug)]
    struct Drip in "traffic" with Scope {
        from: OneHost = Is("1"), simulated(), "Host that sends.";
        to: Receivers = Is("0"), simulated(), "Hosts that receive.";
        size: Bytes [Bytes::new(1), Bytes::new(1_000)] = Required, simulated(), "Size of a flow.";
        every: Span [Span::from_us(1), Span::from_s(1)] = Is("1 ms"), simulated(), "Time between two.";
        silent: bool = Is("false"), simulated(), "Whether the entry is refused without a word.";
        lost: bool = Is("false"), simulated(), "Whether flows go to a host that does not exist.";
    }
}

impl Generator for Drip {
    fn generate(&self, plan: &mut Plan<'_>) {
        let mut at = Span::ZERO;
        while at < plan.run().duration {
            for to in self.to.hosts(plan.run()) {
                let to = if self.lost { to + 4 } else { to };
                plan.add(plan.flow(at, self.from.0, to, Work::Send(self.size)));
            }
            at += self.every;
        }
    }

    fn expected_flows(&self, run: &Run) -> f64 {
        let times = run.duration.as_s_f64() / self.every.as_s_f64();
        times * self.to.hosts(run).len() as f64
    }

    fn receiver(&self) -> HostId {
        self.to.first()
    }
}

const HEAD: &str = r#"title = "t"
duration = "10 ms"
[network]
topology = { kind = "star", hosts = 4 }
link = { rate = "10 Gbit/s", delay = "1 us" }
[[traffic]]
kind = "drip"
"#;

fn parse(more: &str) -> Result<Scenario, String> {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| register_traffic(&KIND));
    Scenario::parse(&format!("{HEAD}{more}"), "t").map_err(|errors| errors.to_string())
}

#[test]
fn its_flows_are_planned() {
    let scenario = parse("size = \"1 kB\"\nto = \"2-3\"\n").unwrap();
    let run = &scenario.runs()[0];
    let flows = plan(run);
    assert_eq!(flows.len(), 20);
    assert_eq!(
        (flows[1].dst, flows[2].at - flows[0].at),
        (3, Span::from_ms(1))
    );
    assert_eq!(onramp_scenario::expected_flows(run), 20.0);
    let again = Scenario::parse(&run.to_toml(), "t").unwrap();
    assert_eq!(again.runs(), scenario.runs());
}

#[test]
fn its_mistakes_are_named_as_those_of_others() {
    for (more, expected) in [
        ("", "t:6: traffic.0.size is missing, expected a size, 1 B to 1 kB"),
        ("size = \"2 kB\"\n", "t:8: traffic.0.size is 2 kB, above max 1 kB"),
        (
            "size = \"1 kB\"\nfanout = 3\n",
            "t:9: traffic.0.fanout is a key of traffic kind incast, but the kind of this entry is drip: remove it",
        ),
        (
            "size = \"1 kB\"\nevry = \"1 s\"\n",
            "t:9: unknown key traffic.0.evry, did you mean traffic.every?",
        ),
        (
            "size = \"1 kB\"\nto = 9\n",
            "t:9: traffic.0.to is 9, above max 3 (network.topology.hosts)",
        ),
        (
            "size = \"1 kB\"\nto = 1\n",
            "t:9: traffic.0.from is host 1, which is also the receiver: set another host",
        ),
        (
            "size = \"1 kB\"\nsilent = true\n",
            "t:1: a kind of traffic of another crate refuses its entry, and does not say why",
        ),
    ] {
        assert_eq!(parse(more).unwrap_err(), expected);
    }
}

#[test]
fn it_is_documented_and_the_rack_refuses_it() {
    let scenario = parse("size = \"1 kB\"\n").unwrap();
    let limits = rack_limits(&scenario.runs()[0]);
    assert_eq!(
        limits[0].to_string(),
        "traffic.0.kind is drip, which only the simulator supports: use `onramp sim run`, or set it to incast or long or poisson"
    );
    let page = explain_markdown();
    assert!(page.contains("### kind = \"drip\"\n\nA flow every now and then.\n"));
    assert!(
        page.contains("| `every` | a time, 1 us to 1 s | `1 ms` | simulator | Time between two. |")
    );
}

#[test]
#[should_panic(
    expected = "traffic.0 of kind drip: generate panicked: a flow from host 1 to host 4; a host sends to another one of 0 to 3"
)]
fn a_flow_that_cannot_be_is_the_kinds_mistake() {
    plan(&parse("size = \"1 kB\"\nlost = true\n").unwrap().runs()[0]);
}
