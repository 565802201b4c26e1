// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Makes flows of what looks see: a connection's bytes without a longer pause. Pure.
use std::collections::HashMap;

use onramp_status::Ends;
use onramp_trace::Delays;

use crate::datapath::Seen;

/// A longer flow is written in pieces, so that it is in the trace before it ends.
const LONGEST_NS: i64 = 10_000_000_000;

/// A flow that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Past {
    pub ends: Ends,
    pub start_mono_ns: i64,
    pub duration_ns: i64,
    pub size_bytes: u64,
    pub delays: Option<Delays>,
    pub looks_held: u32,
}

/// What one look at a connection gives.
#[derive(Debug, Default)]
pub struct Step {
    pub past: Vec<Past>,
    /// Payload since the look before.
    pub new_bytes: u64,
    /// A delay that no look has seen before.
    pub delay_ns: Option<i64>,
    pub is_held: bool,
}

/// All connections.
pub struct Follow {
    gap_ns: i64,
    known: HashMap<Ends, Connection>,
}

/// A connection between two looks.
struct Connection {
    looked_mono_ns: i64,
    sent_bytes: u64,
    next_seq: u32,
    sampled_mono_ns: i64,
    open: Option<Open>,
}

/// A flow that may go on.
struct Open {
    start_mono_ns: i64,
    end_mono_ns: i64,
    size_bytes: u64,
    delays_ns: Vec<i64>,
    looks_held: u32,
}

impl Open {
    fn at(mono_ns: i64) -> Open {
        Open {
            start_mono_ns: mono_ns,
            end_mono_ns: mono_ns,
            size_bytes: 0,
            delays_ns: vec![],
            looks_held: 0,
        }
    }

    fn past(mut self, ends: Ends) -> Past {
        Past {
            ends,
            start_mono_ns: self.start_mono_ns,
            duration_ns: (self.end_mono_ns - self.start_mono_ns).max(0),
            size_bytes: self.size_bytes,
            delays: Delays::of(&mut self.delays_ns),
            looks_held: self.looks_held,
        }
    }
}

impl Follow {
    pub fn new(gap_ns: i64) -> Follow {
        Follow {
            gap_ns,
            known: HashMap::new(),
        }
    }

    /// A look at one connection.
    pub fn step(&mut self, seen: &Seen, now_mono_ns: i64) -> Step {
        let mut step = Step {
            is_held: seen.held_until_mono_ns > now_mono_ns,
            ..Step::default()
        };
        // Ports that are used again: the entry has begun again.
        let again = |known: &Connection| seen.sent_bytes < known.sent_bytes;
        if self.known.get(&seen.ends).is_some_and(again) {
            let before = self.known.remove(&seen.ends).and_then(|known| known.open);
            step.past.extend(before.map(|open| open.past(seen.ends)));
        }
        let known = self.known.entry(seen.ends).or_insert(Connection {
            looked_mono_ns: now_mono_ns,
            sent_bytes: 0,
            next_seq: seen.next_seq.wrapping_sub(seen.sent_bytes as u32),
            sampled_mono_ns: i64::MIN,
            open: None,
        });
        known.send(seen, self.gap_ns, &mut step);
        known.sample(seen, &mut step);
        known.close(seen.ends, now_mono_ns, self.gap_ns, &mut step);
        known.looked_mono_ns = now_mono_ns;
        step
    }

    /// Ends the connections that were not seen now: they have left the table.
    pub fn forget(&mut self, now_mono_ns: i64) -> Vec<Past> {
        let is_gone = |_: &Ends, known: &mut Connection| known.looked_mono_ns < now_mono_ns;
        let gone = self.known.extract_if(is_gone);
        gone.filter_map(|(ends, known)| Some(known.open?.past(ends)))
            .collect()
    }

    /// Ends all connections.
    pub fn end(&mut self) -> Vec<Past> {
        self.forget(i64::MAX)
    }
}

