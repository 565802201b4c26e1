//! The devices of a daemon: attaches them, follows those that come and go, watches each, and restores them.
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail, Context, Result};
use onramp_law::abi::COUNTERS;
use onramp_status::{Device, RootQdisc};
use tracing::{info, warn};

use super::Daemon;
use crate::args::Args;
use crate::datapath::{Holder, OnDevice};
use crate::devices::{self, transmit_queues};

/// Shortest time between two moves of the tcx programs to the front.
const FRONT_PERIOD: Duration = Duration::from_secs(60);

/// A device with the data path on it.
pub(super) struct Member {
    name: String,
    ifindex: i32,
    pub device: OnDevice,
    root_qdisc: RootQdisc,
    /// When the tcx programs may be put in front again.
    front_due: Instant,
}

impl Member {
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn status(&self) -> Result<Device> {
        let names = COUNTERS.iter().map(|(name, _)| (*name).to_owned());
        Ok(Device {
            name: self.name.clone(),
            root_qdisc: self.root_qdisc.clone(),
            counters: names.zip(self.device.counters()?).collect(),
            pauses: self.device.pauses()?,
        })
    }

    /// Logs and keeps who has the root qdisc. Whoever takes it away keeps it: two programs that replace each
    /// other's qdisc would drop packets without end.
    fn watch_qdisc(&mut self) -> Result<()> {
        let owner = match self.device.holder() {
            Some(holder) => holder.owner()?,
            None => RootQdisc::NotTaken,
        };
        if owner == self.root_qdisc {
            return Ok(());
        }
        let dev = &self.name;
        let how = "no flow is held; to hold flows again, restart the daemon";
        match &owner {
            RootQdisc::NotTaken => {}
            RootQdisc::Own => info!("{dev} has On-Ramp's qdisc again: flows are held"),
            RootQdisc::Default => {
                warn!("another program removed On-Ramp's qdisc from {dev}: {how}")
            }
            RootQdisc::Foreign(kind) => {
                warn!("another program made {kind} the root qdisc of {dev}: {how}");
            }
        }
        self.root_qdisc = owner;
        Ok(())
    }

    /// Puts the tcx programs in front of those that were attached before them meanwhile, but does not fight: at
    /// most once in `FRONT_PERIOD`. Until then OR-ACKs are sent as long as the others let them pass.
    fn stay_in_front(&mut self) -> Result<()> {
        if Instant::now() < self.front_due {
            return Ok(());
        }
        let (before, muted) = (self.device.before_us()?, self.device.is_muted()?);
        if before.is_empty() && !muted {
            return Ok(());
        }
        self.front_due = Instant::now() + FRONT_PERIOD;
        self.device.move_to_front()?;
        let who = match before.as_slice() {
            [] => "another program".to_owned(),
            ids => format!("tcx program {ids:?} (bpftool prog show id names it)"),
        };
        let effect = match muted {
            true => "ended the chain, so no OR-ACKs were sent",
            false => "let OR-ACKs pass",
        };
        warn!(
            "{}: {who} ran before On-Ramp's and {effect}; On-Ramp's is the first again",
            self.name
        );
        Ok(())
    }

    fn is_there(&self) -> bool {
        devices::index(&self.name) == Some(self.ifindex)
    }
}

impl Daemon {
    /// Attaches all devices, or none: an operator who names a device wants it held.
    pub(super) fn attach_all(&mut self, names: &[String]) -> Result<()> {
        for name in names {
            if let Err(error) = self.attach(name) {
                let _ = self.detach_all();
                return Err(error);
            }
        }
        Ok(())
    }

    fn attach(&mut self, name: &str) -> Result<()> {
        let context = || format!("cannot attach to {name}");
        let ifindex = devices::index(name).with_context(|| format!("{name} was removed"))?;
        let cfg = self.args.device_config(name)?;
        let device = self.datapath.attach(ifindex, &cfg).with_context(context)?;
        let mut member = Member {
            name: name.to_owned(),
            ifindex,
            device,
            root_qdisc: RootQdisc::default(),
            front_due: Instant::now(),
        };
        if let Some(holder) = member.device.holder() {
            set_up(holder, name, &self.args);
        }
        if let Some(warning) = self.args.line_rate_warning(name) {
            warn!("{warning}");
        }
        self.members.push(member);
        Ok(())
    }

