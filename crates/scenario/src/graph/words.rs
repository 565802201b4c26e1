// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The HPCC simulator's format.

use super::{read_delay, read_rate, Edge, Graph, GraphError, NodeId, MAX_COUNT};

/// [`Graph::parse`].
pub(super) fn read(text: &str) -> Result<Graph, GraphError> {
    let mut reader = Reader::new(text);
    let nodes: usize = reader.number("number of nodes", MAX_COUNT)?;
    let switch_count = reader.number("number of switches", nodes)?;
    let link_count = reader.number("number of links", MAX_COUNT)?;
    let mut switches = vec![false; nodes];
    for _ in 0..switch_count {
        let node: usize = reader.number("switch", nodes.saturating_sub(1))?;
        switches[node] = true;
    }
    let (mut edges, mut lines) = (Vec::new(), Vec::new());
    while let Some(edge) = reader.edge(nodes)? {
        edges.push(edge);
        lines.push(reader.line);
    }
    if edges.len() != link_count {
        let error = GraphError::Links {
            found: edges.len(),
            expected: link_count,
        };
        return Err(error.at(reader.line));
    }
    Graph::checked(switches, edges, &lines)
}

/// Words of a file in the HPCC simulator's format, with their lines.
struct Reader<'a> {
    words: std::vec::IntoIter<(usize, &'a str)>,
    line: usize,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Reader<'a> {
        let lines = (1..).zip(text.lines());
        let words: Vec<_> = lines
            .flat_map(|(n, line)| line.split_whitespace().map(move |word| (n, word)))
            .collect();
        Reader {
            words: words.into_iter(),
            line: 1,
        }
    }

    fn word(&mut self) -> Option<&'a str> {
        let (line, word) = self.words.next()?;
        self.line = line;
        Some(word)
    }

    fn field<T>(
        &mut self,
        what: &'static str,
        expected: impl Fn() -> String,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<T, GraphError> {
        let found = self.word().unwrap_or("");
        read(found).ok_or_else(|| GraphError::field(what, found, expected()).at(self.line))
    }

    fn number(&mut self, what: &'static str, max: usize) -> Result<usize, GraphError> {
        let within = |word: &str| word.parse().ok().filter(|&n: &usize| n <= max);
        self.field(what, || format!("a number up to {max}"), within)
    }

    fn edge(&mut self, nodes: usize) -> Result<Option<Edge>, GraphError> {
        if self.words.len() == 0 {
            return Ok(None);
        }
        let a = self.number("node", nodes.saturating_sub(1))? as NodeId;
        let b = self.number("node", nodes.saturating_sub(1))? as NodeId;
        let rate = || "a rate above zero, such as 100Gbps".to_owned();
        let rate = self.field("rate", rate, read_rate)?;
        let delay = || "a delay of at most 1 s, such as 1000ns".to_owned();
        let delay = self.field("delay", delay, read_delay)?;
        let none = || "0: lossy links are not modelled".to_owned();
        let zero = |word: &str| word.parse().ok().filter(|&loss: &f64| loss == 0.0);
        self.field("error rate", none, zero)?;
        Ok(Some(Edge { a, b, rate, delay }))
    }
}