impl Connection {
    /// Adds the bytes since the look before, at the times of the sampled segments among them.
    fn send(&mut self, seen: &Seen, gap_ns: i64, step: &mut Step) {
        let (from, new) = (self.next_seq, seen.next_seq.wrapping_sub(self.next_seq));
        let sends = seen.sent_bytes != self.sent_bytes;
        (self.next_seq, self.sent_bytes) = (seen.next_seq, seen.sent_bytes);
        if !sends || new > u32::MAX / 2 {
            return;
        }
        step.new_bytes = new.into();
        // Up to here the bytes belong to a flow.
        let mut done = 0;
        for segment in &seen.sent {
            let first = segment.seq.wrapping_sub(from);
            if first >= new {
                continue; // of a look before
            }
            let end = first.saturating_add(segment.len_bytes).clamp(done, new);
            // Bytes between two sampled segments belong to the flow that is open, or else to the one that begins.
            let between = match &mut self.open {
                Some(open) => {
                    open.size_bytes += u64::from(first.saturating_sub(done));
                    0
                }
                None => first.saturating_sub(done),
            };
            let sent = end - done.max(first.min(end)) + between;
            self.add(seen.ends, segment.mono_ns, sent, gap_ns, step);
            done = end;
        }
        if done < new {
            self.add(seen.ends, seen.last_mono_ns, new - done, gap_ns, step);
        }
    }

    /// Adds bytes that left at this time. A flow that has paused before ends, and another begins.
    fn add(&mut self, ends: Ends, mono_ns: i64, bytes: u32, gap_ns: i64, step: &mut Step) {
        let pauses = |open: &mut Open| mono_ns - open.end_mono_ns > gap_ns;
        if let Some(open) = self.open.take_if(pauses) {
            step.past.push(open.past(ends));
        }
        let open = self.open.get_or_insert_with(|| Open::at(mono_ns));
        open.size_bytes += u64::from(bytes);
        open.end_mono_ns = open.end_mono_ns.max(mono_ns);
    }

    /// Takes the newest delay, if no look has seen it.
    fn sample(&mut self, seen: &Seen, step: &mut Step) {
        let Some((sent_mono_ns, owd_ns)) = seen.sample else {
            return;
        };
        if sent_mono_ns == self.sampled_mono_ns {
            return;
        }
        self.sampled_mono_ns = sent_mono_ns;
        step.delay_ns = Some(owd_ns);
        let of_it = |open: &&mut Open| sent_mono_ns >= open.start_mono_ns;
        if let Some(open) = self.open.as_mut().filter(of_it) {
            open.delays_ns.push(owd_ns);
        }
    }

