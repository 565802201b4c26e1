// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Clocks that are wrong in every way that clocks are, and a network that queues.

use onramp_sync::{
    fleet::Report,
    line::{self, Line, Softness},
    probe::{points, pure, Far, Near, Pair, Probe, Stamps},
    synthetic::{gaussian, uniform, Oscillator},
};
use onramp_units::{Clock, Span, Time};
use rand_chacha::{rand_core::SeedableRng, ChaCha8Rng};

pub const WINDOW_S: f64 = 2.0;
/// Coded pairs an edge and direction in a window.
const PAIRS: usize = 450;
/// The host whose stamps are wrong by anything, if one's are.
pub const LIAR: usize = 17;

#[derive(Clone, Copy)]
pub struct Spec {
    pub hosts: usize,
    pub degree: usize,
    pub stamps: Stamps,
    /// Part of the pairs that meet no queue, out and back: the two ways are loaded differently.
    pub clean: (f64, f64),
    /// Least and largest amplitude of what drifts swing by.
    pub wander: (f64, f64),
    /// Standard deviation of the constant difference between the way out and the way back, ns.
    pub asymmetry_ns: f64,
    /// By how much edge 0's far end is stamped wrong, ns.
    pub wrong_edge_ns: f64,
    /// The liar adds something between 0 and this to all that it says of an edge, another for each.
    pub liar_ns: f64,
    /// The liar says that its lines have no error at all.
    pub liar_is_sure: bool,
    pub seed: u64,
}

impl Spec {
    pub const DEFAULT: Spec = Spec {
        hosts: 100,
        degree: 10,
        stamps: Stamps::Hardware,
        clean: (0.04, 0.08),
        wander: (0.5e-6, 2e-6),
        asymmetry_ns: 35.0,
        wrong_edge_ns: 0.0,
        liar_ns: 0.0,
        liar_is_sure: false,
        seed: 1,
    };
}

struct Link {
    near: usize,
    far: usize,
    delay_ns: f64,
    asymmetry_ns: f64,
    wrong_ns: f64,
}

pub struct World {
    spec: Spec,
    clocks: Vec<Oscillator>,
    links: Vec<Link>,
    rng: ChaCha8Rng,
}

impl World {
    pub fn new(spec: Spec) -> World {
        let mut rng = ChaCha8Rng::seed_from_u64(spec.seed);
        let clock = |rng: &mut ChaCha8Rng| Oscillator {
            offset: Span::from_ns((1e6 * (2.0 * uniform(rng) - 1.0)) as i64),
            drift: 15e-6 * (2.0 * uniform(rng) - 1.0),
            wander: spec.wander.0 + (spec.wander.1 - spec.wander.0) * uniform(rng),
            period: Span::from_ms((1e3 * (600.0 + 3000.0 * uniform(rng))) as i64),
            phase: uniform(rng),
        };
        let clocks = (0..spec.hosts).map(|_| clock(&mut rng)).collect();
        let mut links = vec![];
        for near in 0..spec.hosts {
            for n in 0..spec.degree {
                // A ring connects all, whatever the rest is.
                let step = if n == 0 {
                    1
                } else {
                    1 + (uniform(&mut rng) * (spec.hosts - 1) as f64) as usize
                };
                let far = (near + step) % spec.hosts;
                let lie = uniform(&mut rng);
                let lied = near == LIAR || far == LIAR;
                links.push(Link {
                    near,
                    far,
                    delay_ns: 5_000.0 + 20_000.0 * uniform(&mut rng),
                    asymmetry_ns: spec.asymmetry_ns * gaussian(&mut rng),
                    wrong_ns: if lied { lie * spec.liar_ns } else { 0.0 },
                });
            }
        }
        links[0].wrong_ns += spec.wrong_edge_ns;
        World {
            spec,
            clocks,
            links,
            rng,
        }
    }

