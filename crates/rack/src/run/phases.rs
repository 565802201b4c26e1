// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Which part of a run's wall-clock time is over, by its phase. The shares were measured on an idle
//! processor of 2024; only their ratios count.

use std::collections::BTreeSet;

use crate::native::{Dilation, Progress};
use onramp_scenario::{rack_plan, Run, Work};

/// A machine that boots, s.
const BOOT_S: f64 = 5.0;
/// A host's namespace, links and qdiscs in a machine, s.
const HOST_S: f64 = 0.13;
/// A daemon that loads in a machine, s.
const DAEMON_S: f64 = 2.0;
/// A segment and its acknowledgement across a machine's switch, s.
const SEGMENT_S: f64 = 0.45e-3;
const SEGMENT_BYTES: f64 = 1448.0;
/// The results of a run, written and handed over, s.
const WRITE_S: f64 = 0.8;
/// Without a machine there are many processors and no emulation.
const NATIVE_SPEED: f64 = 20.0;

/// Seconds that each phase of a run takes, about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Phases {
    boot_s: f64,
    build_s: f64,
    daemons_s: f64,
    traffic_s: f64,
    write_s: f64,
}

impl Phases {
    /// The phases of a run in a virtual machine: what the guest has to compute.
    pub fn in_machine(run: &Run) -> Phases {
        let hosts = f64::from(run.network.topology.hosts());
        let daemons = run.edge_hosts().count() as f64;
        Phases {
            boot_s: BOOT_S,
            build_s: hosts * HOST_S,
            daemons_s: daemons * DAEMON_S,
            traffic_s: payload_bytes(run) / SEGMENT_BYTES * SEGMENT_S,
            write_s: WRITE_S,
        }
    }

    /// The phases of a run on this kernel: its traffic takes its time.
    pub fn native(run: &Run) -> Phases {
        let emulated = Phases::in_machine(run);
        Phases {
            boot_s: 0.0,
            build_s: emulated.build_s / NATIVE_SPEED,
            daemons_s: emulated.daemons_s / NATIVE_SPEED,
            traffic_s: Dilation::new(run.time_dilation)
                .slow(run.duration)
                .as_s_f64(),
            write_s: emulated.write_s / NATIVE_SPEED,
        }
    }

    /// All of it.
    pub fn all_s(&self) -> f64 {
        self.before_traffic_s() + self.traffic_s + self.write_s
    }

    /// The part of a run's time that is over when it is at `progress`, and what it does then.
    pub fn part(&self, progress: Progress) -> (f64, &'static str) {
        let (over_s, doing) = match progress {
            Progress::Building => (self.boot_s, "builds the network"),
            Progress::Daemons(part) => (
                self.boot_s + self.build_s + part * self.daemons_s,
                "starts daemons",
            ),
            Progress::Traffic(part) => (
                self.before_traffic_s() + part.clamp(0.0, 1.0) * self.traffic_s,
                "traffic",
            ),
            Progress::Writing => (self.before_traffic_s() + self.traffic_s, "writes"),
        };
        (over_s / self.all_s(), doing)
    }

    fn before_traffic_s(&self) -> f64 {
        self.boot_s + self.build_s + self.daemons_s
    }
}

/// Payload that the hosts exchange: flows as planned; where endless ones go, a full line.
fn payload_bytes(run: &Run) -> f64 {
    let plan = rack_plan(run);
    let sizes = plan.iter().map(|arrival| match arrival.work {
        Work::Send(size) => size.get() as f64,
        Work::Until(_) => 0.0,
    });
    let endless = plan.iter().filter(|a| matches!(a.work, Work::Until(_)));
    let full: BTreeSet<u32> = endless.map(|arrival| arrival.dst).collect();
    let line = |host: &u32| run.network.link_of(*host).rate.bytes_in(run.duration).get() as f64;
    sizes.sum::<f64>() + full.iter().map(line).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use onramp_scenario::Scenario;

    /// scenarios/incast.toml, 60 ms of it: a run without daemons took 18 s on an idle processor, one
    /// with nine about twice as long, half of it before its traffic.
    #[test]
    fn phases_have_the_shares_that_were_measured() {
        let text = include_str!("../../../../scenarios/incast.toml");
        let set = [("duration", "60 ms")];
        let scenario = Scenario::parse_with(text, "incast", &set).unwrap();
        let [fq, edge] = [0, 2].map(|run| Phases::in_machine(&scenario.runs()[run]));
        let ratio = edge.all_s() / fq.all_s();
        assert!((1.6..2.6).contains(&ratio), "{ratio}");
        let (before, _) = edge.part(Progress::Traffic(0.0));
        assert!((0.5..0.75).contains(&before), "{before}");
    }

    #[test]
    fn a_run_gets_on_from_phase_to_phase() {
        let text = include_str!("../../../../scenarios/incast.toml");
        let scenario = Scenario::parse(text, "incast").unwrap();
        let phases = Phases::in_machine(&scenario.runs()[3]);
        let steps = [
            Progress::Building,
            Progress::Daemons(0.0),
            Progress::Daemons(0.5),
            Progress::Traffic(0.0),
            Progress::Traffic(0.5),
            Progress::Traffic(1.0),
        ];
        let parts = steps.map(|step| phases.part(step).0);
        assert!(parts.is_sorted_by(|a, b| a < b), "{parts:?}");
        assert_eq!(phases.part(Progress::Traffic(3.0)).0, parts[5]);
        assert!((0.9..1.0).contains(&phases.part(Progress::Writing).0));
    }
}
