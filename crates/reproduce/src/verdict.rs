// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The verdict on a row: the paper's claim against our mean and its interval, by one rule for all papers.
//!
//! A claim is a range of values that agree with it. What the whole interval shows is sure. What only the mean
//! shows is not, and without an interval nothing is sure. docs/reproduction.md states this for readers.

use crate::spec::{Claim, Range, RowSpec};
use onramp_results::figure::{By, Verdict};
use onramp_results::Estimate;

/// The verdict on what was measured of `spec`.
pub fn of(spec: &RowSpec, measured: Option<Estimate>) -> Verdict {
    let Some(claim) = spec.paper.claim(spec.runs.by) else {
        return Verdict::Beyond;
    };
    measured.map_or(Verdict::NotMeasured, |measured| {
        judge(claim, scaled(spec.runs.by, measured))
    })
}

fn judge(claim: Claim, measured: Estimate) -> Verdict {
    let agrees = claim.agrees();
    if is_sure(agrees, measured) {
        return Verdict::Reproduced;
    }
    if agrees.has(measured.value) {
        return Verdict::PointEstimate;
    }
    match claim
        .direction()
        .is_some_and(|side| is_sure(side, measured))
    {
        true => Verdict::DirectionOnly,
        false => Verdict::NotReproduced,
    }
}

/// Whether the whole interval is in `range`; never without an interval.
fn is_sure(range: Range, measured: Estimate) -> bool {
    let all = |ends: [f64; 2]| ends.into_iter().all(|end| range.has(end));
    range.has(measured.value) && measured.interval.is_some_and(all)
}

/// Changes as ratios, so that -50 % is as far from none as +100 %.
fn scaled(by: By, measured: Estimate) -> Estimate {
    measured.map(|value| by.scale(value))
}

#[cfg(test)]
mod tests;
