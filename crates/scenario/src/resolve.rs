//! Checked values of one run into a [`Run`]: defaults, and the bounds that tie keys together.
//!
//! Invariant: a function here answers `None` only when it has reported an error, or when a value
//! it needs was reported before.

use crate::document::{Document, Layer};
use crate::error::{Error, Place, Problem};
use crate::files::{Files, NO_FILES};
use crate::keys::{self, Absent, KEYS};
use crate::plan::expected_arrivals;
use crate::value::{range, Value};
use crate::*;
use onramp_units::{Bytes, Rate, Span};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::num::NonZeroU64;
use std::str::FromStr;

/// Beyond this the plan alone would take more than 700 MB.
const MAX_ARRIVALS: f64 = 1e7;

/// Makes a run without params out of `layer`, or says what is wrong.
pub(crate) fn resolve(
    document: &Document,
    files: &Files<'_>,
    layer: &Layer,
) -> Result<Run, Vec<Error>> {
    let mut resolver = Resolver {
        document,
        files,
        layer,
        hosts: None,
        errors: Vec::new(),
    };
    let run = resolver.run();
    match run {
        Some(run) if resolver.errors.is_empty() => Ok(run),
        _ => Err(resolver.errors),
    }
}

impl Default for Transport {
    /// A kernel's.
    fn default() -> Transport {
        let (document, layer) = (Document::default(), Layer::new());
        let mut resolver = Resolver {
            document: &document,
            files: &Files::new(NO_FILES),
            layer: &layer,
            hosts: None,
            errors: Vec::new(),
        };
        let transport = resolver.transport(Some(HostKind::Kernel));
        transport.expect("the table of keys has the defaults")
    }
}

struct Resolver<'a> {
    document: &'a Document,
    files: &'a Files<'a>,
    layer: &'a Layer,
    /// How many the network has.
    hosts: Option<u32>,
    errors: Vec<Error>,
}

/// Reads one variant of [`Value`]; the key's form guarantees that it is that one.
macro_rules! getter {
    ($name:ident, $variant:ident, $type:ty) => {
        fn $name(&mut self, path: &str) -> Option<$type> {
            match self.value(path)? {
                Value::$variant(value) => Some(value),
                _ => None,
            }
        }
    };
}

