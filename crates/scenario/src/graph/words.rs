// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The HPCC simulator's format: a line of counts, the switches, a line for each link.

use super::{read_delay, read_rate, Edge, Graph, GraphError, NodeId, MAX_COUNT, MAX_DELAY};
use onramp_units::{Rate, Span};
use std::str::SplitWhitespace;

const COUNTS: &[&str] = &["nodes", "switches", "links"];
const EDGE: &[&str] = &["node", "node", "rate", "delay", "error rate"];
/// The fields of the first line in SimAI's topologies: nodes, GPUs of a server, NVSwitches, switches, links, type of GPU.
const SIMAI: usize = 6;
/// The highest rate without a unit, in bit/s.
const FASTEST: f64 = 1e15;

/// [`Graph::parse`].
pub(super) fn read(text: &str) -> Result<Graph, GraphError> {
    let mut lines = (1..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty());
    let mut fields = Fields::of(lines.next().unwrap_or((1, "")), COUNTS)?;
    let nodes = fields.number("number of nodes", MAX_COUNT)?;
    let switch_count = fields.number("number of switches", nodes)?;
    let link_count = fields.number("number of links", MAX_COUNT)?;
    let mut switches = vec![false; nodes];
    let mut found = 0;
    while found < switch_count {
        let mut fields = Fields::some(lines.next().unwrap_or((fields.line, "")));
        let left = switch_count - found;
        let here = fields.count();
        if here == 0 || here > left {
            let expected = format!("{left}, which the first line gives");
            return Err(fields.wrong("number of switches", &here.to_string(), expected));
        }
        for _ in 0..here {
            switches[fields.number("switch", nodes.saturating_sub(1))?] = true;
        }
        found += here;
    }
    let (mut edges, mut of_lines) = (Vec::new(), Vec::new());
    let mut last = fields.line;
    for line in lines {
        edges.push(Fields::of(line, EDGE)?.edge(nodes)?);
        of_lines.push(line.0);
        last = line.0;
    }
    if edges.len() != link_count {
        let error = GraphError::Links {
            found: edges.len(),
            expected: link_count,
        };
        return Err(error.at(last));
    }
    Graph::checked(switches, (edges, &of_lines), Vec::new())
}

/// The fields of a line.
struct Fields<'a> {
    line: usize,
    words: SplitWhitespace<'a>,
}

impl<'a> Fields<'a> {
    fn some((line, text): (usize, &'a str)) -> Fields<'a> {
        let words = text.split_whitespace();
        Fields { line, words }
    }

    /// As many as there are `names`.
    fn of(line: (usize, &'a str), names: &[&str]) -> Result<Fields<'a>, GraphError> {
        let fields = Fields::some(line);
        let found = fields.count();
        if found == names.len() {
            return Ok(fields);
        }
        let hint = match found {
            SIMAI if names.len() == COUNTS.len() => {
                "; SimAI's topologies begin like this, and are not supported"
            }
            _ => "",
        };
        let expected = format!("{} ({}){hint}", names.len(), names.join(", "));
        Err(fields.wrong("number of fields", &found.to_string(), expected))
    }

    fn count(&self) -> usize {
        self.words.clone().count()
    }

    fn wrong(&self, what: &'static str, found: &str, expected: String) -> GraphError {
        GraphError::field(what, found, expected).at(self.line)
    }

    fn field<T>(
        &mut self,
        what: &'static str,
        expected: impl Fn() -> String,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<T, GraphError> {
        let found = self.words.next().unwrap_or("");
        read(found).ok_or_else(|| self.wrong(what, found, expected()))
    }

    fn number(&mut self, what: &'static str, max: usize) -> Result<usize, GraphError> {
        let within = |word: &str| word.parse().ok().filter(|&n: &usize| n <= max);
        self.field(what, || format!("a number up to {max}"), within)
    }

    fn edge(&mut self, nodes: usize) -> Result<Edge, GraphError> {
        let a = self.number("node", nodes.saturating_sub(1))? as NodeId;
        let b = self.number("node", nodes.saturating_sub(1))? as NodeId;
        let rate = || "a rate above zero, such as 100Gbps".to_owned();
        let rate = self.field("rate", rate, rate_of)?;
        let delay = || "a delay of at most 1 s, such as 1000ns".to_owned();
        let delay = self.field("delay", delay, delay_of)?;
        let none = || "0: lossy links are not modelled".to_owned();
        let zero = |word: &str| word.parse().ok().filter(|&loss: &f64| loss == 0.0);
        self.field("error rate", none, zero)?;
        Ok(Edge { a, b, rate, delay })
    }
}

/// As ns-3 reads it: a rate without a unit is in bit/s.
fn rate_of(word: &str) -> Option<Rate> {
    match word.parse::<f64>() {
        Ok(bits_per_s) if (1.0..=FASTEST).contains(&bits_per_s) => {
            Rate::from_bits_per_s(bits_per_s.round() as u64)
        }
        Ok(_) => None,
        Err(_) => read_rate(word),
    }
}

/// As ns-3 reads it: a delay without a unit is in seconds.
fn delay_of(word: &str) -> Option<Span> {
    let Ok(s) = word.parse::<f64>() else {
        return read_delay(word);
    };
    let is_delay = (0.0..=MAX_DELAY.as_s_f64()).contains(&s);
    is_delay.then(|| Span::from_ps((s * 1e12).round() as i64))
}
