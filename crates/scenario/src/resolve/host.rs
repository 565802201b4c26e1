//! Keys of [host], [cc], [clock] and [onramp].

use super::*;

impl Resolver<'_> {
    pub(super) fn host(&mut self) -> Option<Host> {
        let (kind, cc) = (self.name("host.kind"), self.name("host.cc"));
        let (qdisc, gso, gro) = (
            self.name("host.qdisc"),
            self.bytes("host.gso"),
            self.flag("host.gro"),
        );
        let coalescing = self.span("host.coalescing");
        let connections = self.name("host.connections");
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
            connections: connections?,
            transport: transport?,
        })
    }

    /// Keys that only another kind of host has.
    pub(super) fn refuse_other_hosts(&mut self, kind: HostKind) {
        for key in KEYS {
            if key.on.is_some_and(|on| on != kind) && self.given(key.path) {
                self.needs(key.path, "host.kind", key.on.as_slice());
            }
        }
    }

    pub(super) fn transport(&mut self, kind: Option<HostKind>) -> Option<Transport> {
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
    pub(super) fn needs<T: Display>(&mut self, key: &str, other: &str, values: &[T]) {
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
    pub(super) fn tuning(&mut self, host: Option<Host>) -> Option<Tuning> {
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

    pub(super) fn check_cc(&mut self, kind: HostKind, cc: Cc) {
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

    pub(super) fn clock(&mut self) -> Option<Clock> {
        let (offset, noise) = (self.span("clock.offset"), self.span("clock.noise"));
        let (drift, wander) = (self.fraction("clock.drift"), self.fraction("clock.wander"));
        let (sync, stamps) = (self.name("clock.sync"), self.name("clock.stamps"));
        let degree = self.count("clock.degree");
        let interval = self.span("clock.probe_interval");
        Some(Clock {
            offset: offset?,
            drift: drift?,
            noise: noise?,
            wander: wander?,
            sync: sync?,
            stamps: stamps?,
            degree: degree? as u32, // at most 1000
            probe_interval: interval?,
            window: self.span("clock.window")?,
        })
    }

    pub(super) fn onramp(
        &mut self,
        network: &Option<Network>,
        host: Option<Host>,
    ) -> Option<OnRamp> {
        let gain = self.fraction("onramp.gain");
        let max_pause = self.span("onramp.max_pause");
        let gso = self.bytes("onramp.gso");
        let reuse = match self.value("onramp.reuse")? {
            Value::Span(span) => Some(span),
            _ => None,
        };
        let orack_every = match self.given("onramp.orack_every") {
            true => Some(self.bytes("onramp.orack_every")?),
            false => None,
        };
        let (pacing, piggyback) = (self.flag("onramp.pacing"), self.flag("onramp.piggyback"));
        let hosts = self.receivers("onramp.hosts").map(|(hosts, _)| hosts);
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
            hosts: hosts?,
            threshold: threshold?,
            gain: gain?,
            max_pause: max_pause?,
            gso: gso?,
            reuse,
            orack_every,
            pacing: pacing?,
            piggyback: piggyback?,
        })
    }

    /// With the parameters that are written down for it nowhere else: the defaults.
    pub(super) fn law_off(&mut self) -> Option<OnRamp> {
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
            hosts: Receivers::All,
            threshold: defaults.span("onramp.threshold")?,
            gain: defaults.fraction("onramp.gain")?,
            max_pause: defaults.span("onramp.max_pause")?,
            gso: defaults.bytes("onramp.gso")?,
            reuse: None,
            orack_every: None,
            pacing: false,
            piggyback: false,
        })
    }

    /// Below the delay of an idle path every packet would be held.
    pub(super) fn check_threshold(&mut self, threshold: Span, network: &Network) {
        let base = network.base_delay();
        if threshold < base {
            let (key, value) = ("onramp.threshold".to_owned(), threshold.to_string());
            let min = format!("{base} (the idle path's network.link.delay)");
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
