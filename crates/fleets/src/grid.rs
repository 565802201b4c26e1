// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The grid of worlds: whether errors lie within what hosts say of them, whatever happens to the hosts.

use onramp_sync::synthetic::uniform;
use rand_chacha::ChaCha8Rng;

use crate::{
    errors::Errors, network::Paths, spec::Spec, starvation::Starvation, stream, world::World,
};

/// Time before the first sample: hosts have had fleet time for some windows.
const SETTLING_NS: i64 = 20_000_000_000;
/// Time between two samples on average.
const SAMPLE_NS: f64 = 250_000_000.0;
const S: i64 = 1_000_000_000;

/// What happens in a world beside starvation and load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Event {
    /// Nothing.
    Calm,
    /// Rates of clocks step by up to this, one host's every 12 s or so.
    RateSteps(f64),
    /// The same, by a program that sets the clock.
    Programs(f64),
    /// Another host leads, every 12 s or so.
    Leaders,
    /// Hosts are killed and start again.
    Members,
    /// A host is suspended for up to 3 s, and knows.
    Suspended,
    /// The same, and does not know: its clocks all stand still.
    Frozen,
    /// A clock jumps by up to 1 ms.
    Jumps,
}

/// No host can know at once that its clock is another one: the next packets of its neighbours show it. For so long after a freeze
/// or a jump a host is not judged, ns.
pub const NOTICE_NS: i64 = 600_000_000;

/// Who loses its processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// A quarter of the hosts, rounded up.
    Some,
    /// All.
    All,
}

/// What loses its processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The machine: its kernel stamps late.
    Machine,
    /// The process: its kernel stamps in time.
    Process,
}

/// A world of the grid.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell {
    /// Network and clocks.
    pub spec: Spec,
    /// Who loses its processor, if anybody does.
    pub starvation: Option<(What, Who, Starvation)>,
    /// What else happens.
    pub event: Event,
}

/// Runs a world for `seconds` after it has settled.
pub fn run(cell: &Cell, seconds: i64) -> Errors {
    let mut world = World::new(cell.spec);
    let hosts = cell.spec.hosts;
    let all: Vec<usize> = (0..hosts).collect();
    let mut fleet = Fleet {
        members: all.clone(),
        leader: 0,
        term: 1,
    };
    world.gather(&fleet.members, fleet.leader, fleet.term);
    world.run(SETTLING_NS / 2);
    if let Some((what, who, starvation)) = cell.starvation {
        let count = match who {
            Who::Some => hosts.div_ceil(4),
            Who::All => hosts,
        };
        for host in 0..count {
            match what {
                What::Machine => world.steal(host, starvation),
                What::Process => world.starve(host, starvation),
            }
        }
    }
    world.run(SETTLING_NS / 2);
    let mut rng = stream(cell.spec.seed, 4);
    let mut errors = Errors::default();
    let until = world.now() + seconds * S;
    let mut next_event = world.now() + between(8 * S, 16 * S, &mut rng);
    let mut unaware = None;
    while world.now() < until {
        world.run((2.0 * SAMPLE_NS * uniform(&mut rng)) as i64);
        if world.now() >= next_event {
            unaware = happen(&mut world, cell.event, &mut fleet, &mut rng);
            next_event = world.now() + between(8 * S, 16 * S, &mut rng);
        }
        let possible = world.awake();
        let mut samples = world.samples();
        let now = world.now();
        let is_aware = |host: usize| unaware.is_none_or(|(who, until)| host != who || now > until);
        samples.retain(|sample| is_aware(sample.host));
        errors.add(&samples, possible);
    }
    errors
}

/// The fleet as etcd would have it.
struct Fleet {
    members: Vec<usize>,
    leader: usize,
    term: u64,
}

/// Lets an event happen; returns the host whose clock is another one and cannot know, and until when.
fn happen(
    world: &mut World,
    event: Event,
    fleet: &mut Fleet,
    rng: &mut ChaCha8Rng,
) -> Option<(usize, i64)> {
    let any =
        |rng: &mut ChaCha8Rng| fleet.members[between(0, fleet.members.len() as i64, rng) as usize];
    let host = any(rng);
    let (now, sign) = (world.now(), 2.0 * uniform(rng) - 1.0);
    match event {
        Event::Calm => {}
        Event::RateSteps(most) => world.clock(host).change_rate(now, most * sign),
        Event::Programs(most) => world.clock(host).slew(now, most * sign),
        Event::Jumps => {
            world.clock(host).jump(now, (1e6 * sign) as i64);
            return Some((host, now + NOTICE_NS));
        }
        Event::Suspended | Event::Frozen => {
            let for_ns = between(S / 10, 3 * S, rng);
            world.suspend(host, for_ns, event == Event::Suspended);
            let is_frozen = event == Event::Frozen;
            return is_frozen.then_some((host, now + for_ns + NOTICE_NS));
        }
        Event::Leaders => {
            (fleet.leader, fleet.term) = (host, fleet.term + 1);
            world.gather(&fleet.members, fleet.leader, fleet.term);
        }
        Event::Members => {
            let hosts = world.hosts();
            match (0..hosts).find(|host| !fleet.members.contains(host)) {
                Some(gone) => {
                    world.start(gone);
                    fleet.members.push(gone);
                }
                None if host != fleet.leader => {
                    world.kill(host);
                    fleet.members.retain(|member| *member != host);
                }
                None => {}
            }
            world.gather(&fleet.members, fleet.leader, fleet.term);
        }
    }
    None
}

fn between(least: i64, most: i64, rng: &mut ChaCha8Rng) -> i64 {
    least + ((most - least) as f64 * uniform(rng)) as i64
}

