// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Chooses a setting in half of the windows and judges it in the other half, so that chance does not choose. Pure.
use std::collections::BTreeMap;

use onramp_results::{Estimate, RunResult, SummaryFile};

use crate::error::{AdviseError, Result};
use crate::plan::BASE;

/// A smaller gain is not worth an agent on each host.
const LEAST_GAIN: f64 = 0.05;
/// A larger loss of throughput is not taken.
const MOST_LOSS: f64 = 0.02;

/// The columns of a table of settings.
pub const COLUMNS: [&str; 3] = [
    "setting",
    "99th percentile of completion times, to choose",
    "the same, to judge",
];

/// What one window gave with one setting.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    pub p99_us: f64,
    goodput_gbps: f64,
    unfinished: f64,
}

/// By window.
pub type Windows = BTreeMap<String, Measured>;

/// A setting against no On-Ramp.
#[derive(Debug, Clone, PartialEq)]
struct Candidate {
    name: String,
    chosen_by: Estimate,
    p99: Estimate,
    goodput: Estimate,
    more_unfinished: bool,
}

/// Which setting is the best, and whether it is recommended.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// The best in the windows that choose is the first.
    settings: Vec<Candidate>,
}

/// What each case measured.
pub fn windows_of<'a>(runs: impl Iterator<Item = &'a RunResult>) -> BTreeMap<String, Windows> {
    let mut cases: BTreeMap<String, Windows> = BTreeMap::new();
    for run in runs {
        let param = |name: &str| run.params.get(name).cloned().unwrap_or_default();
        let Some(p99_us) = run.number("background.fct_us.all.p99") else {
            continue;
        };
        let measured = Measured {
            p99_us,
            goodput_gbps: run.number("background.goodput_gbps").unwrap_or(0.0),
            unfinished: run.number("background.unfinished").unwrap_or(0.0),
        };
        let windows = cases.entry(param("case")).or_default();
        windows.insert(param("traffic.0.path"), measured);
    }
    cases
}

/// Judges the runs of the scenario of an advice.
pub fn judge(summary: &SummaryFile) -> Result<Advice> {
    let mut cases = windows_of(summary.runs.iter());
    let base = cases.remove(BASE).ok_or(AdviseError::NothingEnded)?;
    let mut settings: Vec<Candidate> = cases
        .into_iter()
        .filter_map(|(name, windows)| Candidate::of(name, &windows, &base))
        .collect();
    settings.sort_by(|a, b| a.chosen_by.value.total_cmp(&b.chosen_by.value));
    match settings.is_empty() {
        true => Err(AdviseError::NothingToJudge),
        false => Ok(Advice { settings }),
    }
}

impl Candidate {
    fn of(name: String, windows: &Windows, base: &Windows) -> Option<Candidate> {
        let both = |(window, with): (&String, &Measured)| Some((*with, *base.get(window)?));
        let pairs: Vec<(Measured, Measured)> = windows.iter().filter_map(both).collect();
        let half = |first: usize| pairs.iter().skip(first).step_by(2);
        let p99 = |(with, without): &(Measured, Measured)| (with.p99_us, without.p99_us);
        let goodput =
            |(with, without): &(Measured, Measured)| (with.goodput_gbps, without.goodput_gbps);
        let ratio = |pairs: Vec<(f64, f64)>| match pairs.is_empty() {
            true => None,
            false => Estimate::of_ratios(&pairs),
        };
        let unfinished = |of: fn(&(Measured, Measured)) -> f64| pairs.iter().map(of).sum::<f64>();
        Some(Candidate {
            name,
            chosen_by: ratio(half(0).map(p99).collect())?,
            p99: ratio(half(1).map(p99).collect())?,
            goodput: ratio(pairs.iter().map(goodput).collect())?,
            more_unfinished: unfinished(|pair| pair.0.unfinished)
                > unfinished(|pair| pair.1.unfinished),
        })
    }

    /// Why it is not recommended, if it is not.
    fn objection(&self) -> Option<String> {
        if let Some(doubt) = doubt_about(self.p99) {
            return Some(doubt);
        }
        if self.goodput.value < 1.0 - MOST_LOSS {
            return Some(format!("it costs throughput: {}", change(self.goodput)));
        }
        self.more_unfinished
            .then(|| "more flows are unfinished with it".to_owned())
    }
}

/// Why a ratio of percentiles is no gain that is worth an agent on each host, if it is none.
pub fn doubt_about(p99: Estimate) -> Option<String> {
    let gain = change(p99);
    let Some([_, high]) = p99.interval else {
        return Some("one window is left to judge it, which gives no interval".to_owned());
    };
    if high >= 1.0 {
        return Some(format!(
            "its effect on the 99th percentile of completion times, {gain}, may be none"
        ));
    }
    (p99.value > 1.0 - LEAST_GAIN)
        .then(|| format!("its effect on the 99th percentile of completion times is small: {gain}"))
}

