// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! CoDel at the head of each connection's queue, as in sch_fq_codel (RFC 8289, RFC 8290). If segments wait
//! longer than the target for a whole interval, it drops segments at increasing frequency.
//!
//! Whole segments are dropped, as Linux drops its offloaded segments. There are no marks, as by default.

use super::Kernels;
use crate::host::config::MSS;
use crate::host::site::Site;
use onramp_units::{Sim, Span, Time};

/// Those of Linux and RFC 8289 §4.2 and §4.3.
const TARGET: Span = Span::from_ms(5);
const INTERVAL: Span = Span::from_ms(100);
/// A queue of at most one full packet is not a standing queue.
const MTU: u32 = 1514;

/// State of one queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct Codel {
    /// Time at which the delay will have been above the target for an interval.
    first_above: Option<Time<Sim>>,
    dropping: bool,
    next_drop: Time<Sim>,
    /// Drops of this phase, and of the previous one.
    count: u32,
    last_count: u32,
}

impl Codel {
    pub const NEW: Codel = Codel {
        first_above: None,
        dropping: false,
        next_drop: Time::ZERO,
        count: 0,
        last_count: 0,
    };

    /// Whether the head, which arrived at `since`, is dropped now. It is called for the next head until it
    /// returns false. `backlog` includes the head.
    pub fn drops(&mut self, now: Time<Sim>, since: Time<Sim>, backlog: u32) -> bool {
        let may_drop = self.has_stood(now, now - since, backlog);
        if !may_drop {
            self.dropping = false;
        } else if self.dropping {
            if now < self.next_drop {
                return false;
            }
            self.count += 1;
            self.next_drop += self.gap();
            return true;
        } else {
            self.start_dropping(now);
            return true;
        }
        false
    }

    /// RFC 8289 §5.5: dodequeue.
    fn has_stood(&mut self, now: Time<Sim>, delay: Span, backlog: u32) -> bool {
        if delay < TARGET || backlog <= MTU {
            self.first_above = None;
            return false;
        }
        now >= *self.first_above.get_or_insert(now + INTERVAL)
    }

    /// A phase that starts soon after another continues at about its rate.
    fn start_dropping(&mut self, now: Time<Sim>) {
        self.dropping = true;
        let of_last = self.count - self.last_count;
        let soon = now - self.next_drop < INTERVAL * 16;
        self.count = if of_last > 1 && soon { of_last } else { 1 };
        self.last_count = self.count;
        self.next_drop = now + self.gap();
    }

    /// RFC 8289 §5.3: control law.
    fn gap(&self) -> Span {
        let ps = INTERVAL.as_ps() as f64 / libm::sqrt(f64::from(self.count));
        Span::from_ps(ps as i64)
    }
}

impl Kernels {
    /// Drops segments that have waited too long from the head of the connection at `place`. Returns whether
    /// its queue is empty.
    pub(super) fn drop_what_waited(&mut self, site: &mut Site, host: u32, place: usize) -> bool {
        let id = self.hosts[host as usize].entries[place].connection;
        let connection = &mut self.outgoing[id];
        let mut dropped = 0;
        while let Some(&(since, segment)) = connection.queue.front() {
            let backlog = connection
                .queue
                .iter()
                .map(|(_, segment)| segment.count)
                .sum::<u32>();
            let backlog = backlog * u32::from(MSS);
            if !connection.codel.drops(site.net.now, since, backlog) {
                break;
            }
            connection.queue.pop_front();
            connection.queued -= segment.count;
            dropped += u64::from(segment.count);
        }
        let is_empty = connection.queue.is_empty();
        if dropped > 0 {
            // TCP gets its room back after the queueing discipline returns.
            connection.resume_at = Some(site.net.now);
            site.net.counters.host_drops += dropped;
            self.set_timer(site, id);
        }
        if is_empty {
            self.hosts[host as usize].entries.remove(place);
        }
        is_empty
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: u32 = 100_000;

    fn at(ms: i64) -> Time<Sim> {
        Time::ZERO + Span::from_ms(ms)
    }

    /// Times of drops when a segment leaves each millisecond after having waited `waited`.
    fn drops(codel: &mut Codel, from_ms: i64, to_ms: i64, waited: Span) -> Vec<i64> {
        let drops = |ms: &i64| codel.drops(at(*ms), at(*ms) - waited, FULL);
        (from_ms..to_ms).filter(drops).collect()
    }

    #[test]
    fn drops_come_closer_as_the_square_root_of_their_number() {
        let mut codel = Codel::NEW;
        let times = drops(&mut codel, 1000, 1500, Span::from_ms(6));
        // 100 ms, then 100, 100/sqrt 2, 100/sqrt 3 ... later, at the next whole millisecond.
        assert_eq!(times, [1100, 1200, 1271, 1329, 1379, 1424, 1464]);
    }

    #[test]
    fn short_delays_and_short_queues_lose_nothing() {
        let mut codel = Codel::NEW;
        assert!(drops(&mut codel, 1000, 2000, Span::from_us(4999)).is_empty());
        assert!(!(0..1000).any(|ms| codel.drops(at(3000 + ms), at(0), MTU)));
    }

    #[test]
    fn one_short_delay_ends_a_phase_and_the_next_goes_on_at_its_rate() {
        let mut codel = Codel::NEW;
        drops(&mut codel, 1000, 1500, Span::from_ms(6));
        assert!(!codel.drops(at(1500), at(1500), FULL));
        let again = drops(&mut codel, 1501, 1700, Span::from_ms(6));
        // Six drops of the last phase: 100 ms, then 100/sqrt 6.
        assert_eq!(again[..2], [1601, 1642]);
    }
}
