// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The maps that several BPF objects use together: those of one device, and those of all devices of the daemon. So a
//! flow has one entry whichever device its packets leave by, and whichever its OR-ACKs come back on.
use std::{ffi::OsStr, os::fd::AsFd};

use anyhow::{Context, Result};
use libbpf_rs::{MapCore, MapHandle, Object, OpenObject};

use super::pins::Pins;

/// Maps that all devices share.
const COMMON: &[&str] = &[
    "ctls",
    "flow_ids",
    "flows_used",
    "kicks",
    "prefixes",
    "served",
    "peers",
    "clock",
    "keys",
    "thresholds",
    "rules",
    "pendings",
    "deaf",
    "owns",
    ".data.shared",
];
/// The map that the objects of one device share, so that each device has its own numbers.
const OF_DEVICE: &str = "counters";
/// By this map the pins of one daemon are told from those of another.
const FLOWS: &str = "ctls";

/// The maps by their names in the objects.
#[derive(Default)]
pub struct Shared(Vec<(&'static str, MapHandle)>);

impl Shared {
    /// Lets an object that is not loaded yet use what is there.
    pub fn lend(&self, open: &mut OpenObject) -> Result<()> {
        for mut map in open.maps_mut() {
            if let Some(shared) = self.find(map.name()) {
                map.reuse_fd(shared.as_fd())?;
            }
        }
        Ok(())
    }

    /// Keeps what a loaded object has and the others before it had not.
    pub fn keep(&mut self, loaded: &Object) -> Result<()> {
        for map in loaded.maps() {
            let names = COMMON.iter().chain([&OF_DEVICE]);
            let name = names.copied().find(|name| map.name() == OsStr::new(name));
            if let (Some(name), None) = (name, self.find(map.name())) {
                self.0.push((name, MapHandle::try_from(&map)?));
            }
        }
        Ok(())
    }

    /// The next objects are of another device.
    pub fn leave_device(&mut self) {
        self.0.retain(|(name, _)| *name != OF_DEVICE);
    }

    /// The next objects are of a device that is attached already, and has these counters.
    pub fn return_to(&mut self, counters: &MapHandle) -> Result<()> {
        self.leave_device();
        self.0.push((OF_DEVICE, MapHandle::try_from(counters)?));
        Ok(())
    }

    /// Pins all maps for the next daemon.
    pub fn pin(&self, pins: &Pins) -> Result<()> {
        self.0
            .iter()
            .try_for_each(|(name, map)| pins.pin(&pin_name(name), map.as_fd()))
    }

    /// Whether the pinned maps are these ones, as those of the devices of one daemon are; so are any, as long as there
    /// are none yet.
    pub fn is_of(&self, pins: &Pins) -> Result<bool> {
        let (Some(pinned), Ok(own)) = (pins.map(FLOWS), self.get(FLOWS)) else {
            return Ok(self.get(FLOWS).is_err());
        };
        Ok(pinned.info()?.info.id == own.info()?.info.id)
    }

    /// Takes the pinned maps that are missing here.
    pub fn take(&mut self, pins: &Pins) {
        for name in COMMON.iter().chain([&OF_DEVICE]) {
            if self.find(OsStr::new(name)).is_none() {
                let pinned = pins.map(&pin_name(name));
                self.0.extend(pinned.map(|map| (*name, map)));
            }
        }
    }

    /// The counters of the device that is attached at present.
    pub fn counters(&self) -> Result<MapHandle> {
        Ok(MapHandle::try_from(self.get(OF_DEVICE)?)?)
    }

    /// A map that an object has by now.
    pub fn get(&self, name: &str) -> Result<&MapHandle> {
        self.find(OsStr::new(name))
            .with_context(|| format!("the BPF objects have no map {name}; build onramp again"))
    }

    fn find(&self, name: &OsStr) -> Option<&MapHandle> {
        let found = self.0.iter().find(|(own, _)| OsStr::new(own) == name);
        found.map(|(_, map)| map)
    }
}

/// A BPF file system has no names with dots.
fn pin_name(map: &str) -> String {
    map.replace('.', "_")
}
