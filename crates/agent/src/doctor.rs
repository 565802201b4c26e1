// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `onramp doctor`: what this host and its devices have, which path flows get, what lacks, and the command that mends it.
//! `read` looks at the host; the judgement here is a function of what it found.
//!
//! Does not: attach or change anything.
mod built;
mod device;
mod plan;
mod read;

use std::fmt;

use crate::datapath::pins::BpfFs;

pub use built::Part;
pub use device::{DeviceFacts, Qdisc};
pub use plan::Plan;
pub use read::{read_device, read_host};

/// The oldest kernel on which flows can be held or observed.
const OLDEST: Version = Version(5, 10);
/// The first with tcx.
const TCX: Version = Version(6, 6);

/// How good something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Nothing lacks.
    Ok,
    /// On-Ramp runs, and does less or needs an option.
    Limited,
    /// On-Ramp cannot hold flows because of it.
    Missing,
}

/// What was found about one feature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The feature.
    pub feature: &'static str,
    /// How good it is.
    pub state: State,
    /// What is there.
    pub found: String,
    /// The command or the option that mends it.
    pub fix: Option<String>,
}

impl Finding {
    fn new(feature: &'static str, state: State, found: impl Into<String>) -> Self {
        Self {
            feature,
            state,
            found: found.into(),
            fix: None,
        }
    }

    fn ok(feature: &'static str, found: impl Into<String>) -> Self {
        Self::new(feature, State::Ok, found)
    }

    fn fix(self, fix: impl Into<String>) -> Self {
        Self {
            fix: Some(fix.into()),
            ..self
        }
    }
}

/// Major and minor number of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32);

impl Version {
    /// The numbers of a release such as `6.12.1-cloud-amd64`.
    fn of(release: &str) -> Option<Self> {
        let mut numbers = release.split(|c: char| !c.is_ascii_digit());
        let mut next = || numbers.next()?.parse().ok();
        Some(Version(next()?, next()?))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

/// What the host has, whatever the device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFacts {
    /// As `uname -r` prints it.
    pub release: String,
    /// The capabilities that the daemon needs and this process lacks.
    pub missing_capabilities: Vec<&'static str>,
    /// Whether this is a container.
    pub is_container: bool,
    /// What the daemon would run with.
    pub plan: Plan,
    /// The kernel's description of its types.
    pub types: Part,
    /// Whether it takes qdiscs in BPF.
    pub has_bpf_qdiscs: bool,
    /// The qdisc fq.
    pub fq: Part,
    /// What is mounted at /sys/fs/bpf.
    pub bpffs: BpfFs,
    /// Whether BPF programs are compiled; none if the kernel does not say so.
    pub compiles_bpf: Option<bool>,
    /// Whether Cilium's bandwidth manager runs, which replaces leaf qdiscs that are not fq.
    pub has_bandwidth_manager: bool,
    /// Who has the UDP port of clock synchronisation.
    pub clock_port: PortUser,
    /// Who has the UDP port of OR-ACKs.
    pub orack_port: PortUser,
    /// The PTP hardware clocks: their files, with the names of their drivers.
    pub ptp_clocks: Vec<String>,
}

/// Who has a UDP port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortUser {
    /// It is free.
    Nobody,
    /// A daemon of onramp.
    Own,
    /// Another program.
    Other,
}

/// Debian's kernel for this processor.
#[cfg(target_arch = "aarch64")]
macro_rules! debians_kernel {
    () => {
        "linux-image-cloud-arm64"
    };
}
#[cfg(not(target_arch = "aarch64"))]
macro_rules! debians_kernel {
    () => {
        "linux-image-cloud-amd64"
    };
}

/// The kernel that has all.
const NEWER: &str = concat!(
    "for the path edge use a kernel >= 6.16 with CONFIG_NET_SCH_BPF=y, e.g. Debian's cloud kernel: \
     apt-get install -t trixie-backports ",
    debians_kernel!()
);

/// How flows can be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gets {
    /// The qdisc in BPF.
    Edge,
    /// Times of departure that fq obeys.
    Edt,
    /// Not at all: delays can be measured.
    Observe,
    /// Nothing runs here.
    Nothing,
}

impl Gets {
    /// Whether flows can be held.
    pub fn holds(self) -> bool {
        matches!(self, Gets::Edge | Gets::Edt)
    }

