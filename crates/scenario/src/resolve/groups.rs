// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Resolves [[hosts]]: each group has the settings of all hosts, except those that its entry gives.

use super::*;
use crate::groups::GroupKeys;
use crate::keys::{TableEntry, LINK_RATE};
use crate::network::EcnKeys;
use crate::setting::Setting;

impl<'a> Resolver<'a> {
    /// The setting of `path` that the resolved group itself gives.
    pub(super) fn of_group(&self, path: &str) -> Option<&'a Given> {
        let group = self.group.as_ref()?;
        self.layer.get(&format!("{group}.{path}"))
    }

    /// All groups. Their links' rates become those of `network`.
    pub(super) fn groups(
        &mut self,
        network: &mut Option<Network>,
        others: Option<Host>,
    ) -> Option<Vec<Group>> {
        let numbers = 0..self.document.entries.hosts;
        // All groups are read before the first failure returns, so that all errors are reported.
        let hosts: Vec<_> = numbers.clone().map(|n| self.hosts_of(n)).collect();
        let groups: Vec<_> = numbers
            .map(|n| self.group(n, hosts[n].clone(), network.as_ref(), others))
            .collect();
        self.refuse_common_hosts(&hosts);
        let groups = groups.into_iter().collect::<Option<Vec<_>>>()?;
        if let Some(network) = network {
            groups.iter().for_each(|group| network.set_rate(group));
            self.need_rate_of_threshold(network);
        }
        Some(groups)
    }

    /// Reports a threshold of marks that does not say for which ports it is, where hosts' ports differ.
    fn need_rate_of_threshold(&mut self, network: &Network) {
        let Some(Ecn {
            threshold,
            at: None,
            ..
        }) = network.ecn
        else {
            return;
        };
        let (least, most) = (network.host_rates().min(), network.host_rates().max());
        if let (Some(least), Some(most), true) = (least, most, least != most) {
            let (key, value) = (EcnKeys::threshold.to_owned(), threshold.to_string());
            let why = format!("but hosts' links have {least} to {most}: add {} = \"{least}\", or the rate of the ports that it is for", EcnKeys::at);
            self.report(&[EcnKeys::threshold], Problem::Wrong { key, value, why });
        }
    }

    fn hosts_of(&mut self, number: usize) -> Option<HostSet> {
        let path = format!("hosts.{number}.range");
        self.require(std::iter::once((&GroupKeys::KEYS[0], path.clone())))?;
        self.layer.get(&path)?.text()?.parse().ok()
    }

    /// Reports hosts that are in several groups.
    fn refuse_common_hosts(&mut self, groups: &[Option<HostSet>]) {
        for (number, group) in groups.iter().enumerate() {
            let Some(group) = group else { continue };
            for (earlier, other) in groups[..number].iter().enumerate() {
                let Some(host) = other.as_ref().and_then(|other| group.common(other)) else {
                    continue;
                };
                let path = |number| format!("hosts.{number}.range");
                let (key, other) = (path(number), path(earlier));
                let problem = Problem::InTwoGroups {
                    key: key.clone(),
                    value: format!("\"{group}\""),
                    host,
                    other: other.clone(),
                };
                self.report(&[&key, &other], problem);
            }
        }
    }

    fn group(
        &mut self,
        number: usize,
        hosts: Option<HostSet>,
        network: Option<&Network>,
        others: Option<Host>,
    ) -> Option<Group> {
        let table = format!("hosts.{number}");
        let mut layer = self.layer.clone();
        for (path, setting) in self.layer {
            let name = path.strip_prefix(&table).and_then(|p| p.strip_prefix('.'));
            if let Some(name) = name {
                layer.insert(name.to_owned(), setting.clone());
            }
        }
        let mut own = Resolver {
            document: self.document,
            files: self.files,
            layer: &layer,
            hosts: self.hosts,
            group: Some(table),
            errors: Vec::new(),
        };
        let host = own.host();
        let tuning = own.tuning_of(host);
        let onramp = own.onramp(network, host);
        let law_tuning = own.law_tuning_of(onramp);
        let link_rate = match own.of_group(LINK_RATE) {
            Some(_) => own.value::<Rate>(LINK_RATE).map(Some),
            None => Some(None),
        };
        if let (Some(host), Some(others), Some(network)) = (host, others, network) {
            own.refuse_other_marks(host.cc, others.cc, network);
        }
        let mut settings = own.settings_of(own.link_rate_key());
        if let (Some(host), Some(onramp)) = (&host, &onramp) {
            settings.extend(own.settings_of_host(host, onramp));
        }
        let errors = own.errors;
        self.errors.extend(errors);
        let (inherited, mut own) = settings
            .into_iter()
            .partition::<Vec<_>, _>(|s| self.is_inherited(number, s));
        let hosts = hosts?;
        own.insert(0, range_of(&hosts));
        own.iter_mut()
            .for_each(|s| s.entry = Some(TableEntry::Hosts(number)));
        Some(Group {
            hosts,
            host: host?,
            tuning: tuning?,
            onramp: onramp?,
            law_tuning: law_tuning?,
            link_rate: link_rate?,
            own,
            inherited,
        })
    }

    /// The key of the rate of links, if the resolved group gives it.
    fn link_rate_key(&self) -> Option<&'static Key> {
        self.of_group(LINK_RATE)?;
        keys::all().find(|key| key.path == LINK_RATE)
    }

    /// Whether it is a parameter of a congestion control or a control law that [cc] or [onramp] gives.
    fn is_inherited(&self, number: usize, setting: &Setting) -> bool {
        let given = format!("hosts.{number}.{}", setting.key.path);
        setting.key.is_parameter() && !self.given(&given)
    }

    /// Reports a congestion control of NICs whose source marks in another form than that of the other hosts,
    /// unless `network.ecn` decides.
    fn refuse_other_marks(&mut self, cc: Cc, others: Cc, network: &Network) {
        let (Cc::Nic(own), Cc::Nic(others), None) = (cc, others, network.ecn) else {
            return;
        };
        let rate = network.link.rate;
        if (own.ecn)(rate) != (others.ecn)(rate) {
            let key = "host.cc".to_owned();
            let (value, needs) = (cc.to_string(), "network.ecn.threshold".to_owned());
            self.report(&["host.cc"], Problem::Needs { key, value, needs });
        }
    }
}

fn range_of(hosts: &HostSet) -> Setting {
    Setting {
        key: &GroupKeys::KEYS[0],
        entry: None,
        text: hosts.to_string(),
    }
}

impl Network {
    /// Gives the group's hosts links of its rate.
    fn set_rate(&mut self, group: &Group) {
        let Some(rate) = group.link_rate else { return };
        if self.host_links.is_empty() {
            self.host_links = vec![self.link; self.topology.hosts() as usize];
        }
        for host in group.hosts.iter() {
            if let Some(link) = self.host_links.get_mut(host as usize) {
                link.rate = rate;
            }
        }
    }
}
