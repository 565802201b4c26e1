//! Keys of [[traffic]]: who sends what to whom, and when.

use super::*;

impl Resolver<'_> {
    pub(super) fn traffic(&mut self, duration: Option<Span>) -> Option<Vec<Traffic>> {
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

    pub(super) fn entry(&mut self, index: usize, duration: Option<Span>) -> Option<Traffic> {
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

    pub(super) fn refuse_foreign(&mut self, index: usize, kind: Kind) {
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

    pub(super) fn incast(&mut self, path: &dyn Fn(&str) -> String) -> Option<Incast> {
        let (to, from) = self.receivers_and_sources(path);
        let fanout = self.small(&path("fanout"));
        let size = self.bytes(&path("size"));
        let ask_size = self.bytes(&path("ask_size"));
        let spacing = self.spacing(path);
        let arrivals = self.name(&path("arrivals"));
        let requests = self.optional(&path("requests"))?;
        let (stagger, jitter) = (self.span(&path("stagger")), self.span(&path("jitter")));
        Some(Incast {
            to: to?,
            from: from?,
            fanout: fanout?,
            size: size?,
            ask_size: ask_size?,
            spacing: spacing?,
            arrivals: arrivals?,
            requests,
            stagger: stagger?,
            jitter: jitter?,
        })
    }

    pub(super) fn request(&mut self, path: &dyn Fn(&str) -> String) -> Option<Request> {
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

    pub(super) fn asking(&mut self, path: &dyn Fn(&str) -> String) -> Option<Asking> {
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

    pub(super) fn all_to_all(
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
            pattern: self.name(&path("pattern"))?,
            size: size?,
            interval: interval?,
            start: start?,
            steps,
        })
    }

    pub(super) fn replay(
        &mut self,
        path: &dyn Fn(&str) -> String,
        duration: Option<Span>,
    ) -> Option<Replay> {
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
    pub(super) fn optional(&mut self, path: &str) -> Option<Option<u64>> {
        match self.given(path) {
            true => self.count(path).map(Some),
            false => Some(None),
        }
    }

    pub(super) fn spacing(&mut self, path: &dyn Fn(&str) -> String) -> Option<Spacing> {
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

    pub(super) fn long(
        &mut self,
        path: &dyn Fn(&str) -> String,
        duration: Option<Span>,
    ) -> Option<Long> {
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

    pub(super) fn poisson(&mut self, path: &dyn Fn(&str) -> String) -> Option<Poisson> {
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

    pub(super) fn receivers_and_sources(
        &mut self,
        path: &dyn Fn(&str) -> String,
    ) -> (Option<Receivers>, Option<Sources>) {
        let to = self.receivers(&path("to"));
        let from = self.sources(&path("from"), to.map(|(_, hosts)| hosts));
        (to.map(|(to, _)| to), from)
    }

    /// Hosts that exist, and the first and last of them.
    pub(super) fn receivers(&mut self, path: &str) -> Option<(Receivers, (HostId, HostId))> {
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
    pub(super) fn host_number(&mut self, path: &str) -> Option<HostId> {
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
    pub(super) fn exists(&mut self, path: &str, host: HostId) -> Option<()> {
        let last = self.hosts.map(|hosts| hosts - 1);
        self.at_most(path, Some(host), last, self.nodes_key());
        Some(())
    }

    /// Where flows come from, to receivers first to last.
    pub(super) fn sources(&mut self, path: &str, to: Option<(HostId, HostId)>) -> Option<Sources> {
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
}
