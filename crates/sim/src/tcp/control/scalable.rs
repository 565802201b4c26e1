//! Scalable TCP: a hundredth of a packet for each acknowledged, an eighth less at a loss (T. Kelly,
//! CCR 33(2), 2003, with Linux's numbers).

use super::{Acked, Growth, Window, WindowControl};

/// Packets to be acknowledged for one more, at most.
const PER: u32 = 100;

#[derive(Debug, Clone, Default)]
pub struct Scalable {
    growth: Growth,
}

impl WindowControl for Scalable {
    fn on_ack(&mut self, window: &mut Window, acked: &Acked) {
        if acked.may_grow {
            let per = |packets: u32| packets.min(PER);
            self.growth.on_ack(window, acked.packets, per);
        }
    }

    fn on_loss(&mut self, window: &Window) -> u32 {
        (window.packets - window.packets / 8).max(2)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::acked;
    use super::*;

    #[test]
    fn growth_is_a_per_cent_and_a_loss_takes_an_eighth() {
        let mut scalable = Scalable::default();
        let mut window = Window {
            packets: 800,
            slow_start_below: 800,
        };
        scalable.on_ack(&mut window, &acked(0, 800));
        assert_eq!(window.packets, 808);
        assert_eq!(scalable.on_loss(&window), 707);
    }
}
