// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Scalable TCP: a hundredth of a packet for each acknowledged, an eighth less at a loss (T. Kelly,
//! CCR 33(2), 2003, with Linux's numbers).

use super::{Acked, Entry, Growth, Linux, TcpAlgorithm, Window, WindowControl};
use crate::parameter::{parameters, Bounds};
use crate::FAIR;

parameters! { "scalable", {
    "packets" per: u32 = 100, Bounds::Count(1, 10_000), "Upper bound of the number of acknowledged packets after which the window grows by one packet.";
    "decrease" decrease: f64 = 1.0 / 8.0, Bounds::Fraction(0.01, 0.9), "Fraction by which a loss reduces the window.";
} }

/// As the registry has it.
pub(super) const ENTRY: Entry = Entry {
    name: "scalable",
    about: "Scalable TCP (T. Kelly, CCR 2003)",
    linux: Linux::Lacks,
    marks: false,
    short_segments: false,
    parameters: PARAMETERS,
    ordered: &[],
    fairness: FAIR,
    fills: crate::FILLED,
    algorithm: &|| TcpAlgorithm::Scalable(Params::default()),
};

#[derive(Debug, Clone)]
pub struct Scalable {
    params: Params,
    growth: Growth,
}

impl Scalable {
    pub fn new(params: &Params) -> Scalable {
        Scalable {
            params: *params,
            growth: Growth::default(),
        }
    }
}

impl WindowControl for Scalable {
    fn on_ack(&mut self, window: &mut Window, acked: &Acked) {
        if acked.may_grow {
            let most = self.params.per;
            let per = |packets: u32| packets.min(most);
            self.growth.on_ack(window, acked.packets, per);
        }
    }

    fn on_loss(&mut self, window: &Window) -> u32 {
        let taken = f64::from(window.packets) * self.params.decrease;
        (window.packets - taken as u32).max(2)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::acked;
    use super::*;

    #[test]
    fn growth_is_a_per_cent_and_a_loss_takes_an_eighth() {
        let mut scalable = Scalable::new(&Params::default());
        let mut window = Window {
            packets: 800,
            slow_start_below: 800,
        };
        scalable.on_ack(&mut window, &acked(0, 800));
        assert_eq!(window.packets, 808);
        assert_eq!(scalable.on_loss(&window), 707);
    }
}
