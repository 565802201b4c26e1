// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What the paper says of a row, as ranges that a measurement is compared with. docs/reproduction.md states the
//! rule for readers; `crate::verdict` applies it.

use onramp_results::figure::{By, Gives};
use serde::Deserialize;

/// The largest factor between the paper's number and ours, and between the sizes of the two effects, that agrees.
const WITHIN: f64 = 1.5;

/// What the paper gives for a row. Every field is empty for a row beyond the paper.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Paper {
    /// The paper's number.
    pub number: Option<f64>,
    /// The form of what the paper gives where it has no number.
    pub gives: Option<Gives>,
    /// The section, figure or table of the paper.
    pub source: String,
    /// The largest factor between our value and the paper's that counts as reproduced.
    pub within: Option<f64>,
    /// The largest difference instead, in the row's unit.
    pub tolerance: Option<f64>,
    /// The lower bound that states the paper's words or picture.
    pub at_least: Option<f64>,
    /// The upper bound that states them.
    pub at_most: Option<f64>,
    /// The comparison that states them.
    pub says: Option<Says>,
    /// The largest difference in per cent that counts as none.
    pub margin: Option<f64>,
}

/// A comparison in words: our value is that of `of` against that of `over`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Says {
    /// It rises.
    More,
    /// It falls.
    Less,
    /// It does not rise by more than the margin.
    NoMore,
    /// It does not fall by more than the margin.
    NoLess,
    /// It neither rises nor falls by more than the margin.
    Same,
}

/// What the paper says, by the rule that judges it. Values are ratios where runs are compared: 1 is no effect.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Claim {
    /// A quantity of one kind of run.
    Number {
        /// Where values agree.
        range: Range,
        /// What the number shows even if its size differs.
        shows: Option<Range>,
    },
    /// A relative change, judged by its size.
    Effect {
        /// The paper's, as a ratio.
        paper: f64,
        /// Largest factor of the ratio, and of its logarithm, that agrees.
        within: f64,
    },
    /// Bounds from words or from the shape of a picture.
    Bound {
        /// Where values agree.
        range: Range,
        /// Whether runs are compared, so that 1 is no effect.
        compared: bool,
    },
    /// A comparison in words, with the margin as a fraction.
    Words(Says, f64),
}

/// Values that agree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    low: f64,
    high: f64,
    /// Whether the ends disagree: an effect of nothing is no effect.
    open: bool,
}

impl Range {
    fn closed(low: f64, high: f64) -> Range {
        let (low, high) = (low.min(high), low.max(high));
        let open = false;
        Range { low, high, open }
    }

    /// All effects on the side of `ratio`.
    fn side(ratio: f64) -> Range {
        let (low, high) = match ratio > 1.0 {
            true => (1.0, f64::INFINITY),
            false => (f64::NEG_INFINITY, 1.0),
        };
        let open = true;
        Range { low, high, open }
    }

    /// Whether `value` agrees.
    pub fn has(self, value: f64) -> bool {
        match self.open {
            true => self.low < value && value < self.high,
            false => self.low <= value && value <= self.high,
        }
    }
}

impl Claim {
    /// Where our value agrees with the paper.
    pub fn agrees(self) -> Range {
        match self {
            Claim::Effect { paper, within } => of_effect(paper, within),
            Claim::Number { range, .. } | Claim::Bound { range, .. } => range,
            Claim::Words(Says::More, _) => Range::side(f64::INFINITY),
            Claim::Words(Says::Less, _) => Range::side(f64::NEG_INFINITY),
            Claim::Words(Says::NoMore, margin) => Range::closed(f64::NEG_INFINITY, 1.0 + margin),
            Claim::Words(Says::NoLess, margin) => {
                Range::closed(1.0 / (1.0 + margin), f64::INFINITY)
            }
            Claim::Words(Says::Same, margin) => Range::closed(1.0 / (1.0 + margin), 1.0 + margin),
        }
    }

    /// Where our value has the paper's direction, if the claim has one beside its size.
    pub fn direction(self) -> Option<Range> {
        match self {
            Claim::Number { shows, .. } => shows,
            Claim::Effect { paper, .. } => Some(Range::side(paper)),
            // Only a bound that excludes "no effect" has a direction.
            Claim::Bound { range, compared } if compared && !range.has(1.0) => {
                Some(Range::side(range.low.max(range.high.min(1.0))))
            }
            Claim::Bound { .. } | Claim::Words(..) => None,
        }
    }
}

