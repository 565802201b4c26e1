// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Why a record of traffic has no answer.

use onramp_units::Span;

/// No advice.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The messages say what the fields are.
pub enum AdviseError {
    #[error("the record has no flows; record for longer")]
    NoFlows,
    #[error(
        "the record has flows in {found} windows of {span}, below min {least}; record for longer, or give a shorter --window"
    )]
    FewWindows {
        found: usize,
        span: Span,
        least: usize,
    },
    #[error("no flow of the record ended in a run without On-Ramp; lower --window or check --rate and --delay")]
    NothingEnded,
    #[error("the runs give no flow completion times in two windows; record for longer")]
    NothingToJudge,
}

/// Result of an advice.
pub type Result<T, E = AdviseError> = std::result::Result<T, E>;
