// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What a device has, and what that means for On-Ramp.
use onramp_units::Rate;

use super::{Finding, Plan, State};
use crate::prefix::Prefix;

/// What a device has.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceFacts {
    /// Its name.
    pub name: String,
    /// Whether it is up.
    pub is_up: bool,
    /// Its addresses with their subnets.
    pub addresses: Vec<Prefix>,
    /// Its qdisc.
    pub qdisc: Qdisc,
    /// Programs of others in its tcx chains; none if the kernel does not list them.
    pub tcx: Option<Vec<String>>,
    /// Whether On-Ramp's are there too.
    pub has_own_programs: bool,
    /// As the driver reports it.
    pub line_rate: Option<Rate>,
    /// Whether the driver counts bytes (BQL).
    pub counts_bytes: bool,
    /// Transmit queues.
    pub queues: usize,
    /// The largest GSO segment, bytes.
    pub gso_max_bytes: Option<u64>,
    /// The process that holds its flows.
    pub daemon: Option<u32>,
}

/// The qdisc of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Qdisc {
    /// On-Ramp's.
    Own,
    /// One that On-Ramp can restore when it stops; of the first transmit queue.
    Replaceable(String),
    /// One that it cannot restore, with the reason.
    Foreign(String),
}

impl Qdisc {
    /// Whether On-Ramp would take the device.
    pub fn can_be_restored(&self) -> bool {
        !matches!(self, Qdisc::Foreign(_))
    }

    fn finding(&self, dev: &str, daemon: Option<u32>) -> Finding {
        let feature = "qdisc";
        match self {
            Qdisc::Own if daemon.is_none() => {
                let found = "On-Ramp's, of a daemon that was killed: it holds nothing";
                Finding::new(feature, State::Limited, found).fix(remove_left(dev))
            }
            Qdisc::Own => Finding::ok(feature, "On-Ramp's"),
            Qdisc::Replaceable(kind) => Finding::ok(
                feature,
                format!("{kind}, which is restored when On-Ramp stops"),
            ),
            Qdisc::Foreign(why) => Finding::new(feature, State::Missing, why.clone())
                .fix(format!("tc qdisc del dev {dev} root")),
        }
    }
}

/// What mends a device that a killed daemon left.
fn remove_left(dev: &str) -> String {
    format!("onramp agent run goes on with it; onramp detach --dev {dev} restores the device")
}

impl DeviceFacts {
    pub(super) fn judge(&self, plan: &Plan) -> Vec<Finding> {
        vec![
            self.link(),
            self.address(plan),
            self.qdisc.finding(&self.name, self.daemon),
            self.programs(),
            self.rate(plan),
            self.counts(),
            self.segments(),
            self.daemon(),
        ]
    }

    fn link(&self) -> Finding {
        let queues = format!("transmit queues: {}", self.queues);
        match self.is_up {
            true => Finding::ok("link", format!("up, {queues}")),
            false => Finding::new("link", State::Limited, format!("down, {queues}"))
                .fix(format!("ip link set {} up", self.name)),
        }
    }

    fn address(&self, plan: &Plan) -> Finding {
        let all: Vec<String> = self.addresses.iter().map(Prefix::to_string).collect();
        let all = match all.as_slice() {
            [] => "none".to_owned(),
            all => all.join(", "),
        };
        if self.addresses.iter().any(Prefix::has_others) {
            return Finding::ok("address", all);
        }
        match plan.has_peers {
            true => Finding::ok("address", format!("{all}; the configuration names the peers")),
            false => Finding::new(
                "address",
                State::Missing,
                format!("{all}: no other host is in its subnet, so no host is a peer"),
            )
            .fix("--peers 10.0.0.0/8 (key peers.prefixes), or --clock huygens, whose members are peers"),
        }
    }

    fn programs(&self) -> Finding {
        let feature = "tcx programs";
        if self.has_own_programs && self.daemon.is_none() {
            let found = "On-Ramp's, of a daemon that was killed: they hold nothing";
            return Finding::new(feature, State::Limited, found).fix(remove_left(&self.name));
        }
        match self.tcx.as_deref() {
            None => Finding::ok(feature, "not listed by this kernel or for this user"),
            Some([]) => Finding::ok(feature, "no others"),
            Some(others) => Finding::new(
                feature,
                State::Limited,
                format!(
                    "{}: On-Ramp's run first, and it restores that order",
                    others.join(", ")
                ),
            )
            .fix(format!(
                "bpftool net show dev {} shows the chain",
                self.name
            )),
        }
    }

    fn rate(&self, plan: &Plan) -> Finding {
        match (plan.line_rate, self.line_rate) {
            (Some(rate), _) => Finding::ok("line rate", format!("{rate}, as configured")),
            (None, Some(rate)) => Finding::ok("line rate", rate.to_string()),
            (None, None) => Finding::new(
                "line rate",
                State::Limited,
                "not reported by the driver; --threshold auto assumes 100 Mbit/s and holds late",
            )
            .fix("add --line-rate, e.g. --line-rate 10Gbit/s"),
        }
    }

    fn counts(&self) -> Finding {
        match self.counts_bytes {
            true => Finding::ok(
                "byte counts",
                "BQL: waits in the NIC are no delay of the network",
            ),
            false => Finding::new(
                "byte counts",
                State::Limited,
                "no BQL: waits in the host's own NIC count as delay of the network",
            ),
        }
    }

    fn segments(&self) -> Finding {
        let found = match self.gso_max_bytes {
            Some(bytes) => format!("GSO up to {bytes} B; --gso-max 16kB makes bursts shorter"),
            None => "GSO size not reported".to_owned(),
        };
        Finding::ok("segments", found)
    }

    fn daemon(&self) -> Finding {
        match self.daemon {
            Some(pid) => Finding::ok(
                "daemon",
                format!("pid {pid} runs on it; a second one is refused"),
            ),
            None => Finding::ok("daemon", "none runs on it"),
        }
    }
}
