// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The maps of a running daemon, opened from outside: what a clock source beside the daemon would
//! write, and counters of a daemon that cannot answer.
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use libbpf_rs::{
    libbpf_sys as sys,
    query::{ProgInfoIter, ProgInfoQueryOptions, ProgramInfo},
    MapCore, MapFlags, MapHandle,
};

use onramp_agent::datapath::clock_map;
use onramp_law::abi::{onr_clock_params, onr_dev_cfg, COUNTERS};

use crate::agent::Agent;

/// Fleet time less CLOCK_MONOTONIC at `now_ns` by a data path's clock, ns: written once more, with
/// exact drifts.
pub fn offset_at(clock: &onr_clock_params, now_ns: i64) -> f64 {
    let elapsed_ns = (now_ns - clock.reference_mono_ns) as f64;
    clock.offset_ns as f64 + elapsed_ns * clock.drift_q32 as f64 / 2f64.powi(32)
}

/// CLOCK_MONOTONIC, ns.
pub fn now_mono_ns() -> i64 {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).expect("a clock");
    now.tv_sec() * 1_000_000_000 + now.tv_nsec()
}

/// The ids of all maps that the daemon holds open.
fn ids(agent: &Agent) -> Vec<u32> {
    let dir = format!("/proc/{}/fdinfo", agent.pid());
    let entries = std::fs::read_dir(&dir).unwrap_or_else(|e| panic!("{dir}: {e}"));
    let id_of = |text: String| {
        let line = text
            .lines()
            .find_map(|l| l.strip_prefix("map_id:").map(str::trim).map(str::parse));
        line.and_then(Result::ok)
    };
    let texts = entries
        .flatten()
        .filter_map(|e| std::fs::read_to_string(e.path()).ok());
    texts.filter_map(id_of).collect()
}

/// The map of this name that the daemon holds open.
pub fn map(agent: &Agent, name: &str) -> MapHandle {
    let all = ids(agent)
        .into_iter()
        .filter_map(|id| MapHandle::from_map_id(id).ok());
    let mut named = all.filter(|map| map.name() == name);
    named
        .next()
        .unwrap_or_else(|| panic!("the daemon has no map {name}"))
}

/// The configurations of a daemon's programs, a copy for each object.
pub fn configurations(agent: &Agent) -> Vec<onr_dev_cfg> {
    let all = ids(agent).into_iter();
    let maps = all.filter_map(|id| MapHandle::from_map_id(id).ok());
    let of = |map: MapHandle| {
        let bytes = map.lookup(&[0; 4], MapFlags::ANY).ok()??;
        (bytes.len() == size_of::<onr_dev_cfg>()).then(|| bytemuck::pod_read_unaligned(&bytes))
    };
    let cfgs = maps.filter(|map| map.name().to_string_lossy().ends_with("data.cfg"));
    cfgs.filter_map(of).collect()
}

/// Sets the clock of a daemon's data path, as its clock source does.
pub fn set_clock(agent: &Agent, params: onr_clock_params) {
    clock_map::write(&map(agent, "clock"), &params).expect("an array of two");
}

/// The clock of a daemon's data path, as its clock source has set it.
pub fn clock(agent: &Agent) -> onr_clock_params {
    clock_map::read(&map(agent, "clock")).expect("an array of two")
}

/// Steps a daemon's clock by `offset_ns` from now on; it must have been started with a lease so
/// long that it does not renew it meanwhile (`LONG_LEASE`).
pub fn step_clock(agent: &Agent, offset_ns: i64) {
    let lease = now_mono_ns() + 3_600_000_000_000;
    set_clock(
        agent,
        onr_clock_params {
            offset_ns,
            lease_expires_mono_ns: lease,
            ..Default::default()
        },
    );
}

/// Options with which a daemon leaves the clock to the test for 20 minutes.
pub const LONG_LEASE: &[&str] = &["--lease", "6000s"];

/// The counters; works while the daemon is stopped.
pub struct Counters(MapHandle);

impl Counters {
    pub fn of(agent: &Agent) -> Self {
        Self(map(agent, "counters"))
    }

    pub fn get(&self, name: &str) -> u64 {
        let index = COUNTERS
            .iter()
            .position(|(n, _)| *n == name)
            .unwrap_or_else(|| panic!("no counter {name}"));
        let value = self
            .0
            .lookup_percpu(&(index as u32).to_ne_bytes(), MapFlags::ANY);
        let cpus = value.expect("a map can be read").expect("an array element");
        cpus.iter()
            .map(|v| u64::from_ne_bytes(v[..8].try_into().expect("8 bytes")))
            .sum()
    }
}

/// Time that a program of the daemon's qdisc ran so far, ns of virtual time, and how often; needs
/// the sysctl kernel.bpf_stats_enabled.
pub fn run_time(agent: &Agent, program: &str) -> (u64, u64) {
    let info = program_info(agent, program);
    (info.run_time_ns, info.run_cnt)
}

fn program_info(agent: &Agent, program: &str) -> ProgramInfo {
    let own = ids(agent);
    let options = ProgInfoQueryOptions::default().include_map_ids(true);
    let is_it = |p: &ProgramInfo| p.name == program && p.map_ids.iter().any(|id| own.contains(id));
    let found = ProgInfoIter::with_query_opts(options).find(is_it);
    found.unwrap_or_else(|| panic!("no program {program}"))
}

/// A program of the daemon, to be called without a network.
pub struct Program(OwnedFd);

impl Program {
    pub fn of(agent: &Agent, name: &str) -> Self {
        let id = program_info(agent, name).id;
        // SAFETY: a new descriptor, which nobody else owns.
        Self(unsafe {
            let fd = sys::bpf_prog_get_fd_by_id(id);
            assert!(
                fd >= 0,
                "{name}: {}",
                std::io::Error::from_raw_os_error(-fd)
            );
            OwnedFd::from_raw_fd(fd)
        })
    }

    /// Calls it with a frame that the loopback device of this namespace has received.
    pub fn receive(&self, frame: &[u8]) {
        let mut options = sys::bpf_test_run_opts {
            sz: size_of::<sys::bpf_test_run_opts>() as u64,
            data_in: frame.as_ptr().cast(),
            data_size_in: frame.len() as u32,
            repeat: 1,
            ..Default::default()
        };
        // SAFETY: the options and the frame are valid for the call.
        let error = unsafe { sys::bpf_prog_test_run_opts(self.0.as_raw_fd(), &mut options) };
        assert_eq!(error, 0, "{}", std::io::Error::from_raw_os_error(-error));
    }
}
