// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! No congestion control: packets at a constant rate, as programs send them over UDP, for traffic that does not respond.
//! A lost packet is sent again in place of a new one, so a flow that never runs out of data has exactly this rate.

use super::{Acked, Entry, Linux, TcpAlgorithm, Window, WindowControl, PACKET_BYTES};
use crate::parameter::{kbit, parameters, STEP};
use onramp_units::{Bytes, Rate, Span};

const PACKET: Bytes = Bytes::new(PACKET_BYTES as u64);
/// Packets in flight: more than any rate needs.
const WINDOW: u32 = 1_000_000;

parameters! { "udp", {
    "rate" rate: Rate = kbit(10_000_000), STEP, "Rate of a flow, payload. A host's line may be slower.";
} }

/// As the registry has it. Two flows at the line's rate share it by chance.
pub(super) const ENTRY: Entry = Entry {
    name: "udp",
    about: "None: a constant rate that responds to nothing",
    linux: Linux::Lacks,
    marks: false,
    short_segments: false,
    parameters: PARAMETERS,
    ordered: &[],
    fairness: 0.5,
    fills: crate::FILLED,
    algorithm: &|| TcpAlgorithm::Udp(Params::default()),
};

#[derive(Debug, Clone)]
pub struct Udp {
    rate: Rate,
}

impl Udp {
    pub fn new(params: &Params) -> Udp {
        Udp { rate: params.rate }
    }
}

impl WindowControl for Udp {
    fn begin(&mut self, window: &mut Window) {
        window.packets = WINDOW;
    }

    fn on_ack(&mut self, window: &mut Window, _acked: &Acked) {
        window.packets = WINDOW;
    }

    fn on_loss(&mut self, _window: &Window) -> u32 {
        WINDOW
    }

    #[inline]
    fn owns_window(&self) -> bool {
        true
    }

    #[inline]
    fn clocks_gaps(&self) -> bool {
        true
    }

    #[inline]
    fn gap(&mut self, _number: u32) -> Option<Span> {
        Some(self.rate.time_to_send(PACKET))
    }

    #[inline]
    fn packets_per_s(&self, _smoothed_rtt: Span) -> Option<f64> {
        Some(self.rate.bits_per_s() as f64 / (PACKET.get() * 8) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_follows_after_the_time_of_one_at_the_rate() {
        let params = Params {
            rate: "11.584 Mbit/s".parse().unwrap(),
        };
        let mut udp = Udp::new(&params);
        let mut window = Window::initial(10);
        udp.begin(&mut window);
        assert_eq!(window.packets, WINDOW);
        assert_eq!(udp.gap(7), Some(Span::from_ms(1)));
    }
}