    /// What a host's clock reads at a true time, ns. Host 3 booted a year before the others.
    pub fn reads(&self, host: usize, now_s: f64) -> i64 {
        let year_ns = 31_536_000_000_000_000;
        let booted = if host == 3 { year_ns } else { 0 };
        let whole_ns = (1e9 * now_s).floor();
        let ahead_ns = self.clocks[host].ahead_ns(whole_ns as i64);
        booted + (1e9 * now_s + ahead_ns).round() as i64
    }

    /// What all hosts report of a window.
    pub fn reports(&mut self, window: usize) -> Vec<Report> {
        let purity = self.spec.stamps.purity();
        let start_s = WINDOW_S * window as f64;
        let reports = (0..self.links.len()).filter_map(|n| {
            let (mut out, mut back) = (vec![], vec![]);
            for pair in 0..PAIRS {
                let sent_s = start_s + WINDOW_S * pair as f64 / PAIRS as f64;
                out.push(self.pair::<Near, Far>(n, true, sent_s));
                back.push(self.pair::<Far, Near>(n, false, sent_s + 1e-3));
            }
            let (out, back) = (pure(out, purity), pure(back, purity));
            let line = line::fit(
                &points(&out),
                &points(&back),
                Softness::of(self.spec.stamps),
            )?;
            let (near, far) = (self.links[n].near, self.links[n].far);
            let is_sure = self.spec.liar_is_sure && near == LIAR;
            let line = match is_sure {
                true => Line {
                    sigma_ns: 0.0,
                    drift_sigma: 0.0,
                    ..line
                },
                false => line,
            };
            Some(Report { near, far, line })
        });
        reports.collect::<Vec<_>>()
    }

    fn pair<From: Clock, To: Clock>(
        &mut self,
        link: usize,
        out: bool,
        sent_s: f64,
    ) -> Pair<From, To> {
        let spacing_s = self.spec.stamps.spacing().as_s_f64();
        let clean = if out {
            self.spec.clean.0
        } else {
            self.spec.clean.1
        };
        let queue_ns = if uniform(&mut self.rng) < clean {
            0.0
        } else {
            3.0 * exponential(&mut self.rng, 20_000.0)
        };
        // What stands between the two: nothing if they met nothing, else some other packets.
        let between_ns = if queue_ns > 0.0 {
            exponential(&mut self.rng, 3_000.0) - exponential(&mut self.rng, 1_500.0)
        } else {
            0.0
        };
        Pair {
            first: self.probe(link, out, sent_s, queue_ns),
            second: self.probe(
                link,
                out,
                sent_s + spacing_s,
                (queue_ns + between_ns).max(0.0),
            ),
        }
    }

    fn probe<From: Clock, To: Clock>(
        &mut self,
        link: usize,
        out: bool,
        sent_s: f64,
        queue_ns: f64,
    ) -> Probe<From, To> {
        let sent_noise = self.spec.stamps.sent_noise_ns(&mut self.rng);
        let received_noise = self.spec.stamps.received_noise_ns(&mut self.rng);
        let Link {
            near,
            far,
            delay_ns,
            asymmetry_ns,
            wrong_ns,
        } = self.links[link];
        let (from, to) = if out { (near, far) } else { (far, near) };
        let half = if out { asymmetry_ns } else { -asymmetry_ns } / 2.0;
        let received_s = sent_s + 1e-9 * (delay_ns + half + queue_ns);
        let (from_wrong, to_wrong) = if out {
            (0.0, wrong_ns)
        } else {
            (wrong_ns, 0.0)
        };
        let sent = self.reads(from, sent_s + 1e-9 * sent_noise) + from_wrong as i64;
        let received = self.reads(to, received_s + 1e-9 * received_noise) + to_wrong as i64;
        Probe {
            sent: Time::from_ticks(sent),
            received: Time::from_ticks(received),
        }
    }
}

fn exponential(rng: &mut ChaCha8Rng, mean: f64) -> f64 {
    -mean * (1.0 - uniform(rng)).ln()
}
