//! The kernel's run-time statistics of On-Ramp's programs: runs and time of each.

use std::{
    collections::BTreeMap,
    os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
};

use anyhow::{ensure, Result};
use libbpf_rs::query::ProgInfoIter;
use serde::{Deserialize, Serialize};

/// Runs and total time of one program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Runs {
    pub runs: u64,
    pub ns: u64,
}

/// Statistics are collected while this descriptor is open.
pub fn collect() -> Result<OwnedFd> {
    // SAFETY: the kernel returns a descriptor of our own, or an error.
    let fd = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
    ensure!(
        fd >= 0,
        "the kernel does not collect run-time statistics: {}",
        std::io::Error::from_raw_os_error(-fd)
    );
    // SAFETY: as above.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Statistics of `a.<program>` (loaded first) and `b.<program>`, for programs of On-Ramp.
pub fn read() -> BTreeMap<String, (u32, Runs)> {
    let mut found = BTreeMap::new();
    for info in ProgInfoIter::default() {
        let name = info.name.to_string_lossy().into_owned();
        let ours = name.starts_with("edge_") || name.starts_with("orack_") || name == "nothing";
        if ours {
            let end = if found.contains_key(&format!("a.{name}")) {
                "b"
            } else {
                "a"
            };
            found.insert(
                format!("{end}.{name}"),
                (
                    info.id,
                    Runs {
                        runs: info.run_cnt,
                        ns: info.run_time_ns,
                    },
                ),
            );
        }
    }
    found
}

/// A loaded program by its id.
pub fn program(id: u32) -> Result<OwnedFd> {
    // SAFETY: the kernel returns a descriptor of our own, or an error.
    let fd = unsafe { libbpf_sys::bpf_prog_get_fd_by_id(id) };
    ensure!(
        fd >= 0,
        "program {id}: {}",
        std::io::Error::from_raw_os_error(-fd)
    );
    // SAFETY: as above.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Mean time of a tc program on `frame`, ns, without what the loop around it takes.
pub fn time_tc(program: BorrowedFd<'_>, nothing: BorrowedFd<'_>, frame: &[u8]) -> Result<f64> {
    Ok(f64::from(test_run(program, frame)?) - f64::from(test_run(nothing, frame)?))
}

fn test_run(program: BorrowedFd<'_>, frame: &[u8]) -> Result<u32> {
    let mut options = libbpf_sys::bpf_test_run_opts {
        sz: std::mem::size_of::<libbpf_sys::bpf_test_run_opts>() as _,
        data_in: frame.as_ptr().cast(),
        data_size_in: frame.len() as u32,
        repeat: 10_000,
        ..Default::default()
    };
    // SAFETY: the options point to a frame that outlives the call.
    let error =
        unsafe { libbpf_sys::bpf_prog_test_run_opts(program.as_fd().as_raw_fd(), &mut options) };
    ensure!(
        error == 0,
        "test run: {}",
        std::io::Error::from_raw_os_error(-error)
    );
    Ok(options.duration)
}
