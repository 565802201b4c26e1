// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Switches' memories. The lossless one is the HPCC authors' model of a shared-memory chip. Bytes count for their ingress
//! port. They fill the port's reserve, then the shared pool up to a dynamic threshold (Choudhury and Hahne,
//! 1998), then the port's headroom, which has room for the packets in flight while a pause frame travels.

/// Reserve of each ingress port.
pub(super) const RESERVE: u64 = 4 * 1024;
/// A paused port resumes when it is this far below the threshold.
const RESUME_OFFSET: u64 = 3 * 1024;

/// One switch's memory.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Memory {
    /// Memory that ports share; if lossless, without reserves and headrooms.
    pub shared: u64,
    /// Used bytes of it.
    pub used: u64,
}

/// `bytes` times 2 to minus `shift`.
pub(super) fn shifted(bytes: u64, shift: i8) -> u64 {
    match shift {
        0.. => bytes >> shift,
        _ => bytes << -shift,
    }
}

/// The bytes in a switch that came in at one port: in its reserve, the shared pool and its headroom.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ingress {
    /// PFC: this end has paused the other's data class.
    pub(super) pausing: bool,
    /// Alpha of the dynamic threshold is 2^-shift.
    pub(super) threshold_shift: i8,
    /// Bytes in reserve and shared pool; bytes in the headroom, and its size.
    pub(super) pool_bytes: u64,
    pub(super) headroom_used: u64,
    pub(super) headroom: u64,
}

impl Ingress {
    pub fn shared_used(&self) -> u64 {
        self.pool_bytes.saturating_sub(RESERVE)
    }

    pub fn threshold(&self, memory: &Memory) -> u64 {
        shifted(memory.shared - memory.used, self.threshold_shift)
    }

    /// Adds a packet that came in here, if there is room.
    pub fn admit(&mut self, memory: &mut Memory, bytes: u64) -> bool {
        let threshold = self.threshold(memory);
        let above_reserve = (self.pool_bytes + bytes).saturating_sub(RESERVE);
        let taken = above_reserve.min(bytes);
        // The threshold is above the free memory only where alpha is above 1.
        let is_free = taken <= memory.shared - memory.used;
        let fits = is_free && bytes + self.shared_used() <= threshold;
        if bytes + self.headroom_used > self.headroom && !fits {
            return false;
        }
        if is_free && above_reserve <= threshold {
            self.pool_bytes += bytes;
            memory.used += taken;
        } else {
            self.headroom_used += bytes;
        }
        true
    }

    /// Adds a packet to the headroom, which is full.
    pub fn admit_beyond(&mut self, bytes: u64) {
        self.headroom_used += bytes;
    }

    /// Removes a packet, from the headroom first.
    pub fn release(&mut self, memory: &mut Memory, bytes: u64) {
        let from_headroom = self.headroom_used.min(bytes);
        let rest = bytes - from_headroom;
        memory.used -= self.shared_used().min(rest);
        self.headroom_used -= from_headroom;
        self.pool_bytes -= rest;
    }

    pub fn is_pausing(&self) -> bool {
        self.pausing
    }

    /// With so many bytes only, none of them in the headroom.
    pub fn with_only(self, pool_bytes: u64) -> Ingress {
        Ingress {
            pool_bytes,
            headroom_used: 0,
            ..self
        }
    }

    pub fn must_pause(&self, memory: &Memory) -> bool {
        !self.pausing && (self.headroom_used > 0 || self.shared_used() >= self.threshold(memory))
    }

    pub fn may_resume(&self, memory: &Memory) -> bool {
        let used = self.shared_used();
        self.pausing
            && self.headroom_used == 0
            && (used == 0 || used + RESUME_OFFSET <= self.threshold(memory))
    }
}
