// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Flow lists in the HPCC simulator's format, for replays.

use super::flow::Flow;
use crate::engine::rounding::Rounding;
use onramp_scenario::{read_hpcc, ListedFlow, Op, Work};
use onramp_units::Span;

pub use onramp_scenario::FlowListError;

/// Reads a flow list. Starts are rounded as `rounding` rounds times.
///
/// # Errors
/// Text that is no flow list; starts that go backwards.
pub fn parse(text: &str, rounding: Rounding) -> Result<Vec<Flow>, FlowListError> {
    let start = |word: &str| -> Option<Span> {
        match rounding {
            Rounding::Exact => format!("{word} s").parse().ok(),
            Rounding::Ns3 => Some(crate::engine::rounding::ns3_time(word.parse().ok()?)),
        }
    };
    let flow = |flow: ListedFlow| Flow {
        start: flow.at,
        src: flow.src,
        dst: flow.dst,
        work: Work::Send(flow.size),
        op: Op::Write,
    };
    Ok(read_hpcc(text, &start)?.into_iter().map(flow).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_are_exact_or_the_references() {
        let text = "1\n1 0 3 100 1001 2.000040000\n";
        let start = |rounding| parse(text, rounding).unwrap()[0].start.ticks();
        assert_eq!(start(Rounding::Exact), 2_000_040_000_000);
        assert_eq!(start(Rounding::Ns3), 2_000_039_999_000);
    }
}