/// A ratio as a change, with its interval.
pub fn change(ratio: Estimate) -> String {
    let percent = |value: f64| format!("{:+.1} %", 100.0 * (value - 1.0));
    match ratio.interval {
        Some([low, high]) => format!(
            "{} ({} to {})",
            percent(ratio.value),
            percent(low),
            percent(high)
        ),
        None => format!("{} (no interval)", percent(ratio.value)),
    }
}

impl Advice {
    /// The best setting that nothing speaks against. Only the one that was chosen may be: to look further would let the
    /// windows that judge choose.
    pub fn recommends(&self) -> Option<&str> {
        let best = self.settings.first()?;
        best.objection().is_none().then_some(&*best.name)
    }

    /// In a line.
    pub fn verdict(&self) -> String {
        match self.recommends() {
            Some(name) => format!("On-Ramp is recommended: {name}"),
            None => "On-Ramp is not recommended for this traffic".to_owned(),
        }
    }

    /// The best setting in the windows that choose.
    pub fn best(&self) -> &str {
        &self.settings[0].name
    }

    /// The 99th percentile of completion times with the best setting, in the windows that judge, as a ratio to that without
    /// On-Ramp.
    pub fn p99(&self) -> Estimate {
        self.settings[0].p99
    }

    pub(crate) fn rows(&self) -> Vec<Vec<String>> {
        let row = |s: &Candidate| vec![s.name.clone(), change(s.chosen_by), change(s.p99)];
        self.settings.iter().map(row).collect()
    }

    pub(crate) fn text(&self) -> String {
        let best = &self.settings[0];
        let why = match best.objection() {
            None => format!(
                "With it the 99th percentile of flow completion times changes by {} at 95 % confidence, and throughput by {}.",
                change(best.p99),
                change(best.goodput)
            ),
            Some(objection) => format!("The best setting is {}, but {objection}.", best.name),
        };
        let how = match self.recommends() {
            Some(_) => {
                "Set law.name and link.pace so; leave law.threshold at auto, and set law.headroom; set link.gso_max = \"16 kB\".\n"
            }
            None => "",
        };
        format!("{}.\n{why}\n{how}", self.verdict())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A setting whose windows have these ratios of percentile and throughput.
    fn advice(ratios: &[(f64, f64)]) -> Advice {
        let windows = |with: bool| -> Windows {
            let window = |(n, (p99, goodput)): (usize, &(f64, f64))| {
                let (p99, goodput) = if with { (*p99, *goodput) } else { (1.0, 1.0) };
                let measured = Measured {
                    p99_us: 100.0 * p99,
                    goodput_gbps: goodput,
                    unfinished: 0.0,
                };
                (n.to_string(), measured)
            };
            ratios.iter().enumerate().map(window).collect()
        };
        let setting = Candidate::of("s".into(), &windows(true), &windows(false)).unwrap();
        Advice {
            settings: vec![setting],
        }
    }

    #[test]
    fn a_large_sure_gain_is_recommended() {
        let gain = advice(&[
            (0.5, 1.0),
            (0.52, 1.0),
            (0.48, 0.99),
            (0.5, 1.0),
            (0.5, 1.0),
            (0.51, 1.0),
        ]);
        assert_eq!(gain.recommends(), Some("s"));
        assert!(
            gain.text().contains("On-Ramp is recommended: s"),
            "{}",
            gain.text()
        );
    }

    #[test]
    fn doubt_small_gains_and_lost_throughput_advise_against() {
        let against = |ratios: &[(f64, f64)], why: &str| {
            let advice = advice(ratios);
            assert_eq!(advice.recommends(), None);
            assert!(advice.text().contains(why), "{}", advice.text());
        };
        against(
            &[(0.5, 1.0), (0.3, 1.0), (0.5, 1.0), (1.4, 1.0)],
            "may be none",
        );
        against(&[(0.97, 1.0); 4].map(|r| r), "is small");
        against(&[(1.0, 1.0); 4], "may be none");
        against(
            &[(0.5, 0.9), (0.51, 0.9), (0.5, 0.9), (0.52, 0.9)],
            "it costs throughput",
        );
        against(&[(0.5, 1.0), (0.5, 1.0)], "gives no interval");
    }

    #[test]
    fn windows_that_choose_do_not_judge() {
        let chosen = advice(&[(0.1, 1.0), (1.0, 1.0), (0.1, 1.0), (1.01, 1.0)]);
        assert!(chosen.settings[0].chosen_by.value < 0.2);
        assert_eq!(chosen.recommends(), None);
    }
}
