// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Keys of [network]: topology, links, buffers, marks.

use super::*;
use crate::network::{
    Chosen, EcnKeys, FabricKeys, FailedKeys, GraphKeys, LinkKeys, Ports, RuleKeys, TopologyKeys,
};
use crate::topology::{shape, Shape, ShapeKind, FILE, INLINE};
use onramp_cc::{path, switch};

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
        let ports: Option<Ports> = self.section();
        let failed: Option<FailedKeys> = self.section();
        self.check_alpha();
        let rule = self.rule();
        let paths = self.paths();
        let ecn = self.ecn();
        Some(Network {
            topology: topology?,
            link: link?,
            host_links,
            fabric: fabric?,
            failed: failed?.failed,
            ports: ports?,
            rule: rule?,
            paths: paths?,
            ecn: ecn?,
        })
    }

    fn links(&mut self) -> (Option<Link>, Option<Link>) {
        self.needed(LinkKeys::delay);
        self.needed(LinkKeys::rate);
        let (link, fabric) = (self.section::<LinkKeys>(), self.section::<FabricKeys>());
        let of = |rate: Option<Rate>, delay: Option<Span>| {
            Some(Link {
                rate: rate?,
                delay: delay?,
            })
        };
        let link = link.and_then(|link| of(link.rate, link.delay));
        (
            link,
            fabric.and_then(|fabric| of(fabric.rate, fabric.delay)),
        )
    }

    /// Whether nodes and links are given.
    fn says_links(&self) -> bool {
        [TopologyKeys::path, GraphKeys::graph].contains(&self.nodes_key())
    }

    /// The key that defines the nodes.
    pub(super) fn nodes_key(&self) -> &'static str {
        match self.text(TopologyKeys::kind).as_deref() {
            Some(FILE) => TopologyKeys::path,
            Some(INLINE) => GraphKeys::graph,
            _ => TopologyKeys::hosts,
        }
    }

    /// Reports rates and delays beside a list of nodes and links, which has its own.
    fn no_links(&mut self) -> Option<()> {
        let mut none = Some(());
        let links = LinkKeys::KEYS.iter().chain(FabricKeys::KEYS);
        for key in links.filter(|key| self.layer.contains_key(key.path)) {
            let (key, other) = (key.path.to_owned(), self.nodes_key().to_owned());
            self.report(&[&key.clone()], Problem::Beside { key, other });
            none = None;
        }
        none
    }

    fn refuse_beside(&mut self, key: &str, other: &str) {
        if self.given(key) && self.given(other) {
            let (key, other) = (key.to_owned(), other.to_owned());
            self.report(&[&key.clone()], Problem::Beside { key, other });
        }
    }

    fn check_alpha(&mut self) {
        let has_own = self.value(Ports::sharing) == Some(Sharing::PerPort);
        if has_own && self.given(Ports::alpha) {
            let shared = [Sharing::Shared, Sharing::Lossless];
            self.needs(Ports::alpha, Ports::sharing, &shared);
        }
    }

    fn topology(&mut self) -> Option<Topology> {
        let topology: Option<TopologyKeys> = self.section();
        let kind = self.text(TopologyKeys::kind);
        let kind = kind.as_deref();
        if kind != Some(INLINE) && self.given(GraphKeys::graph) {
            self.needs(GraphKeys::graph, TopologyKeys::kind, &[INLINE]);
        }
        match kind {
            Some(FILE) => self.topology_file(topology?),
            Some(INLINE) => self.topology_inline(),
            _ => self.shape(kind.and_then(shape)),
        }
    }

    fn shape(&mut self, kind: Option<&'static ShapeKind>) -> Option<Topology> {
        let hosts = self.count(TopologyKeys::hosts);
        let kind = kind?;
        let counts = kind.counts.iter().map(|count| self.count(count.key));
        let counts: Vec<Option<u32>> = counts.collect(); // all, so that all errors are reported
        let counts: Vec<u32> = counts.into_iter().collect::<Option<_>>()?;
        let hosts = self.multiple(hosts?, (kind.racks)(&counts))?;
        Some(Topology::Shape(Shape::new(kind, hosts, counts)))
    }

    /// A count that this topology requires.
    fn count(&mut self, path: &str) -> Option<u32> {
        self.needed(path);
        self.value(path)
    }

    fn topology_file(&mut self, keys: TopologyKeys) -> Option<Topology> {
        self.needed(TopologyKeys::path);
        let path = keys.path?.0;
        match self.files.graph(&path) {
            Ok(graph) => Some(Topology::File { path, graph }),
            Err(error) => {
                let key = TopologyKeys::path.to_owned();
                self.report(&[TopologyKeys::path], Problem::File { key, path, error });
                None
            }
        }
    }

    fn topology_inline(&mut self) -> Option<Topology> {
        self.needed(GraphKeys::graph);
        self.document.network.clone().map(Topology::Inline)
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

    /// The rule of the switches, unless it is `ecn`. Reports parameters of rules that no run has.
    fn rule(&mut self) -> Option<Option<Chosen<switch::Entry>>> {
        let entry = switch::entry(&self.text(RuleKeys::rule)?);
        if entry.is_some() {
            let of_ecn = EcnKeys::KEYS.iter();
            of_ecn.for_each(|key| self.needs_rule(key.path, switch::ECN));
        }
        let others = switch::entries().filter(|other| Some(*other) != entry);
        for (other, parameter) in others.flat_map(|e| e.parameters.iter().map(move |p| (e, p))) {
            self.needs_rule(parameter.key, other.name);
        }
        Some(entry.map(|entry| Chosen {
            tuning: self.given_of(entry.parameters),
            entry,
        }))
    }

    /// How switches choose paths. Reports parameters of ways to choose that no run has.
    fn paths(&mut self) -> Option<Chosen<path::Entry>> {
        let entry = path::entry(&self.text(RuleKeys::paths)?)?;
        let others = path::entries().filter(|other| *other != entry);
        for (other, parameter) in others.flat_map(|e| e.parameters.iter().map(move |p| (e, p))) {
            if self.given(parameter.key) {
                self.needs(parameter.key, RuleKeys::paths, &[other.name]);
            }
        }
        let tuning = self.given_of(entry.parameters);
        Some(Chosen { entry, tuning })
    }

    fn needs_rule(&mut self, key: &str, rule: &str) {
        if self.given(key) {
            self.needs(key, "network.rule", &[rule]);
        }
    }

    /// Whether the switches' rule, other than `ecn`, marks packets.
    pub(super) fn rule_marks(&mut self) -> bool {
        let rule = self
            .text(RuleKeys::rule)
            .and_then(|name| switch::entry(&name));
        rule.is_some_and(|rule| rule.marks)
    }

    fn ecn(&mut self) -> Option<Option<Ecn>> {
        let keys: Option<EcnKeys> = self.section();
        let threshold = self.value::<Bytes>(EcnKeys::threshold);
        let (buffer, max) = (self.value(Ports::buffer), self.value(EcnKeys::max));
        self.at_most(EcnKeys::threshold, threshold, buffer, Ports::buffer);
        self.at_most(EcnKeys::threshold, threshold, max, EcnKeys::max);
        for other in [EcnKeys::max, EcnKeys::steps] {
            self.refuse_beside(EcnKeys::bdp, other);
        }
        let shape = [
            EcnKeys::at,
            EcnKeys::max,
            EcnKeys::steps,
            EcnKeys::bdp,
            EcnKeys::mark,
        ];
        if threshold.is_none() && shape.iter().any(|key| self.given(key)) {
            self.needed(EcnKeys::threshold);
            return None;
        }
        let keys = keys?;
        let ecn = |threshold| Ecn {
            threshold,
            at: keys.at,
            max: keys.max.unwrap_or(threshold),
            max_fraction: keys.max_fraction,
            steps: keys.steps,
            bdp: keys.bdp,
            mark: keys.mark,
        };
        Some(keys.threshold.map(ecn))
    }
}
