// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Names of ports. `host3` is the NIC of host 3, `switch0-host3` the port of switch 0 to host 3, and
//! `switch0-switch4` its port to switch 4. Switches count from 0 in the order of the topology: leaves before
//! spines; ToR, then aggregation, then core switches. Those of a graph have the names that it gives: `leaf0-spine1`.

use crate::net::topology::Topology;

/// Largest number of ranges of names in an error.
const MOST_RANGES: usize = 24;

/// No port of the network has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no port is named \"{name}\"; there are {valid}")]
pub struct UnknownPort {
    name: String,
    valid: String,
}

impl Topology {
    /// Names of all ports, by their numbers.
    pub fn port_names(&self) -> Vec<String> {
        let mut switches = 0;
        let nodes: Vec<String> = (0..self.nodes() as u32)
            .map(|node| match self.is_switch(node) {
                true => {
                    switches += 1;
                    let given = self.names().get(switches - 1).cloned();
                    given.unwrap_or_else(|| format!("switch{}", switches - 1))
                }
                false => format!("host{node}"),
            })
            .collect();
        let name = |node: u32, other: u32| match self.is_switch(node) {
            true => format!("{}-{}", nodes[node as usize], nodes[other as usize]),
            false => nodes[node as usize].clone(),
        };
        let ends = self.links().iter();
        ends.flat_map(|link| [name(link.a, link.b), name(link.b, link.a)])
            .collect()
    }
}

/// Number of the port with a name.
///
/// # Errors
/// No port has the name. The error lists valid names, those of the same node if it exists.
pub(crate) fn find(names: &[String], name: &str) -> Result<u32, UnknownPort> {
    if let Some(port) = names.iter().position(|other| other == name) {
        return Ok(port as u32);
    }
    let node = |name: &str| name.split('-').next().unwrap_or("").to_owned();
    let of_node = names.iter().filter(|other| node(other) == node(name));
    let mut valid: Vec<&String> = of_node.collect();
    if valid.is_empty() {
        valid = names.iter().collect();
    }
    Err(UnknownPort {
        name: name.to_owned(),
        valid: ranges(&valid),
    })
}

/// Names as text, with consecutive names as a range: "host0 to host3, switch0-host0".
fn ranges(names: &[&String]) -> String {
    let split = |name: &str| {
        let text = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let number = name[text.len()..].parse::<u32>().unwrap_or(0);
        (text.to_owned(), number)
    };
    let mut names: Vec<(String, u32)> = names.iter().map(|name| split(name)).collect();
    names.sort();
    let mut ranges: Vec<(String, u32, u32)> = Vec::new();
    for (text, number) in names {
        match ranges.last_mut() {
            Some((last, _, end)) if *last == text && *end + 1 == number => *end = number,
            _ => ranges.push((text, number, number)),
        }
    }
    let left_out = ranges.len().saturating_sub(MOST_RANGES);
    ranges.truncate(MOST_RANGES);
    let shown = ranges.into_iter().map(|(text, from, to)| match from == to {
        true => format!("{text}{from}"),
        false => format!("{text}{from} to {text}{to}"),
    });
    let mut shown: Vec<String> = shown.collect();
    if left_out > 0 {
        shown.push(format!("and {left_out} such ranges more"));
    }
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::topology::Line;
    use onramp_units::Span;

    fn leaf_spine() -> Topology {
        let line = Line {
            rate: "100 Gbit/s".parse().unwrap(),
            delay: Span::from_us(1),
        };
        Topology::leaf_spine(2, 2, 2, line, line).unwrap()
    }

    #[test]
    fn every_port_has_a_name_of_its_own() {
        let mut names = leaf_spine().port_names();
        assert_eq!(names[..2], ["host0", "switch0-host0"]);
        assert!(names.contains(&"switch3-switch1".to_owned()), "{names:?}");
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 2 * 8);
    }

    #[test]
    fn an_unknown_port_is_told_what_there_is() {
        let names = leaf_spine().port_names();
        assert_eq!(find(&names, "switch0-host1"), Ok(3));
        let error = |name| find(&names, name).unwrap_err().to_string();
        assert_eq!(
            error("switch0-host3"),
            "no port is named \"switch0-host3\"; there are switch0-host0 to switch0-host1, \
             switch0-switch2 to switch0-switch3"
        );
        assert!(error("eth0").contains("there are host0 to host3, switch0-host0 to"));
    }
}
