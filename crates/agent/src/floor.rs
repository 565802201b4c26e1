// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Whether the clock is good enough for the thresholds. A delay has the errors of two clocks. Where these alone can reach T,
//! flows would be held for nothing, and the stamps of this host would make its peers do the same.
//!
//! Does not: hold or pass anything. The daemon ends the lease of the data path (`law.threshold`), or passes the flows of a
//! class.
use std::{collections::BTreeMap, fmt};

use onramp_law::Law;
use onramp_status::BelowError;
use onramp_units::Span;
use tracing::{info, warn};

use crate::config::{ClockSource, Configuration, Others, Threshold};

/// Largest error of a delay with an automatic T, which grows with it: 6 sigma of a clock with a sigma of 100 us. Holding
/// could shorten only queues that are longer: 750 kB at 10 Gbit/s, more than a port usually has. And the peers' T does not
/// grow with the error of this host's stamps.
const MOST_ERROR: Span = Span::from_us(600);

/// Whose threshold it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Of {
    /// The configuration's.
    Law,
    /// That of the class with this name.
    Class(String),
}

impl fmt::Display for Of {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Of::Law => f.write_str("law.threshold"),
            Of::Class(name) => write!(f, "the threshold of class {name}"),
        }
    }
}

/// What a threshold demands from the clock.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Limit {
    of: Of,
    /// It is the configured T, not the limit of automatic ones.
    is_fixed: bool,
    most_error: Span,
}

impl Limit {
    /// Those of all thresholds in use.
    pub fn all(config: &Configuration) -> Vec<Limit> {
        let fixed = |of, t| Limit {
            of,
            is_fixed: true,
            most_error: t,
        };
        let held = config.classes.iter().filter(|class| class.hold);
        let is_used = config.others == Others::Hold || held.clone().any(|c| c.threshold.is_none());
        let of_law = match config.law.threshold {
            Threshold::Fixed(t) if is_used && config.law.name != Law::Off => {
                Some(fixed(Of::Law, t))
            }
            // The operator, who has stated the error of the other clocks, has accepted it.
            _ => (config.clock.source == ClockSource::Huygens).then_some(Limit {
                of: Of::Law,
                is_fixed: false,
                most_error: MOST_ERROR,
            }),
        };
        let of_class = held.filter_map(|class| {
            let of = Of::Class(class.name.clone());
            Some(fixed(of, class.threshold?))
        });
        let of_classes = of_class.filter(|_| config.law.name != Law::Off);
        of_law.into_iter().chain(of_classes).collect()
    }

    /// Why the clock is not good enough, if it is not.
    fn fault(&self, error: Span, sigma: Span) -> Option<String> {
        let most_error = self.most_error;
        (error > most_error).then(|| match self.is_fixed {
            true => format!(
                "it is {most_error}, and the clocks may make a delay wrong by {error} (sigma {sigma})"
            ),
            false => format!(
                "the clocks may make a delay wrong by {error} (sigma {sigma}), more than {most_error}, the most for automatic \
                 thresholds"
            ),
        })
    }
}

/// A threshold for which nothing is held.
#[derive(Debug)]
struct Below {
    why: String,
    /// Earliest end.
    until_mono_ns: i64,
}

/// The thresholds for which the clock is not good enough.
#[derive(Debug, Default)]
pub struct Floors {
    below: BTreeMap<Limit, Below>,
    times: u64,
}

impl Floors {
    /// Takes the error of a delay as the clock reports it now. A threshold is used again when the clock was good enough for it
    /// for a lease: otherwise it would change with every report.
    pub fn compare(&mut self, limits: &[Limit], error: Span, sigma: Span, lease: Span, now: i64) {
        self.below.retain(|limit, _| limits.contains(limit)); // a reload may have changed it
        for limit in limits {
            match limit.fault(error, sigma) {
                Some(why) => self.begin(limit, why, now.saturating_add(lease.as_ns())),
                None => self.end(limit, now),
            }
        }
    }

    fn begin(&mut self, limit: &Limit, why: String, until_mono_ns: i64) {
        if !self.below.contains_key(limit) {
            self.times += 1;
            let or_raise = if limit.is_fixed { "raise it, or " } else { "" };
            warn!(
                "nothing is held for {}: {why}; {or_raise}find what disturbs the clock (onramp clock status)",
                limit.of
            );
        }
        let below = Below { why, until_mono_ns };
        self.below.insert(limit.clone(), below);
    }

    fn end(&mut self, limit: &Limit, now: i64) {
        let below = self.below.get(limit);
        if below.is_some_and(|below| now >= below.until_mono_ns) {
            self.below.remove(limit);
            info!(
                "the clock is good enough for {} again: flows are held",
                limit.of
            );
        }
    }

    /// Forgets all, because the error is not known: there is no clock.
    pub fn forget(&mut self) {
        self.below.clear();
    }

    /// Whether nothing is held for this threshold.
    pub fn is_below(&self, of: &Of) -> bool {
        self.below.keys().any(|limit| limit.of == *of)
    }