impl Resolver<'_> {
    getter!(text, Text, String);
    getter!(count, Count, u64);
    getter!(flag, Flag, bool);
    getter!(fraction, Fraction, Fraction);
    getter!(span, Span, Span);
    getter!(rate, Rate, Rate);
    getter!(bytes, Bytes, Bytes);

    /// As given, or by default.
    fn value(&mut self, path: &str) -> Option<Value> {
        if let Some(setting) = self.layer.get(path) {
            return setting.value.clone();
        }
        let (key, _) = keys::find(path)?;
        if key.default == Absent::Required {
            self.missing(path);
        }
        key.default_value()
    }

    fn missing(&mut self, path: &str) {
        let expected = keys::find(path).map_or_else(String::new, |(key, _)| key.form.to_string());
        let problem = Problem::Missing {
            key: path.to_owned(),
            expected,
        };
        self.report(&[path], problem);
    }

    fn small(&mut self, path: &str) -> Option<u32> {
        u32::try_from(self.count(path)?).ok()
    }

    fn name<T: FromStr>(&mut self, path: &str) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    fn given(&self, path: &str) -> bool {
        self.layer.contains_key(path)
    }

    /// Reports at the overriding key among `paths`, else at the first that is given, else at the
    /// table that lacks the first.
    fn report(&mut self, paths: &[&str], problem: Problem) {
        let given = paths.iter().filter_map(|path| self.layer.get(*path));
        let strongest = given.reduce(|a, b| if b.rank > a.rank { b } else { a });
        let place = strongest.map_or_else(|| self.table_of(paths[0]), |setting| setting.place);
        self.errors.push(Error { place, problem });
    }

    fn table_of(&self, path: &str) -> Place {
        let mut table = path;
        while let Some((above, _)) = table.rsplit_once('.') {
            if let Some(&line) = self.document.tables.get(above) {
                return Place::Line(line);
            }
            table = above;
        }
        Place::Line(1)
    }

    /// Checks `value <= max`, where `max` is what `of` allows.
    fn at_most<Q: PartialOrd + Display>(
        &mut self,
        path: &str,
        value: Option<Q>,
        max: Option<Q>,
        of: &str,
    ) {
        if let (Some(value), Some(max)) = (value, max) {
            if value > max {
                let (key, max) = (path.to_owned(), format!("{max} ({of})"));
                self.report(
                    &[path, of],
                    Problem::Above {
                        key,
                        value: value.to_string(),
                        max,
                    },
                );
            }
        }
    }

    /// Checks `value < bound`, where `bound` is the value of `of`.
    fn below<Q: PartialOrd + Display>(
        &mut self,
        path: &str,
        value: Option<Q>,
        bound: Option<Q>,
        of: &str,
    ) {
        if let (Some(value), Some(bound)) = (value, bound) {
            if value >= bound {
                let (key, bound) = (path.to_owned(), format!("{bound} ({of})"));
                self.report(
                    &[path, of],
                    Problem::NotBelow {
                        key,
                        value: value.to_string(),
                        bound,
                    },
                );
            }
        }
    }

    fn run(&mut self) -> Option<Run> {
        let title = self.text("title");
        let seed = self.count("seed");
        let duration = self.span("duration");
        let warmup = self.span("warmup");
        self.below("warmup", warmup, duration, "duration");
        let time_dilation = self.count("time_dilation").and_then(NonZeroU64::new);
        let host = self.host();
        let network = self.network(host);
        let tuning = self.tuning(host);
        let clock = self.clock();
        let onramp = self.onramp(&network, host);
        let traffic = self.traffic(duration);
        let run = Run {
            params: BTreeMap::new(),
            title: title?,
            seed: seed?,
            duration: duration?,
            warmup: warmup?,
            time_dilation: time_dilation?,
            network: network?,
            host: host?,
            tuning: tuning?,
            clock: clock?,
            onramp: onramp?,
            traffic: traffic?,
        };
        self.check_size(&run);
        Some(run)
    }

    fn network(&mut self, host: Option<Host>) -> Option<Network> {
        let topology = self.topology();
        self.hosts = topology.as_ref().map(Topology::hosts);
        let host_links = match &topology {
            Some(Topology::File { graph, .. }) => graph.host_links(),
            _ => Vec::new(),
        };
        let fastest = host_links.iter().max_by_key(|link| link.rate).copied();
        let is_file = self.name("network.topology.kind") == Some(TopologyKind::File);
        let (link, fabric) = match is_file {
            true => self.no_links().and(fastest.zip(fastest)).unzip(),
            false => self.links(),
        };
        let sharing = self.sharing();
        let buffer = self.buffer(sharing);
        let alpha_log2 = self.alpha(sharing);
        let ecn = self.ecn(buffer, host);
        Some(Network {
            topology: topology?,
            link: link?,
            host_links,
            fabric: fabric?,
            buffer: buffer?,
            sharing: sharing?,
            alpha_log2: alpha_log2?,
            ecn: ecn?,
        })
    }

    fn links(&mut self) -> (Option<Link>, Option<Link>) {
        for path in ["network.link.delay", "network.link.rate"] {
            if !self.given(path) {
                self.missing(path);
            }
        }
        let link = self.link("network.link", None);
        (link, self.link("network.fabric", link))
    }

    /// The file says what the links are like.
    fn no_links(&mut self) -> Option<()> {
        let mut none = Some(());
        for table in ["link", "fabric"] {
            for key in ["rate", "delay"].map(|name| format!("network.{table}.{name}")) {
                if self.given(&key) {
                    let other = "network.topology.path".to_owned();
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

    fn alpha(&mut self, sharing: Option<Sharing>) -> Option<Option<i8>> {
        if !self.given("network.alpha") {
            return Some(None);
        }
        let alpha = self.text("network.alpha")?;
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

    fn topology(&mut self) -> Option<Topology> {
        let kind = self.name("network.topology.kind");
        if kind == Some(TopologyKind::File) {
            return self.topology_file();
        }
        let hosts = self.needed("network.topology.hosts");
        match kind? {
            TopologyKind::File => None,
            TopologyKind::Star => Some(Topology::Star { hosts: hosts? }),
            TopologyKind::Dumbbell => {
                let hosts = self.multiple(hosts?, 2)?;
                Some(Topology::Dumbbell { hosts })
            }
            TopologyKind::LeafSpine => {
                let leaves = self.needed("network.topology.leaves");
                let spines = self.needed("network.topology.spines");
                let (leaves, spines) = (leaves?, spines?);
                let hosts = self.multiple(hosts?, leaves)?;
                Some(Topology::LeafSpine {
                    hosts,
                    leaves,
                    spines,
                })
            }
            TopologyKind::FatTree => {
                let pods = self.needed("network.topology.pods");
                let width = self.needed("network.topology.width");
                let (pods, width) = (pods?, width?);
                let hosts = self.multiple(hosts?, pods * width)?;
                Some(Topology::FatTree { hosts, pods, width })
            }
        }
    }

    fn topology_file(&mut self) -> Option<Topology> {
        let key = "network.topology.path";
        if !self.given(key) {
            self.missing(key);
        }
        let path = self.text(key)?;
        let graph = self.files.graph(&path);
        let graph = self.file(key, &path, graph)?;
        Some(Topology::File { path, graph })
    }

    /// What a file holds, or a report of what is wrong with it.
    fn file<T>(&mut self, key: &str, path: &str, held: Result<T, String>) -> Option<T> {
        let report = |error| {
            let (key, path) = (key.to_owned(), path.to_owned());
            self.report(&[&key.clone()], Problem::File { key, path, error });
        };
        held.map_err(report).ok()
    }

    /// A count that this topology cannot do without.
    fn needed(&mut self, path: &str) -> Option<u32> {
        if !self.given(path) {
            self.missing(path);
        }
        self.small(path)
    }

    /// The number of hosts, which `switches` switches have in equal parts.
    fn multiple(&mut self, hosts: u32, switches: u32) -> Option<u32> {
        if hosts.is_multiple_of(switches) {
            return Some(hosts);
        }
        let key = "network.topology.hosts".to_owned();
        let (found, expected) = (
            hosts.to_string(),
            format!("a multiple of {switches} switches"),
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

    /// The link of that table; what it does not say is as in `like`.
    fn link(&mut self, table: &str, like: Option<Link>) -> Option<Link> {
        let rate = self.rate(&format!("{table}.rate"));
        let delay = self.span(&format!("{table}.delay"));
        Some(Link {
            rate: rate.or(like.map(|link| link.rate))?,
            delay: delay.or(like.map(|link| link.delay))?,
        })
    }

    fn sharing(&mut self) -> Option<Sharing> {
        if self.given("network.sharing") {
            return self.name("network.sharing");
        }
        match self.name("host.kind")? {
            HostKind::Nic => Some(Sharing::Lossless),
            HostKind::Kernel => Some(Sharing::PerPort),
        }
    }

    fn buffer(&mut self, sharing: Option<Sharing>) -> Option<Bytes> {
        match (self.given("network.buffer"), sharing?) {
            (true, _) => self.bytes("network.buffer"),
            (false, Sharing::PerPort) => Some(Bytes::new(300_000)),
            (false, Sharing::Shared | Sharing::Lossless) => Some(Bytes::new(32 << 20)),
        }
    }

    fn ecn(&mut self, buffer: Option<Bytes>, host: Option<Host>) -> Option<Option<Ecn>> {
        let threshold = self.bytes("network.ecn.threshold");
        self.at_most("network.ecn.threshold", threshold, buffer, "network.buffer");
        let max = match self.given("network.ecn.max") {
            true => Some(self.bytes("network.ecn.max")?),
            false => threshold,
        };
        self.at_most("network.ecn.threshold", threshold, max, "network.ecn.max");
        let max_fraction = self.fraction("network.ecn.max_fraction")?;
        let steps = self.optional("network.ecn.steps")?;
        let mark = match (self.given("network.ecn.mark"), host?.kind) {
            (true, _) => self.name("network.ecn.mark")?,
            (false, HostKind::Kernel) => Mark::Enqueue,
            (false, HostKind::Nic) => Mark::Dequeue,
        };
        let shape = ["network.ecn.steps", "network.ecn.mark"];
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
                mark,
            })
        };
        Some(threshold.and_then(ecn))
    }

    fn host(&mut self) -> Option<Host> {
        let (kind, cc) = (self.name("host.kind"), self.name("host.cc"));
        let (qdisc, gso, gro) = (
            self.name("host.qdisc"),
            self.bytes("host.gso"),
            self.flag("host.gro"),
        );
        let coalescing = self.span("host.coalescing");
        let transport = self.transport(kind);
        if let Some(kind) = kind {
            self.refuse_other_hosts(kind);
        }
        if let (Some(kind), Some(cc)) = (kind, cc) {
            self.check_cc(kind, cc);
        }
        Some(Host {
            kind: kind?,
            cc: cc?,
            qdisc: qdisc?,
            gso: gso?,
            gro: gro?,
            coalescing: coalescing?,
            transport: transport?,
        })
    }

    /// Keys that only another kind of host has.
    fn refuse_other_hosts(&mut self, kind: HostKind) {
        for key in KEYS {
            if key.on.is_some_and(|on| on != kind) && self.given(key.path) {
                self.needs(key.path, "host.kind", key.on.as_slice());
            }
        }
    }

    fn transport(&mut self, kind: Option<HostKind>) -> Option<Transport> {
        let min_rto = match (self.given("host.min_rto"), kind?) {
            (true, _) => self.span("host.min_rto"),
            (false, HostKind::Kernel) => Some(Span::from_ms(200)),
            (false, HostKind::Nic) => Some(Span::from_ms(4)),
        };
        let initial_window = self.small("host.initial_window");
        let delayed_ack = self.span("host.delayed_ack");
        let small_queue = self.span("host.small_queue");
        let reordering = self.fraction("host.reordering");
        Some(Transport {
            initial_window: initial_window?,
            min_rto: min_rto?,
            delayed_ack: delayed_ack?,
            small_queue: small_queue?,
            reordering: reordering?,
        })
    }

    /// Reports a key that means nothing unless `other` is one of `values`, which no run's is.
    fn needs<T: Display>(&mut self, key: &str, other: &str, values: &[T]) {
        if values
            .iter()
            .any(|value| self.document.says(other, &value.to_string()))
        {
            return;
        }
        let Some(value) = self
            .layer
            .get(key)
            .and_then(|setting| setting.value.clone())
        else {
            return;
        };
        let values: Vec<String> = values.iter().map(T::to_string).collect();
        let (value, needs) = (
            value.to_string(),
            format!("{other} {}", values.join(" or ")),
        );
        let problem = Problem::Needs {
            key: key.to_owned(),
            value,
            needs,
        };
        self.report(&[key], problem);
    }

    /// Parameters of the congestion control, and of no other.
    fn tuning(&mut self, host: Option<Host>) -> Option<Tuning> {
        let host = host?;
        let mut tuning = Tuning::default();
        for key in KEYS.iter().filter(|key| !key.of_cc.is_empty()) {
            let Some(setting) = self.layer.get(key.path) else {
                continue;
            };
            if !key.of_cc.contains(&host.cc) {
                self.needs(key.path, "host.cc", key.of_cc);
            } else if key.on.is_none_or(|on| on == host.kind) {
                let value = setting.value.clone();
                tuning.0.extend(value.map(|value| (key.name(), value)));
            }
        }
        let limit = |name: &str| match tuning.0.get(name) {
            Some(Value::Span(span)) => Some(*span),
            _ => None,
        };
        let (low, high) = (limit("t_low"), limit("t_high"));
        self.at_most("cc.timely.t_low", low, high, "cc.timely.t_high");
        Some(tuning)
    }

    fn check_cc(&mut self, kind: HostKind, cc: Cc) {
        let needs = if !cc.runs_on(kind) {
            match kind {
                HostKind::Kernel => "host.kind nic",
                HostKind::Nic => "host.kind kernel",
            }
        } else if (kind, cc) == (HostKind::Kernel, Cc::Dctcp)
            && !self.given("network.ecn.threshold")
        {
            "network.ecn.threshold"
        } else {
            return;
        };
        let (key, value) = ("host.cc".to_owned(), cc.to_string());
        let needs = needs.to_owned();
        self.report(
            &["host.cc", "host.kind"],
            Problem::Needs { key, value, needs },
        );
    }

    fn clock(&mut self) -> Option<Clock> {
        let (offset, noise) = (self.span("clock.offset"), self.span("clock.noise"));
        Some(Clock {
            drift: self.fraction("clock.drift")?,
            offset: offset?,
            noise: noise?,
        })
    }

    fn onramp(&mut self, network: &Option<Network>, host: Option<Host>) -> Option<OnRamp> {
        let gain = self.fraction("onramp.gain");
        let max_pause = self.span("onramp.max_pause");
        let gso = self.bytes("onramp.gso");
        let reuse = match self.value("onramp.reuse")? {
            Value::Span(span) => Some(span),
            _ => None,
        };
        let threshold = self.value("onramp.threshold");
        if threshold.as_ref().is_some_and(keys::is_off) {
            return self.law_off();
        }
        let kernel = host.map(|h| h.kind == HostKind::Kernel);
        let holds = host.map(|h| h.kind == HostKind::Nic || h.qdisc == Qdisc::Edge);
        let law = match self.given("onramp.law") {
            true => self.name("onramp.law")?,
            false if holds? && kernel? => Law::Final,
            false => Law::Off,
        };
        if law == Law::Off {
            return self.law_off();
        }
        if holds == Some(false) {
            let (key, value) = ("onramp.law".to_owned(), law.to_string());
            let needs = "host.qdisc edge".to_owned();
            self.report(
                &["onramp.law", "host.qdisc"],
                Problem::Needs { key, value, needs },
            );
        }
        let threshold = self.span("onramp.threshold");
        if let (Some(threshold), Some(network)) = (threshold, network) {
            self.check_threshold(threshold, network);
        }
        Some(OnRamp {
            law,
            threshold: threshold?,
            gain: gain?,
            max_pause: max_pause?,
            gso: gso?,
            reuse,
        })
    }

    /// With the parameters that are written down for it nowhere else: the defaults.
    fn law_off(&mut self) -> Option<OnRamp> {
        let none = Layer::new();
        let mut defaults = Resolver {
            document: self.document,
            files: self.files,
            layer: &none,
            hosts: None,
            errors: Vec::new(),
        };
        Some(OnRamp {
            law: Law::Off,
            threshold: defaults.span("onramp.threshold")?,
            gain: defaults.fraction("onramp.gain")?,
            max_pause: defaults.span("onramp.max_pause")?,
            gso: defaults.bytes("onramp.gso")?,
            reuse: None,
        })
    }

    /// Below the delay of an idle path every packet would be held.
    fn check_threshold(&mut self, threshold: Span, network: &Network) {
        let base = network.base_delay();
        if threshold < base {
            let (key, value) = ("onramp.threshold".to_owned(), threshold.to_string());
            let min = format!("{base} (the idle path's network.link.delay)");
            let paths = [
                "onramp.threshold",
                "network.link.delay",
                "network.topology.path",
            ];
            self.report(&paths, Problem::Below { key, value, min });
        }
    }

    fn traffic(&mut self, duration: Option<Span>) -> Option<Vec<Traffic>> {
        if self.document.traffic == 0 {
            let expected = "at least one [[traffic]] entry".to_owned();
            self.report(
                &["traffic"],
                Problem::Missing {
                    key: "traffic".to_owned(),
                    expected,
                },
            );
            return None;
        }
        // Each entry is looked at before the first failure is acted on.
        let entries: Vec<_> = (0..self.document.traffic)
            .map(|n| self.entry(n, duration))
            .collect();
        entries.into_iter().collect()
    }

    fn entry(&mut self, index: usize, duration: Option<Span>) -> Option<Traffic> {
        let path = |name: &str| format!("traffic.{index}.{name}");
        let kind = self.name(&path("kind"))?;
        self.refuse_foreign(index, kind);
        match kind {
            Kind::Incast => self.incast(&path).map(Traffic::Incast),
            Kind::Long => self.long(&path, duration).map(Traffic::Long),
            Kind::Poisson => self.poisson(&path).map(Traffic::Poisson),
            Kind::Request => self.request(&path).map(Traffic::Request),
            Kind::AllToAll => self.all_to_all(&path, duration).map(Traffic::AllToAll),
            Kind::Replay => self.replay(&path, duration).map(Traffic::Replay),
        }
    }

    fn refuse_foreign(&mut self, index: usize, kind: Kind) {
        let prefix = format!("traffic.{index}.");
        let layer = self.layer;
        let of_entry = layer.range(prefix.clone()..).map(|(path, _)| path);
        for path in of_entry.take_while(|path| path.starts_with(&prefix)) {
            let owners = keys::find(path).map_or(&[] as &[Kind], |(key, _)| key.of);
            if !owners.is_empty() && !owners.contains(&kind) {
                let owners = owners
                    .iter()
                    .map(Kind::to_string)
                    .collect::<Vec<_>>()
                    .join(" or ");
                let (key, kind) = (path.clone(), kind.to_string());
                self.report(&[path], Problem::Foreign { key, owners, kind });
            }
        }
    }

    fn incast(&mut self, path: &dyn Fn(&str) -> String) -> Option<Incast> {
        let to = self.host_number(&path("to"));
        let fanout = self.small(&path("fanout"));
        let size = self.bytes(&path("size"));
        let spacing = self.spacing(path);
        let arrivals = self.name(&path("arrivals"));
        let requests = self.optional(&path("requests"))?;
        let (stagger, jitter) = (self.span(&path("stagger")), self.span(&path("jitter")));
        Some(Incast {
            to: to?,
            fanout: fanout?,
            size: size?,
            spacing: spacing?,
            arrivals: arrivals?,
            requests,
            stagger: stagger?,
            jitter: jitter?,
        })
    }

    fn request(&mut self, path: &dyn Fn(&str) -> String) -> Option<Request> {
        let (to, from) = self.receivers_and_sources(path);
        let sizes = (self.bytes(&path("request_size")), self.bytes(&path("size")));
        let asking = self.asking(path);
        let arrivals = self.name(&path("arrivals"));
        let requests = self.optional(&path("requests"))?;
        Some(Request {
            to: to?,
            from: from?,
            request_size: sizes.0?,
            size: sizes.1?,
            asking: asking?,
            arrivals: arrivals?,
            requests,
        })
    }

    fn asking(&mut self, path: &dyn Fn(&str) -> String) -> Option<Asking> {
        let (load, think, concurrency) = (path("load"), path("think"), path("concurrency"));
        if !self.given(&load) {
            let time = match self.given(&think) {
                true => self.span(&think),
                false => Some(Span::ZERO),
            };
            let concurrency = self.optional(&concurrency)?.unwrap_or(1) as u32;
            return Some(Asking::Think {
                time: time?,
                concurrency,
            });
        }
        for key in [think, concurrency] {
            if self.given(&key) {
                let other = load.clone();
                self.report(
                    &[&key, &load],
                    Problem::Beside {
                        key: key.clone(),
                        other,
                    },
                );
            }
        }
        self.fraction(&load).map(Asking::Load)
    }

    fn all_to_all(
        &mut self,
        path: &dyn Fn(&str) -> String,
        duration: Option<Span>,
    ) -> Option<AllToAll> {
        let among = self.receivers(&path("among")).map(|(among, _)| among);
        if let Some(Receivers::Host(_)) = among {
            let (key, found) = (path("among"), self.text(&path("among")).unwrap_or_default());
            let found = if found.is_empty() {
                "one host".to_owned()
            } else {
                found
            };
            let expected = "at least two hosts".to_owned();
            self.report(
                &[&key.clone()],
                Problem::Expected {
                    key,
                    found,
                    expected,
                },
            );
        }
        let size = self.bytes(&path("size"));
        let interval = match self.given(&path("interval")) {
            true => self.span(&path("interval")),
            false => Some(Span::ZERO),
        };
        let start = self.span(&path("start"));
        self.below(&path("start"), start, duration, "duration");
        let steps = self.optional(&path("steps"))?;
        Some(AllToAll {
            among: among?,
            size: size?,
            interval: interval?,
            start: start?,
            steps,
        })
    }

    fn replay(&mut self, path: &dyn Fn(&str) -> String, duration: Option<Span>) -> Option<Replay> {
        let key = path("path");
        let name = self.text(&key)?;
        let flows = self.files.flows(&name);
        let flows = self.file(&key, &name, flows)?;
        let (hosts, duration) = (self.hosts?, duration?);
        for (row, flow) in (1..).zip(flows.iter()) {
            let host = flow.src.max(flow.dst);
            let error = if host >= hosts {
                format!("flow {row}: host {host} is above max {}", hosts - 1)
            } else if flow.at - onramp_units::Time::ZERO >= duration {
                let start = flow.at - onramp_units::Time::ZERO;
                format!("flow {row}: starts at {start}, not below {duration} (duration)")
            } else {
                continue;
            };
            let (key, path) = (key.clone(), name);
            self.report(&[&key.clone()], Problem::File { key, path, error });
            return None;
        }
        Some(Replay { path: name, flows })
    }

    /// A count that need not be given; outer `None`: it is, and wrong.
    fn optional(&mut self, path: &str) -> Option<Option<u64>> {
        match self.given(path) {
            true => self.count(path).map(Some),
            false => Some(None),
        }
    }

    fn spacing(&mut self, path: &dyn Fn(&str) -> String) -> Option<Spacing> {
        let (load, interval) = (path("load"), path("interval"));
        match (self.given(&load), self.given(&interval)) {
            (true, true) => {
                let (key, other) = (interval.clone(), load.clone());
                self.report(&[&interval, &load], Problem::Beside { key, other });
                None
            }
            (_, true) => self.span(&interval).map(Spacing::Interval),
            (true, _) => self.fraction(&load).map(Spacing::Load),
            (false, false) => "2 %".parse().ok().map(Spacing::Load),
        }
    }

    fn long(&mut self, path: &dyn Fn(&str) -> String, duration: Option<Span>) -> Option<Long> {
        let (start_path, stop_path) = (path("start"), path("stop"));
        let to = self.host_number(&path("to"));
        let from = self.sources(&path("from"), to.map(|to| (to, to)));
        let flows = self.small(&path("flows"));
        let start = self.span(&start_path);
        self.below(&start_path, start, duration, "duration");
        let stop = match self.given(&stop_path) {
            true => self.span(&stop_path),
            false => duration,
        };
        self.at_most(&stop_path, stop, duration, "duration");
        if self.given(&stop_path) {
            self.below(&start_path, start, stop, &stop_path);
        }
        Some(Long {
            from: from?,
            to: to?,
            flows: flows?,
            start: start?,
            stop: stop?,
        })
    }

    fn poisson(&mut self, path: &dyn Fn(&str) -> String) -> Option<Poisson> {
        let workload = self.text(&path("workload")).and_then(|name| {
            let workload = self.files.workload(&name);
            self.file(&path("workload"), &name, workload)
        });
        let load = self.fraction(&path("load"));
        if !self.given(&path("load")) {
            self.missing(&path("load"));
        }
        let (to, from) = self.receivers_and_sources(path);
        Some(Poisson {
            workload: workload?,
            load: load?,
            from: from?,
            to: to?,
        })
    }

    fn receivers_and_sources(
        &mut self,
        path: &dyn Fn(&str) -> String,
    ) -> (Option<Receivers>, Option<Sources>) {
        let to = self.receivers(&path("to"));
        let from = self.sources(&path("from"), to.map(|(_, hosts)| hosts));
        (to.map(|(to, _)| to), from)
    }

    /// Hosts that exist, and the first and last of them.
    fn receivers(&mut self, path: &str) -> Option<(Receivers, (HostId, HostId))> {
        match self.value(path)? {
            Value::Text(word) => match range(&word) {
                Some((first, last)) => {
                    self.exists(path, last)?;
                    Some((Receivers::Range(first, last), (first, last)))
                }
                None => Some((Receivers::All, (0, self.hosts?.saturating_sub(1)))),
            },
            _ => {
                let host = self.host_number(path)?;
                Some((Receivers::Host(host), (host, host)))
            }
        }
    }

    /// A host that exists.
    fn host_number(&mut self, path: &str) -> Option<HostId> {
        let host = match self.value(path)? {
            Value::Count(host) => host,
            other => {
                let (key, found) = (path.to_owned(), format!("{:?}", other.to_string()));
                let expected = "host number".to_owned();
                self.report(
                    &[path],
                    Problem::Expected {
                        key,
                        found,
                        expected,
                    },
                );
                return None;
            }
        };
        let host = u32::try_from(host).ok()?;
        self.exists(path, host)?;
        Some(host)
    }

    /// Whether the network has that host; reported if not.
    fn exists(&mut self, path: &str, host: HostId) -> Option<()> {
        let last = self.hosts.map(|hosts| hosts - 1);
        let of = match self.given("network.topology.path") {
            true => "network.topology.path",
            false => "network.topology.hosts",
        };
        self.at_most(path, Some(host), last, of);
        Some(())
    }

    /// Where flows come from, to receivers first to last.
    fn sources(&mut self, path: &str, to: Option<(HostId, HostId)>) -> Option<Sources> {
        let (sources, (first, last)) = match self.value(path)? {
            Value::Text(word) => match range(&word) {
                Some((first, last)) => {
                    self.exists(path, last)?;
                    (Sources::Range(first, last), (first, last))
                }
                None => return Some(Sources::Others),
            },
            _ => {
                let host = self.host_number(path)?;
                (Sources::Host(host), (host, host))
            }
        };
        // One sender can send to no range that it is in.
        if first == last && to.is_some_and(|(lowest, highest)| (lowest..=highest).contains(&first))
        {
            let (key, to) = (path.to_owned(), path.replace(".from", ".to"));
            self.report(&[path, &to], Problem::ToItself { key, host: first });
        }
        Some(sources)
    }

    fn check_size(&mut self, run: &Run) {
        for (index, traffic) in run.traffic.iter().enumerate() {
            let arrivals = expected_arrivals(run, traffic);
            if arrivals > MAX_ARRIVALS {
                let key = format!("traffic.{index}");
                let path = |name: &str| format!("{key}.{name}");
                let paths = [path("load"), path("interval"), "duration".to_owned()];
                let value = format!("about {arrivals:.0} flows");
                let max = format!("{MAX_ARRIVALS:.0}");
                self.report(
                    &paths.each_ref().map(String::as_str),
                    Problem::Above { key, value, max },
                );
            }
        }
    }
}
