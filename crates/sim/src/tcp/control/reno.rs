//! NewReno: a packet a round trip, half at a loss (RFC 5681 §3.1, RFC 6582).

use super::{Acked, Growth, Window, WindowControl};

#[derive(Debug, Clone, Default)]
pub struct Reno {
    growth: Growth,
}

impl WindowControl for Reno {
    fn on_ack(&mut self, window: &mut Window, acked: &Acked) {
        if acked.may_grow {
            self.growth.on_ack(window, acked.packets, |packets| packets);
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
    fn a_round_trip_adds_a_packet_and_a_loss_halves() {
        let mut reno = Reno::default();
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
