// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Work of a congestion control for packets of one connection, each with an acknowledgement, over an idle line of 1 Gbit/s
//! with a round-trip time of 112 us. For counting its instructions with callgrind (docs/simulator.md).
//!
//! `cost NAME PACKETS [WAIT_US]`: a receiver that waits takes its packets each WAIT_US.

use onramp_cc::tcp::{
    self, Acked, Arrival, Device, Pacing, RateSample, Reported, Window, WindowControl,
};
use onramp_units::{Sim, Span, Time};

/// Time of a packet on the line.
const PACKET: Span = Span::from_us(12);
const DELAY: Span = Span::from_us(50);

fn main() {
    let mut words = std::env::args().skip(1);
    let name = words.next().expect("a congestion control");
    let mut number = || words.next().map(|n| n.parse::<u32>().expect("a number"));
    let packets = number().unwrap_or(0);
    let wait_ps = i64::from(number().unwrap_or(0)) * 1_000_000;
    let entry = tcp::entry(&name).expect("a congestion control of kernel hosts");
    let mut control = (entry.algorithm)().start();
    let mut window = Window::initial(10);
    control.begin(&mut window);
    let (mut sent_at, mut free_at): (Time<Sim>, Time<Sim>) = (Time::ZERO, Time::ZERO);
    for number in 0..packets {
        let arrived_at = free_at.max(sent_at + DELAY) + PACKET;
        let taken_at = match wait_ps {
            0 => arrived_at,
            _ => {
                Time::ZERO
                    + Span::from_ps(((arrived_at - Time::ZERO).as_ps() / wait_ps + 1) * wait_ps)
            }
        };
        let now = taken_at + DELAY;
        control.on_ack(&mut window, &acked(number, (sent_at, taken_at, now)));
        free_at = arrived_at;
        let gap = match control.clocks_gaps() {
            true => control.gap(number + 1),
            false => control
                .packets_per_s(now - sent_at)
                .map(|packets_per_s| Span::from_ps((1e12 / packets_per_s) as i64)),
        };
        // Never ahead of the line by more than a round-trip time.
        sent_at = (sent_at + gap.unwrap_or(PACKET)).max(arrived_at - DELAY * 2);
    }
    println!("{name}: {packets} packets, {window:?}");
}

fn acked(number: u32, (sent_at, arrived_at, now): (Time<Sim>, Time<Sim>, Time<Sim>)) -> Acked {
    let rtt = now - sent_at;
    Acked {
        now,
        packets: 1,
        marked: 0,
        cumulative: number + 1,
        next: number + 10,
        rtt,
        min_rtt: DELAY * 2 + PACKET,
        may_grow: number < 100,
        in_flight: 10,
        delivered: u64::from(number) + 1,
        lost: false,
        repairing: false,
        sample: RateSample {
            packets_per_s: Some(8e4),
            prior_delivered: u64::from(number.saturating_sub(9)),
            app_limited: false,
        },
        reported: Reported {
            arrival: Some(Arrival {
                number,
                sent_at,
                arrived_at,
                app_limited: false,
            }),
            owd: None,
        },
        pacing: Pacing {
            packets_per_s: Some(8e4),
            small_queue: Span::from_us(977),
            device: Device {
                segment: 45,
                paces: true,
            },
        },
    }
}
