//! The grid of worlds: whether errors lie within what hosts say of them, whatever happens to the hosts.

use onramp_sync::synthetic::uniform;
use rand_chacha::ChaCha8Rng;

use crate::{
    errors::Errors,
    network::Paths,
    starvation::Starvation,
    stream,
    world::{Spec, World},
};

/// Time before the first sample: hosts have had fleet time for some windows.
const SETTLING_NS: i64 = 20_000_000_000;
/// Time between two samples on average.
const SAMPLE_NS: f64 = 250_000_000.0;
const S: i64 = 1_000_000_000;

/// What happens in a world beside starvation and load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Nothing.
    Calm,
    /// Rates of clocks step by up to 0.1 ppm, one host's every 5 s or so.
    RateSteps,
    /// Another host leads, every 10 s or so.
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
pub const NOTICE_NS: i64 = 100_000_000;

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
    let mut next_event = world.now() + between(5 * S, 10 * S, &mut rng);
    let mut unaware = None;
    while world.now() < until {
        world.run((2.0 * SAMPLE_NS * uniform(&mut rng)) as i64);
        if world.now() >= next_event {
            unaware = happen(&mut world, cell.event, &mut fleet, &mut rng);
            next_event = world.now() + between(5 * S, 10 * S, &mut rng);
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
    let any = |rng: &mut ChaCha8Rng| fleet.members[between(0, fleet.members.len() as i64, rng) as usize];
    let host = any(rng);
    let (now, sign) = (world.now(), 2.0 * uniform(rng) - 1.0);
    match event {
        Event::Calm => {}
        Event::RateSteps => world.clock(host).change_rate(now, 1e-7 * sign),
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

/// A cell of small hosts for a first look.
pub fn calm(hosts: usize, load: f64, seed: u64) -> Cell {
    Cell {
        spec: Spec {
            hosts,
            paths: Paths {
                load,
                ..Paths::default()
            },
            seed,
            ..Spec::default()
        },
        starvation: None,
        event: Event::Calm,
    }
}
