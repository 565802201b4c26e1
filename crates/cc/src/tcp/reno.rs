// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! NewReno: a packet a round trip, half at a loss (RFC 5681 §3.1, RFC 6582).

use super::{Acked, Entry, Growth, Linux, TcpAlgorithm, Window, WindowControl};
use crate::parameter::{parameters, Bounds};
use crate::FAIR;

parameters! { "reno", {
    "beta" beta: f64 = 0.5, Bounds::Fraction(0.1, 0.99), "Ratio of the window after a loss to the window before it.";
} }

/// As the registry has it.
pub(super) const ENTRY: Entry = Entry {
    name: "reno",
    about: "NewReno (RFC 5681, RFC 6582)",
    linux: Linux::Has,
    marks: false,
    short_segments: false,
    parameters: PARAMETERS,
    ordered: &[],
    fairness: FAIR,
    fills: crate::FILLED,
    algorithm: &|| TcpAlgorithm::Reno(Params::default()),
};

#[derive(Debug, Clone)]
pub struct Reno {
    params: Params,
    growth: Growth,
}

impl Reno {
    pub fn new(params: &Params) -> Reno {
        Reno {
            params: *params,
            growth: Growth::default(),
        }
    }
}

impl WindowControl for Reno {
    fn on_ack(&mut self, window: &mut Window, acked: &Acked) {
        if acked.may_grow {
            self.growth.on_ack(window, acked.packets, |packets| packets);
        }
    }

    fn on_loss(&mut self, window: &Window) -> u32 {
        ((f64::from(window.packets) * self.params.beta) as u32).max(2)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::acked;
    use super::*;

    #[test]
    fn a_round_trip_adds_a_packet_and_a_loss_halves() {
        let mut reno = Reno::new(&Params::default());
        let mut window = Window {
            packets: 20,
            slow_start_below: 20,
        };
        for _ in 0..20 {
            reno.on_ack(&mut window, &acked(0, 1));
        }
        assert_eq!(window.packets, 21);
        assert_eq!(reno.on_loss(&window), 10);
    }
}
