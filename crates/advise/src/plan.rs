// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The windows of a trace, and the scenario that replays them. Pure.
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use onramp_trace::{Merged, ReplayFlow};
use onramp_units::{Bytes, Rate, Span};

use crate::error::{AdviseError, Result};
use crate::Assumptions;

/// Windows that are replayed: half of them to choose a setting, half to judge it.
const WINDOWS: usize = 8;
/// Fewer give no interval.
const FEWEST: usize = 4;
const SHORTEST: Span = Span::from_ms(1);
/// On-Ramp's segments, as in the scenarios of the paper.
const SEGMENT: Bytes = Bytes::new(16_000);
/// Headroom of the threshold above idle delay and one segment.
pub const HEADROOMS_US: [i64; 3] = [10, 40, 160];
const LAWS: [&str; 2] = ["final", "gate"];
/// The name of the case without On-Ramp.
pub const BASE: &str = "off";

/// Rate of the hosts' lines if no record names one.
const USUAL_RATE: Rate = match Rate::from_bits_per_s(10_000_000_000) {
    Some(rate) => rate,
    None => panic!("it is above 0"),
};
/// The largest buffer of scenarios.
const MOST_BUFFER: Bytes = Bytes::new(1_000_000_000);
/// A smaller buffer holds no segment.
const LEAST_BUFFER: Bytes = Bytes::new(20_000);
const USUAL_DELAY: Span = Span::from_us(10);
/// Other buffers are smaller and larger by this factor.
const OTHER_BUFFER: u64 = 4;

/// A part of the trace; its flows begin at 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    pub span: Span,
    pub flows: Vec<ReplayFlow>,
}

/// The network of the replay.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub rate: Rate,
    /// One-way delay of an idle path.
    pub delay: Span,
    pub buffer: Bytes,
    pub cc: String,
    pub qdisc: String,
}

pub fn list_name(number: usize) -> String {
    format!("window-{number}.csv")
}

/// The busiest windows of equal length, in the order of time.
pub fn windows(merged: &Merged, longest: Span) -> Result<Vec<Window>> {
    let part = Span::from_ns(merged.span.as_ns() / WINDOWS as i64 + 1);
    let span = part.min(longest).max(SHORTEST);
    let mut all: BTreeMap<i64, Window> = BTreeMap::new();
    for flow in &merged.flows {
        let number = flow.start.as_ns() / span.as_ns();
        let window = all.entry(number).or_insert_with(|| Window {
            span,
            flows: vec![],
        });
        window.flows.push(ReplayFlow {
            start: flow.start - Span::from_ns(number * span.as_ns()),
            ..*flow
        });
    }
    if all.len() < FEWEST {
        return Err(AdviseError::FewWindows {
            found: all.len(),
            span,
            least: FEWEST,
        });
    }
    let bytes = |window: &Window| window.flows.iter().map(|flow| flow.size_bytes).sum::<u64>();
    let mut busiest: Vec<(i64, u64)> = all.iter().map(|(n, w)| (*n, bytes(w))).collect();
    busiest.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    busiest.truncate(WINDOWS);
    all.retain(|number, _| busiest.iter().any(|(busy, _)| busy == number));
    let mut windows: Vec<Window> = all.into_values().collect();
    number_hosts(&mut windows);
    Ok(windows)
}

/// Gives the hosts of the windows numbers from 0: a log has many others.
fn number_hosts(windows: &mut [Window]) {
    let flows = || windows.iter().flat_map(|window| &window.flows);
    let hosts: BTreeSet<u32> = flows().flat_map(|flow| [flow.src, flow.dst]).collect();
    let number: BTreeMap<u32, u32> = hosts.into_iter().zip(0..).collect();
    for flow in windows.iter_mut().flat_map(|window| &mut window.flows) {
        (flow.src, flow.dst) = (number[&flow.src], number[&flow.dst]);
    }
}

/// Number of hosts of the windows.
fn hosts_of(windows: &[Window]) -> usize {
    let flows = windows.iter().flat_map(|window| &window.flows);
    flows
        .map(|flow| flow.src.max(flow.dst) as usize + 1)
        .max()
        .unwrap_or(0)
}

