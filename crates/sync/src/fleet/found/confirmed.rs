// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! New hosts for which one other host alone speaks. Nothing shows whether that one is right: it may lie, and be the only one
//! that was heard because all others were stopped.

use super::{component_of_most, Found};
use crate::{
    fleet::{Clock, Report},
    mesh::{self, Edge},
};

impl Found {
    /// By host: whether it is new and only edges of one other host connect it with those that are known, though there are
    /// others that could confirm it. Of a fleet that begins nobody is known, and most hosts count as those that are.
    pub fn unconfirmed(&self, reports: &[Report], clocks: &[Clock]) -> Vec<bool> {
        let hosts = clocks.len();
        let mut unconfirmed = vec![false; hosts];
        let members: Vec<usize> = (0..hosts).filter(|host| self.is_member(*host)).collect();
        let is_new = |host: &usize| clocks[*host].windows == 0;
        let (new, known): (Vec<usize>, Vec<usize>) = members.iter().partition(|host| is_new(host));
        if new.is_empty() || members.len() < 3 {
            return unconfirmed;
        }
        let anchors = if known.is_empty() { &new } else { &known };
        for one in &members {
            let others = anchors.iter().copied().filter(|host| host != one);
            if others.clone().next().is_none() {
                continue;
            }
            let parts = self.parts_without(*one, reports);
            let rest = component_of_most(&parts, others);
            for host in new.iter().filter(|host| *host != one) {
                unconfirmed[*host] |= parts[*host] != rest;
            }
        }
        unconfirmed
    }

    /// By host, the number of its connected component by the edges between members that are not `one`.
    fn parts_without(&self, one: usize, reports: &[Report]) -> Vec<usize> {
        let is_placed = |host: usize| self.placed[host].is_some();
        let connects = |(report, trust): &(&Report, &f64)| {
            let ends = [report.near, report.far];
            let is_trusted = **trust > 0.0 || ends.into_iter().any(is_placed);
            is_trusted
                && ends
                    .into_iter()
                    .all(|end| end != one && self.is_member(end))
        };
        let trusted = reports.iter().zip(&self.offsets.trust).filter(connects);
        let edge = |(report, _): (&Report, &f64)| Edge {
            near: report.near,
            far: report.far,
            ahead: 0.0,
            weight: 1.0,
        };
        mesh::connected(self.lost.len(), &trusted.map(edge).collect::<Vec<_>>())
    }
}
