// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The programs of bpf/cc, compiled. `NAME.bpf.c` is a congestion control, and `NAME_hooks.bpf.c` has the tcx programs that
//! it needs at devices.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use libbpf_rs::{Error, Link, MapCore, MapType, Object, ObjectBuilder, OpenObject, Result};

use crate::hooks::{EGRESS, INGRESS};

/// Behind the name of a congestion control: its programs for devices.
pub const HOOKS: &str = "_hooks";
/// The map of a program's configuration: `CONFIG` of bpf/cc/config.bpf.h.
const CONFIGURATION: &str = ".data.cfg";

/// As libbpf reads an object.
#[repr(C, align(8))]
struct Aligned<const BYTES: usize>([u8; BYTES]);

/// Names and bytes.
static OBJECTS: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/objects.rs"));

/// Names of all.
#[cfg(test)]
pub fn names() -> impl Iterator<Item = &'static str> {
    OBJECTS.iter().map(|(name, _)| *name)
}

/// The object with the tcx programs of a congestion control, if it needs any.
pub fn hooks(name: &str) -> Option<String> {
    let hooks = format!("{name}{HOOKS}");
    OBJECTS
        .iter()
        .any(|(name, _)| *name == hooks)
        .then_some(hooks)
}

/// A program with its configuration.
///
/// # Errors
///
/// There is none of this name, or its configuration has another size.
pub fn open(name: &str, configuration: &[u8]) -> Result<OpenObject> {
    let object = OBJECTS.iter().find(|(object, _)| *object == name);
    let absent = |what: String| Error::from(std::io::Error::other(what));
    let (_, bytes) = object.ok_or_else(|| absent(format!("there is no bpf/cc/{name}.bpf.c")))?;
    let mut object = ObjectBuilder::default().open_memory(bytes)?;
    let mut maps = object.maps_mut();
    let map = maps.find(|map| map.name() == OsStr::new(CONFIGURATION));
    map.ok_or_else(|| absent(format!("bpf/cc/{name}.bpf.c has no CONFIG")))?
        .set_initial_value(configuration)?;
    drop(maps);
    Ok(object)
}

/// Registers a congestion control with the kernel, until the link is gone, and pins the programs that devices need in
/// `pins`.
pub fn register(name: &str, configuration: &[u8], pins: Option<&Path>) -> Result<Link> {
    let mut control = open(name, configuration)?.load()?;
    if let (Some(hooks), Some(pins)) = (hooks(name), pins) {
        pin_hooks(open(&hooks, configuration)?, &control, pins)?;
    }
    let mut maps = control.maps_mut();
    let operations = maps.find(|map| map.map_type() == MapType::StructOps);
    operations
        .expect("a congestion control has its operations")
        .attach_struct_ops()
}

/// Loads the programs for devices, which share maps with their congestion control by name.
fn pin_hooks(mut hooks: OpenObject, control: &Object, pins: &Path) -> Result<()> {
    for mut map in hooks.maps_mut() {
        if let Some(shared) = shared(control, map.name())? {
            map.reuse_fd(shared.as_fd())?;
        }
    }
    for mut program in hooks.load()?.progs_mut() {
        let direction = match program.section().to_str() {
            Some("tcx/ingress") => INGRESS,
            Some("tcx/egress") => EGRESS,
            other => unreachable!("no section of tcx: {other:?}"),
        };
        program.pin(pins.join(direction))?;
    }
    Ok(())
}

/// The map of that name, unless it is the variables of a program.
fn shared(control: &Object, name: &OsStr) -> Result<Option<OwnedFd>> {
    let is_shared = |map: &libbpf_rs::Map<'_>| map.name() == name && !is_internal(name);
    let map = control.maps().find(is_shared);
    Ok(map
        .map(|map| map.as_fd().try_clone_to_owned())
        .transpose()?)
}

/// Whether a map has the variables of a program.
fn is_internal(name: &OsStr) -> bool {
    name.to_str().is_none_or(|name| name.contains('.'))
}
