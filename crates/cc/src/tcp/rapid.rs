// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! TCP RAPID (Konda and Kaur, INFOCOM 2009; Lovewell et al. for Linux): every packet probes for available bandwidth by
//! its distance to the packet before it. The arithmetic is `law/cc/rapid.h`, which says where it chose.
//! The window is a constant, which bounds what is in flight. A loss changes no rate.

use super::{in_kernel, Acked, Entry, Linux, TcpAlgorithm, Window, WindowControl, PACKET_BYTES};
use crate::parameter::{kbit, parameters, Bounds, InLaw, LONG, SHORT, STEP};
use onramp_law::cc::{self, RapidArrival, RapidCfg};
use onramp_units::{Rate, Sim, Span, Time};
use std::num::NonZeroU64;

/// A ratio of two rates.
const RATIO: Bounds = Bounds::Fraction(1.01, 4.0);
/// A time that may be zero.
const ERROR: Bounds = Bounds::Span(Span::ZERO, Span::from_s(1));

parameters! { "rapid" => RapidCfg { packet_bytes: PACKET_BYTES }, {
    "tau" tau: Span = Span::from_ms(10), LONG => tau_ns, "Time in which the rate rises to a higher estimate.";
    "eta" eta: u32 = 3, Bounds::Count(1, 100) => fall_q16 via part, "Number of updates in which the rate falls to a lower estimate.";
    "gamma" gamma: u32 = 3, Bounds::Count(1, 100) => gamma, "Number of streams for one update of the rate.";
    "spread" spread: f64 = 1.15, RATIO => spread_q16, "Ratio of two neighbouring rates of a stream, which has four.";
    "start_spread" start_spread: f64 = 2.0, RATIO => start_spread_q16, "The same at the start of a connection.";
    "each" each: u32 = 16, Bounds::Count(1, 48) => each, "Number of packets at each rate of a stream.";
    "patience" patience: u32 = 16, Bounds::Count(1, 1000) => patience, "Number of streams in a row with lost packets after which the rate is halved.";
    "min_rate" min_rate: Rate = kbit(100), STEP => min_rate, "Lower bound of the rate.";
    "max_rate" max_rate: Rate = kbit(100_000_000), STEP => max_rate, "Upper bound of the rate. Must be at least `min_rate`.";
    "least_run" least_run: u32 = 4, Bounds::Count(1, 192) => least_run, "Acknowledgements that packets must queue for, at the end of a stream, to count as queueing consistently.";
    "least_rise" least_rise: Span = Span::from_us(1), ERROR => least_rise_ns, "Queueing delay above the least of the stream from which a packet counts as queueing.";
    "spike_rise" spike_rise: Span = Span::from_us(30), SHORT => spike_rise_ns, "Denoising: a receive gap that is so much longer than the one before it ends a wait of the receiver.";
    "spike_fall" spike_fall: Span = Span::from_us(20), SHORT => spike_fall_ns, "And so much longer than the one after it.";
    "standing" standing: Span = Span::from_us(200), SHORT => standing_ns, "Queueing delay from which a queue that stands through a stream is drained.";
    "passes" passes: u32 = 3, Bounds::Count(0, 8) => passes, "Passes of denoising; 0: none.";
    "stamp" stamp: Span = Span::from_us(1), SHORT, "Resolution of time stamps.";
    "timer_late" timer_late: Span = Span::ZERO, ERROR, "A packet leaves late by up to this time, at random and unknown to the estimator: timers instead of PAUSE frames.";
    "stamp_late" stamp_late: Span = Span::ZERO, ERROR, "An arrival is stamped late by up to this time, at random: TCP's stamp of the acknowledgement instead of the packet's.";
    "cap" cap: u32 = 16_000, Bounds::Count(4, 1_000_000) => cap_packets, "Packets that may be in flight.";
} }

/// One of so many, in units of 2^-16.
fn part(of: u32) -> u32 {
    (1.0 / f64::from(of)).in_law()
}

/// As the registry has it.
pub(super) const ENTRY: Entry = Entry {
    name: "rapid",
    about: "TCP RAPID",
    linux: Linux::Loads(|given| in_kernel(given, Params::law)),
    marks: false,
    short_segments: false,
    parameters: PARAMETERS,
    ordered: &[("min_rate", "max_rate")],
    fairness: crate::FAIR,
    fills: 0.8, // the paper's estimates are up to 15 % off (figure 8)
    algorithm: &|| TcpAlgorithm::Rapid(Params::default()),
};

/// What is late.
#[derive(Debug, Clone, Copy)]
enum Lateness {
    Timer,
    Stamp,
}