    /// Ends the open flow if it pauses, or lasts long.
    fn close(&mut self, ends: Ends, now_mono_ns: i64, gap_ns: i64, step: &mut Step) {
        let Some(open) = &mut self.open else {
            return;
        };
        open.looks_held += u32::from(step.is_held);
        let pauses = !step.is_held && now_mono_ns - open.end_mono_ns > gap_ns;
        let is_long = now_mono_ns - open.start_mono_ns > LONGEST_NS;
        if step.new_bytes == 0 && pauses || is_long {
            step.past
                .extend(self.open.take().map(|open| open.past(ends)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datapath::Sent;

    const MS: i64 = 1_000_000;

    /// A connection that has sent so much, by these sampled segments of 1,000 B: time in ms, first byte.
    fn seen(sent_bytes: u32, last_ms: i64, sent: &[(i64, u32)]) -> Seen {
        let base = u32::MAX - 20_000; // so that sequence numbers wrap
        let segment = |&(ms, first): &(i64, u32)| Sent {
            mono_ns: ms * MS,
            seq: base.wrapping_add(first),
            len_bytes: 1_000,
        };
        Seen {
            ends: Ends {
                from: "10.0.0.1:1".parse().unwrap(),
                to: "10.0.0.2:2".parse().unwrap(),
            },
            last_mono_ns: last_ms * MS,
            sent_bytes: sent_bytes.into(),
            next_seq: base.wrapping_add(sent_bytes),
            sent: sent.iter().map(segment).collect(),
            sample: None,
            held_until_mono_ns: 0,
        }
    }

    /// Start and end in ms, and size.
    fn flows(past: &[Past]) -> Vec<(i64, i64, u64)> {
        let flow = |past: &Past| {
            let start = past.start_mono_ns / MS;
            (start, start + past.duration_ns / MS, past.size_bytes)
        };
        past.iter().map(flow).collect()
    }

    #[test]
    fn a_pause_between_sampled_segments_ends_a_flow() {
        let mut follow = Follow::new(MS);
        let sent = [(10, 0), (11, 14_000), (20, 40_000), (21, 54_000)];
        let step = follow.step(&seen(55_000, 21, &sent), 100 * MS);
        assert_eq!(flows(&step.past), [(10, 11, 40_000)]);
        assert_eq!(step.new_bytes, 55_000);
        let step = follow.step(&seen(55_000, 21, &sent), 200 * MS);
        assert_eq!(flows(&step.past), [(20, 21, 15_000)]);
        assert!(follow.end().is_empty());
    }

    #[test]
    fn short_messages_without_a_sample_are_seen_at_their_last_segment() {
        let mut follow = Follow::new(MS);
        assert!(follow.step(&seen(500, 10, &[]), 50 * MS).past.is_empty());
        let step = follow.step(&seen(900, 120, &[]), 150 * MS);
        assert_eq!(flows(&step.past), [(10, 10, 500)]);
        assert_eq!(flows(&follow.end()), [(120, 120, 400)]);
    }

    #[test]
    fn a_flow_of_many_looks_is_one_and_a_long_one_is_cut() {
        let mut follow = Follow::new(MS);
        let mut past = vec![];
        for look in 1..=150_i64 {
            let (ms, bytes) = (100 * look, 10_000 * look as u32);
            let sent = [(ms, bytes - 1_000)];
            past.extend(follow.step(&seen(bytes, ms, &sent), ms * MS).past);
        }
        // The samples are 100 ms apart, above the gap.
        assert_eq!(past.len(), 149);
        let mut follow = Follow::new(200 * MS);
        let mut past = vec![];
        for look in 1..=150_i64 {
            let (ms, bytes) = (100 * look, 10_000 * look as u32);
            past.extend(follow.step(&seen(bytes, ms, &[]), ms * MS).past);
        }
        assert_eq!(flows(&past), [(100, 10_200, 1_020_000)]);
        assert_eq!(past[0].size_bytes + follow.end()[0].size_bytes, 1_500_000);
    }

    #[test]
    fn ports_that_are_used_again_are_another_flow() {
        let mut follow = Follow::new(MS);
        follow.step(&seen(50_000, 10, &[(10, 0)]), 50 * MS);
        let step = follow.step(&seen(3_000, 60, &[(60, 0)]), 100 * MS);
        assert_eq!(step.past[0].size_bytes, 50_000);
        assert_eq!(follow.end()[0].size_bytes, 3_000);
    }

    #[test]
    fn retransmissions_are_no_new_bytes() {
        let mut follow = Follow::new(MS);
        follow.step(&seen(50_000, 10, &[(10, 0)]), 10 * MS);
        let mut again = seen(50_000, 11, &[(10, 0)]);
        again.sent_bytes += 1_448;
        let step = follow.step(&again, 11 * MS);
        assert_eq!(step.new_bytes, 0);
        assert_eq!(follow.end()[0].size_bytes, 50_000);
    }

    #[test]
    fn delays_and_holds_belong_to_the_flow_that_is_open() {
        let mut follow = Follow::new(MS);
        let with = |sent: Seen, delay_us: i64, held_ms: i64| Seen {
            sample: Some((sent.last_mono_ns, delay_us * 1_000)),
            held_until_mono_ns: held_ms * MS,
            ..sent
        };
        let first = with(seen(1_000, 10, &[(10, 0)]), 70, 200);
        assert_eq!(follow.step(&first, 10 * MS).delay_ns, Some(70_000));
        let step = follow.step(&first, 50 * MS);
        assert!(step.is_held && step.past.is_empty() && step.delay_ns.is_none());
        let second = with(seen(2_000, 51, &[(10, 0), (51, 1_000)]), 90, 0);
        let past = follow.step(&second, 52 * MS).past;
        assert_eq!(past[0].delays.unwrap().p99_ns, 70_000);
        assert_eq!(past[0].looks_held, 2);
        assert_eq!(follow.end()[0].delays.unwrap().samples, 1);
    }

    #[test]
    fn a_connection_that_left_the_table_ends() {
        let mut follow = Follow::new(MS);
        follow.step(&seen(1_000, 10, &[(10, 0)]), 10 * MS);
        assert!(follow.forget(10 * MS).is_empty());
        assert_eq!(flows(&follow.forget(11 * MS)), [(10, 10, 1_000)]);
        assert!(follow.known.is_empty());
    }
}
