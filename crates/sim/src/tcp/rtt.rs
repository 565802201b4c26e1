// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Round-trip time and retransmission timeout (RFC 6298, with Linux's bounds).

use onramp_units::Span;

/// TCP_TIMEOUT_INIT, and TCP_RTO_MAX.
const INITIAL: Span = Span::from_s(1);
const MAX: Span = Span::from_s(120);

/// Estimates of one connection.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rtt {
    /// Smoothed; none before the first sample.
    pub smoothed: Option<Span>,
    variance: Span,
    /// The smallest seen of the last packets.
    pub min: Option<Span>,
    /// The last of a last packet.
    pub last: Option<Span>,
}

impl Rtt {
    /// An acknowledgement of several packets has a time for the first, which the receiver may have held back, and one for
    /// the last (tcp_clean_rtx_queue: seq_rtt_us and ca_rtt_us).
    pub fn sample(&mut self, first: Span, last: Span) {
        self.min = Some(self.min.map_or(last, |min| min.min(last)));
        self.last = Some(last);
        let rtt = first;
        match self.smoothed {
            None => {
                self.smoothed = Some(rtt);
                self.variance = rtt / 2;
            }
            Some(smoothed) => {
                let error = rtt - smoothed;
                let size = error.max(-error);
                self.variance = self.variance + (size - self.variance) / 4;
                self.smoothed = Some(smoothed + error / 8);
            }
        }
    }

    /// Until the first retransmission of what is not acknowledged. `least` (TCP_RTO_MIN) is the
    /// floor of the variance's part.
    pub fn timeout(&self, least: Span) -> Span {
        let Some(smoothed) = self.smoothed else {
            return INITIAL;
        };
        (smoothed + (self.variance * 4).max(least)).min(MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: Span = Span::from_ms(200);

    #[test]
    fn the_timeout_is_never_below_200_ms_above_the_rtt() {
        let mut rtt = Rtt::default();
        assert_eq!(rtt.timeout(LEAST), Span::from_s(1));
        rtt.sample(Span::from_us(100), Span::from_us(100));
        assert_eq!(rtt.timeout(LEAST), Span::from_us(200_100));
    }

    #[test]
    fn estimates_follow_rfc_6298() {
        let mut rtt = Rtt::default();
        rtt.sample(Span::from_ms(800), Span::from_ms(700));
        rtt.sample(Span::from_ms(1600), Span::from_ms(1600));
        // SRTT = 7/8 * 800 + 1/8 * 1600, RTTVAR = 3/4 * 400 + 1/4 * 800.
        assert_eq!(rtt.timeout(LEAST), Span::from_ms(900 + 4 * 500));
        assert_eq!(rtt.min, Some(Span::from_ms(700)));
    }
}
