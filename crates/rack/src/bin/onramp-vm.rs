// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! `onramp-vm`: runs one command in the rack's virtual machine. A tool for developing the data path.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Parser;
use onramp_rack::vm::{Content, GuestFile, Job, Kernel, Vm};

/// Runs a command on Debian's cloud kernel in virtual time; prints what it prints.
///
/// Example: tools/vm -f target/release/onramp -f tests/attach.sh bash attach.sh
#[derive(Parser)]
struct Arguments {
    /// A file or directory to place in /job (or `HOST:GUEST`); programs bring their libraries.
    #[arg(short, long, value_name = "PATH")]
    file: Vec<String>,
    /// Directory that receives the guest's /out ($OUT).
    #[arg(short, long, default_value = "results/vm")]
    out: PathBuf,
    /// Directory that `make setup` fills.
    #[arg(long, default_value = ".cache")]
    cache: PathBuf,
    /// Kernel to boot instead of the one `make setup` fetched.
    #[arg(long)]
    kernel: Option<PathBuf>,
    /// Guest memory, MiB.
    #[arg(long, default_value_t = 1024)]
    memory_mib: u32,
    /// Virtual processors.
    #[arg(long, default_value_t = 1)]
    processors: u8,
    /// Seed of the guest's random numbers.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Time of the guest without output after which it is given up, s.
    #[arg(long, default_value_t = 600)]
    patience_s: u64,
    /// Print the kernel's console and the wall-clock time to stderr afterwards.
    #[arg(short, long)]
    verbose: bool,
    /// The command, run in /job.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let kernel = match &arguments.kernel {
        Some(path) => Kernel::at(path)?,
        None => Kernel::find(&arguments.cache)?,
    };
    let vm = Vm {
        kernel,
        cache: arguments.cache,
        memory_mib: arguments.memory_mib,
        processors: arguments.processors,
        seed: arguments.seed,
        plugin: None,
        cards: vec![],
        ptp_clock: None,
        modules: &[],
    };
    let mut files = Vec::new();
    for argument in &arguments.file {
        let (host, guest) = match argument.split_once(':') {
            Some((host, guest)) => (Path::new(host), PathBuf::from(guest)),
            None => (
                Path::new(argument),
                Path::new("/job").join(Path::new(argument).file_name().unwrap_or_default()),
            ),
        };
        collect(host, &guest, &mut files)?;
    }
    let job = Job {
        command: arguments.command,
        files,
        out: arguments.out,
        patience: Duration::from_secs(arguments.patience_s),
    };
    let cancel = Arc::new(AtomicBool::new(false));
    let on_signal = Arc::clone(&cancel);
    ctrlc::set_handler(move || on_signal.store(true, Ordering::Relaxed))?;
    let outcome = vm.run(&job, &cancel, &mut |line| println!("{line}"))?;
    if arguments.verbose {
        eprintln!(
            "{}\nwall {:.1} s",
            outcome.console,
            outcome.wall.as_secs_f64()
        );
    }
    Ok(ExitCode::from(u8::try_from(outcome.exit_code).unwrap_or(1)))
}

/// Adds `host` to `files` at `guest`; a directory with all it contains.
fn collect(host: &Path, guest: &Path, files: &mut Vec<GuestFile>) -> anyhow::Result<()> {
    if !host.is_dir() {
        files.push(GuestFile {
            path: guest.to_owned(),
            content: Content::Host(host.to_owned()),
        });
        return Ok(());
    }
    for entry in host
        .read_dir()
        .with_context(|| host.display().to_string())?
    {
        let entry = entry?;
        collect(&entry.path(), &guest.join(entry.file_name()), files)?;
    }
    Ok(())
}