    fn finding(self, host: &HostFacts) -> Finding {
        let path = |state, found: &str| Finding::new("path", state, found);
        match self {
            Gets::Edge => path(State::Ok, "edge: a qdisc in BPF"),
            Gets::Edt => path(
                State::Limited,
                "edt: times of departure that fq obeys; a hold does not end early",
            )
            .fix(NEWER),
            Gets::Observe if !host.can_hold() => {
                let (found, fix) = host.without_fq();
                path(State::Missing, &found).fix(fix)
            }
            Gets::Observe => path(State::Missing, "observe only: the device's qdisc is in use")
                .fix("see qdisc; meanwhile: onramp agent run --observe --dev DEV"),
            Gets::Nothing => path(State::Missing, "none").fix("see what is MISSING above"),
        }
    }
}

impl HostFacts {
    fn version(&self) -> Option<Version> {
        Version::of(&self.release)
    }

    fn runs_programs(&self) -> bool {
        let is_new = self.version().is_none_or(|version| version >= OLDEST);
        self.types == Part::Here && is_new
    }

    /// Whether the kernel has what a path needs.
    fn can_hold(&self) -> bool {
        self.has_bpf_qdiscs || self.fq == Part::Here
    }

    /// What lacks on a kernel without qdiscs in BPF whose fq is not here, and what mends it.
    fn without_fq(&self) -> (String, String) {
        let lacks = "observe only: this kernel has no qdiscs in BPF";
        let load = match self.is_container {
            true => "on the host: modprobe sch_fq",
            false => "modprobe sch_fq",
        };
        match &self.fq {
            Part::NotBuilt(file) => (
                format!("{lacks}, and was built without sch_fq ({file})"),
                NEWER.to_owned(),
            ),
            Part::Elsewhere => (
                format!("{lacks}, and its module sch_fq is not in /lib/modules"),
                format!(
                    "{load}; if it is not found, install the package with this kernel's modules"
                ),
            ),
            Part::Here | Part::Unknown => (
                format!("{lacks}, and sch_fq is not loaded"),
                format!("{load}; if it is not found: {NEWER}"),
            ),
        }
    }

    /// What holds flows on a device whose qdisc is this.
    fn path(&self, qdisc: &Qdisc) -> Gets {
        match (self.runs_programs(), qdisc.can_be_restored()) {
            (false, _) => Gets::Nothing,
            (true, true) if self.has_bpf_qdiscs => Gets::Edge,
            (true, true) if self.fq == Part::Here => Gets::Edt,
            (true, _) => Gets::Observe,
        }
    }
}

/// A line for each feature of the host.
pub fn judge_host(host: &HostFacts) -> Vec<Finding> {
    vec![
        host.plan.finding(),
        kernel(host),
        types(host),
        privileges(host),
        hooks(host),
        compiler(host),
        pins(host),
        clock_port(host),
        orack_port(host),
        ptp_clocks(host),
        bandwidth_manager(host),
    ]
}

fn kernel(host: &HostFacts) -> Finding {
    let found = format!("Linux {}", host.release);
    match host.version() {
        Some(version) if version < OLDEST => Finding::new("kernel", State::Missing, found).fix(
            format!("use Linux {OLDEST} or later; 6.16 or later for all features"),
        ),
        _ => Finding::ok("kernel", found),
    }
}

fn types(host: &HostFacts) -> Finding {
    let missing = |found: String| Finding::new("BTF", State::Missing, found);
    let lacks = "no /sys/kernel/btf/vmlinux";
    let build = concat!(
        "use a kernel with CONFIG_DEBUG_INFO_BTF=y, e.g.: apt-get install ",
        debians_kernel!()
    );
    let mount = "mount the host's /sys, e.g. --volume /sys:/sys:ro";
    match &host.types {
        Part::Here => Finding::ok("BTF", "the kernel describes its types"),
        Part::NotBuilt(file) => missing(format!(
            "{lacks}: this kernel was built without CONFIG_DEBUG_INFO_BTF ({file})"
        ))
        .fix(build),
        Part::Elsewhere if host.is_container => {
            missing(format!("{lacks} in this container")).fix(mount)
        }
        Part::Elsewhere => {
            missing(format!("{lacks}, which this kernel has in its /sys")).fix(mount)
        }
        Part::Unknown => missing(lacks.to_owned()).fix(build),
    }
}

