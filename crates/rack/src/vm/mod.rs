// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A virtual machine that runs one command on Debian's stock cloud kernel in virtual time.
//!
//! Builds an initial RAM disk, boots QEMU's software emulation with an instruction-counted clock, passes on
//! the lines that the command prints, and unpacks the files in `/out`. Does not download the kernel
//! (tools/setup does), has no network to the host, and does not know racks.
//!
//! One guest instruction takes 1 ns of guest time, and idle time is skipped. So measurements of the guest do
//! not depend on the load of the host.

mod error;
mod image;
mod kernel;
mod platform;
mod qemu;
mod vmclock;
mod watchdog;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub use error::VmError;
pub use kernel::Kernel;
pub use vmclock::{PtpClock, PAGE as PTP_PAGE, PAGE_BYTES as PTP_PAGE_BYTES};
pub use watchdog::Stuck;

/// A machine to run jobs on; cheap to make, holds nothing open.
#[derive(Clone, Debug)]
pub struct Vm {
    /// Kernel that is booted.
    pub kernel: Kernel,
    /// Directory of the archives with the kernel's modules and the guest's tools, which runs share. The tools are those of
    /// this host, or those in `root`, if it is there: a system for the guest's processor.
    pub cache: PathBuf,
    /// Guest memory, MiB.
    pub memory_mib: u32,
    /// Virtual processors, which take turns.
    pub processors: u8,
    /// Seed of every random number the emulator hands to the guest.
    pub seed: u64,
    /// QEMU plugin and its arguments, `FILE,KEY=VALUE`: it watches the guest, and the guest does not
    /// notice.
    pub plugin: Option<String>,
    /// Network cards, which a hub connects: `eth0` and so on.
    pub cards: Vec<Card>,
    /// A PTP hardware clock: `/dev/ptp0`.
    pub ptp_clock: Option<PtpClock>,
    /// Modules besides those that every guest has, by name.
    pub modules: &'static [&'static str],
}

/// A virtio network card. It takes one frame from its ring, sends it, and only then takes the next one.
#[derive(Clone, Copy, Debug)]
pub struct Card {
    /// Time between two frames.
    pub frame_time: Duration,
}

/// One command to run in a fresh guest.
#[derive(Clone, Debug)]
pub struct Job {
    /// Program and arguments; runs in `/job` as root with `OUT=/out` in its environment.
    pub command: Vec<String>,
    /// Files to place in the guest. Dynamic ELF files bring the libraries `ldd` names.
    pub files: Vec<GuestFile>,
    /// Host directory that receives the contents of the guest's `/out`.
    pub out: PathBuf,
    /// The guest is given up when its command prints nothing for this much of the guest's time.
    pub patience: Duration,
}

/// A file of the guest.
#[derive(Clone, Debug)]
pub struct GuestFile {
    /// Absolute path in the guest.
    pub path: PathBuf,
    /// What it contains.
    pub content: Content,
}

/// Content of a [`GuestFile`].
#[derive(Clone, Debug)]
pub enum Content {
    /// These bytes, mode 0644.
    Bytes(Vec<u8>),
    /// A copy of this host file, with its mode.
    Host(PathBuf),
}

/// The outcome of a guest that powered itself off.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Exit code of the command.
    pub exit_code: i32,
    /// Standard output and error of the command, interleaved.
    pub output: String,
    /// Output of the guest's kernel.
    pub console: String,
    /// Wall-clock time from power-on to power-off.
    pub wall: Duration,
}

impl Outcome {
    /// This outcome if the command succeeded.
    ///
    /// # Errors
    /// [`VmError::CommandFailed`] with the exit code and the last lines otherwise.
    pub fn success(self) -> Result<Self, VmError> {
        match self.exit_code {
            0 => Ok(self),
            code => Err(VmError::CommandFailed {
                code,
                tail: error::tail(&self.output),
            }),
        }
    }
}

impl Vm {
    /// Boots, runs `job`, powers off. `on_line` gets each line the command prints, as it comes.
    /// Setting `cancel` ends the guest within 100 ms.
    ///
    /// # Errors
    /// [`VmError`]: the host lacks something, the guest died or is stuck, or `cancel`.
    /// A command that merely fails is an `Ok` with its exit code.
    pub fn run(
        &self,
        job: &Job,
        cancel: &AtomicBool,
        on_line: &mut dyn FnMut(&str),
    ) -> Result<Outcome, VmError> {
        let image = image::build(self, job)?;
        qemu::run(self, job, &image, cancel, on_line)
    }
}
