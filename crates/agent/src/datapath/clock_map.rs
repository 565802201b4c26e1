// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The clock of a data path in its BPF map: two elements, of which the one with the larger epoch is valid.
use anyhow::{anyhow, Result};
use bytemuck::{bytes_of, pod_read_unaligned};
use libbpf_rs::{MapCore, MapFlags, MapHandle};

use onramp_law::abi::{onr_clock, onr_clock_params};

/// Writes the element that is not valid, and makes it valid by a second update that only changes its epoch.
///
/// # Errors
/// The map cannot be read or written.
pub fn write(map: &MapHandle, params: &onr_clock_params) -> Result<()> {
    let (first, second) = (element(map, 0)?.epoch, element(map, 1)?.epoch);
    let index = u32::from(first > second);
    for epoch in [first.min(second), first.max(second) + 1] {
        let value = onr_clock {
            epoch,
            params: *params,
        };
        map.update(&index.to_ne_bytes(), bytes_of(&value), MapFlags::ANY)?;
    }
    Ok(())
}

/// The valid element.
///
/// # Errors
/// The map cannot be read.
pub fn read(map: &MapHandle) -> Result<onr_clock_params> {
    let (first, second) = (element(map, 0)?, element(map, 1)?);
    let valid = if first.epoch > second.epoch {
        first
    } else {
        second
    };
    Ok(valid.params)
}

fn element(map: &MapHandle, index: u32) -> Result<onr_clock> {
    let bytes = map
        .lookup(&index.to_ne_bytes(), MapFlags::ANY)?
        .ok_or_else(|| anyhow!("the BPF map of the clock lacks element {index}"))?;
    Ok(pod_read_unaligned(&bytes))
}