/// A row of the table: worlds that have something in common.
pub struct Row {
    /// What they have in common.
    pub what: String,
    /// The worlds.
    pub cells: Vec<Cell>,
}

/// Bursts without a processor, ns.
const BURSTS_NS: [i64; 4] = [1_000_000, 30_000_000, 300_000_000, 2_000_000_000];

/// All rows. `hosts`: sizes of the fleets; `seeds`: worlds of each kind.
pub fn rows(hosts: &[usize], seeds: u64) -> Vec<Row> {
    let mut rows = vec![];
    let mut row = |what: &str, cells: &dyn Fn(usize, u64) -> Vec<Cell>| {
        let all = hosts
            .iter()
            .flat_map(|hosts| (1..=seeds).map(|seed| (*hosts, seed)));
        let cells = all.flat_map(|(hosts, seed)| cells(hosts, seed)).collect();
        let what = what.to_owned();
        rows.push(Row { what, cells });
    };
    by_network(&mut row);
    by_starvation(&mut row);
    by_event(&mut row);
    rows
}

/// Adds a row: its name, and the cells of so many hosts and a seed.
type AddRow<'a> = dyn FnMut(&str, &dyn Fn(usize, u64) -> Vec<Cell>) + 'a;

fn by_network(row: &mut AddRow<'_>) {
    row("idle", &|hosts, seed| vec![calm(hosts, 0.0, seed)]);
    row("ports busy for up to 40 %", &|hosts, seed| {
        vec![calm(hosts, 0.4, seed)]
    });
    row("ports busy for up to 80 %", &|hosts, seed| {
        vec![calm(hosts, 0.8, seed)]
    });
    for (asymmetry_ns, what) in [(500, "0.5"), (2_000, "2")] {
        row(
            &format!("directions up to {what} us apart, 40 %"),
            &|hosts, seed| {
                let mut cell = calm(hosts, 0.4, seed);
                cell.spec.paths.asymmetry_ns = asymmetry_ns;
                vec![cell]
            },
        );
    }
    row("1 % of the packets lost, 40 %", &|hosts, seed| {
        let mut cell = calm(hosts, 0.4, seed);
        cell.spec.paths.loss = 0.01;
        vec![cell]
    });
    row("stamps 500 times as coarse, 40 %", &|hosts, seed| {
        let mut cell = calm(hosts, 0.4, seed);
        cell.spec.noise = 500.0;
        vec![cell]
    });
}

fn by_starvation(row: &mut AddRow<'_>) {
    for (what, name) in [
        (What::Machine, "machine stolen"),
        (What::Process, "process starved"),
    ] {
        for (who, whose) in [
            (Who::Some, "a quarter of the hosts"),
            (Who::All, "all hosts"),
        ] {
            for part in [0.1, 0.5, 0.9] {
                let title = format!("{name} for {:.0} % of the time, {whose}", 100.0 * part);
                row(&title, &|hosts, seed| {
                    let starved = |burst_ns: &i64| Cell {
                        starvation: Some((
                            what,
                            who,
                            Starvation {
                                part,
                                burst_ns: *burst_ns,
                            },
                        )),
                        ..calm(hosts, if seed % 2 == 0 { 0.8 } else { 0.0 }, seed)
                    };
                    BURSTS_NS.iter().map(starved).collect()
                });
            }
        }
    }
}

fn by_event(row: &mut AddRow<'_>) {
    for (event, what) in [
        (
            Event::RateSteps(1e-7),
            "rates of clocks step by up to 0.1 ppm",
        ),
        (
            Event::Programs(1e-5),
            "programs change rates by up to 10 ppm",
        ),
        (Event::Leaders, "other leaders"),
        (Event::Members, "hosts die and start again"),
        (Event::Suspended, "hosts are suspended and know"),
        (Event::Frozen, "hosts are frozen and do not know"),
        (Event::Jumps, "clocks jump by up to 1 ms"),
    ] {
        row(&format!("{what}, 40 %"), &|hosts, seed| {
            let cell = calm(hosts, 0.4, seed);
            vec![Cell { event, ..cell }]
        });
    }
}

fn calm(hosts: usize, load: f64, seed: u64) -> Cell {
    let paths = Paths {
        load,
        ..Paths::default()
    };
    Cell {
        spec: Spec {
            hosts,
            paths,
            seed,
            ..Spec::default()
        },
        starvation: None,
        event: Event::Calm,
    }
}

impl Row {
    /// Runs its worlds, each for `seconds`.
    pub fn run(&self, seconds: i64) -> Errors {
        let mut all = Errors::default();
        for cell in &self.cells {
            all.extend(&run(cell, seconds));
        }
        all
    }

    /// Its line in the table, as [`TITLE`] names the columns.
    pub fn line(&self, errors: &Errors) -> String {
        let error_ns = [0.5, 0.99, 1.0].map(|part| format!("{:.0}", errors.error_ns(part)));
        format!(
            "| {} | {} | {:.0} % | {} | {:.0} | {:.3} % | {:.3} % | {:.1} |",
            self.what,
            errors.count(),
            100.0 * errors.availability(),
            error_ns.join(" | "),
            errors.sigma_ns(0.5),
            100.0 * errors.beyond(3.0),
            100.0 * errors.beyond(5.0),
            errors.worst(),
        )
    }
}

/// Head of the table.
pub const TITLE: &str = "\
| world | samples | had fleet time | error, ns: median | p99 | worst | sigma, ns: median | beyond 3 sigma | beyond 5 sigma | worst, in sigmas |
|---|---|---|---|---|---|---|---|---|---|";
