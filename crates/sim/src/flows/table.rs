// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The live state of flows at one of their ends, found by the flow's number or by a place.
//!
//! A packet knows the number of its connection's first flow alone, so that either end may be anywhere. Places are for those
//! who have looked before; they are given out again.

use crate::engine::slab::Slab;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Values of flows.
pub(crate) struct FlowTable<T> {
    values: Slab<T>,
    places: HashMap<u32, u32, BuildHasherDefault<Scatter>>,
}

/// Fibonacci hashing (Knuth, The Art of Computer Programming 3, section 6.4): numbers are not chosen
/// by anybody who wants them to collide.
#[derive(Default)]
struct Scatter(u64);

impl Hasher for Scatter {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u32(self.0 as u32 ^ u32::from(byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        let product = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ product >> 32;
    }
}

impl<T> FlowTable<T> {
    pub fn new() -> FlowTable<T> {
        FlowTable {
            values: Slab::new(),
            places: HashMap::default(),
        }
    }

    /// Place of the value of `flow`, if it has one.
    pub fn place(&self, flow: u32) -> Option<u32> {
        self.places.get(&flow).copied()
    }

    /// Adds the value of `flow`, which has none; its place.
    pub fn add(&mut self, flow: u32, value: T) -> u32 {
        let place = self.values.add(value);
        self.places.insert(flow, place);
        place
    }

    /// Removes the value of `flow`, if it has one.
    pub fn remove(&mut self, flow: u32) {
        if let Some(place) = self.places.remove(&flow) {
            self.values.free(place);
        }
    }

    /// Numbers of flows and their values, in no order that means anything.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let places = self.places.iter();
        places.map(|(&flow, &place)| (flow, &self.values[place]))
    }
}

impl<T> std::ops::Index<u32> for FlowTable<T> {
    type Output = T;
    /// By place.
    fn index(&self, place: u32) -> &T {
        &self.values[place]
    }
}

impl<T> std::ops::IndexMut<u32> for FlowTable<T> {
    fn index_mut(&mut self, place: u32) -> &mut T {
        &mut self.values[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_flow_is_not_found_and_its_place_is_used_again() {
        let mut table = FlowTable::new();
        let place = table.add(7, "seven");
        assert_eq!(table.place(7), Some(place));
        table.remove(7);
        assert_eq!(table.place(7), None);
        assert_eq!(table.add(9, "nine"), place);
        assert_eq!(table.iter().collect::<Vec<_>>(), [(9, &"nine")]);
    }
}