/// The sizes of two effects are compared by their logarithms: of a fall of 21 %, half as much is 11 %. The ratios
/// must be close too, because a factor of the logarithm is much where the effect is large.
fn of_effect(paper: f64, within: f64) -> Range {
    let far = libm::exp(libm::log(paper) * within);
    let near = libm::exp(libm::log(paper) / within);
    match paper > 1.0 {
        true => Range::closed(near.max(paper / within), far.min(paper * within)),
        false => Range::closed(far.max(paper / within), near.min(paper * within)),
    }
}

impl Paper {
    /// What the paper says of a row that is compared `by`; none for a row beyond the paper.
    pub fn claim(&self, by: By) -> Option<Claim> {
        let within = self.within.unwrap_or(WITHIN);
        let compared = by != By::Value;
        if let Some(says) = self.says {
            return Some(Claim::Words(says, self.margin.unwrap_or(0.0) / 100.0));
        }
        match self.number.map(|number| by.scale(number)) {
            Some(paper) if compared => Some(Claim::Effect { paper, within }),
            Some(paper) => Some(Claim::Number {
                range: match self.tolerance {
                    Some(most) => Range::closed(paper - most, paper + most),
                    None => Range::closed(paper / within, paper * within),
                },
                shows: self.bounds(by),
            }),
            None => self
                .bounds(by)
                .map(|range| Claim::Bound { range, compared }),
        }
    }

    fn bounds(&self, by: By) -> Option<Range> {
        self.at_least.or(self.at_most)?;
        let least = self.at_least.map_or(f64::NEG_INFINITY, |v| by.scale(v));
        let most = self.at_most.map_or(f64::INFINITY, |v| by.scale(v));
        Some(Range::closed(least, most))
    }

    /// What the types do not say: the key and what is wrong with it.
    pub(super) fn check(&self, by: By) -> Result<(), (String, String)> {
        self.check_says(by)?;
        self.check_tolerance(by)?;
        let bounds = self.at_least.or(self.at_most).is_some();
        let states = bounds || self.says.is_some();
        match (self.number, self.gives) {
            (Some(_), Some(_)) => return wrong("gives", "given, but `paper` is a number"),
            (None, Some(Gives::Number)) => return wrong("paper", "missing, but it gives a number"),
            (None, Some(_)) if !states => {
                return wrong(
                    "at_least",
                    "missing: what the paper gives as a bound, or `says`",
                )
            }
            (None, None) if states => {
                let reason = "missing: \"words\" or \"picture\", or a number as `paper`";
                return wrong("gives", reason);
            }
            _ => {}
        }
        if (states || self.number.is_some()) && self.source.is_empty() {
            return wrong("source", "missing, but there is a number of the paper");
        }
        if self
            .number
            .is_some_and(|n| by != By::Value && !is_effect(by.scale(n)))
        {
            return wrong(
                "paper",
                "no effect: state it as says = \"same\" with a margin",
            );
        }
        if self.within.is_some_and(|within| within < 1.0) {
            return wrong("within", "below min 1");
        }
        Ok(())
    }

    fn check_tolerance(&self, by: By) -> Result<(), (String, String)> {
        match self.tolerance {
            Some(_) if self.number.is_none() || by != By::Value => wrong(
                "tolerance",
                "given, but `paper` is no number of one kind of run",
            ),
            Some(_) if self.within.is_some() => {
                wrong("tolerance", "given, but `within` says it already")
            }
            Some(most) if most.is_nan() || most <= 0.0 => wrong("tolerance", "not above 0"),
            _ => Ok(()),
        }
    }

    fn check_says(&self, by: By) -> Result<(), (String, String)> {
        let has_margin = !matches!(self.says, None | Some(Says::More | Says::Less));
        if self.says.is_some() && by == By::Value {
            return wrong("says", "given, but no runs are compared");
        }
        if self.says.is_some() && self.number.or(self.at_least).or(self.at_most).is_some() {
            return wrong("says", "given, but a number or a bound says it already");
        }
        match self.margin {
            None if has_margin => wrong("margin", "missing: the per cent that count as no effect"),
            Some(_) if !has_margin => wrong("margin", "given, but `says` has none"),
            Some(margin) if margin <= 0.0 => wrong("margin", "not above 0"),
            _ => Ok(()),
        }
    }
}

/// Whether a ratio has a logarithm that is not 0.
fn is_effect(ratio: f64) -> bool {
    ratio > 0.0 && ratio != 1.0
}

/// The key and what is wrong with it.
pub(super) fn wrong(key: &str, reason: &str) -> Result<(), (String, String)> {
    Err((key.to_owned(), reason.to_owned()))
}
