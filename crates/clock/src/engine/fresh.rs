// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Which messages are new: refuses repeated, reordered and replayed ones by their numbers. Answers name the number of
//! the message that they answer, so a recorded one is refused even if its sender is silent.

/// A member that was silent for this time may have restarted with a clock that was set back.
const SILENT_NS: i64 = 5_000_000_000;

/// How a message relates to the last one of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Age {
    New,
    Repeated,
    Stale,
}

/// The last message of one kind from one host.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Fresh {
    last: u64,
    at_mono_ns: i64,
}

impl Fresh {
    /// The number of the last message; 0 before the first.
    pub fn newest(&self) -> u64 {
        self.last
    }

    /// New if the number is above all earlier ones, or the host was silent for long.
    pub fn accept(&mut self, number: u64, now: i64) -> Age {
        if number <= self.last && now - self.at_mono_ns <= SILENT_NS {
            let again = number == self.last;
            return if again { Age::Repeated } else { Age::Stale };
        }
        *self = Fresh {
            last: number,
            at_mono_ns: now,
        };
        Age::New
    }
}

/// Windows in which an answer must come: the reports of four of them may be lost.
const WINDOWS: usize = 5;

/// The numbers that this host has given to its own messages of the last windows.
pub(super) struct Recent {
    /// The last number of each window, the oldest first.
    ends: [u64; WINDOWS],
}

impl Recent {
    /// What is new of a host whose next number is above `seq`.
    pub fn since(seq: u64) -> Recent {
        Recent {
            ends: [seq; WINDOWS],
        }
    }

    /// A window ends with this number.
    pub fn end_window(&mut self, seq: u64) {
        self.ends.rotate_left(1);
        self.ends[WINDOWS - 1] = seq;
    }

    /// Whether a message of the last windows or of the present one had this number; `seq` is the newest.
    pub fn has(&self, number: u64, seq: u64) -> bool {
        self.ends[0] < number && number <= seq
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 100_000_000_000;

    #[test]
    fn numbers_grow_or_the_speaker_was_silent() {
        let mut fresh = Fresh::default();
        assert_eq!(fresh.accept(5, NOW), Age::New);
        assert_eq!(fresh.accept(5, NOW), Age::Repeated);
        assert_eq!(fresh.accept(4, NOW + 1), Age::Stale);
        assert_eq!(fresh.accept(6, NOW + 2), Age::New);
        assert_eq!(fresh.accept(1, NOW + SILENT_NS), Age::Stale);
        // It started again with a clock set back.
        assert_eq!(fresh.accept(1, NOW + 3 + SILENT_NS), Age::New);
    }

    #[test]
    fn a_number_is_recent_for_five_windows() {
        let mut recent = Recent::since(100);
        assert!(!recent.has(100, 100), "of the host before it restarted");
        assert!(!recent.has(101, 100), "given to no message yet");
        for window in 0..WINDOWS as u64 {
            assert!(recent.has(101, 110 + window));
            recent.end_window(110 + window);
        }
        assert!(!recent.has(101, 120) && !recent.has(110, 120));
        assert!(recent.has(111, 120) && recent.has(120, 120));
    }
}
