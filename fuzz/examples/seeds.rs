// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Writes the seeds of clock messages: `cargo run -p onramp-fuzz --example seeds`. Do it when the format changes.

use std::net::SocketAddr;

use onramp_clock::keys::Keys;
use onramp_clock::wall::Wall;
use onramp_clock::wire::{Body, Delays, EdgeReport, Message, Probe, Report, State, Verdict};
use onramp_sync::correction::{Correction, Error};
use onramp_sync::line::Line;
use onramp_units::Time;

const TAG_BYTES: usize = 8;

fn main() -> std::io::Result<()> {
    for (name, body) in bodies() {
        let message = Message {
            seq: 0,
            term: 1,
            body,
        };
        let datagram = message.encode(&Keys::well_known(), end(1), end(2));
        let text = &datagram[..datagram.len() - TAG_BYTES];
        std::fs::write(format!("fuzz/corpus/message/valid-{name}"), text)?;
        std::fs::write(
            format!("fuzz/corpus/message/cut-{name}"),
            &text[..text.len() - 1],
        )?;
    }
    Ok(())
}

fn end(last: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, last], onramp_clock::wire::PORT))
}

/// A body of each kind, with its name.
fn bodies() -> [(&'static str, Body); 5] {
    let follows = Correction {
        reference: Time::from_ticks(1_000_000_000),
        offset_ns: 42,
        drift: 1e-6,
        bend: 1e-9,
        error: Error {
            sigma_ns: 100.0,
            drift_sigma: 1e-8,
            wander_per_s: 1e-8,
        },
    };
    let line = Line {
        at: Time::from_ticks(1_000_000_000),
        about_ns: 0,
        ahead_ns: 7.0,
        drift: 1e-6,
        delay_ns: 5_000.0,
        points: 90,
        sigma_ns: 50.0,
        drift_sigma: 2e-8,
    };
    let delays = Delays {
        out_min_ns: 5_000,
        back_min_ns: 5_000,
        out_now_ns: 6_000,
        back_now_ns: 6_000,
    };
    let edges = vec![EdgeReport {
        far: end(3),
        far_epoch: 0,
        line,
        delays,
    }];
    let wall = Wall {
        at: Time::from_ticks(1_000_000_000),
        ahead_ns: 3,
        drift: 1e-6,
    };
    let verdict = Verdict {
        answers: 7,
        state: State::Synchronised(follows),
        wall: Some(wall),
        delays: vec![(end(3), delays)],
    };
    [
        ("probe", Body::Probe(Probe::default())),
        ("ack", Body::Ack(Probe::default())),
        (
            "report",
            Body::Report(Report {
                epoch: 0,
                follows: Some(follows),
                edges,
            }),
        ),
        ("verdict", Body::Verdict(verdict)),
        ("notice", Body::Notice { answers: 7 }),
    ]
}
