// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Runs the emulator: arguments, process and output.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use super::error::{at, tail, trouble};
use super::image::{find_program, Image};
use super::platform::{plugin, PLATFORM};
use super::watchdog::{Emulator, Watchdog};
use super::{vmclock, Card, Job, Outcome, Vm, VmError};

/// Interval at which the host checks for output, the end of the process and cancellation.
const POLL: Duration = Duration::from_millis(50);

/// Command line of every kernel; that of its platform follows.
const KERNEL_ARGUMENTS: &[&str] = &[
    // The same addresses in every run.
    "quiet nokaslr",
    // A program lies where it lay before, so the emulator has translated it already: starting one takes half the time.
    "norandmaps",
    // An emulated processor does not speculate.
    "mitigations=off",
    // The kernel's own certificates cost 0.3 s to parse and serve only to check modules.
    "initcall_blacklist=load_system_certificate_list",
    // The kernel's tests of its own ciphers are two fifths of what it does until it is up.
    "cryptomgr.notests=1",
    // A kernel that panics ends the guest.
    "oops=panic panic=-1",
];

/// Boots `image` and waits for the guest to power off.
pub(super) fn run(
    vm: &Vm,
    job: &Job,
    image: &Image,
    cancel: &AtomicBool,
    on_line: &mut dyn FnMut(&str),
) -> Result<Outcome, VmError> {
    let work = tempfile::Builder::new()
        .prefix("onramp-vm-")
        .tempdir()
        .map_err(at(&std::env::temp_dir()))?;
    let dir = work.path();
    let initrd = dir.join("initrd");
    fs::write(&initrd, &image.initrd).map_err(at(&initrd))?;

    let emulator = find_program(PLATFORM.emulator)?;
    let halt = dir.join("halt.so");
    let plugin = plugin(&emulator).map_err(at(&emulator))?;
    fs::write(&halt, plugin).map_err(at(&halt))?;

    let mut lines = Lines::create(&dir.join("lines"))?;
    let mut uptimes = Lines::create(&dir.join("uptimes"))?;
    let start = Instant::now();
    let mut guest = Guest(
        command(vm, &emulator, &image.kernel, dir)?
            .spawn()
            .map_err(no_qemu)?,
    );
    let mut watchdog = Watchdog::new(job.patience);
    let ended = loop {
        let status = guest.0.try_wait().map_err(no_qemu)?;
        let now = Emulator {
            wall: start.elapsed(),
            processor: processor_time(guest.0.id()),
        };
        uptimes.forward(&mut |line| {
            let seconds = line.parse().unwrap_or(0.0);
            watchdog.uptime(Duration::from_secs_f64(seconds), now);
        })?;
        lines.forward(&mut |line| {
            watchdog.line();
            on_line(line);
        })?;
        if let Some(status) = status {
            break status;
        }
        if cancel.load(Ordering::Relaxed) {
            return Err(VmError::Cancelled);
        }
        if let Some(why) = watchdog.stuck(now) {
            let tail = last_words(dir, &lines.text);
            return Err(VmError::Stuck { why, tail });
        }
        thread::sleep(POLL);
    };
    lines.forward(on_line)?;
    let exit_code = unpack(dir, &job.out)?.ok_or_else(|| died(ended, dir, &lines.text))?;
    Ok(Outcome {
        exit_code,
        output: lines.text,
        console: text(&dir.join("console")),
        wall: start.elapsed(),
    })
}

fn kernel_arguments(vm: &Vm) -> String {
    let clock = vm.ptp_clock.map(|_| vmclock::kernel_argument());
    format!(
        "{} {} onramp.seed={}{}",
        KERNEL_ARGUMENTS.join(" "),
        PLATFORM.kernel.join(" "),
        vm.seed,
        clock.unwrap_or_default(),
    )
}

/// The emulator, ready to start.
fn command(vm: &Vm, emulator: &Path, kernel: &Path, dir: &Path) -> Result<Command, VmError> {
    let ourselves = rustix::process::getpid();
    let errors = dir.join("qemu");
    let file = |name: &str| format!("file,id={name},path={}", dir.join(name).display());
    let mut command = Command::new(emulator);
    command
        .args(PLATFORM.machine)
        .args(["-accel", "tcg"])
        .args([
            "-icount",
            "shift=0,sleep=off",
            "-rtc",
            "clock=vm,base=2025-01-01",
        ])
        .args([
            "-nodefaults",
            "-no-reboot",
            "-display",
            "none",
            "-monitor",
            "none",
        ])
        .args(["-smp", &vm.processors.to_string()])
        .args(["-m", &vm.memory_mib.to_string()])
        .args(["-chardev", &file("console"), "-serial", "chardev:console"])
        // Without ioeventfd the guest's processor itself writes the bytes to the file: no other
        // thread decides at which instruction the write is over.
        .args(["-device", "virtio-serial-pci,ioeventfd=off"])
        .args([
            "-chardev",
            &file("lines"),
            "-device",
            "virtserialport,chardev=lines,nr=1",
        ])
        .args([
            "-chardev",
            &file("results"),
            "-device",
            "virtserialport,chardev=results,nr=2",
        ])
        .args([
            "-chardev",
            &file("uptimes"),
            "-device",
            "virtserialport,chardev=uptimes,nr=3",
        ])
        .arg("-kernel")
        .arg(kernel)
        .arg("-initrd")
        .arg(dir.join("initrd"))
        // The kernel mixes its command line into its random pool, and has no other source that
        // differs between runs.
        .args(["-append", &kernel_arguments(vm)])
        .args(vm.cards.iter().enumerate().flat_map(card))
        .arg("-plugin")
        .arg(dir.join("halt.so"))
        .args(vm.plugin.iter().flat_map(|plugin| ["-plugin", plugin]))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(&errors).map_err(at(&errors))?)
        // A group of its own, so that Ctrl-C reaches this process, which decides about the guest.
        .process_group(0);
    if let Some(clock) = &vm.ptp_clock {
        command.args(vmclock::arguments(clock, dir)?);
    }
    // SAFETY: the closure makes two system calls and touches no memory of the parent.
    unsafe { command.pre_exec(move || end_with(ourselves)) };
    Ok(command)
}

