// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The qdiscs that a device had before a daemon attached.
use onramp_units::Span;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A classless qdisc: its kind and raw TCA_OPTIONS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leaf {
    pub kind: String,
    pub options: Vec<u8>,
}

impl Leaf {
    /// With the options that the kernel chooses.
    pub fn plain(kind: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            options: vec![],
        }
    }

    /// A number among its options, by its attribute (linux/pkt_sched.h).
    fn number(&self, attribute: u16) -> Option<u32> {
        let mut rest = self.options.as_slice();
        while let [l0, l1, k0, k1, ref value @ ..] = *rest {
            let length = usize::from(u16::from_ne_bytes([l0, l1]));
            let value = value.get(..length.checked_sub(4)?)?;
            if u16::from_ne_bytes([k0, k1]) == attribute {
                return Some(u32::from_ne_bytes(value.try_into().ok()?));
            }
            rest = rest.get(length.next_multiple_of(4)..)?;
        }
        None
    }

    /// Most packets of a flow, where it has such a limit.
    pub fn flow_limit(&self) -> Option<u32> {
        let of_fq = || self.number(TCA_FQ_FLOW_PLIMIT).unwrap_or(FQ_FLOW_LIMIT);
        (self.kind == "fq").then(of_fq)
    }

    /// How it drops what waits for too long, if it does.
    pub fn codel(&self) -> Option<Codel> {
        let us = |attribute, usual_us| self.number(attribute).unwrap_or(usual_us);
        ["fq_codel", "codel"]
            .contains(&self.kind.as_str())
            .then(|| Codel {
                target: Span::from_us(us(TCA_CODEL_TARGET, 5_000).into()),
                interval: Span::from_us(us(TCA_CODEL_INTERVAL, 100_000).into()),
            })
    }
}

/// Attributes of options, and what the kernel has without them (linux/pkt_sched.h, sch_fq.c, sch_fq_codel.c). Those of
/// codel and fq_codel have the same numbers.
const TCA_FQ_FLOW_PLIMIT: u16 = 2;
const FQ_FLOW_LIMIT: u32 = 100;
const TCA_CODEL_TARGET: u16 = 1;
const TCA_CODEL_INTERVAL: u16 = 3;

/// Packets are dropped when others of their queue have waited longer than the target for an interval (RFC 8289).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Codel {
    pub target: Span,
    pub interval: Span,
}

/// The qdiscs of a device, which can be restored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Found {
    /// The kernel's default: the kernel restores it when the On-Ramp qdisc is deleted.
    Default,
    /// A configured root qdisc.
    Configured(Leaf),
    /// A configured mq: its handle, and the configured qdiscs of transmit queues.
    PerQueue {
        handle: u32,
        leaves: BTreeMap<u32, Leaf>,
    },
}

impl Found {
    /// The kind of qdisc that the first transmit queue has.
    pub fn kind(&self) -> String {
        self.of_queue(0).kind
    }

    /// What a transmit queue had.
    pub fn of_queue(&self, queue: u32) -> Leaf {
        let configured = match self {
            Found::Default => None,
            Found::Configured(leaf) => Some(leaf),
            Found::PerQueue { leaves, .. } => leaves.get(&queue),
        };
        configured
            .cloned()
            .unwrap_or_else(|| Leaf::plain(&default_kind()))
    }
}

/// The qdisc that the kernel gives a queue that nobody has configured (net.core.default_qdisc). In a network
/// namespace other than the first it cannot be read: there, the kernel's own.
fn default_kind() -> String {
    let text = std::fs::read_to_string("/proc/sys/net/core/default_qdisc");
    text.map_or("pfifo_fast".to_owned(), |text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(kind: &str, numbers: &[(u16, u32)]) -> Leaf {
        let attribute = |(kind, number): &(u16, u32)| {
            let head = [8u16.to_ne_bytes(), kind.to_ne_bytes()].concat();
            [head, number.to_ne_bytes().to_vec()].concat()
        };
        Leaf {
            kind: kind.to_owned(),
            options: numbers.iter().flat_map(attribute).collect(),
        }
    }

    #[test]
    fn limits_and_codel_are_those_of_the_former_qdisc() {
        assert_eq!(Leaf::plain("fq").flow_limit(), Some(100));
        assert_eq!(with("fq", &[(1, 9), (2, 50)]).flow_limit(), Some(50));
        assert_eq!(Leaf::plain("pfifo_fast").flow_limit(), None);
        let usual = Codel {
            target: Span::from_us(5_000),
            interval: Span::from_us(100_000),
        };
        assert_eq!(Leaf::plain("fq_codel").codel(), Some(usual));
        let other = Codel {
            target: Span::from_us(1_000),
            ..usual
        };
        assert_eq!(with("codel", &[(2, 7), (1, 1_000)]).codel(), Some(other));
        assert_eq!(Leaf::plain("fq").codel(), None);
    }

    #[test]
    fn options_that_are_cut_have_no_numbers() {
        let whole = with("fq", &[(1, 9), (2, 50)]).options;
        for length in 0..whole.len() {
            let cut = Leaf {
                kind: "fq".to_owned(),
                options: whole[..length].to_vec(),
            };
            assert_eq!(cut.flow_limit(), Some(100), "{length}");
        }
    }
}
