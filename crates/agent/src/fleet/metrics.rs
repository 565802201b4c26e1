//! Prometheus metrics of a clock. The served text and docs/metrics.md come from one list.
use std::{fmt::Write as _, net::SocketAddr, sync::atomic::AtomicU64, thread};

use anyhow::{anyhow, Result};
use onramp_clock::{
    stamps::now_mono_ns,
    status::{Fleet, Follows, Status, COUNTERS},
};
use prometheus_client::{
    encoding::text::encode,
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};
use tiny_http::{Header, Response, Server};
use tracing::warn;

type Labels = Vec<(String, String)>;
type Values = Vec<(Labels, f64)>;

/// A metric: its name, its meaning and its values.
struct Metric {
    name: &'static str,
    labels: &'static str,
    help: &'static str,
    values: fn(&Status) -> Values,
}

const METRICS: &[Metric] = &[
    Metric {
        name: "onramp_clock_synchronised",
        labels: "",
        help: "1 if this host has a valid fleet time, else 0",
        values: |s| one(f64::from(u8::from(s.clock.is_some()))),
    },
    Metric {
        name: "onramp_clock_leader",
        labels: "",
        help: "1 if this host leads the fleet, else 0",
        values: |s| one(f64::from(u8::from(s.membership.leads()))),
    },
    Metric {
        name: "onramp_clock_term",
        labels: "",
        help: "term of the leader; it grows with each new leader; 0 without etcd",
        values: |s| one(s.membership.term as f64),
    },
    Metric {
        name: "onramp_clock_members",
        labels: "",
        help: "members of the fleet that this host knows, itself included",
        values: |s| one(s.membership.members as f64),
    },
    Metric {
        name: "onramp_clock_etcd_connected",
        labels: "",
        help: "1 if etcd answers and has this host's key, else 0; absent without etcd",
        values: |s| fleet(s, |f| f64::from(u8::from(f.connected))),
    },
    Metric {
        name: "onramp_clock_etcd_failures",
        labels: "",
        help: "how often the connection to etcd failed or was lost",
        values: |s| fleet(s, |f| f.failures as f64),
    },
    Metric {
        name: "onramp_clock_etcd_refused",
        labels: "",
        help: "keys of the fleet in etcd that are not valid nodes",
        values: |s| fleet(s, |f| f.refused.len() as f64),
    },
    Metric {
        name: "onramp_clock_offset_seconds",
        labels: "",
        help: "fleet time minus CLOCK_MONOTONIC",
        values: |s| s.clock.map_or(vec![], |c| one(c.offset_ns as f64 / 1e9)),
    },
    Metric {
        name: "onramp_clock_drift_ratio",
        labels: "",
        help: "rate of fleet time relative to CLOCK_MONOTONIC, minus 1",
        values: |s| s.clock.map_or(vec![], |c| one(c.drift)),
    },
    Metric {
        name: "onramp_clock_sigma_seconds",
        labels: "",
        help: "standard deviation of fleet time on this host",
        values: |s| s.clock.map_or(vec![], |c| one(c.sigma_ns as f64 / 1e9)),
    },
    Metric {
        name: "onramp_clock_system_ahead_seconds",
        labels: "",
        help: "system clock (CLOCK_REALTIME) minus the leader's",
        values: |s| match s.system.ahead_ns {
            Some(ns) => one(ns as f64 / 1e9),
            None => vec![],
        },
    },
    Metric {
        name: "onramp_clock_system_follows",
        labels: "",
        help: "1 if --discipline steers the system clock, 0 if it has given up; absent without --discipline",
        values: |s| match s.system.follows {
            Follows::Nothing => vec![],
            Follows::Leader => one(1.0),
            Follows::GivenUp(_) => one(0.0),
        },
    },
    Metric {
        name: "onramp_clock_system_rate_ratio",
        labels: "",
        help: "change of the system clock's rate by --discipline",
        values: |s| one(s.system.rate),
    },
    Metric {
        name: "onramp_clock_lease_seconds",
        labels: "",
        help: "time until the lease of fleet time ends",
        values: |s| {
            let left_ns =
                |c: onramp_clock::status::FleetClock| c.valid_until_mono_ns - now_mono_ns();
            s.clock.map_or(vec![], |c| one(left_ns(c) as f64 / 1e9))
        },
    },
    Metric {
        name: "onramp_clock_delay_min_seconds",
        labels: "from, to",
        help: "minimum one-way delay over the last half minute",
        values: |s| ways(s, |way| way.min_ns),
    },
    Metric {
        name: "onramp_clock_delay_seconds",
        labels: "from, to",
        help: "median one-way delay of the last window",
        values: |s| ways(s, |way| way.now_ns),
    },
    Metric {
        name: "onramp_clock_cpu_seconds",
        labels: "",
        help: "processor time of the synchronisation",
        values: |s| one(s.cost.cpu_ns as f64 / 1e9),
    },
    Metric {
        name: "onramp_clock_wire_bytes",
        labels: "",
        help: "bytes sent, as on an Ethernet wire with preamble and gap",
        values: |s| one(s.cost.wire_bytes as f64),
    },
    Metric {
        name: "onramp_clock_events",
        labels: "event",
        help: "count of each event since the program began",
        values: |s| {
            let event = |(name, value): &(String, u64)| {
                (vec![("event".to_owned(), name.clone())], *value as f64)
            };
            s.counters.iter().map(event).collect()
        },
    },
];

