//! Which messages are new: refuses repeated, reordered and replayed ones by their numbers.

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
}