impl Window {
    pub fn csv(&self) -> String {
        let mut text = "src,dst,size_bytes,start_ns\n".to_owned();
        for flow in &self.flows {
            let (src, dst, size, start) = (flow.src, flow.dst, flow.size_bytes, flow.start.as_ns());
            let _ = writeln!(text, "{src},{dst},{size},{start}");
        }
        text
    }
}

/// A law with its headroom and whether it paces.
type Setting = (&'static str, i64, bool);

fn settings() -> impl Iterator<Item = Setting> {
    let of_law = |law| {
        HEADROOMS_US
            .into_iter()
            .map(move |headroom_us| (law, headroom_us))
    };
    let laws = LAWS.into_iter().flat_map(of_law);
    laws.flat_map(|(law, headroom_us)| [false, true].map(|pacing| (law, headroom_us, pacing)))
}

impl Plan {
    pub fn of(flows: &Merged, assumed: &Assumptions) -> Plan {
        Plan {
            rate: assumed.rate.or(flows.line_rate).unwrap_or(USUAL_RATE),
            delay: assumed.delay.or(flows.base_delay).unwrap_or(USUAL_DELAY),
            buffer: assumed.buffer,
            cc: assumed.cc.clone(),
            qdisc: assumed.qdisc.clone(),
        }
    }

    /// The scenario: a case for each setting, a run of it for each window.
    pub fn scenario(&self, windows: &[Window]) -> String {
        self.with_cases(windows, settings(), "")
    }

    /// The best setting alone, with a smaller and a larger buffer.
    pub fn doubts(&self, windows: &[Window], best: &str) -> String {
        let is_best = |setting: &Setting| case_name(*setting) == best;
        let buffers = [self.buffer / OTHER_BUFFER, self.buffer * OTHER_BUFFER];
        let mut buffers = buffers
            .map(|buffer| buffer.clamp(LEAST_BUFFER, MOST_BUFFER))
            .to_vec();
        buffers.retain(|buffer| *buffer != self.buffer);
        let buffers: Vec<String> = buffers
            .iter()
            .map(|buffer| format!("\"{buffer}\""))
            .collect();
        let sweep = format!("\"network.buffer\" = [{}]\n", buffers.join(", "));
        self.with_cases(windows, settings().filter(is_best), &sweep)
    }

    fn with_cases(
        &self,
        windows: &[Window],
        settings: impl Iterator<Item = Setting>,
        sweep: &str,
    ) -> String {
        let lists: Vec<String> = (0..windows.len())
            .map(|n| format!("{:?}", list_name(n)))
            .collect();
        let duration = windows
            .iter()
            .map(|window| window.span)
            .max()
            .unwrap_or(SHORTEST);
        let mut text = format!(
            "# Written by onramp advise from a record of traffic.\ntitle = \"What On-Ramp would do for a record of traffic\"\n\
             duration = \"{duration}\"\n\n\
             [network]\ntopology = {{ kind = \"star\", hosts = {} }}\nlink = {{ rate = \"{}\", delay = \"{}\" }}\n\
             buffer = \"{}\"\n\n[host]\ncc = \"{}\"\n\n[[traffic]]\nkind = \"replay\"\npath = {}\n\n[onramp]\ngso = \"{SEGMENT}\"\n\n",
            hosts_of(windows).max(2), self.rate, self.link_delay(), self.buffer, self.cc, lists[0],
        );
        let _ = write!(
            text,
            "[[case]]\nname = \"{BASE}\"\n\"host.qdisc\" = \"{}\"\n\n",
            self.qdisc
        );
        for setting in settings {
            let (law, headroom_us, pacing) = setting;
            let name = case_name(setting);
            let threshold = self.threshold(Span::from_us(headroom_us));
            let _ = write!(
                text,
                "[[case]]\nname = \"{name}\"\n\"onramp.law\" = \"{law}\"\n\"onramp.threshold\" = \"{threshold}\"\n\
                 \"onramp.pacing\" = {pacing}\n\n"
            );
        }
        let _ = writeln!(
            text,
            "[sweep]\n{sweep}\"traffic.0.path\" = [{}]",
            lists.join(", ")
        );
        text
    }

    /// A path has two links; a packet of 1,500 B is sent twice.
    fn link_delay(&self) -> Span {
        let sending = self.rate.time_to_send(Bytes::new(1_500)) * 2;
        let rest = Span::from_ns((self.delay - sending).as_ns() / 2);
        rest.clamp(Span::from_ns(100), Span::from_ms(50))
    }

    /// As `--threshold auto` computes it.
    fn threshold(&self, headroom: Span) -> Span {
        let threshold = self.delay + headroom + self.rate.time_to_send(SEGMENT);
        Span::from_ns(threshold.as_ns()).clamp(Span::from_us(1), Span::from_ms(100))
    }
}

fn case_name((law, headroom_us, pacing): Setting) -> String {
    let pace = if pacing { "paced" } else { "unpaced" };
    format!("{law}-{headroom_us}us-{pace}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(starts_ms: &[i64]) -> Merged {
        let flow = |ms: &i64| ReplayFlow {
            start: Span::from_ms(*ms),
            src: 0,
            dst: 1,
            size_bytes: 1_000 + *ms as u64,
        };
        Merged {
            flows: starts_ms.iter().map(flow).collect(),
            hosts: vec!["a".into(), "b".into()],
            span: Span::from_ms(*starts_ms.last().unwrap()),
            line_rate: None,
            base_delay: None,
            senders: 1,
            one_time: true,
        }
    }

    #[test]
    fn the_busiest_windows_are_kept_in_order_and_begin_at_0() {
        let starts: Vec<i64> = (0..40).map(|n| n * 100 + 7).collect();
        let windows = windows(&merged(&starts), Span::from_ms(100)).unwrap();
        assert_eq!(windows.len(), WINDOWS);
        assert_eq!(
            windows[0].csv(),
            "src,dst,size_bytes,start_ns\n0,1,4207,7000000\n"
        );
        assert!(windows
            .iter()
            .all(|window| window.flows[0].start == Span::from_ms(7)));
    }

    #[test]
    fn hosts_that_no_window_has_are_none_of_the_network() {
        let mut all = merged(&[0, 100, 200, 300, 400]);
        for flow in &mut all.flows {
            (flow.src, flow.dst) = (7000, 9000);
        }
        let windows = windows(&all, Span::from_ms(100)).unwrap();
        assert_eq!(hosts_of(&windows), 2);
        assert!(windows[0].csv().contains("\n0,1,"));
    }

    #[test]
    fn a_trace_of_one_moment_is_refused() {
        let error = windows(&merged(&[0, 1]), Span::from_ms(200)).err().unwrap();
        assert!(
            error.to_string().contains("2 windows of 1 ms, below min 4"),
            "{error}"
        );
    }

    #[test]
    fn the_scenario_is_valid_and_runs_each_setting_in_each_window() {
        let windows = windows(&merged(&[0, 100, 200, 300, 400]), Span::from_ms(100)).unwrap();
        let plan = Plan {
            rate: Rate::from_bits_per_s(10_000_000_000).unwrap(),
            delay: Span::from_us(10),
            buffer: Bytes::new(300_000),
            cc: "cubic".into(),
            qdisc: "fq".into(),
        };
        let lists = |path: &str| {
            let number = (0..windows.len()).find(|n| list_name(*n) == path).unwrap();
            Ok(windows[number].csv().into_bytes())
        };
        let text = plan.scenario(&windows);
        let scenario = onramp_scenario::Scenario::parse_files(&text, "s", &[], &lists);
        let scenario = scenario.unwrap_or_else(|errors| panic!("{errors}\n{text}"));
        assert_eq!(scenario.runs().len(), 13 * windows.len());
        assert_eq!(scenario.runs()[0].params["case"], BASE);
        assert!(scenario.runs()[0].params.contains_key("traffic.0.path"));
        let text = plan.doubts(&windows, "gate-40us-paced");
        let doubts = onramp_scenario::Scenario::parse_files(&text, "s", &[], &lists);
        let doubts = doubts.unwrap_or_else(|errors| panic!("{errors}\n{text}"));
        assert_eq!(doubts.runs().len(), 2 * 2 * windows.len());
        let buffers = doubts
            .runs()
            .iter()
            .map(|run| &*run.params["network.buffer"]);
        assert_eq!(
            buffers.collect::<std::collections::BTreeSet<_>>(),
            ["1.2 MB", "75 kB"].into()
        );
    }
}