fn one(value: f64) -> Values {
    vec![(vec![], value)]
}

fn fleet(s: &Status, of: fn(&Fleet) -> f64) -> Values {
    s.membership.fleet.as_ref().map_or(vec![], |f| one(of(f)))
}

fn ways(s: &Status, of: fn(&onramp_clock::status::Way) -> i64) -> Values {
    let label = |name: &str, host: SocketAddr| (name.to_owned(), host.to_string());
    s.ways
        .iter()
        .map(|way| {
            let labels = vec![label("from", way.from), label("to", way.to)];
            (labels, of(way) as f64 / 1e9)
        })
        .collect()
}

/// The metrics in the OpenMetrics text format.
fn text(status: &Status) -> String {
    let mut registry = Registry::default();
    for metric in METRICS {
        let family = Family::<Labels, Gauge<f64, AtomicU64>>::default();
        for (labels, value) in (metric.values)(status) {
            family.get_or_create(&labels).set(value);
        }
        registry.register(metric.name, metric.help, family);
    }
    let mut text = String::new();
    encode(&mut text, &registry).expect("a String takes everything");
    text
}

/// Answers HTTP requests at `address` as long as the process lives. `status` is none once the clock has
/// stopped.
///
/// # Errors
/// The address cannot be bound.
pub fn serve(
    address: SocketAddr,
    status: impl Fn() -> Option<Status> + Send + 'static,
) -> Result<()> {
    let server = Server::http(address).map_err(|e| anyhow!("cannot serve --metrics on {address}: {e}; use a free port of this host, e.g. --metrics 127.0.0.1:9464"))?;
    let kind = "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8";
    let kind: Header = kind.parse().map_err(|()| anyhow!("a header"))?;
    let answer = move || {
        for request in server.incoming_requests() {
            let response = match (request.url(), status()) {
                ("/metrics", Some(status)) => {
                    Response::from_string(text(&status)).with_header(kind.clone())
                }
                ("/metrics", None) => {
                    Response::from_string("the clock has stopped\n").with_status_code(503)
                }
                _ => Response::from_string("metrics are at /metrics\n").with_status_code(404),
            };
            if let Err(error) = request.respond(response) {
                warn!("metrics client: {error}");
            }
        }
    };
    thread::Builder::new()
        .name("metrics".into())
        .spawn(answer)?;
    Ok(())
}

/// The whole of docs/metrics.md.
pub fn markdown() -> String {
    let mut out = String::from(
        "<!-- Generated, a test compares it: onramp clock reference > docs/metrics.md -->\n\
         # Metrics\n\
         The Prometheus metrics of clock synchronisation, for operators who monitor it. `onramp clock run \
         --metrics ADDRESS:PORT` and `onramp agent run --clock huygens --metrics ADDRESS:PORT` serve them \
         at `/metrics` in the OpenMetrics text format. All are gauges. The data path has no metrics: \
         `onramp status --json` shows its counters.\n\n\
         | metric | labels | meaning |\n|---|---|---|\n",
    );
    for metric in METRICS {
        let _ = writeln!(
            out,
            "| `{}` | {} | {} |",
            metric.name, metric.labels, metric.help
        );
    }
    out.push_str("\nEvents of `onramp_clock_events`:\n\n| event | meaning |\n|---|---|\n");
    for (name, meaning) in COUNTERS {
        let _ = writeln!(out, "| `{name}` | {meaning} |");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use onramp_clock::status::{FleetClock, Membership, System, Way};

    #[test]
    fn the_documentation_lists_these_metrics() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
        let is = std::fs::read_to_string(path).unwrap_or_default();
        assert_eq!(
            is,
            markdown(),
            "run: onramp clock reference > docs/metrics.md"
        );
    }

    #[test]
    fn every_metric_is_served() {
        let told = text(&Status {
            version: String::new(),
            pid: 1,
            membership: Membership {
                own: "10.0.0.1:5198".parse().unwrap(),
                coordinator: Some("10.0.0.1:5198".parse().unwrap()),
                term: 7,
                members: 2,
                fleet: Some(Fleet::default()),
                other_versions: vec![],
            },
            source: String::new(),
            authenticated: true,
            state: "starting".into(),
            clock: Some(FleetClock {
                reference_mono_ns: 0,
                offset_ns: 1_500,
                drift: 0.0,
                sigma_ns: 300,
                heard_mono_ns: 0,
                valid_until_mono_ns: 0,
            }),
            system: System {
                follows: Follows::Leader,
                ahead_ns: Some(1_200),
                rate: 1e-5,
            },
            edges: vec![],
            ways: vec![Way {
                from: "10.0.0.1:5198".parse().unwrap(),
                to: "10.0.0.2:5198".parse().unwrap(),
                min_ns: 10_000,
                now_ns: 12_000,
            }],
            cost: Default::default(),
            counters: vec![("windows".into(), 7)],
        });
        for metric in METRICS {
            assert!(
                told.contains(&format!("# TYPE {} gauge", metric.name)),
                "{told}"
            );
        }
        assert!(told.contains("onramp_clock_synchronised{} 1.0"), "{told}");
        assert!(told.contains("onramp_clock_leader{} 1.0"), "{told}");
        assert!(
            told.contains("onramp_clock_events{event=\"windows\"} 7.0"),
            "{told}"
        );
    }
}
