// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What has been delivered, and the rate of it (Cheng et al., draft-cheng-iccrg-delivery-rate-estimation).

use super::{Outstanding, State};
use onramp_cc::tcp::RateSample;
use onramp_units::{Sim, Span, Time};

/// The deliveries of a connection.
#[derive(Debug)]
pub(super) struct Deliveries {
    /// Packets delivered so far, when the last was, and when the one was sent that this was about.
    pub packets: u64,
    at: Time<Sim>,
    first_sent_at: Time<Sim>,
    /// Too little was sent until this many are delivered.
    app_limited_until: u64,
    /// So far.
    transmissions: u32,
}

impl Default for Deliveries {
    fn default() -> Deliveries {
        Deliveries {
            packets: 0,
            at: Time::ZERO,
            first_sent_at: Time::ZERO,
            app_limited_until: 0,
            transmissions: 0,
        }
    }
}

impl Deliveries {
    /// There is too little data, while so many packets are in flight.
    pub fn limit(&mut self, in_flight: u32) {
        self.app_limited_until = self.packets + u64::from(in_flight);
    }

    /// So many packets have been delivered.
    pub fn add(&mut self, now: Time<Sim>, packets: u32) {
        if packets > 0 {
            self.packets += u64::from(packets);
            self.at = now;
        }
    }

    /// A packet as it is sent now. `is_idle`: nothing else is outstanding.
    pub fn sending(&mut self, now: Time<Sim>, again: bool, is_idle: bool) -> Outstanding {
        if is_idle {
            (self.at, self.first_sent_at) = (now, now);
        }
        self.transmissions += 1;
        Outstanding {
            sent_at: now,
            transmission: self.transmissions,
            state: State::Sent,
            again,
            delivered: self.packets,
            delivered_at: self.at,
            first_sent_at: self.first_sent_at,
            app_limited: self.packets < self.app_limited_until,
        }
    }

    /// Over the longer of the times in which packets were sent and delivered, up to the one that was sent last of those that
    /// an acknowledgement delivered.
    pub fn sample(
        &mut self,
        now: Time<Sim>,
        last: Option<Outstanding>,
        min_rtt: Option<Span>,
    ) -> RateSample {
        let Some(last) = last else {
            return RateSample::default();
        };
        self.first_sent_at = last.sent_at;
        let interval = (last.sent_at - last.first_sent_at).max(now - last.delivered_at);
        let packets = (self.packets - last.delivered) as f64;
        // Shorter than the shortest round trip: acknowledgements were held back.
        let valid = min_rtt.is_none_or(|min| interval >= min) && interval > Span::ZERO;
        RateSample {
            packets_per_s: valid.then(|| packets / interval.as_s_f64()),
            prior_delivered: last.delivered,
            app_limited: last.app_limited,
        }
    }
}
