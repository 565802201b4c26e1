//! Flow lists in the HPCC simulator's format: how many, then a line
//! `src dst priority port size_bytes start_s` for each, in the order of their starts. Priority and
//! port are read and not used: all data is one class here, and a flow's ports follow from its place
//! among those of its pair of hosts.

use crate::config::Flow;
use crate::rounding::Rounding;
use onramp_scenario::Work;
use onramp_units::{Bytes, Sim, Span, Time};

/// What is wrong with a flow list. Lines count from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The messages say what the fields are.
pub enum FlowListError {
    #[error("line {line}: {what} is \"{found}\", expected {expected}")]
    Field {
        line: usize,
        what: &'static str,
        found: String,
        expected: &'static str,
    },
    #[error("line {line}: starts at {start}, before the flow above it at {above}")]
    Unordered {
        line: usize,
        start: Span,
        above: Span,
    },
    #[error("{found} flows, expected {expected} as the first line says")]
    Count { found: usize, expected: usize },
}

const NUMBER: &str = "a whole number from 0";

/// Reads a flow list. Starts are rounded as `rounding` rounds times.
///
/// # Errors
/// Text that is no flow list; starts that go backwards.
pub fn parse(text: &str, rounding: Rounding) -> Result<Vec<Flow>, FlowListError> {
    let mut lines = (1..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty());
    let (line, first) = lines.next().unwrap_or((1, ""));
    let expected = field(line, "number of flows", first.trim(), NUMBER, |word| {
        word.parse().ok()
    })?;
    let mut flows: Vec<Flow> = Vec::new();
    for (line, text) in lines {
        let flow = read_flow(line, text, rounding)?;
        if let Some(above) = flows.last().filter(|above| above.start > flow.start) {
            return Err(FlowListError::Unordered {
                line,
                start: flow.start - Time::ZERO,
                above: above.start - Time::ZERO,
            });
        }
        flows.push(flow);
    }
    if flows.len() != expected {
        let found = flows.len();
        return Err(FlowListError::Count { found, expected });
    }
    Ok(flows)
}

fn read_flow(line: usize, text: &str, rounding: Rounding) -> Result<Flow, FlowListError> {
    let mut words = text.split_whitespace();
    let mut next = || words.next().unwrap_or("");
    let host = |word: &str| word.parse().ok();
    let src = field(line, "source", next(), NUMBER, host)?;
    let dst = field(line, "destination", next(), NUMBER, host)?;
    field(line, "priority", next(), NUMBER, host)?;
    field(line, "port", next(), NUMBER, host)?;
    let above_zero = |word: &str| word.parse().ok().filter(|&size| size > 0);
    let size = field(line, "size", next(), "bytes above zero", above_zero)?;
    let start = field(line, "start", next(), "seconds from 0 to 3600", |word| {
        read_start(word, rounding)
    })?;
    let end = |word: &str| word.is_empty().then_some(());
    field(line, "the seventh word", next(), "the end of the line", end)?;
    let work = Work::Send(Bytes::new(size));
    Ok(Flow {
        start,
        src,
        dst,
        work,
    })
}

fn read_start(word: &str, rounding: Rounding) -> Option<Time<Sim>> {
    let span = match rounding {
        Rounding::Exact => format!("{word} s").parse().ok()?,
        Rounding::Ns3 => crate::rounding::ns3_time(word.parse().ok()?),
    };
    (Span::ZERO..=Span::from_s(3600))
        .contains(&span)
        .then_some(Time::ZERO + span)
}

fn field<T>(
    line: usize,
    what: &'static str,
    found: &str,
    expected: &'static str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<T, FlowListError> {
    read(found).ok_or_else(|| FlowListError::Field {
        line,
        what,
        found: found.to_owned(),
        expected,
    })
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

    #[test]
    fn bad_lists_are_refused_with_line_and_value() {
        let error = |text| parse(text, Rounding::Exact).unwrap_err().to_string();
        assert_eq!(
            error(""),
            "line 1: number of flows is \"\", expected a whole number from 0"
        );
        assert_eq!(
            error("1\n1 0 3 100 0 2.0\n"),
            "line 2: size is \"0\", expected bytes above zero"
        );
        assert_eq!(
            error("1\n1 0 3 100 5 -2.0\n"),
            "line 2: start is \"-2.0\", expected seconds from 0 to 3600"
        );
        assert_eq!(
            error("2\n1 0 3 100 5 2.0\n1 0 3 100 5 1.5\n"),
            "line 3: starts at 1.5 s, before the flow above it at 2 s"
        );
        assert_eq!(
            error("2\n1 0 3 100 5 2.0\n"),
            "1 flows, expected 2 as the first line says"
        );
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_answered(text in "[0-9]{0,2}\n([0-9.-]{0,5} ?){0,7}\n") {
            let _ = parse(&text, Rounding::Exact);
            let _ = parse(&text, Rounding::Ns3);
        }
    }
}
