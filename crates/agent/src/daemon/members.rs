// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The devices of a daemon: attaches them, follows those that come and go, watches each, and restores them.
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail, Context, Result};
use onramp_law::abi::COUNTERS;
use onramp_status::{Device, RootQdisc};
use tracing::{info, warn};

use super::Daemon;
use crate::config::Config;
use crate::datapath::{edge::NetDevice, pace::Pacing, Holder, OnDevice};
use crate::devices::{self, transmit_queues, Link, Lock, Named, Present};

/// Shortest time between two moves of the tcx programs to the front.
const FRONT_PERIOD: Duration = Duration::from_secs(60);

/// A device with the data path on it.
pub(super) struct Member {
    /// When the daemon attached to it.
    given: String,
    /// Now.
    name: String,
    ifindex: i32,
    /// That its configuration was made for.
    link: Link,
    /// It belongs to a bond, and the operator has not named it.
    is_slave: bool,
    pub device: OnDevice,
    root_qdisc: RootQdisc,
    /// When the tcx programs may be put in front again.
    front_due: Instant,
    _lock: Lock,
}

/// A device that the daemon alone may attach to.
pub(super) struct Claim {
    name: String,
    ifindex: i32,
    lock: Lock,
}

impl Claim {
    /// # Errors
    /// Another daemon has the device.
    pub fn of(ifindex: i32, name: &str) -> Result<Claim> {
        let cannot = || format!("cannot attach to {name}");
        Ok(Claim {
            name: name.to_owned(),
            ifindex,
            lock: Lock::take(NetDevice::of(ifindex)?.lock_file()).with_context(cannot)?,
        })
    }
}

