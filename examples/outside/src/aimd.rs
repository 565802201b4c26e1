// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A congestion control: additive increase, multiplicative decrease by losses and by marks (RFC 5681, RFC 3168).

use onramp_cc::tcp::{Acked, Entry, Growth, TcpAlgorithm, Window, WindowControl};
use onramp_cc::{parameters, Bounds};

parameters! { "aimd", {
    "packets" per_rtt: u32 = 1, Bounds::Count(1, 100), "Packets by which the window grows in a round trip.";
    "decrease" decrease: f64 = 0.5, Bounds::Fraction(0.01, 0.9), "Part of the window that a loss or a mark takes off.";
} }

pub static ENTRY: Entry = Entry::new(
    "aimd",
    "additive increase, multiplicative decrease",
    &|| TcpAlgorithm::custom(Params::default(), |params| Box::new(Aimd::new(params))),
)
.marks(true)
.parameters(PARAMETERS);

/// A connection.
#[derive(Debug)]
struct Aimd {
    params: Params,
    growth: Growth,
    /// Marks count again when this packet is acknowledged: once in a round trip.
    deaf_until: u32,
}

impl Aimd {
    fn new(params: &Params) -> Aimd {
        Aimd {
            params: *params,
            growth: Growth::default(),
            deaf_until: 0,
        }
    }
}

impl WindowControl for Aimd {
    fn on_ack(&mut self, window: &mut Window, acked: &Acked) {
        if acked.marked > 0 && acked.cumulative >= self.deaf_until {
            window.slow_start_below = self.on_loss(window);
            window.packets = window.slow_start_below;
            self.deaf_until = acked.next;
        } else if acked.may_grow {
            let per_rtt = self.params.per_rtt;
            let per = |packets: u32| packets / per_rtt;
            self.growth.on_ack(window, acked.packets, per);
        }
    }

    fn on_loss(&mut self, window: &Window) -> u32 {
        let left = f64::from(window.packets) * (1.0 - self.params.decrease);
        (left as u32).max(2)
    }
}
