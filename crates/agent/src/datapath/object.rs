// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What all BPF objects need before and after loading.
use anyhow::{anyhow, bail, Context, Result};
use bytemuck::{bytes_of, pod_read_unaligned};
use libbpf_rs::{ErrorKind, MapCore, MapFlags, MapHandle};

use onramp_law::abi::onr_dev_cfg;

/// Writes the configuration into an object that is not loaded yet.
pub fn set_cfg(value: Option<&mut [u8]>, cfg: &onr_dev_cfg) -> Result<()> {
    let value = value.context("the BPF object has no configuration; build onramp again")?;
    let bytes = bytes_of(cfg);
    if value.len() != bytes.len() {
        bail!(
            "the configuration in the BPF object has {} bytes, not {}; build onramp again",
            value.len(),
            bytes.len()
        );
    }
    value.copy_from_slice(bytes);
    Ok(())
}

/// The configuration of a loaded object.
pub fn read_cfg(map: &MapHandle) -> Result<onr_dev_cfg> {
    let bytes = map.lookup(&[0; 4], MapFlags::ANY)?;
    Ok(pod_read_unaligned(
        &bytes.context("a configuration is empty")?,
    ))
}

/// The error of an object that the kernel does not load, with what it needs.
pub fn explain_load(error: libbpf_rs::Error, object: &str) -> anyhow::Error {
    let hint = match error.kind() {
        ErrorKind::PermissionDenied => {
            "needs root, or CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON: run the command with sudo"
        }
        _ if object == "edge" => {
            "needs Linux >= 6.16 with CONFIG_NET_SCH_BPF=y and CONFIG_DEBUG_INFO_BTF=y"
        }
        _ => "needs Linux >= 5.10 with CONFIG_DEBUG_INFO_BTF=y",
    };
    anyhow!(error).context(format!(
        "the kernel does not load {object}.bpf.o; it {hint}"
    ))
}
