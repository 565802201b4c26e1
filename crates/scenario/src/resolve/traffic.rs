// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Resolves [[traffic]]: senders, receivers, sizes and times.

use super::*;
use crate::field::Writer;
use crate::key::Key;

impl Resolver<'_> {
    pub(super) fn traffic(&mut self, duration: Option<Span>) -> Option<Vec<Traffic>> {
        if self.document.entries.traffic == 0 {
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
        // All entries are read before the first failure returns, so that all errors are reported.
        let entries: Vec<_> = (0..self.document.entries.traffic)
            .map(|n| self.entry(n, duration))
            .collect();
        entries.into_iter().collect()
    }

    pub(super) fn entry(&mut self, index: usize, duration: Option<Span>) -> Option<Traffic> {
        let table = format!("traffic.{index}");
        let kind = self.field(&format!("{table}.kind"))?;
        self.refuse_foreign(index, kind);
        match kind {
            Kind::Incast => self.incast(&table).map(Traffic::Incast),
            Kind::Long => self.long(&table, duration).map(Traffic::Long),
            Kind::Poisson => self.poisson(&table).map(Traffic::Poisson),
            Kind::Request => self.request(&table).map(Traffic::Request),
            Kind::AllToAll => self.all_to_all(&table, duration).map(Traffic::AllToAll),
            Kind::Replay => self.replay(&table, duration).map(Traffic::Replay),
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

    fn incast(&mut self, table: &str) -> Option<Incast> {
        let incast = Incast::read(self, table)?;
        self.refuse_itself(table, incast.from, incast.to);
        Some(incast)
    }

    fn request(&mut self, table: &str) -> Option<Request> {
        let request = Request::read(self, table)?;
        self.refuse_itself(table, request.from, request.to);
        Some(request)
    }

    fn all_to_all(&mut self, table: &str, duration: Option<Span>) -> Option<AllToAll> {
        let all = AllToAll::read(self, table)?;
        if let Receivers::Host(host) = all.among {
            let key = format!("{table}.among");
            let found = format!("host {host}");
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
        let start = format!("{table}.start");
        self.below(&start, Some(all.start), duration, "duration");
        Some(all)
    }

    pub(super) fn replay(&mut self, table: &str, duration: Option<Span>) -> Option<Replay> {
        let key = format!("{table}.path");
        let name = self.field::<String>(&key)?;
        let flows = self.files.flows(&name);
        let flows = self.file(&key, &name, flows)?;
        let (hosts, duration) = (self.hosts?, duration?);
        for (row, flow) in (1..).zip(flows.iter()) {
            let host = flow.src.max(flow.dst);
            let error = if host >= hosts {
                format!("flow {row}: host {host} is above max {}", hosts - 1)
            } else if flow.at - onramp_units::Time::ZERO >= duration {
                let start = flow.at - onramp_units::Time::ZERO;
                format!("flow {row}: start is {start}, not below {duration} (duration)")
            } else {
                continue;
            };
            let (key, path) = (key.clone(), name);
            self.report(&[&key.clone()], Problem::File { key, path, error });
            return None;
        }
        Some(Replay { path: name, flows })
    }

    pub(super) fn long(&mut self, table: &str, duration: Option<Span>) -> Option<Long> {
        let path = |name: &str| format!("{table}.{name}");
        let (start_path, stop_path) = (path("start"), path("stop"));
        let to = self.host_number(&path("to"));
        let from = self.field(&path("from"));
        if let (Some(from), Some(to)) = (from, to) {
            self.refuse_itself(table, from, Receivers::Host(to));
        }
        let flows = self.field::<u32>(&path("flows"));
        let start = self.field::<Span>(&start_path);
        self.below(&start_path, start, duration, "duration");
        let stop = match self.given(&stop_path) {
            true => self.field::<Span>(&stop_path),
            false => duration,
        };
        self.at_most(&stop_path, stop, duration, "duration");
        if self.given(&stop_path) {
            self.below(&start_path, start, stop, &stop_path);
        }
        let op = self.field(&path("op"));
        Some(Long {
            from: from?,
            to: to?,
            flows: flows?,
            start: start?,
            stop: stop?,
            op: op?,
        })
    }

    pub(super) fn poisson(&mut self, table: &str) -> Option<Poisson> {
        let path = |name: &str| format!("{table}.{name}");
        let workload = self.field::<String>(&path("workload")).and_then(|name| {
            let workload = self.files.workload(&name);
            self.file(&path("workload"), &name, workload)
        });
        let load = self.field::<Fraction>(&path("load"));
        if !self.given(&path("load")) {
            self.missing(&path("load"));
        }
        let (to, from) = (self.field(&path("to")), self.field(&path("from")));
        let op = self.field(&path("op"));
        if let (Some(to), Some(from)) = (to, from) {
            self.refuse_itself(table, from, to);
        }
        Some(Poisson {
            workload: workload?,
            load: load?,
            from: from?,
            to: to?,
            op: op?,
        })
    }

    /// Reports settings with which the hosts of `run` cannot read.
    pub(super) fn check_reads(&mut self, run: &Run) {
        let reads = |(_, traffic): &(usize, &Traffic)| traffic.op() == Op::Read;
        for (index, traffic) in run.traffic.iter().enumerate().filter(reads) {
            let op = format!("traffic.{index}.op");
            if !run.host.cc.sends_bursts() {
                let bursts = Cc::all().filter(|cc| cc.sends_bursts()).map(Cc::name);
                let names = bursts.collect::<Vec<_>>().join(" or ");
                self.cannot_read(&op, "host.cc", &names);
            }
            if run.onramp.law != Law::Off {
                self.cannot_read(&op, "onramp.law", "off");
            }
            if matches!(traffic, Traffic::Incast(incast) if incast.ask_size > Bytes::ZERO) {
                self.cannot_read(&op, &format!("traffic.{index}.ask_size"), "0 B");
            }
            // The rate within a burst is the responder's, which only has its line.
            let burst_rate = |key: &&Key| key.name() == "burst_rate" && self.given(key.path);
            if let Some(key) = keys::all().find(burst_rate) {
                self.cannot_read(&op, key.path, "not set");
            }
        }
    }

    /// Reports that the reads of `op` need another value of the key `other`.
    fn cannot_read(&mut self, op: &str, other: &str, value: &str) {
        let problem = Problem::Needs {
            key: op.to_owned(),
            value: Op::Read.to_string(),
            needs: format!("{other} {value}"),
        };
        self.report(&[op, other], problem);
    }

    /// The number of a host.
    fn host_number(&mut self, path: &str) -> Option<HostId> {
        match self.field(path)? {
            Receivers::Host(host) => Some(host),
            several => {
                let found = several.to_value()?.to_string();
                let (key, found) = (path.to_owned(), format!("{found:?}"));
                let expected = "host number".to_owned();
                self.report(
                    &[path],
                    Problem::Expected {
                        key,
                        found,
                        expected,
                    },
                );
                None
            }
        }
    }

    /// Reports hosts that the network does not have.
    pub(super) fn exists(&mut self, path: &str, hosts: &Value) {
        let last = match hosts {
            Value::Text(word) => range(word).map(|(_, last)| u64::from(last)),
            Value::Count(host) => Some(*host),
            _ => None,
        };
        let max = self.hosts.map(|hosts| u64::from(hosts) - 1);
        self.at_most(path, last, max, self.nodes_key());
    }

    /// Reports a single sender that is also one of the receivers.
    fn refuse_itself(&mut self, table: &str, from: Sources, to: Receivers) {
        let sender = match from {
            Sources::Host(host) => host,
            Sources::Range(first, last) if first == last => first,
            Sources::Range(..) | Sources::Others => return,
        };
        let receives = match to {
            Receivers::Host(host) => host == sender,
            Receivers::Range(first, last) => (first..=last).contains(&sender),
            Receivers::All => true,
        };
        if receives {
            let (key, to) = (format!("{table}.from"), format!("{table}.to"));
            self.report(
                &[&key.clone(), &to],
                Problem::ToItself { key, host: sender },
            );
        }
    }
}

impl Section for Spacing {
    const KEYS: &'static [Key] = &[];

    fn read(from: &mut dyn Reader, table: &str) -> Option<Spacing> {
        let (load, interval) = (format!("{table}.load"), format!("{table}.interval"));
        match (from.given(&load), from.given(&interval)) {
            (true, true) => {
                let (key, other) = (interval.clone(), load.clone());
                from.report(&[&interval, &load], Problem::Beside { key, other });
                None
            }
            (_, true) => from.field(&interval).map(Spacing::Interval),
            (true, _) => from.field(&load).map(Spacing::Load),
            (false, false) => "2 %".parse().ok().map(Spacing::Load),
        }
    }

    fn write(&self, table: &str, to: &mut dyn Writer) {
        match self {
            Spacing::Load(load) => to.field(&format!("{table}.load"), load),
            Spacing::Interval(interval) => to.field(&format!("{table}.interval"), interval),
        }
    }
}

impl Section for Asking {
    const KEYS: &'static [Key] = &[];

    fn read(from: &mut dyn Reader, table: &str) -> Option<Asking> {
        let load = format!("{table}.load");
        let waits = ["think", "concurrency"].map(|name| format!("{table}.{name}"));
        if from.given(&load) {
            for key in &waits {
                if from.given(key) {
                    let (key, other) = (key.clone(), load.clone());
                    from.report(&[&key.clone(), &load], Problem::Beside { key, other });
                }
            }
            return from.field(&load).map(Asking::Load);
        }
        let time: Option<Span> = from.field(&waits[0])?;
        let concurrency: Option<u32> = from.field(&waits[1])?;
        Some(Asking::Think {
            time: time.unwrap_or(Span::ZERO),
            concurrency: concurrency.unwrap_or(1),
        })
    }

    fn write(&self, table: &str, to: &mut dyn Writer) {
        match self {
            Asking::Load(load) => to.field(&format!("{table}.load"), load),
            Asking::Think { time, concurrency } => {
                to.field(&format!("{table}.think"), time);
                to.field(&format!("{table}.concurrency"), concurrency);
            }
        }
    }
}