impl Member {
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn link(&self) -> &Link {
        &self.link
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

    fn owner(&mut self) -> Result<RootQdisc> {
        let holder = self.device.holder();
        holder.map_or(Ok(RootQdisc::NotTaken), |holder| holder.owner())
    }

    /// Logs and keeps who has the root qdisc. Whoever takes it away keeps it: two programs that replace each
    /// other's qdisc would drop packets without end.
    fn watch_qdisc(&mut self) -> Result<()> {
        let lacks_one = self.device.could_grow(self.link.transmit_queues);
        let owner = match self.owner()? {
            RootQdisc::Own if lacks_one && self.device.has_several() => RootQdisc::Default,
            owner => owner,
        };
        if owner == self.root_qdisc || !self.is_there() {
            return Ok(());
        }
        let dev = &self.name;
        let how = "no flow is held; to hold flows again, restart the daemon";
        match &owner {
            RootQdisc::NotTaken => {}
            RootQdisc::Default if lacks_one => {} // follow_link says why
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
        if Instant::now() < self.front_due || !self.is_there() {
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
        self.device.is_attached() && devices::is_there(self.ifindex)
    }
}

impl Daemon {
    /// Attaches all devices, or none: an operator who names a device wants it held.
    pub(super) fn attach_all(&mut self, found: Vec<Claim>) -> Result<()> {
        for claim in found {
            let (name, ifindex) = (claim.name.clone(), claim.ifindex);
            if let Err(error) = self.attach(claim) {
                let _ = self.detach_all();
                if devices::is_there(ifindex) {
                    return Err(error);
                }
                bail!(
                    "device {name} was removed while the daemon attached to it; start the daemon again when it is back"
                );
            }
        }
        Ok(())
    }

    fn attach(&mut self, claim: Claim) -> Result<()> {
        let Claim {
            name,
            ifindex,
            lock,
        } = claim;
        let context = || format!("cannot attach to {name}");
        let link = Link::of(&name);
        let cfg = self
            .config
            .device_config(&name, &link)
            .with_context(context)?;
        let device = self.datapath.attach(ifindex, &cfg);
        if device.is_err() && !devices::is_there(ifindex) {
            NetDevice::of(ifindex)?.forget();
        }
        let device = device.with_context(context)?;
        let mut member = Member {
            given: name.clone(),
            ifindex,
            link,
            is_slave: !self.config.devices.contains(&name),
            name,
            device,
            root_qdisc: RootQdisc::default(),
            front_due: Instant::now(),
            _lock: lock,
        };
        if let Some(holder) = member.device.holder() {
            set_up(holder, &member.name, &self.config);
        }
        if let Some(warning) = self.config.line_rate_warning(&member.name, &link) {
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

    /// Restores a device, unless it has gone.
    fn detach(&mut self, member: Member) -> Result<()> {
        if !member.is_there() {
            return self.datapath.forget(member.device);
        }
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

    /// Lets TCP pace the connections of the devices that had fq.
    pub(super) fn pace(&mut self) {
        let paced = self
            .members
            .iter()
            .filter(|member| member.device.is_paced());
        let paced: Vec<String> = paced.map(|member| member.name.clone()).collect();
        let outcome = self.pace_on(paced);
        self.pacing_trouble.note(outcome);
    }

    fn pace_on(&mut self, paced: Vec<String>) -> Result<()> {
        if self.pacing.is_none() && !paced.is_empty() {
            self.pacing = Some(Pacing::attach()?);
        }
        let pacing = self.pacing.as_mut();
        pacing.map_or(Ok(()), |pacing| pacing.follow(paced.into_iter()))
    }

    /// Watches each device.
    pub(super) fn watch(&mut self) {
        let watched = self.members.iter_mut().map(Member::watch_qdisc);
        self.qdisc_trouble.note(watched.fold(Ok(()), Result::and));
        let front = self.members.iter_mut().map(Member::stay_in_front);
        self.front_trouble.note(front.fold(Ok(()), Result::and));
    }

    /// Follows the devices as they are: renamed ones by their index, slaves of a bond, and devices that were removed and are
    /// back; then the link of each.
    pub(super) fn follow(&mut self) {
        let before = self.names();
        let outcome = self.try_follow();
        let ruled = self.set_rules();
        self.member_trouble.note(outcome.and(ruled));
        if self.names() != before {
            self.notifier.status(&self.summary());
        }
    }

    fn try_follow(&mut self) -> Result<()> {
        let present = devices::all()?;
        self.follow_names(&present);
        let wanted = devices::wanted(&self.named);
        let stays = |member: &Member| {
            let is_there = member.device.is_attached() && present.contains_key(&member.ifindex);
            is_there && wanted.contains_key(&member.ifindex)
        };
        let (stay, go): (Vec<_>, Vec<_>) = std::mem::take(&mut self.members)
            .into_iter()
            .partition(stays);
        self.members = stay;
        for member in go {
            self.leave(member);
        }
        let mut outcome = Ok(());
        for (ifindex, name) in wanted {
            if !self.members.iter().any(|member| member.ifindex == ifindex) {
                outcome = outcome.and(self.join(ifindex, name));
            }
        }
        let mut members = std::mem::take(&mut self.members);
        let links = members.iter_mut().map(|member| self.follow_link(member));
        let linked = links.fold(Ok(()), Result::and);
        self.members = members;
        outcome.and(linked)
    }

    /// Says what became of the devices that the operator named, and takes their names and those of slaves.
    fn follow_names(&mut self, present: &Present) {
        for at in 0..self.named.len() {
            let others = self
                .named
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != at);
            let others: Vec<i32> = others.filter_map(|(_, named)| named.ifindex()).collect();
            let named = &mut self.named[at];
            let former = named.name().to_owned();
            if let Some(event) = named.look(present, &others) {
                warn!("{}", named.text(&event));
            }
            if former != named.name() {
                self.sockets.rename(&former, named.name());
            }
        }
        let missing = self.named.iter().filter(|named| named.ifindex().is_none());
        self.health.missing_devices = missing.map(|named| named.name().to_owned()).collect();
        self.config.devices = self
            .named
            .iter()
            .map(|named| named.name().to_owned())
            .collect();
        for member in &mut self.members {
            let Some(name) = present
                .get(&member.ifindex)
                .filter(|name| **name != member.name)
            else {
                continue;
            };
            let former = std::mem::replace(&mut member.name, name.clone());
            if !self.config.devices.contains(name) {
                info!("device {former} is called {name} now; the daemon follows it");
                self.sockets.rename(&former, name);
            }
        }
    }

    /// Attaches to a device that has come. If it has gone again, the next look says so.
    fn join(&mut self, ifindex: i32, name: String) -> Result<()> {
        let joined = Claim::of(ifindex, &name).and_then(|claim| self.attach(claim));
        match joined {
            Ok(()) => info!("{name} has come: {} it", self.doing()),
            Err(error) if devices::is_there(ifindex) => {
                return Err(anyhow!("{error:#}; its flows pass unheld"));
            }
            Err(_) => {}
        }
        Ok(())
    }

    /// Gives the data path of a device what follows from its MTU, its line rate and its transmit queues.
    fn follow_link(&mut self, member: &mut Member) -> Result<()> {
        let Some(link) = member.link.now(&member.name) else {
            return Ok(());
        };
        let name = &member.name;
        if let Some(changes) = link.changes(&member.link) {
            let cfg = self.config.device_config(name, &link)?;
            member.device.renew(&cfg)?;
            info!("{name}: {changes}");
            member.link = link;
        }
        let could_grow = member.device.could_grow(link.transmit_queues);
        if !could_grow || member.owner()? != RootQdisc::Own {
            return Ok(());
        }
        let name = &member.name;
        let grown = self.datapath.grow(&mut member.device, link.transmit_queues);
        let queues = grown.with_context(|| format!("{name} has new transmit queues"))?;
        let all = link.transmit_queues;
        info!("{name}: {queues} of {all} transmit queues have a qdisc of their own now");
        Ok(())
    }

    fn leave(&mut self, member: Member) {
        let (name, was_there) = (member.name.clone(), member.is_there());
        let is_slave = member.is_slave;
        let detached = self.detach(member);
        match (was_there, detached) {
            (false, _) if !is_slave => {} // follow_names has said so
            (false, _) => {
                warn!("device {name} was removed; it is held again when it is back in its bond")
            }
            (true, Ok(())) => info!("{name} has left its bond"),
            (true, Err(error)) => warn!("{name} has left its bond: {error:#}"),
        }
    }

    /// The index of a device of the configuration, also if it has another name by now.
    pub(super) fn index(&self, dev: &str) -> Option<i32> {
        let named = self.named.iter().find(|named| named.given() == dev);
        let member = self.members.iter().find(|member| member.given == dev);
        let followed = named
            .and_then(Named::ifindex)
            .or(member.map(|member| member.ifindex));
        followed.or_else(|| devices::index(dev))
    }

    /// The devices that have the data path, with their links.
    pub(super) fn links(&self) -> impl Iterator<Item = (&str, &Link)> {
        self.members
            .iter()
            .map(|member| (member.name(), &member.link))
    }

    /// The names of the devices that have the data path.
    pub(super) fn names(&self) -> String {
        let names: Vec<&str> = self.members.iter().map(|m| m.name.as_str()).collect();
        match names.is_empty() {
            true => "no device".to_owned(),
            false => names.join(", "),
        }
    }

    /// How flows are held: the same on all devices.
    pub(super) fn path(&self) -> &'static str {
        let first = self.members.first();
        first.map_or("none", |member| member.device.path())
    }
}

/// Limits GSO segments as asked, and says what a device with several transmit queues gets.
fn set_up(holder: &mut Holder, dev: &str, config: &Config) {
    if let Some(bytes) = config.link.gso_max {
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
            match config.link.shape {
                Some(_) => "--shape",
                None => "its former root qdisc",
            }
        );
    }
}