/// A card at the hub. `tx=timer` sends `x-txburst` frames after each `x-txtimer` ns of the guest's time; without
/// segmentation offload a frame is one of the wire.
fn card((number, card): (usize, &Card)) -> [String; 4] {
    let ns = card.frame_time.as_nanos();
    [
        "-netdev".to_owned(),
        format!("hubport,id=hub{number},hubid=0"),
        "-device".to_owned(),
        format!(
            "virtio-net-pci,netdev=hub{number},mac=02:00:00:00:01:{number:02x},romfile=,ioeventfd=off,\
             tx=timer,x-txtimer={ns},x-txburst=1,csum=off,guest_csum=off"
        ),
    ]
}

/// Has the kernel kill the calling process when the thread that started it ends, however it ends.
fn end_with(parent: Pid) -> std::io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    match rustix::process::getppid() {
        Some(now) if now == parent => Ok(()),
        _ => Err(std::io::ErrorKind::BrokenPipe.into()),
    }
}

/// The emulator's process; dropping it ends it.
struct Guest(Child);

impl Drop for Guest {
    fn drop(&mut self) {
        // Fails only if the process has already been waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Processor time of all threads of a process that has not been waited for; zero once it has ended.
fn processor_time(process: u32) -> Duration {
    /// The unit of the times in /proc, on every Linux of this architecture.
    const TICKS_PER_S: f64 = 100.0;
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // After the name, which may hold anything, come state (field 3) and numbers; utime is field 14.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let times = fields.split_whitespace().skip(11).take(2);
    let ticks: f64 = times.filter_map(|ticks| ticks.parse::<f64>().ok()).sum();
    Duration::from_secs_f64(ticks / TICKS_PER_S)
}

/// A growing file of what the guest prints to a port.
struct Lines {
    file: File,
    text: String,
    pending: Vec<u8>,
}

impl Lines {
    /// A reader of the file at `path`, which the emulator will write.
    fn create(path: &Path) -> Result<Self, VmError> {
        File::create(path).map_err(at(path))?;
        let file = File::open(path).map_err(at(path))?;
        Ok(Self {
            file,
            text: String::new(),
            pending: Vec::new(),
        })
    }

    /// Hands every line that is complete by now to `on_line`.
    fn forward(&mut self, on_line: &mut dyn FnMut(&str)) -> Result<(), VmError> {
        self.file
            .read_to_end(&mut self.pending)
            .map_err(at(Path::new("output of the guest")))?;
        while let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.pending.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            on_line(line.trim_end_matches('\n'));
            self.text.push_str(&line);
        }
        Ok(())
    }
}

/// Unpacks the guest's `/out` into `out`; the exit code of its command, or none if the guest
/// ended before it had handed everything over.
fn unpack(dir: &Path, out: &Path) -> Result<Option<i32>, VmError> {
    let results = dir.join("results");
    let Ok(file) = File::open(&results) else {
        return Ok(None);
    };
    fs::create_dir_all(out).map_err(at(out))?;
    let mut archive = tar::Archive::new(file);
    for entry in archive.entries().map_err(at(&results))? {
        let Ok(mut entry) = entry else {
            return Ok(None);
        };
        let path = entry.path().map_err(at(&results))?.into_owned();
        if path == Path::new("exit_code") {
            let mut code = String::new();
            entry.read_to_string(&mut code).map_err(at(&results))?;
            return Ok(code.trim().parse().ok());
        }
        let Ok(inside) = path.strip_prefix("out") else {
            continue;
        };
        if inside.as_os_str().is_empty() {
            continue;
        }
        let target = out.join(inside);
        if entry.unpack(&target).is_err() {
            return Ok(None);
        }
    }
    Ok(None)
}

/// The error of an emulator that cannot be started.
fn no_qemu(source: std::io::Error) -> VmError {
    VmError::NoProgram {
        program: PLATFORM.emulator.into(),
        source,
    }
}

/// The error of a guest that ended with `status` without results.
fn died(status: ExitStatus, dir: &Path, output: &str) -> VmError {
    let mut tail = last_words(dir, output);
    if !status.success() {
        tail.push_str(&format!("\n{}: {status}", PLATFORM.emulator));
    }
    VmError::GuestDied { tail }
}

/// Last lines of the emulator, the kernel and the command.
fn last_words(dir: &Path, output: &str) -> String {
    let mut parts = vec![
        tail(&text(&dir.join("qemu"))),
        trouble(&text(&dir.join("console"))),
        tail(output),
    ];
    parts.retain(|part| !part.trim().is_empty());
    parts.join("\n")
}

/// Content of a file that may not exist and may not be UTF-8.
fn text(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}