    /// How often the clock ceased to be good enough for a threshold.
    pub fn times(&self) -> u64 {
        self.times
    }

    /// For the status.
    pub fn list(&self) -> Vec<BelowError> {
        let entry = |(limit, below): (&Limit, &Below)| BelowError {
            threshold: limit.of.to_string(),
            why: below.why.clone(),
        };
        self.below.iter().map(entry).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Daemon;

    const S: i64 = 1_000_000_000;
    const LEASE: Span = Span::from_s(5);

    fn limits(text: &str) -> Vec<Limit> {
        let file = "onramp.toml".as_ref();
        let configuration = Configuration::parse(text, file, Daemon::Agent);
        Limit::all(&configuration.unwrap_or_else(|errors| panic!("{errors}")))
    }

    const CLASSES: &str = "\
        [[class]]\nname = \"fast\"\nports = [\"80\"]\nthreshold = \"8 us\"\n\
        [[class]]\nname = \"usual\"\nports = [\"81\"]\n\
        [[class]]\nname = \"passed\"\nports = [\"82\"]\nhold = false\n";

    /// Name and limit of each.
    fn named(limits: &[Limit]) -> Vec<(String, i64)> {
        let one = |limit: &Limit| (limit.of.to_string(), limit.most_error.as_ns());
        limits.iter().map(one).collect()
    }

    const OF_LAW: &str = "law.threshold";
    const OF_FAST: &str = "the threshold of class fast";

    #[test]
    fn each_fixed_threshold_in_use_is_a_limit() {
        let fixed = "[law]\nthreshold = \"20 us\"\n";
        assert_eq!(named(&limits(fixed)), [(OF_LAW.to_owned(), 20_000)]);
        let both = [(OF_LAW.to_owned(), 20_000), (OF_FAST.to_owned(), 8_000)];
        assert_eq!(named(&limits(&format!("{fixed}{CLASSES}"))), both);
        let off = "[law]\nthreshold = \"20 us\"\nname = \"off\"\n";
        assert_eq!(named(&limits(&format!("{off}{CLASSES}"))), []);
        // Nobody uses the configuration's threshold here.
        let own = "others = \"pass\"\n[law]\nthreshold = \"20 us\"\n\
                   [[class]]\nname = \"fast\"\nthreshold = \"8 us\"\n";
        assert_eq!(named(&limits(own)), [(OF_FAST.to_owned(), 8_000)]);
    }

    #[test]
    fn automatic_thresholds_have_a_limit_if_the_error_is_estimated() {
        let with = |clock: &str| named(&limits(&format!("[clock]\n{clock}")));
        let huygens = "source = \"huygens\"\n[fleet]\nmembers = [\"10.0.0.1\", \"10.0.0.2\"]\n";
        assert_eq!(with(huygens), [(OF_LAW.to_owned(), 600_000)]);
        assert_eq!(with("source = \"system\"\nbound = \"1 ms\"\n"), []);
        assert_eq!(with("source = \"local\"\n"), []);
    }

    fn compare(floors: &mut Floors, limits: &[Limit], sigma_us: i64, at_s: i64) {
        let sigma = Span::from_us(sigma_us);
        floors.compare(limits, Span::from_us(6 * sigma_us), sigma, LEASE, at_s * S);
    }

    #[test]
    fn nothing_is_held_until_the_clock_was_good_enough_for_a_lease() {
        let limits = limits("[law]\nthreshold = \"20 us\"\n");
        let mut floors = Floors::default();
        for (at_s, sigma_us, is_below) in [
            (0, 3, false), // 18 us
            (1, 4, true),
            (2, 1, true),
            (5, 4, true), // the lease begins anew
            (6, 1, true),
            (9, 1, true),
            (10, 1, false),
            (11, 4, true),
        ] {
            compare(&mut floors, &limits, sigma_us, at_s);
            assert_eq!(floors.is_below(&Of::Law), is_below, "at {at_s} s");
        }
        assert_eq!(floors.times(), 2);
        let why = &floors.list()[0].why;
        assert_eq!(
            why,
            "it is 20 us, and the clocks may make a delay wrong by 24 us (sigma 4 us)"
        );
        floors.forget();
        assert!(!floors.is_below(&Of::Law));
    }

    #[test]
    fn a_class_fails_alone_and_another_threshold_is_judged_anew() {
        let all = limits(&format!("[law]\nthreshold = \"20 us\"\n{CLASSES}"));
        let mut floors = Floors::default();
        compare(&mut floors, &all, 2, 0);
        let of_fast = Of::Class("fast".to_owned());
        assert!(floors.is_below(&of_fast) && !floors.is_below(&Of::Law));
        let raised = CLASSES.replace("8 us", "12 us");
        let raised = limits(&format!("[law]\nthreshold = \"20 us\"\n{raised}"));
        compare(&mut floors, &raised, 2, 1);
        assert!(floors.list().is_empty());
    }
}
