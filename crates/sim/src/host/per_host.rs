// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A value of each host, where many hosts have the same one.

use super::config::Config;
use std::ops::Index;

/// A value of each node of a network.
#[derive(Debug, Clone)]
pub(crate) struct PerHost<T> {
    /// That of the hosts without a group, then that of each group.
    values: Vec<T>,
    /// By node: the place of its value.
    places: Vec<u16>,
}

impl<T> PerHost<T> {
    /// Values of `nodes` nodes with the groups of `config`; `values` are those of the other nodes and of each group.
    pub fn new(config: &Config, nodes: usize, values: impl Iterator<Item = T>) -> PerHost<T> {
        let mut places = vec![0; nodes];
        for (place, group) in (1..).zip(&config.groups) {
            for &host in &group.members {
                places[host as usize] = place;
            }
        }
        let values: Vec<T> = values.collect();
        assert_eq!(values.len(), 1 + config.groups.len());
        PerHost { values, places }
    }

    /// That of the hosts without a group, then that of each group.
    pub fn values(&self) -> &[T] {
        &self.values
    }
}

impl<T> Index<u32> for PerHost<T> {
    type Output = T;

    #[inline]
    fn index(&self, host: u32) -> &T {
        &self.values[usize::from(self.places[host as usize])]
    }
}
