// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A device that the operator has named. The daemon follows it through renames, and waits for it when it was removed.
use std::collections::BTreeMap;

/// The devices of the network namespace: their names by the kernel's index.
pub type Present = BTreeMap<i32, String>;

/// A device that the operator has named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// In the configuration.
    given: String,
    /// The name that it has, or had last.
    name: String,
    /// None while no such device is there.
    ifindex: Option<i32>,
    /// Another device that has the name of the configuration.
    namesake: Option<i32>,
}

/// What became of a device since the last look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// It had this name.
    Renamed(String),
    /// It had this name. Another one has taken its place, or it is waited for.
    Removed(String),
    /// Another device has the name of the configuration now.
    Namesake,
}

impl Named {
    /// The device that has this name and index now.
    pub fn new(given: &str, ifindex: Option<i32>) -> Named {
        Named {
            given: given.to_owned(),
            name: given.to_owned(),
            ifindex,
            namesake: None,
        }
    }

    /// In the configuration.
    pub fn given(&self) -> &str {
        &self.given
    }

    /// The name that it has, or had last.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kernel's index, while it is there.
    pub fn ifindex(&self) -> Option<i32> {
        self.ifindex
    }

    /// Looks for the device: by its index as long as it is there; then for one that has the name of the configuration or
    /// its last one, and is none of `others`, which are followed already.
    pub fn look(&mut self, present: &Present, others: &[i32]) -> Option<Event> {
        let find = |name: &str| {
            let mut all = present.iter();
            let found = all.find(|(index, own)| *own == name && !others.contains(index));
            found.map(|(index, _)| *index)
        };
        let Some(name) = self.ifindex.and_then(|index| present.get(&index)) else {
            let was_there = self.ifindex.is_some();
            let former = self.name.clone();
            self.ifindex = find(&self.given).or_else(|| find(&former));
            let name = self.ifindex.and_then(|index| present.get(&index));
            self.name = name.unwrap_or(&former).clone();
            return was_there.then_some(Event::Removed(former));
        };
        if *name != self.name {
            let former = std::mem::replace(&mut self.name, name.clone());
            return Some(Event::Renamed(former));
        }
        let namesake = find(&self.given).filter(|index| Some(*index) != self.ifindex);
        let is_new = namesake.is_some() && namesake != self.namesake;
        self.namesake = namesake;
        is_new.then_some(Event::Namesake)
    }

    /// The event in words.
    pub fn text(&self, event: &Event) -> String {
        let Named { given, name, .. } = self;
        match event {
            Event::Renamed(former) if name == given => {
                format!("device {former} is called {name} again; the daemon follows it")
            }
            Event::Renamed(former) => format!(
                "device {former} is called {name} now; the daemon follows it. Write {name} in place of {given} into the \
                 configuration before the next start"
            ),
            Event::Removed(former) if self.ifindex.is_some() => {
                format!("device {former} was removed; the daemon takes the one that is called {name} now")
            }
            Event::Removed(former) if former == given => {
                format!("device {former} was removed; the daemon waits for a device of this name")
            }
            Event::Removed(former) => format!(
                "device {former} was removed; the daemon waits for a device called {given} or {former}"
            ),
            Event::Namesake => format!(
                "another device is called {given} now; the daemon stays with {name}, which had this name. To take the \
                 other one, restart the daemon"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn present(devices: &[(i32, &str)]) -> Present {
        let named = |(index, name): &(i32, &str)| (*index, (*name).to_owned());
        devices.iter().map(named).collect()
    }

    /// A device that is called eth0 and has the index 2.
    fn eth0() -> Named {
        let mut named = Named::new("eth0", Some(2));
        assert_eq!(named.look(&present(&[(1, "lo"), (2, "eth0")]), &[]), None);
        named
    }

    #[test]
    fn a_renamed_device_is_followed_and_a_namesake_is_logged_once() {
        let mut named = eth0();
        let event = named.look(&present(&[(2, "net1")]), &[]).unwrap();
        assert_eq!(event, Event::Renamed("eth0".to_owned()));
        let text = named.text(&event);
        assert!(text.contains("eth0 is called net1 now"), "{text}");
        let both = present(&[(2, "net1"), (3, "eth0")]);
        let event = named.look(&both, &[]).unwrap();
        assert_eq!(event, Event::Namesake);
        assert!(named.text(&event).contains("stays with net1"));
        assert_eq!(named.look(&both, &[]), None);
        assert_eq!((named.name(), named.ifindex()), ("net1", Some(2)));
    }

    #[test]
    fn a_removed_device_is_waited_for_under_both_names() {
        for (back, name) in [(4, "eth0"), (5, "net1")] {
            let mut named = eth0();
            named.look(&present(&[(2, "net1")]), &[]);
            let event = named.look(&present(&[]), &[]).unwrap();
            assert_eq!(event, Event::Removed("net1".to_owned()));
            let text = named.text(&event);
            assert!(text.contains("net1 was removed"), "{text}");
            assert!(text.contains("called eth0 or net1"), "{text}");
            assert_eq!(named.look(&present(&[]), &[]), None);
            assert_eq!(named.look(&present(&[(back, name)]), &[]), None);
            assert_eq!((named.name(), named.ifindex()), (name, Some(back)));
        }
    }

    #[test]
    fn two_devices_that_exchange_their_names_are_no_namesakes() {
        let (mut eth0, mut eth1) = (eth0(), Named::new("eth1", Some(3)));
        let exchanged = present(&[(2, "eth1"), (3, "eth0")]);
        for _ in 0..2 {
            eth0.look(&exchanged, &[3]);
            eth1.look(&exchanged, &[2]);
        }
        assert_eq!((eth0.ifindex(), eth1.ifindex()), (Some(2), Some(3)));
        assert_eq!((eth0.namesake, eth1.namesake), (None, None));
    }

    #[test]
    fn one_that_was_removed_and_is_back_between_two_looks_is_another_one() {
        let mut named = eth0();
        let event = named.look(&present(&[(7, "eth0")]), &[]).unwrap();
        assert_eq!(event, Event::Removed("eth0".to_owned()));
        assert_eq!(named.ifindex(), Some(7));
        assert!(named
            .text(&event)
            .contains("takes the one that is called eth0 now"));
    }
}
