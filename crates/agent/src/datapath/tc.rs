// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Our two programs as filters of clsact, where the kernel has no tcx. Other filters may run before them.
use std::os::fd::{AsRawFd, BorrowedFd};

use anyhow::{bail, Context, Result};

/// By them a filter of a daemon that was killed is replaced.
const HANDLE: u32 = 0x6f6e72;
const PRIORITY: u32 = 1;

/// The attached filters. Dropping it removes them, and clsact if it was not there before.
pub struct Filters {
    ifindex: i32,
    made_clsact: bool,
    attached: Vec<libbpf_sys::bpf_tc_attach_point>,
}

impl Filters {
    /// Attaches both programs.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn attach(ifindex: i32, ingress: BorrowedFd<'_>, egress: BorrowedFd<'_>) -> Result<Self> {
        let both = libbpf_sys::BPF_TC_INGRESS | libbpf_sys::BPF_TC_EGRESS;
        // SAFETY: the hook is valid for the call.
        let error = unsafe { libbpf_sys::bpf_tc_hook_create(&mut hook(ifindex, both)) };
        if error != 0 && error != -nix::libc::EEXIST {
            return Err(std::io::Error::from_raw_os_error(-error))
                .context("cannot give the device a clsact qdisc (module sch_ingress)");
        }
        let mut filters = Self {
            ifindex,
            made_clsact: error == 0,
            attached: vec![],
        };
        filters.add(libbpf_sys::BPF_TC_INGRESS, ingress)?;
        filters.add(libbpf_sys::BPF_TC_EGRESS, egress)?;
        Ok(filters)
    }

    fn add(
        &mut self,
        point: libbpf_sys::bpf_tc_attach_point,
        program: BorrowedFd<'_>,
    ) -> Result<()> {
        let mut options = libbpf_sys::bpf_tc_opts {
            prog_fd: program.as_raw_fd(),
            flags: libbpf_sys::BPF_TC_F_REPLACE,
            ..filter()
        };
        let hook = hook(self.ifindex, point);
        // SAFETY: hook and options are valid for the call.
        let error = unsafe { libbpf_sys::bpf_tc_attach(&hook, &mut options) };
        if error != 0 {
            bail!(
                "cannot attach a filter to clsact (module cls_bpf): {}",
                std::io::Error::from_raw_os_error(-error)
            );
        }
        self.attached.push(point);
        Ok(())
    }
}

/// Removes the filters of a daemon that was killed, in either direction. clsact stays: other programs may use it.
pub fn remove_left(ifindex: i32) -> bool {
    let points = [libbpf_sys::BPF_TC_INGRESS, libbpf_sys::BPF_TC_EGRESS];
    // SAFETY: hook and options are valid for the call. It fails if there is no such filter.
    let detach =
        |point| unsafe { libbpf_sys::bpf_tc_detach(&hook(ifindex, point), &filter()) } == 0;
    points.map(detach).contains(&true)
}

impl Drop for Filters {
    fn drop(&mut self) {
        for point in &self.attached {
            // SAFETY: hook and options are valid for the call. It fails only if the filter is gone.
            unsafe { libbpf_sys::bpf_tc_detach(&hook(self.ifindex, *point), &filter()) };
        }
        if self.made_clsact {
            let both = libbpf_sys::BPF_TC_INGRESS | libbpf_sys::BPF_TC_EGRESS;
            // SAFETY: the hook is valid for the call.
            unsafe { libbpf_sys::bpf_tc_hook_destroy(&mut hook(self.ifindex, both)) };
        }
    }
}

fn hook(ifindex: i32, point: libbpf_sys::bpf_tc_attach_point) -> libbpf_sys::bpf_tc_hook {
    libbpf_sys::bpf_tc_hook {
        sz: size_of::<libbpf_sys::bpf_tc_hook>() as u64,
        ifindex,
        attach_point: point,
        ..Default::default()
    }
}

fn filter() -> libbpf_sys::bpf_tc_opts {
    libbpf_sys::bpf_tc_opts {
        sz: size_of::<libbpf_sys::bpf_tc_opts>() as u64,
        handle: HANDLE,
        priority: PRIORITY,
        ..Default::default()
    }
}
