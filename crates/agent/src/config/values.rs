// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Types of values that only the daemons have.

use onramp_keys::{choice, read_or, words_or, Toml, Value, Wrong};
use onramp_sync::synthetic::Oscillator;
use onramp_units::Span;

use crate::{cgroup, prefix::Prefix};

choice! {
    /// How flows are held.
    pub enum Path {
        /// `edge` where the kernel has BPF qdiscs, else `edt`.
        Auto = "auto",
        /// A qdisc in BPF, from Linux 6.16 on.
        Edge = "edge",
        /// Times of departure that the fq qdisc obeys. A hold does not end early.
        Edt = "edt",
    }
}

choice! {
    /// What happens to flows of no class.
    pub enum Others {
        /// They are held as their delays demand.
        Hold = "hold",
        /// They never are.
        Pass = "pass",
    }
}

choice! {
    /// Whether flows leave at TCP's pace.
    pub enum Pace {
        /// If the device had fq.
        Auto = "auto",
        On = "on",
        Off = "off",
    }
}

choice! {
    /// Where a segment gets its stamp.
    pub enum Stamp {
        /// When the NIC sends it.
        Wire = "wire",
        /// When it leaves the qdisc.
        Qdisc = "qdisc",
    }
}

choice! {
    /// How a trace writes addresses.
    pub enum Addresses {
        Plain = "plain",
        /// By the key that signs OR-ACKs.
        Hashed = "hashed",
    }
}

choice! {
    /// The source of fleet time.
    pub enum ClockSource {
        /// CLOCK_MONOTONIC; correct only if all hosts share one kernel.
        Local = "local",
        /// The synchronisation with the other hosts of the fleet, in software.
        Huygens = "huygens",
        /// CLOCK_REALTIME, which another program keeps right within a bound.
        System = "system",
        /// A PTP hardware clock, likewise.
        Phc = "phc",
    }
}

/// The threshold of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// The same T for all peers.
    Fixed(Span),
    /// A T for each peer, from its delays.
    Auto,
}

const AUTO: &str = "auto";

impl Value for Threshold {
    type Bounds = (Span, Span);
    const WRITTEN: &'static [Toml] = Span::WRITTEN;
    const PLACEHOLDER: &'static str = Span::PLACEHOLDER;

    fn read(text: &str, bounds: (Span, Span)) -> Result<Threshold, Wrong> {
        let fixed = read_or(AUTO, text, bounds)?;
        Ok(fixed.map_or(Threshold::Auto, Threshold::Fixed))
    }

    fn text(&self) -> String {
        self.to_string()
    }

    fn words(bounds: (Span, Span)) -> String {
        words_or::<Span>(AUTO, bounds)
    }
}

impl std::fmt::Display for Threshold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Threshold::Fixed(span) => span.fmt(f),
            Threshold::Auto => f.write_str(AUTO),
        }
    }
}

impl Value for Prefix {
    type Bounds = ();
    const PLACEHOLDER: &'static str = "PREFIX";

    fn read(text: &str, (): ()) -> Result<Prefix, Wrong> {
        let wrong = |error: anyhow::Error| Wrong::Other(error.to_string());
        text.parse().map_err(wrong)
    }

    fn text(&self) -> String {
        self.to_string()
    }

    fn words((): ()) -> String {
        "an IP address or prefix such as \"10.0.0.0/8\"".to_owned()
    }
}

/// The path of a cgroup below the root of cgroups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgroupPath(pub String);

impl Value for CgroupPath {
    type Bounds = ();
    const PLACEHOLDER: &'static str = "PATH";

    fn read(text: &str, (): ()) -> Result<CgroupPath, Wrong> {
        match cgroup::is_path(text) {
            true => Ok(CgroupPath(text.to_owned())),
            false => Err(Wrong::unlike::<CgroupPath>(())),
        }
    }

    fn text(&self) -> String {
        self.0.clone()
    }

    fn words((): ()) -> String {
        format!(
            "a path of 1 to {} names such as \"/system.slice/backup.service\"",
            cgroup::MOST_LEVELS
        )
    }
}

/// The error of a clock, for tests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockError(pub Oscillator);

impl Value for ClockError {
    type Bounds = ();
    const PLACEHOLDER: &'static str = "ERROR";

    fn read(text: &str, (): ()) -> Result<ClockError, Wrong> {
        text.parse().map(ClockError).map_err(Wrong::Other)
    }

    fn text(&self) -> String {
        self.0.to_string()
    }

    fn words((): ()) -> String {
        "offset=TIME,drift=NUMBER".to_owned()
    }
}
