//! The maps that several BPF objects use together: those of one device, and those of all devices of the daemon. So a
//! flow has one entry whichever device its packets leave by, and whichever its OR-ACKs come back on.
use std::{ffi::OsStr, os::fd::AsFd};

use anyhow::{Context, Result};
use libbpf_rs::{MapCore, MapHandle, Object, OpenObject};

/// Of all devices.
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
    ".data.shared",
];
/// Of the objects of one device, so that each device has its own numbers.
const OF_DEVICE: &str = "counters";

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
