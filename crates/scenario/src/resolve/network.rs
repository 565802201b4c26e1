// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Keys of [network]: topology, links, buffers, marks.

use super::*;
use crate::types::{FILE, INLINE};
use crate::{shape, NetworkRule, Shape, ShapeKind};
use onramp_cc::switch;

impl Resolver<'_> {
    pub(super) fn network(&mut self) -> Option<Network> {
        let topology = self.topology();
        self.hosts = topology.as_ref().map(Topology::hosts);
        let host_links = match &topology {
            Some(Topology::File { graph, .. } | Topology::Inline(Inline { graph, .. })) => {
                graph.host_links()
            }
            _ => Vec::new(),
        };
        let fastest = host_links.iter().max_by_key(|link| link.rate).copied();
        let (link, fabric) = match self.says_links() {
            true => self.no_links().and(fastest.zip(fastest)).unzip(),
            false => self.links(),
        };
        let sharing = self.field("network.sharing");
        let buffer = self.field("network.buffer");
        let alpha_log2 = self.alpha(sharing);
        let rule = self.rule();
        let ecn = self.ecn(buffer);
        let loss = self.field("network.loss");
        Some(Network {
            topology: topology?,
            link: link?,
            host_links,
            fabric: fabric?,
            buffer: buffer?,
            sharing: sharing?,
            alpha_log2: alpha_log2?,
            rule: rule?,
            ecn: ecn?,
            loss: loss?,
        })
    }

    pub(super) fn links(&mut self) -> (Option<Link>, Option<Link>) {
        for path in ["network.link.delay", "network.link.rate"] {
            if !self.given(path) {
                self.missing(path);
            }
        }
        let link = self.link("network.link", None);
        (link, self.link("network.fabric", link))
    }

    /// Whether nodes and links are given.
    fn says_links(&self) -> bool {
        ["network.topology.path", "network.graph"].contains(&self.nodes_key())
    }

    /// The key that defines the nodes.
    pub(super) fn nodes_key(&self) -> &'static str {
        let kind = self.layer.get("network.topology.kind");
        let kind = kind.and_then(|setting| setting.value.as_ref());
        match kind.map(Value::to_string).as_deref() {
            Some(FILE) => "network.topology.path",
            Some(INLINE) => "network.graph",
            _ => "network.topology.hosts",
        }
    }

    /// Reports rates and delays beside a list of nodes and links, which has its own.
    pub(super) fn no_links(&mut self) -> Option<()> {
        let mut none = Some(());
        for table in ["link", "fabric"] {
            for key in ["rate", "delay"].map(|name| format!("network.{table}.{name}")) {
                if self.given(&key) {
                    let other = self.nodes_key().to_owned();
                    self.report(
                        &[&key],
                        Problem::Beside {
                            key: key.clone(),
                            other,
                        },
                    );
                    none = None;
                }
            }
        }
        none
    }

    fn refuse_beside(&mut self, key: &str, other: &str) {
        if self.given(key) && self.given(other) {
            let (key, other) = (key.to_owned(), other.to_owned());
            self.report(&[&key.clone()], Problem::Beside { key, other });
        }
    }

    pub(super) fn alpha(&mut self, sharing: Option<Sharing>) -> Option<Option<i8>> {
        if !self.given("network.alpha") {
            return Some(None);
        }
        let alpha = self.field::<String>("network.alpha")?;
        if sharing? == Sharing::PerPort {
            self.needs(
                "network.alpha",
                "network.sharing",
                &[Sharing::Shared, Sharing::Lossless],
            );
            return Some(None);
        }
        let place = keys::ALPHAS.iter().position(|name| *name == alpha)?;
        Some(Some(place as i8 - 7))
    }

    pub(super) fn topology(&mut self) -> Option<Topology> {
        let kind = self.field::<String>("network.topology.kind");
        let kind = kind.as_deref();
        if kind != Some(INLINE) && self.given("network.graph") {
            self.needs("network.graph", "network.topology.kind", &[INLINE]);
        }
        match kind {
            Some(FILE) => self.topology_file(),
            Some(INLINE) => self.topology_inline(),
            _ => self.shape(kind.and_then(shape)),
        }
    }

    fn shape(&mut self, kind: Option<&'static ShapeKind>) -> Option<Topology> {
        let hosts = self.needed("network.topology.hosts");
        let kind = kind?;
        let counts = kind.counts.iter().map(|count| self.needed(count.key));
        let counts: Vec<Option<u32>> = counts.collect(); // all, so that all errors are reported
        let counts: Vec<u32> = counts.into_iter().collect::<Option<_>>()?;
        let hosts = self.multiple(hosts?, (kind.racks)(&counts))?;
        Some(Topology::Shape(Shape::new(kind, hosts, counts)))
    }

    pub(super) fn topology_file(&mut self) -> Option<Topology> {
        let key = "network.topology.path";
        if !self.given(key) {
            self.missing(key);
        }
        let path = self.field::<String>(key)?;
        let graph = self.files.graph(&path);
        let graph = self.file(key, &path, graph)?;
        Some(Topology::File { path, graph })
    }

    fn topology_inline(&mut self) -> Option<Topology> {
        if !self.given("network.graph") {
            self.missing("network.graph");
        }
        match self.value("network.graph")? {
            Value::Graph(inline) => Some(Topology::Inline(inline)),
            _ => None,
        }
    }

    /// The content of a file; an error is reported.
    pub(super) fn file<T>(&mut self, key: &str, path: &str, held: Result<T, String>) -> Option<T> {
        let report = |error| {
            let (key, path) = (key.to_owned(), path.to_owned());
            self.report(&[&key.clone()], Problem::File { key, path, error });
        };
        held.map_err(report).ok()
    }

    /// A count that this topology requires.
    pub(super) fn needed(&mut self, path: &str) -> Option<u32> {
        if !self.given(path) {
            self.missing(path);
        }
        self.field::<u32>(path)
    }

    /// Checks that each of `switches` switches has the same number of hosts.
    pub(super) fn multiple(&mut self, hosts: u32, switches: u32) -> Option<u32> {
        if hosts.is_multiple_of(switches) {
            return Some(hosts);
        }
        let key = "network.topology.hosts".to_owned();
        let (found, expected) = (
            hosts.to_string(),
            format!("a multiple of {switches} (the number of switches with hosts)"),
        );
        self.report(
            &["network.topology.hosts"],
            Problem::Expected {
                key,
                found,
                expected,
            },
        );
        None
    }

    /// The link of that table, with defaults from `like`.
    pub(super) fn link(&mut self, table: &str, like: Option<Link>) -> Option<Link> {
        let rate = self.field::<Rate>(&format!("{table}.rate"));
        let delay = self.field::<Span>(&format!("{table}.delay"));
        Some(Link {
            rate: rate.or(like.map(|link| link.rate))?,
            delay: delay.or(like.map(|link| link.delay))?,
        })
    }

    /// The rule of the switches, unless it is `ecn`. Reports parameters of rules that no run has.
    fn rule(&mut self) -> Option<Option<NetworkRule>> {
        let entry = switch::entry(&self.field::<String>("network.rule")?);
        if entry.is_some() {
            for key in ["threshold", "max", "max_fraction", "steps", "bdp", "mark"] {
                self.needs_rule(&format!("network.ecn.{key}"), "ecn");
            }
        }
        let others = switch::entries().filter(|other| Some(*other) != entry);
        for (other, parameter) in others.flat_map(|e| e.parameters.iter().map(move |p| (e, p))) {
            self.needs_rule(parameter.key, other.name);
        }
        Some(entry.map(|entry| NetworkRule {
            tuning: self.tuning_of_rule(entry),
            entry,
        }))
    }

    fn needs_rule(&mut self, key: &str, rule: &str) {
        if self.given(key) {
            self.needs(key, "network.rule", &[rule]);
        }
    }

    fn tuning_of_rule(&mut self, rule: &switch::Entry) -> Tuning {
        let mut tuning = Tuning::default();
        for parameter in rule.parameters {
            let setting = self.layer.get(parameter.key);
            let value = setting.and_then(|setting| setting.value.as_ref());
            if let Some(value) = value.and_then(Value::setting) {
                tuning.set(parameter.name, value);
            }
        }
        tuning
    }

    /// Whether the switches' rule, other than `ecn`, marks packets.
    pub(super) fn rule_marks(&mut self) -> bool {
        let name = self.field::<String>("network.rule");
        name.and_then(|name| switch::entry(&name))
            .is_some_and(|rule| rule.marks)
    }

    pub(super) fn ecn(&mut self, buffer: Option<Bytes>) -> Option<Option<Ecn>> {
        let threshold = self.field::<Bytes>("network.ecn.threshold");
        self.at_most("network.ecn.threshold", threshold, buffer, "network.buffer");
        let max = match self.given("network.ecn.max") {
            true => Some(self.field::<Bytes>("network.ecn.max")?),
            false => threshold,
        };
        self.at_most("network.ecn.threshold", threshold, max, "network.ecn.max");
        let max_fraction = self.field::<Fraction>("network.ecn.max_fraction")?;
        let steps = self.field::<Option<u64>>("network.ecn.steps")?;
        let bdp = self.field::<Option<Bytes>>("network.ecn.bdp")?;
        let mark = self.field("network.ecn.mark")?;
        for other in ["network.ecn.max", "network.ecn.steps"] {
            self.refuse_beside("network.ecn.bdp", other);
        }
        let shape = ["network.ecn.steps", "network.ecn.bdp", "network.ecn.mark"];
        let shaped = max.is_some() || shape.iter().any(|key| self.given(key));
        if shaped && threshold.is_none() {
            if !self.given("network.ecn.threshold") {
                self.missing("network.ecn.threshold");
            }
            return None;
        }
        let ecn = |threshold| {
            Some(Ecn {
                threshold,
                max: max?,
                max_fraction,
                steps: steps.map(|steps| steps as u32),
                bdp,
                mark,
            })
        };
        Some(threshold.and_then(ecn))
    }
}