/// A random part of `whole` for packet `number`, always the same.
#[inline]
fn part_of(whole: Span, number: u32, what: Lateness) -> Span {
    match whole {
        Span::ZERO => whole,
        _ => random_part_of(whole, number, what),
    }
}

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014). Apart, because few scenarios have errors.
#[inline(never)]
fn random_part_of(whole: Span, number: u32, what: Lateness) -> Span {
    let seed = u64::from(number) << 1 | what as u64;
    let mut bits = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    let part = (u128::from(bits ^ bits >> 31) * whole.as_ps() as u128) >> 64;
    Span::from_ps(part as i64)
}

#[derive(Debug, Clone)]
pub struct Rapid {
    cfg: RapidCfg,
    flow: cc::Rapid,
    stream: Box<cc::RapidStream>,
    /// Resolution of time stamps, at least 1.
    stamp_ps: NonZeroU64,
    timer_late: Span,
    stamp_late: Span,
    /// The last time stamp.
    stamped: Span,
    /// The next packet at the last acknowledgement; the last arrival.
    next: u32,
    last: Option<u32>,
}

impl Rapid {
    pub fn new(params: &Params) -> Rapid {
        Rapid {
            cfg: params.law(),
            flow: cc::Rapid::default(),
            stream: Box::default(),
            stamp_ps: NonZeroU64::new(params.stamp.as_ps().max(1) as u64)
                .unwrap_or(NonZeroU64::MIN),
            timer_late: params.timer_late,
            stamp_late: params.stamp_late,
            stamped: Span::ZERO,
            next: 0,
            last: None,
        }
    }

    /// The receiver's time stamp of packet `number`, which does not go back. In nanoseconds.
    fn stamped(&mut self, number: u32, at: Time<Sim>) -> u64 {
        let late = part_of(self.stamp_late, number, Lateness::Stamp);
        self.stamped = self.stamped.max(at - Time::ZERO + late);
        // It begins at zero and does not go back.
        let stamped_ps = self.stamped.as_ps() as u64;
        (stamped_ps - stamped_ps % self.stamp_ps) / 1000
    }

    /// By how much packet `number` leaves late.
    fn late(&self, number: u32) -> Span {
        part_of(self.timer_late, number, Lateness::Timer)
    }

    fn report(&mut self, acked: &Acked) {
        let Some(arrival) = acked.reported.arrival else {
            return;
        };
        let follows = self.last.is_some_and(|last| arrival.number == last + 1);
        let arrived_ns = self.stamped(arrival.number, arrival.arrived_at);
        let intended = arrival.sent_at - Time::ZERO - self.late(arrival.number);
        let arrival = RapidArrival {
            number: arrival.number,
            are_all: (follows || acked.cumulative > arrival.number).into(),
            is_limited: arrival.app_limited.into(),
            next: acked.next,
            sent_ns: intended.in_law(),
            arrived_ns,
            rtt_ns: acked.rtt.in_law(),
        };
        cc::rapid_arrived(&self.cfg, &mut self.flow, &mut self.stream, &arrival);
        self.last = Some(arrival.number);
    }
}

impl WindowControl for Rapid {
    fn on_ack(&mut self, window: &mut Window, acked: &Acked) {
        self.next = acked.next;
        if self.flow.rate() == 0 {
            let rate = cc::rapid_first_rate(&self.cfg, acked.rtt.in_law());
            cc::rapid_begin(
                &self.cfg,
                &mut self.flow,
                &mut self.stream,
                rate,
                acked.next,
            );
        }
        window.packets = self.cfg.cap_packets;
        self.report(acked);
    }

    fn on_loss(&mut self, window: &Window) -> u32 {
        window.packets.max(2)
    }

    fn on_timeout(&mut self) {
        cc::rapid_back_off(&self.cfg, &mut self.flow, &mut self.stream, self.next);
    }

    #[inline]
    fn owns_window(&self) -> bool {
        true
    }

    #[inline]
    fn clocks_gaps(&self) -> bool {
        true
    }

    fn gap(&mut self, number: u32) -> Option<Span> {
        if self.flow.rate() == 0 {
            return None; // the initial window leaves at once, as any TCP's
        }
        let gap_ns = cc::rapid_gap_ns(&self.cfg, &mut self.flow, number);
        let gap = Span::from_ns(gap_ns.min(1 << 50) as i64);
        if self.timer_late == Span::ZERO {
            return Some(gap);
        }
        let late = self.late(number) - self.late(number.wrapping_sub(1));
        Some((gap + late).max(Span::ZERO))
    }

    fn estimate(&self) -> Option<f64> {
        (self.flow.seen() > 0).then(|| self.flow.last_estimate() as f64)
    }

    #[inline]
    fn packets_per_s(&self, _smoothed_rtt: Span) -> Option<f64> {
        let bytes_per_s = self.flow.rate();
        (bytes_per_s > 0).then(|| bytes_per_s as f64 / f64::from(PACKET_BYTES))
    }
}
