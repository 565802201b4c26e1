// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Loads the measuring programs, calibrates them, reads the account.

use std::{mem::MaybeUninit, time::Duration};

use anyhow::{Context, Result};
use libbpf_rs::{
    skel::{OpenSkel, Skel, SkelBuilder},
    Link, OpenObject, ProgramInput,
};
use serde::{Deserialize, Serialize};

use crate::{
    bed::{RECEIVER_IFINDEX, SENDER_IFINDEX},
    transfer::now_ns,
};

#[allow(clippy::all, dead_code, non_camel_case_types, non_snake_case)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/cost.skel.rs"));
}
use skel::{CostSkel, CostSkelBuilder};

/// Calibration: runs of the empty function, in batches; the median batch has no interrupt in it.
const BATCHES: usize = 101;
const BATCH_RUNS: u64 = 40;
/// After attaching, until the kernel has cleaned up behind it.
const SETTLE: Duration = Duration::from_millis(200);

/// `enum part` of cost.bpf.c.
const OTHER: usize = 0;
const IDLE: usize = 1;
const TX: usize = 2;
const RX: usize = 3;
const SOFTIRQ: usize = 4;
const TIMER: usize = 5;
const EMPTY: usize = 6;
const PROBE: usize = 7;

/// The body of bpf_fentry_test1: a frame, an addition, a return.
const EMPTY_BODY_NS: f64 = 6.0;

/// Where the instructions of a transfer went.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Parts {
    pub tx: f64,
    pub rx: f64,
    /// Softirq dispatch and the backlog that both ends share.
    pub softirq: f64,
    pub timer: f64,
    /// Tasks outside the two paths.
    pub other: f64,
    pub idle: f64,
    /// Taken by the probes, seen and calibrated.
    pub probes: f64,
    /// First to last probe: what the rest must add up to.
    pub total: f64,
    /// Pops of the probes that did not find their push; should be 0.
    pub unmatched: u64,
}

impl Parts {
    pub fn sum(&self) -> f64 {
        self.tx + self.rx + self.softirq + self.timer + self.other + self.idle + self.probes
    }
}

/// What a push and its pop cost that they do not see: inside what they enclose, and outside.
#[derive(Clone, Copy, Default)]
struct Unseen {
    inside: f64,
    outside: f64,
}

pub struct Probes<'o> {
    skel: CostSkel<'o>,
    links: Vec<Link>,
    unseen: Unseen,
}

impl<'o> Probes<'o> {
    pub fn load(object: &'o mut MaybeUninit<OpenObject>) -> Result<Self> {
        let mut open = CostSkelBuilder::default()
            .open(object)
            .context("reading cost.bpf.o")?;
        let constants = open
            .maps
            .rodata_data
            .as_mut()
            .context("cost.bpf.o has no constants")?;
        constants.sender_ifindex = SENDER_IFINDEX;
        constants.receiver_ifindex = RECEIVER_IFINDEX;
        let skel = open.load().context("loading cost.bpf.o")?;
        let mut probes = Self {
            skel,
            links: vec![],
            unseen: Unseen::default(),
        };
        probes.calibrate()?;
        for program in probes.skel.object().progs_mut() {
            let name = program.name().to_string_lossy().into_owned();
            if !name.starts_with("bpf_fentry_test") {
                let link = program
                    .attach()
                    .with_context(|| format!("attaching {name}"))?;
                probes.links.push(link);
            }
        }
        Ok(probes)
    }

    /// Runs the kernel's empty function with and without a push and a pop around it.
    fn calibrate(&mut self) -> Result<()> {
        let bare = median(&mut self.batches(|_, _| 0.0)?.1);
        let links = [
            self.skel.progs.bpf_fentry_test1_in.attach()?,
            self.skel.progs.bpf_fentry_test1_out.attach()?,
        ];
        let (mut inside, mut outside) = self.batches(|account, run_ns| {
            let entered = account.entered[EMPTY].max(1) as f64;
            run_ns - bare - (account.ns[PROBE] + account.ns[EMPTY]) as f64 / entered
        })?;
        drop(links);
        self.unseen = Unseen {
            inside: median(&mut inside) - EMPTY_BODY_NS,
            outside: median(&mut outside),
        };
        Ok(())
    }

    /// Time inside the empty function, and what `outside` makes of the account and the time of a
    /// run (or that time, if it makes nothing of it), ns, for every batch.
    fn batches(
        &mut self,
        outside: impl Fn(&skel::types::account, f64) -> f64,
    ) -> Result<(Vec<f64>, Vec<f64>)> {
        std::thread::sleep(SETTLE);
        let mut found = (vec![], vec![]);
        for _ in 0..BATCHES {
            self.start();
            let run_ns = self.run_empty()?;
            self.stop();
            let account = self.account();
            found
                .0
                .push(account.ns[EMPTY] as f64 / account.entered[EMPTY].max(1) as f64);
            found.1.push(if account.entered[EMPTY] > 0 {
                outside(&account, run_ns)
            } else {
                run_ns
            });
        }
        Ok(found)
    }

    /// Mean time of a run, ns.
    fn run_empty(&self) -> Result<f64> {
        let begun = now_ns();
        for _ in 0..BATCH_RUNS {
            self.skel.progs.nothing.test_run(ProgramInput::default())?;
        }
        Ok((now_ns() - begun) as f64 / BATCH_RUNS as f64)
    }

    pub fn start(&mut self) {
        let bss = self
            .skel
            .maps
            .bss_data
            .as_mut()
            .expect("cost.bpf.o has data");
        bss.account = Default::default();
        bss.measuring = true;
    }

    pub fn stop(&mut self) {
        self.skel
            .maps
            .bss_data
            .as_mut()
            .expect("cost.bpf.o has data")
            .measuring = false;
    }

    fn account(&self) -> skel::types::account {
        self.skel
            .maps
            .bss_data
            .as_ref()
            .expect("cost.bpf.o has data")
            .account
    }

    /// The account with what the probes did not see moved to where it belongs.
    pub fn parts(&self) -> Parts {
        let account = self.account();
        let unseen = |part: usize| {
            account.entered[part] as f64 * self.unseen.inside
                + account.left[part] as f64 * self.unseen.outside
        };
        let net = |part: usize| account.ns[part] as f64 - unseen(part);
        Parts {
            tx: net(TX),
            rx: net(RX),
            softirq: net(SOFTIRQ),
            timer: net(TIMER),
            other: net(OTHER),
            idle: net(IDLE),
            probes: account.ns[PROBE] as f64 + (0..PROBE).map(unseen).sum::<f64>(),
            total: (account.last_ns - account.first_ns) as f64,
            unmatched: account.unmatched,
        }
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
