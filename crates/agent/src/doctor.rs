//! `onramp doctor`: what this host and its devices have, which path flows get, what lacks, and the command that mends it.
//! `read` looks at the host; the judgement here is a function of what it found.
//!
//! Does not: attach or change anything.
mod device;
mod read;

use std::fmt;

use crate::datapath::pins::BpfFs;

pub use device::{DeviceFacts, Qdisc};
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
    /// Of a release such as `6.12.1-cloud-amd64`.
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
    /// Whether the kernel describes its types.
    pub has_btf: bool,
    /// Whether it takes qdiscs in BPF.
    pub has_bpf_qdiscs: bool,
    /// Whether it has the qdisc fq, or a module of it.
    pub has_fq: bool,
    /// What is mounted at /sys/fs/bpf.
    pub bpffs: BpfFs,
    /// Whether BPF programs are compiled; none if the kernel does not say so.
    pub compiles_bpf: Option<bool>,
    /// Whether Cilium's bandwidth manager runs, which replaces leaf qdiscs that are not fq.
    pub has_bandwidth_manager: bool,
    /// Who has the UDP port of clock synchronisation.
    pub clock_port: ClockPort,
    /// The PTP hardware clocks: their files, with the names of their drivers.
    pub ptp_clocks: Vec<String>,
}

/// Who has UDP port 5198.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockPort {
    /// Nobody.
    Free,
    /// A daemon of onramp.
    Own,
    /// Another program.
    Taken,
}

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
        let newer = "for the path edge use a kernel >= 6.16 with CONFIG_NET_SCH_BPF=y, e.g. Debian's: apt-get install \
                     -t trixie-backports linux-image-cloud-amd64";
        match self {
            Gets::Edge => path(State::Ok, "edge: a qdisc in BPF"),
            Gets::Edt => path(
                State::Limited,
                "edt: times of departure that fq obeys; a hold does not end early",
            )
            .fix(newer),
            Gets::Observe if !host.has_fq && !host.has_bpf_qdiscs => path(
                State::Missing,
                "observe only: neither qdiscs in BPF nor the qdisc fq",
            )
            .fix("modprobe sch_fq"),
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
        self.has_btf && is_new
    }

    /// What holds flows on a device whose qdisc is this.
    fn path(&self, qdisc: &Qdisc) -> Gets {
        match (self.runs_programs(), qdisc.can_be_restored()) {
            (false, _) => Gets::Nothing,
            (true, true) if self.has_bpf_qdiscs => Gets::Edge,
            (true, true) if self.has_fq => Gets::Edt,
            (true, _) => Gets::Observe,
        }
    }
}

/// A line for each feature of the host.
pub fn judge_host(host: &HostFacts) -> Vec<Finding> {
    vec![
        kernel(host),
        types(host),
        privileges(host),
        hooks(host),
        compiler(host),
        pins(host),
        clock_port(host),
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
    match host.has_btf {
        true => Finding::ok("BTF", "the kernel describes its types"),
        false => Finding::new("BTF", State::Missing, "no /sys/kernel/btf/vmlinux")
            .fix("use a kernel with CONFIG_DEBUG_INFO_BTF=y, e.g.: apt-get install linux-image-cloud-amd64"),
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
        ClockPort::Free => Finding::ok("UDP 5198", "free for --clock huygens"),
        ClockPort::Own => Finding::ok("UDP 5198", "used by onramp"),
        ClockPort::Taken => Finding::new("UDP 5198", State::Limited, "used by another program")
            .fix("ss -ulpn sport = :5198 names it; or give --own ADDRESS:PORT and the same port in --member on all hosts"),
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
    if path == Gets::Edge && host.has_bandwidth_manager && host.has_fq {
        path = Gets::Edt;
    }
    let mut findings = device.judge();
    findings.push(path.finding(host));
    (path, findings)
}

#[cfg(test)]
mod tests;
