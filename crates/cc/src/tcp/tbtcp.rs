// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Tiny Buffer TCP: each mark takes a packet of the window, and the window grows by a fraction of a packet a round
//! trip ("Tiny Buffer TCP for Data Center Networks", section 4). The switch has to mark by the paper's curve
//! (`network.ecn.bdp`), the receiver to acknowledge each mark at once. The arithmetic is `law/cc/tbtcp.h`, which the kernel
//! runs too. Slow start, and what a loss takes, are as with DCTCP; slow start ends at the first mark.

use super::reno::{self, Reno};
use super::{in_kernel, Acked, Entry, Linux, TcpAlgorithm, Window, WindowControl};
use crate::parameter::{parameters, Bounds};
use crate::FAIR;
use onramp_law::cc::{self, TbtcpCfg};

parameters! { "tbtcp" => TbtcpCfg {}, {
    "eta" eta: f64 = 0.1, Bounds::Fraction(0.001, 1.0) => eta_per_mille via per_mille, "Growth of the window in a round trip after slow start, in packets. N flows keep a queue of N times this.";
    "k" k: u32 = 1, Bounds::Count(1, 64) => k, "Packets that one mark takes from the window, at most half of it. Give switches `network.ecn.max_fraction` 1/k.";
} }

fn per_mille(part: f64) -> u32 {
    (part * 1000.0).round() as u32
}

/// As the registry has it.
pub(super) const ENTRY: Entry = Entry {
    name: "tbtcp",
    about: "Tiny Buffer TCP",
    linux: Linux::Loads(|given| in_kernel(given, Params::law)),
    marks: true,
    short_segments: false,
    parameters: PARAMETERS,
    ordered: &[],
    fairness: FAIR,
    fills: crate::FILLED,
    algorithm: &|| TcpAlgorithm::Tbtcp(Params::default()),
};

#[derive(Debug, Clone)]
pub struct Tbtcp {
    cfg: TbtcpCfg,
    /// What has not yet made a packet of growth.
    counted: u64,
    /// Slow start, and what a loss takes.
    pub(super) reno: Reno,
}

impl Tbtcp {
    pub fn new(params: &Params) -> Tbtcp {
        Tbtcp {
            cfg: params.law(),
            counted: 0,
            reno: Reno::new(&reno::Params::default()),
        }
    }
}

impl WindowControl for Tbtcp {
    fn on_ack(&mut self, window: &mut Window, acked: &Acked) {
        if acked.marked > 0 {
            window.packets = cc::tbtcp_cut(&self.cfg, window.packets, acked.marked);
            window.slow_start_below = window.slow_start_below.min(window.packets);
        }
        if window.in_slow_start() {
            self.reno.on_ack(window, acked);
        } else if acked.may_grow {
            let (counted, packets) = (&mut self.counted, window.packets);
            window.packets = cc::tbtcp_grow(&self.cfg, counted, packets, acked.packets);
        }
    }

    fn on_loss(&mut self, window: &Window) -> u32 {
        self.reno.on_loss(window)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::acked;
    use super::*;

    #[test]
    fn each_mark_takes_a_packet_and_the_first_ends_slow_start() {
        let mut tbtcp = Tbtcp::new(&Params::default());
        let mut window = Window::initial(100);
        tbtcp.on_ack(&mut window, &acked(0, 10));
        assert_eq!(window.packets, 110);
        let three = Acked {
            marked: 3,
            ..acked(0, 10)
        };
        tbtcp.on_ack(&mut window, &three);
        assert_eq!((window.packets, window.in_slow_start()), (107, false));
        for _ in 0..107 {
            tbtcp.on_ack(&mut window, &acked(0, 10));
        }
        assert_eq!(window.packets, 108);
    }
}
