// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The least delay to a host, as law/least.h keeps it: [`Least`].

use crate::raw;
use onramp_units::{Mono, Span, Time};

/// The least delay to one host in the last two windows of 15 s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Least(raw::onr_least);

impl Least {
    /// Nothing is known. The first window begins.
    pub fn beginning(now: Time<Mono>) -> Least {
        Least(raw::onr_least {
            window_mono_ns: now.ticks(),
            owd_min_ns: raw::ONR_NO_OWD as i64,
            owd_min_before_ns: raw::ONR_NO_OWD as i64,
        })
    }

    /// A flow to the host was sampled.
    pub fn sample(&mut self, now: Time<Mono>, owd: Span) {
        // SAFETY: the references are valid for the calls, which keep none of them.
        unsafe {
            if raw::onr_least_ends(&self.0, now.ticks()) != 0 {
                raw::onr_least_roll(&mut self.0, now.ticks());
            }
            raw::onr_least_sample(&mut self.0, owd.as_ns());
        }
    }

    /// The least delay, if there was a sample.
    pub fn owd(&self) -> Option<Span> {
        // SAFETY: as in `sample`.
        let ns = unsafe { raw::onr_least_owd(&self.0) };
        (ns != raw::ONR_NO_OWD as i64).then(|| Span::from_ns(ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_least_delay_is_forgotten_after_two_windows() {
        let at = |s: i64| Time::from_ticks(s * 1_000_000_000);
        let us = |least: &Least| least.owd().map(|owd| owd.as_ns() / 1_000);
        let mut least = Least::beginning(at(0));
        assert_eq!(us(&least), None);
        least.sample(at(1), Span::from_us(10));
        least.sample(at(2), Span::from_us(50));
        assert_eq!(us(&least), Some(10));
        least.sample(at(16), Span::from_us(50));
        assert_eq!(us(&least), Some(10));
        least.sample(at(31), Span::from_us(60));
        assert_eq!(us(&least), Some(50));
        least.sample(at(100), Span::from_us(70)); // after silence nothing before counts
        assert_eq!(us(&least), Some(70));
    }
}
