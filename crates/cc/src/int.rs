// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! In-band telemetry: each switch writes 64 bits into a packet, as in HPCC's header (Li et al., SIGCOMM 2019,
//! fig. 7): 24 bits of time, 20 of bytes sent, 17 of queue, 3 of rate.

use onramp_units::{Rate, Sim, Time};

/// Most hops a packet's telemetry holds.
pub const MAX_INT_HOPS: usize = 5;
const TIME_BITS: u32 = 24;
const BYTES_BITS: u32 = 20;
const QUEUE_BITS: u32 = 17;
/// Number of rates that three bits can encode.
const MAX_RATES: usize = 8;

/// What one switch wrote, from the highest bit: number of the rate; ns of its clock, modulo 2^24; units
/// of bytes sent, modulo 2^20; units of bytes waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IntHop(u64);

impl IntHop {
    #[inline]
    fn rate(self) -> usize {
        (self.0 >> (TIME_BITS + BYTES_BITS + QUEUE_BITS)) as usize
    }

    #[inline]
    fn time(self) -> u32 {
        folded(self.0 >> (BYTES_BITS + QUEUE_BITS), TIME_BITS) as u32
    }

    #[inline]
    fn bytes(self) -> u32 {
        folded(self.0 >> QUEUE_BITS, BYTES_BITS) as u32
    }

    #[inline]
    fn queue(self) -> u64 {
        folded(self.0, QUEUE_BITS)
    }
}

#[inline]
fn folded(value: u64, bits: u32) -> u64 {
    value & ((1 << bits) - 1)
}

/// The telemetry of all switches in one packet, in one cache line.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
pub struct IntStack {
    hops: [IntHop; MAX_INT_HOPS],
    count: u8,
}

impl IntStack {
    #[inline]
    pub fn push(&mut self, hop: IntHop) {
        self.hops[usize::from(self.count) % MAX_INT_HOPS] = hop;
        self.count += 1;
    }

    /// All hops, empty ones too, in network order: rate, time, bytes sent, queue.
    pub fn to_bytes(self) -> impl Iterator<Item = u8> {
        self.hops.into_iter().flat_map(|hop| hop.0.to_be_bytes())
    }

    #[inline]
    pub fn hops(&self) -> &[IntHop] {
        &self.hops[..usize::from(self.count).min(MAX_INT_HOPS)]
    }
}

/// Units and rates that the fields mean.
#[derive(Debug, Clone)]
pub struct IntFormat {
    byte_unit: u64,
    queue_unit: u64,
    /// An array, because the field of a hop cannot name more: no index needs a check.
    rates: [Rate; MAX_RATES],
}

/// More rates than the field can name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found} different link rates, above max {MAX_RATES} that the telemetry can name")]
pub struct TooManyRates {
    found: usize,
}

impl IntFormat {
    /// For a network of links with `rates`, where hosts send at `line`: units of 128 B and 80 B at
    /// 25 Gbit/s, and in proportion above.
    pub fn new(line: Rate, rates: &[Rate]) -> Result<IntFormat, TooManyRates> {
        let found = rates.len();
        if found > MAX_RATES {
            return Err(TooManyRates { found });
        }
        let rates = std::array::from_fn(|n| rates.get(n).copied().unwrap_or(line));
        let times = (line.bits_per_s() / 25_000_000_000).max(1);
        Ok(IntFormat {
            byte_unit: 128 * times,
            queue_unit: 80 * times,
            rates,
        })
    }

    #[inline]
    pub fn hop(&self, now: Time<Sim>, sent: u64, queue: u64, rate: usize) -> IntHop {
        let time = folded((now.ticks() / 1000) as u64, TIME_BITS);
        let bytes = folded(sent / self.byte_unit, BYTES_BITS);
        let queue = folded(queue / self.queue_unit, QUEUE_BITS);
        let with_time = (rate as u64) << TIME_BITS | time;
        let with_bytes = with_time << BYTES_BITS | bytes;
        IntHop(with_bytes << QUEUE_BITS | queue)
    }

    /// ns between two visits of the same port.
    #[inline]
    pub fn ns_between(&self, earlier: IntHop, later: IntHop) -> u64 {
        wrapped(earlier.time(), later.time(), TIME_BITS)
    }

    /// Bytes that the port sent between two visits.
    #[inline]
    pub fn bytes_between(&self, earlier: IntHop, later: IntHop) -> u64 {
        wrapped(earlier.bytes(), later.bytes(), BYTES_BITS) * self.byte_unit
    }

    /// Bytes that waited in the port.
    #[inline]
    pub fn queue_bytes(&self, hop: IntHop) -> u64 {
        hop.queue() * self.queue_unit
    }

    /// Rate of the port's line.
    #[inline]
    pub fn rate(&self, hop: IntHop) -> Rate {
        self.rates[hop.rate()]
    }
}

#[inline]
fn wrapped(earlier: u32, later: u32, bits: u32) -> u64 {
    u64::from(later.wrapping_sub(earlier) & ((1 << bits) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_wrap_and_come_in_units() {
        let rate: Rate = "100 Gbit/s".parse().unwrap();
        let format = IntFormat::new(rate, &[rate]).unwrap();
        let at = |ns: i64| Time::from_ticks(ns * 1000);
        let a = format.hop(at((1 << 24) - 10), 512 * ((1 << 20) - 1), 700, 0);
        let b = format.hop(at((1 << 24) + 5), 512 * (1 << 20), 0, 0);
        assert_eq!(format.ns_between(a, b), 15);
        assert_eq!(format.bytes_between(a, b), 512);
        assert_eq!(format.queue_bytes(a), 640, "80 B x 4 at 100 Gbit/s");
        assert_eq!(format.rate(b), rate);
    }
}
