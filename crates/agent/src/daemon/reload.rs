// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A daemon reads its configuration again: what can change while it runs changes, and the flows stay as they are.
use anyhow::Result;
use onramp_status::Reloaded;
use tracing::{error, info};

use super::{look::Burst, Daemon};
use crate::config::{self, Configuration, Threshold};
use crate::rules::{rules, tell_missing};

impl Daemon {
    /// Reads file, keys and members again. If any of them is refused, nothing changes.
    pub(super) fn reload(&mut self) -> Reloaded {
        self.notifier.reloading();
        let outcome = self.try_reload();
        match &outcome {
            Ok(changed) if changed.is_empty() => {
                info!("reloaded: the configuration is the same; keys and members were read again")
            }
            Ok(changed) => info!("reloaded: {}", changed.join("; ")),
            Err(error) => error!("not reloaded, the former configuration stays: {error:#}"),
        }
        self.notifier.ready(&self.summary());
        let file = self.config.file.as_ref();
        Reloaded {
            file: file.map(|file| file.display().to_string()),
            error: outcome.as_ref().err().map(|error| format!("{error:#}")),
            changed: outcome.unwrap_or_default(),
        }
    }

    fn try_reload(&mut self) -> Result<Vec<String>> {
        let mut new = Configuration::load(&self.given, config::Daemon::Agent)?;
        let changed = self.config.changes(&new)?;
        new.devices.clone_from(&self.config.devices); // without the key: the routes may have changed
        let keys = new.keys()?;
        let peers = new.peers()?;
        let configured: Vec<_> = self
            .members
            .iter()
            .map(|member| new.device_config(member.name(), member.link()))
            .collect::<Result<_>>()?;
        if let Some(part) = self.clock.part() {
            part.set_members(&new.fleet)?;
            part.set_keys(keys.clone());
        }

        self.datapath.set_keys(
            &keys,
            self.members.iter_mut().map(|member| &mut member.device),
        )?;
        for (member, cfg) in self.members.iter_mut().zip(&configured) {
            member.device.renew(cfg)?;
        }
        let change = self.peers.replace(peers);
        self.apply(change)?;
        self.datapath.set_served(&new.peers.serve)?;
        if let Threshold::Fixed(_) = new.law.threshold {
            self.forget_thresholds()?;
        }
        tell_missing(&new.classes);
        self.config = new;
        self.burst = Burst::default();
        self.set_rules()?;
        Ok(changed)
    }

    /// Gives the data path the classes, with the devices and cgroups that are there now.
    pub(super) fn set_rules(&mut self) -> Result<()> {
        let rules = rules(
            &self.config.classes,
            self.config.others,
            &self.floors,
            |dev| self.index(dev),
            crate::cgroup::find,
        );
        self.datapath.set_rules(rules)
    }

    /// Peers no longer have thresholds of their own.
    fn forget_thresholds(&mut self) -> Result<()> {
        for peer in std::mem::take(&mut self.thresholds).into_keys() {
            self.datapath.remove_threshold(peer)?;
        }
        self.health.peers_without_threshold = 0;
        Ok(())
    }
}
