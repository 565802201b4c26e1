//! Outside the machine: boots one for each bed, twice, and writes docs/cost.md and docs/cost.json.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::{
        atomic::{AtomicBool, AtomicUsize, Ordering},
        Mutex,
    },
    time::Duration,
};

use anyhow::{ensure, Context, Result};
use onramp_rack::vm::{Content, GuestFile, Job, Kernel, Vm};

use crate::{bed::Bed, guest::Measured, table};

/// A run and its repetition differ in the emulator's random numbers: hash seeds, ports.
const SEEDS: [u64; 2] = [1, 2];
const MACHINES: usize = 2;
const MEMORY_MIB: u32 = 1024;
const TIMEOUT: Duration = Duration::from_secs(900);

/// Arguments: numbers of the beds to measure, for development; then nothing is written.
pub fn run(arguments: &[String]) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let chosen: Vec<usize> = arguments.iter().filter_map(|a| a.parse().ok()).collect();
    let beds: Vec<usize> = if chosen.is_empty() {
        (0..Bed::ALL.len()).collect()
    } else {
        chosen.clone()
    };
    let onramp = build_onramp(&root)?;
    let runs: Vec<(usize, u64)> = beds
        .iter()
        .flat_map(|bed| SEEDS.map(|seed| (*bed, seed)))
        .collect();
    let mut measured = boot_all(&root, &onramp, &runs)?;
    measured.sort_by_key(|(bed, seed, _)| (*bed, *seed));
    let results: Vec<Vec<Measured>> = measured.into_iter().map(|(_, _, m)| m).collect();
    let pairs: Vec<&[Vec<Measured>]> = results.chunks(SEEDS.len()).collect();
    let text = table::markdown(&pairs);
    println!("{text}");
    if chosen.is_empty() {
        std::fs::write(root.join("docs/cost.md"), text)?;
        std::fs::write(
            root.join("docs/cost.json"),
            serde_json::to_vec_pretty(&results)?,
        )?;
        eprintln!("written: docs/cost.md, docs/cost.json");
    }
    Ok(())
}

/// Builds the `onramp` command as it ships; it lies two directories above this program.
fn build_onramp(root: &Path) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--quiet", "--release", "--package", "onramp"])
        .current_dir(root)
        .status()
        .context("cannot run cargo")?;
    ensure!(status.success(), "building onramp: {status}");
    let here = std::env::current_exe()?;
    let directory = here
        .ancestors()
        .nth(2)
        .context("this program has no place")?;
    Ok(directory.join("onramp"))
}

type Results = Vec<(usize, u64, Vec<Measured>)>;

/// Runs all, `MACHINES` at a time.
fn boot_all(root: &Path, onramp: &Path, runs: &[(usize, u64)]) -> Result<Results> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        let work = || -> Result<()> {
            while let Some((bed, seed)) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
                let measured = boot(root, onramp, *bed, *seed)
                    .with_context(|| format!("{} with seed {seed}", Bed::ALL[*bed].name()))?;
                eprintln!("{} with seed {seed}: done", Bed::ALL[*bed].name());
                results
                    .lock()
                    .expect("no thread panics")
                    .push((*bed, *seed, measured));
            }
            Ok(())
        };
        let machines: Vec<_> = (0..MACHINES).map(|_| scope.spawn(work)).collect();
        machines
            .into_iter()
            .try_for_each(|m| m.join().expect("no thread panics"))
    })?;
    Ok(results.into_inner().expect("no thread panics"))
}

fn boot(root: &Path, onramp: &Path, bed: usize, seed: u64) -> Result<Vec<Measured>> {
    let cache = root.join(".cache");
    let vm = Vm {
        kernel: Kernel::find(&cache)?,
        cache,
        memory_mib: MEMORY_MIB,
        seed,
    };
    let out = std::env::temp_dir().join(format!("onramp-cost-{}-{bed}-{seed}", std::process::id()));
    let file = |guest: &str, host: &Path| GuestFile {
        path: guest.into(),
        content: Content::Host(host.to_owned()),
    };
    let mut files = vec![
        file("/job/onramp", onramp),
        file("/job/cost", &std::env::current_exe()?),
    ];
    let sysctl = ["/usr/sbin/sysctl", "/sbin/sysctl"].map(Path::new);
    let found = sysctl.into_iter().find(|path| path.exists());
    files.extend(found.map(|path| file("/bin/sysctl", path)));
    let command = ["/job/cost", "guest", &bed.to_string()]
        .map(str::to_owned)
        .to_vec();
    let job = Job {
        command,
        files,
        out: out.clone(),
        timeout: TIMEOUT,
    };
    vm.run(&job, &AtomicBool::new(false), &mut |line| {
        eprintln!("  {line}")
    })?
    .success()?;
    let measured = serde_json::from_slice(&std::fs::read(out.join("measured.json"))?)?;
    std::fs::remove_dir_all(&out)?;
    Ok(measured)
}