    /// Restores all devices, and says how; the last error if there are some.
    pub(super) fn detach_all(&mut self) -> Result<()> {
        let members = std::mem::take(&mut self.members);
        let restore = |member| self.detach(member);
        members.into_iter().map(restore).fold(Ok(()), Result::and)
    }

    fn detach(&mut self, member: Member) -> Result<()> {
        let dev = member.name;
        let detached = self.datapath.detach(member.device);
        match detached.with_context(|| format!("cannot restore the qdisc of {dev}"))? {
            None | Some(RootQdisc::NotTaken) => info!("{dev} is no longer observed"),
            Some(RootQdisc::Foreign(kind)) => {
                info!("{dev} keeps the {kind} qdisc of another program");
            }
            Some(_) => info!("{dev} has its former qdisc again"),
        }
        Ok(())
    }

    /// Watches each device.
    pub(super) fn watch(&mut self) {
        let watched = self.members.iter_mut().map(Member::watch_qdisc);
        self.qdisc_trouble.note(watched.fold(Ok(()), Result::and));
        let front = self.members.iter_mut().map(Member::stay_in_front);
        self.front_trouble.note(front.fold(Ok(()), Result::and));
    }

    /// Attaches devices that have come, and leaves those that have gone: slaves of a bond, and devices that were
    /// removed and are back.
    ///
    /// # Errors
    /// All devices were removed.
    pub(super) fn follow(&mut self) -> Result<()> {
        let wanted = devices::present(&self.args.dev);
        let stays = |member: &Member| member.is_there() && wanted.contains(&member.name);
        let (stay, go): (Vec<_>, Vec<_>) = std::mem::take(&mut self.members)
            .into_iter()
            .partition(stays);
        self.members = stay;
        for member in go {
            self.leave(member);
        }
        if !self
            .args
            .dev
            .iter()
            .any(|dev| devices::index(dev).is_some())
        {
            bail!(
                "device {} was removed; start the daemon again when it is back",
                self.args.dev.join(", ")
            );
        }
        let is_new = |name: &&String| {
            devices::index(name).is_some() && !self.members.iter().any(|m| m.name == **name)
        };
        let new: Vec<String> = wanted.iter().filter(is_new).cloned().collect();
        let mut outcome = Ok(());
        for name in new {
            match self.attach(&name) {
                Ok(()) => info!("{name} has come: flows are held there too"),
                Err(error) => {
                    outcome = Err(anyhow!("{error:#}; its flows pass unheld"));
                }
            }
        }
        let ruled = self.set_rules();
        self.member_trouble.note(outcome.and(ruled));
        Ok(())
    }

    fn leave(&mut self, member: Member) {
        let (name, was_there) = (member.name.clone(), member.is_there());
        let detached = self.detach(member);
        match (was_there, detached) {
            (false, _) => warn!("device {name} was removed; it is held again when it is back"),
            (true, Ok(())) => info!("{name} has left its bond"),
            (true, Err(error)) => warn!("{name} has left its bond: {error:#}"),
        }
    }

    /// The names of the devices that have the data path.
    pub(super) fn names(&self) -> String {
        let names: Vec<&str> = self.members.iter().map(|m| m.name.as_str()).collect();
        names.join(", ")
    }

    /// How flows are held: the same on all devices.
    pub(super) fn path(&self) -> &'static str {
        let first = self.members.first();
        first.map_or("none", |member| member.device.path())
    }
}

/// Limits GSO segments as asked, and says what a device with several transmit queues gets.
fn set_up(holder: &mut Holder, dev: &str, args: &Args) {
    if let Some(bytes) = args.link.gso_max {
        if let Err(error) = holder.limit_gso(bytes.get() as u32) {
            warn!("{dev}: {error:#}; flows are controlled in larger bursts");
        }
    }
    let (queues, qdiscs) = (transmit_queues(dev), holder.qdiscs());
    if qdiscs > 1 {
        info!("{dev}: each of the {qdiscs} transmit queues has a qdisc of its own");
    } else if queues > 1 {
        warn!(
            "{dev} has {queues} transmit queues and, because of {}, one qdisc and one lock for all; on a line \
             faster than 10 Gbit/s compare the throughput with and without On-Ramp",
            match args.link.shape {
                Some(_) => "--shape",
                None => "its former root qdisc",
            }
        );
    }
}
