// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! DCTCP: reduces the window in proportion to the fraction of marked packets, once per window (RFC 8257, as
//! in Linux).

use super::{Acked, Entry, Growth, Linux, TcpAlgorithm, Window, WindowControl};
use crate::parameter::{parameters, Bounds, PART};
use crate::FAIR;

parameters! { "dctcp", {
    "g" gain: f64 = 1.0 / 16.0, PART, "Weight in alpha of the latest window's fraction of marked packets.";
    "eta" eta: f64 = 1.0, Bounds::Fraction(0.001, 1.0), "Growth of the window in a round trip after slow start, in packets. 1 as in the RFC; 0.1 is DCTCP with the Reduced Additive Increase of Tiny Buffer TCP.";
} }

/// As the registry has it.
pub(super) const ENTRY: Entry = Entry {
    name: "dctcp",
    about: "DCTCP (RFC 8257), as in Linux",
    linux: Linux::Has,
    marks: true,
    short_segments: false,
    parameters: PARAMETERS,
    ordered: &[],
    fairness: FAIR,
    fills: crate::FILLED,
    algorithm: &|| TcpAlgorithm::Dctcp(Params::default()),
};

#[derive(Debug, Clone)]
pub struct Dctcp {
    params: Params,
    alpha: f64,
    growth: Growth,
    /// Packets of this window that were delivered, and marked.
    delivered: u32,
    marked: u32,
    /// The window ends when this packet is acknowledged.
    window_end: u32,
    /// No further cut until this one is.
    reduced_until: Option<u32>,
}

impl Dctcp {
    pub fn new(params: &Params) -> Dctcp {
        Dctcp {
            params: *params,
            alpha: 1.0, // dctcp_alpha_on_init
            growth: Growth::default(),
            delivered: 0,
            marked: 0,
            window_end: 0,
            reduced_until: None,
        }
    }

    /// RFC 8257 §3.3.
    fn end_window(&mut self, acked: &Acked) {
        let part = f64::from(self.marked) / f64::from(self.delivered.max(1));
        let g = self.params.gain;
        self.alpha = (1.0 - g) * self.alpha + g * part.min(1.0);
        (self.delivered, self.marked) = (0, 0);
        self.window_end = acked.next;
    }
}

impl WindowControl for Dctcp {
    fn on_ack(&mut self, window: &mut Window, acked: &Acked) {
        self.delivered += acked.packets;
        self.marked += acked.marked;
        if acked.cumulative > self.window_end {
            self.end_window(acked);
        }
        if self.reduced_until.is_some_and(|end| acked.cumulative > end) {
            self.reduced_until = None;
        }
        if acked.marked > 0 && self.reduced_until.is_none() {
            let kept = f64::from(window.packets) * (1.0 - self.alpha / 2.0);
            window.packets = (kept as u32).max(2);
            window.slow_start_below = window.packets;
            self.reduced_until = Some(acked.next);
        }
        if self.reduced_until.is_none() && acked.may_grow {
            let per = |packets| (f64::from(packets) / self.params.eta) as u32;
            self.growth.on_ack(window, acked.packets, per);
        }
    }

    fn on_loss(&mut self, window: &Window) -> u32 {
        (window.packets / 2).max(2)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::acked;
    use super::*;

    #[test]
    fn one_cut_a_window_by_half_of_alpha() {
        let mut dctcp = Dctcp::new(&Params::default());
        let mut window = Window {
            packets: 100,
            slow_start_below: 100,
        };
        let mark = |cumulative| Acked {
            marked: 1,
            cumulative,
            next: 200,
            ..acked(0, 1)
        };
        dctcp.on_ack(&mut window, &mark(1));
        // alpha = 15/16 + 1/16: the first packet ends the first window, wholly marked.
        assert_eq!(window.packets, 50);
        dctcp.on_ack(&mut window, &mark(2));
        assert_eq!(window.packets, 50);
        dctcp.on_ack(&mut window, &mark(201));
        assert!(window.packets < 50);
    }

    #[test]
    fn alpha_fades_without_marks() {
        let mut dctcp = Dctcp::new(&Params::default());
        let mut window = Window::initial(10);
        for n in 1..=16 {
            let unmarked = Acked {
                cumulative: n,
                next: n,
                ..acked(0, 1)
            };
            dctcp.on_ack(&mut window, &unmarked);
        }
        assert!((dctcp.alpha - (15.0f64 / 16.0).powi(16)).abs() < 1e-12);
    }
}
