// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Resolves [host], [cc] and [onramp], and checks their relations to other keys.

use super::*;
use onramp_cc::Parameter;

impl Resolver<'_> {
    pub(super) fn host(&mut self) -> Option<Host> {
        let (kind, cc) = (self.value(Host::kind), self.value(Host::cc));
        if let Some(kind) = kind {
            self.refuse_other_hosts(kind);
        }
        let host: Option<Host> = self.section();
        let cc = self.check_cc(Host::cc, kind?, cc?)?;
        Some(Host { cc, ..host? })
    }

    /// Reports keys that only another kind of host has.
    pub(super) fn refuse_other_hosts(&mut self, kind: HostKind) {
        for key in keys::all() {
            if key.on.is_some_and(|on| on != kind) && self.given(key.path) {
                self.needs(key.path, "host.kind", key.on.as_slice());
            }
        }
    }

    /// Reports a key that has no effect, because no run sets `other` to one of `values`.
    pub(super) fn needs<T: Display>(&mut self, key: &str, other: &str, values: &[T]) {
        let says = |value: &T| self.document.says(other, &value.to_string());
        if values.iter().any(says) {
            return;
        }
        let Some(value) = self.layer.get(key).and_then(Given::text) else {
            return;
        };
        let values: Vec<String> = values.iter().map(T::to_string).collect();
        let (value, needs) = (value.to_owned(), format!("{other} {}", values.join(" or ")));
        let problem = Problem::Needs {
            key: key.to_owned(),
            value,
            needs,
        };
        self.report(&[key], problem);
    }

    /// Parameters of these hosts' congestion control. Reports those that no run has.
    pub(super) fn tuning_of(&mut self, host: Option<Host>) -> Option<Tuning> {
        let Host { cc, .. } = host?;
        for key in keys::all().filter(|key| !key.of_cc.is_empty()) {
            if self.is_here(key.path) && !key.of_cc.contains(&cc.name()) {
                self.needs(key.path, Host::cc, key.of_cc);
            }
        }
        Some(self.tuning(cc))
    }

    /// Whether the scenario gives a key to these hosts, and not only to all.
    fn is_here(&self, path: &str) -> bool {
        match self.group {
            Some(_) => self.of_group(path).is_some(),
            None => self.given(path),
        }
    }

    /// Parameters of these hosts' control law. Reports those that no run has.
    pub(super) fn law_tuning_of(&mut self, onramp: Option<OnRamp>) -> Option<Tuning> {
        let OnRamp { law, .. } = onramp?;
        for key in keys::all().filter(|key| key.of_law.is_some()) {
            if self.is_here(key.path) && key.of_law != Some(law.name()) {
                self.needs(key.path, OnRamp::law, key.of_law.as_slice());
            }
        }
        Some(self.given_of(law.parameters()))
    }

    /// Parameters of `cc`.
    fn tuning(&mut self, cc: Cc) -> Tuning {
        let tuning = self.given_of(cc.parameters());
        let parameters = cc.parameters();
        let key = |name: &str| parameters.iter().find(|p| p.name == name).map(|p| p.key);
        for &(low, high) in cc.ordered() {
            if let (Some(low_key), Some(high_key)) = (key(low), key(high)) {
                self.at_most(low_key, tuning.get(low), tuning.get(high), high_key);
            }
        }
        tuning
    }

    /// What the scenario gives of `parameters`.
    pub(super) fn given_of(&self, parameters: &[Parameter]) -> Tuning {
        let mut tuning = Tuning::default();
        for parameter in parameters {
            let text = self.layer.get(parameter.key).and_then(Given::text);
            if let Some(value) = text.and_then(|text| parameter.bounds.read(text)) {
                tuning.set(parameter.name, value);
            }
        }
        tuning
    }

    /// The congestion control of that name for hosts of this kind.
    fn check_cc(&mut self, path: &str, kind: HostKind, named: Cc) -> Option<Cc> {
        let threshold = "network.ecn.threshold";
        let cc = named.on(kind == HostKind::Nic);
        let has_marks = self.given(threshold) || self.rule_marks();
        let needs = match (cc, kind) {
            (None, HostKind::Kernel) => "host.kind nic",
            (None, HostKind::Nic) => "host.kind kernel",
            (Some(cc), _) if cc.needs_marks() && !has_marks => threshold,
            (Some(_), _) => return cc,
        };
        let (key, value) = (path.to_owned(), named.to_string());
        let needs = needs.to_owned();
        self.report(&[path, "host.kind"], Problem::Needs { key, value, needs });
        cc
    }

    pub(super) fn onramp(
        &mut self,
        network: Option<&Network>,
        host: Option<Host>,
    ) -> Option<OnRamp> {
        let read: Option<OnRamp> = self.section();
        let off = Law::Off.name();
        let law: ControlLaw = match self.text(OnRamp::threshold).as_deref() == Some(off) {
            true => Law::Off.into(),
            false => self.value(OnRamp::law)?,
        };
        if law == Law::Off {
            let defaults = OnRamp::read(&Defaults)?;
            return Some(OnRamp { law, ..defaults });
        }
        if host.is_some_and(|host| host.kind == HostKind::Kernel && host.qdisc != Qdisc::Edge) {
            let (key, value) = ("onramp.law".to_owned(), law.to_string());
            let needs = "host.qdisc edge".to_owned();
            self.report(
                &["onramp.law", "host.qdisc"],
                Problem::Needs { key, value, needs },
            );
        }
        let guarded = read.as_ref().is_some_and(|read| read.guard.0.is_some());
        if guarded && !law.in_kernel() {
            self.refuse_guard(law);
        }
        if let (false, Some(threshold), Some(network)) =
            (guarded, self.value(OnRamp::threshold), network)
        {
            self.check_threshold(threshold, network);
        }
        read
    }

    /// The guard raises T of the laws of law/ only.
    fn refuse_guard(&mut self, law: ControlLaw) {
        let (key, value) = (OnRamp::law.to_owned(), law.to_string());
        let needs = format!("{} off", OnRamp::guard);
        let paths = [OnRamp::guard, OnRamp::law];
        self.report(&paths, Problem::Needs { key, value, needs });
    }

    /// A threshold below the delay of an idle path would hold every packet, without a guard.
    pub(super) fn check_threshold(&mut self, threshold: Span, network: &Network) {
        let base = network.base_delay();
        if threshold < base {
            let (key, value) = ("onramp.threshold".to_owned(), threshold.to_string());
            let min = format!("{base} (the delay of the idle path)");
            let paths = [
                "onramp.threshold",
                "network.link.delay",
                "network.topology.path",
                "network.graph",
            ];
            self.report(&paths, Problem::Below { key, value, min });
        }
    }
}