fn privileges(host: &HostFacts) -> Finding {
    match host.missing_capabilities.as_slice() {
        [] => Finding::ok("privileges", "all capabilities that the daemon needs"),
        missing => {
            let found = format!("no {}", missing.join(", "));
            Finding::new("privileges", State::Missing, found)
                .fix("sudo onramp doctor; in a container: --cap-add NET_ADMIN --cap-add BPF --cap-add PERFMON")
        }
    }
}

fn hooks(host: &HostFacts) -> Finding {
    match host.version() {
        Some(version) if version < TCX => Finding::new(
            "hooks",
            State::Limited,
            format!("filters of clsact: Linux {version} has no tcx"),
        )
        .fix("tcx, whose programs On-Ramp keeps in order, needs Linux 6.6"),
        _ => Finding::ok("hooks", "tcx"),
    }
}

fn compiler(host: &HostFacts) -> Finding {
    match host.compiles_bpf {
        Some(false) => Finding::new(
            "BPF compiler",
            State::Limited,
            "off: each packet costs more",
        )
        .fix("sysctl -w net.core.bpf_jit_enable=1"),
        Some(true) => Finding::ok("BPF compiler", "on"),
        None => Finding::ok(
            "BPF compiler",
            "not reported here; most kernels always compile",
        ),
    }
}

fn pins(host: &HostFacts) -> Finding {
    let limited = |found: &str| Finding::new("bpffs", State::Limited, found);
    match host.bpffs {
        BpfFs::Writable => Finding::ok("bpffs", "mounted at /sys/fs/bpf"),
        BpfFs::ReadOnly => limited(
            "/sys/fs/bpf is read-only: nothing stays for the next daemon, and onramp cc load fails",
        )
        .fix("mount -o remount,rw /sys/fs/bpf"),
        BpfFs::None => limited("not mounted at /sys/fs/bpf; onramp cc load needs it")
            .fix("mount -t bpf bpf /sys/fs/bpf"),
    }
}

fn clock_port(host: &HostFacts) -> Finding {
    match host.clock_port {
        PortUser::Nobody => Finding::ok("UDP 5198", "free for --clock huygens"),
        PortUser::Own => Finding::ok("UDP 5198", "used by onramp"),
        PortUser::Other => Finding::new("UDP 5198", State::Limited, "used by another program")
            .fix("ss -ulpn sport = :5198 names it; or give --own ADDRESS:PORT and the same port in --member on all hosts"),
    }
}

fn orack_port(host: &HostFacts) -> Finding {
    match host.orack_port {
        PortUser::Nobody | PortUser::Own => Finding::ok("UDP 5199", "free for OR-ACKs"),
        PortUser::Other => Finding::new(
            "UDP 5199",
            State::Limited,
            "used by another program: its packets count as malformed OR-ACKs, and it gets OR-ACKs of strangers",
        )
        .fix("ss -ulpn sport = :5199 names it; give it another port"),
    }
}

fn ptp_clocks(host: &HostFacts) -> Finding {
    let feature = "PTP clocks";
    match host.ptp_clocks.as_slice() {
        [] => Finding::ok(feature, "none; only --clock phc needs one"),
        clocks => Finding::ok(feature, format!("{}, for --clock phc", clocks.join(", "))),
    }
}

fn bandwidth_manager(host: &HostFacts) -> Finding {
    let feature = "Cilium";
    match host.has_bandwidth_manager {
        false => Finding::ok(feature, "no bandwidth manager"),
        true => Finding::new(
            feature,
            State::Limited,
            "its bandwidth manager replaces each leaf qdisc that is not fq, so edge would lose the device",
        )
        .fix("onramp agent run --path edt, or: cilium config set enable-bandwidth-manager false"),
    }
}

/// A line for each feature of a device, and which path it gets.
pub fn judge_device(host: &HostFacts, device: &DeviceFacts) -> (Gets, Vec<Finding>) {
    let mut path = host.path(&device.qdisc);
    if path == Gets::Edge && host.has_bandwidth_manager && host.fq == Part::Here {
        path = Gets::Edt;
    }
    let mut findings = device.judge(&host.plan);
    findings.push(path.finding(host));
    (path, findings)
}

#[cfg(test)]
mod tests;
