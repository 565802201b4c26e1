//! Outside the machine: boots one for each bed, twice, and writes docs/cost.md and docs/cost.json.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::{
        atomic::{AtomicBool, AtomicUsize, Ordering},
        Arc, Mutex,
    },
    time::Duration,
};

use anyhow::{ensure, Context, Result};
use onramp_rack::vm::{Content, GuestFile, Job, Kernel, Vm};
use serde::{Deserialize, Serialize};

use crate::{bed::Bed, guest::Measured, table};

/// A run and its repetition differ in the emulator's random numbers: hash seeds, ports.
const SEEDS: [u64; 2] = [1, 2];
const MACHINES: usize = 2;
const MEMORY_MIB: u32 = 1024;
const TIMEOUT: Duration = Duration::from_secs(900);

/// One boot of the machine: every set-up on one bed.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Run {
    /// Position in `Bed::ALL`.
    bed: usize,
    seed: u64,
    measured: Vec<Measured>,
}

/// Arguments: positions of beds to measure again; the results of the others stay. None: all.
pub fn run(arguments: &[String]) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let chosen: Vec<usize> = arguments.iter().filter_map(|a| a.parse().ok()).collect();
    let beds = if chosen.is_empty() {
        (0..Bed::ALL.len()).collect()
    } else {
        chosen
    };
    let wanted: Vec<(usize, u64)> = SEEDS
        .iter()
        .flat_map(|seed| beds.iter().map(|bed| (*bed, *seed)))
        .collect();
    let results = Mutex::new(Results::read(&root)?);
    let onramp = build_onramp(&root)?;
    boot_all(&root, &onramp, &wanted, &results)?;
    let results = results.into_inner().expect("no thread panics");
    println!("{}", results.markdown());
    Ok(())
}

/// What has been measured: docs/cost.json, from which docs/cost.md follows.
struct Results {
    directory: PathBuf,
    runs: Vec<Run>,
}

impl Results {
    fn read(root: &Path) -> Result<Self> {
        let directory = root.join("docs");
        let runs = match std::fs::read(directory.join("cost.json")) {
            Ok(text) => serde_json::from_slice(&text).context("docs/cost.json")?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => vec![],
            Err(error) => return Err(error).context("docs/cost.json"),
        };
        Ok(Self { directory, runs })
    }

    /// Puts a run in the place of the one before it, and writes both files.
    fn replace(&mut self, run: Run) -> Result<()> {
        self.runs.retain(|r| (r.bed, r.seed) != (run.bed, run.seed));
        self.runs.push(run);
        self.runs.sort_by_key(|r| (r.bed, r.seed));
        std::fs::write(
            self.directory.join("cost.json"),
            serde_json::to_vec_pretty(&self.runs)?,
        )?;
        std::fs::write(self.directory.join("cost.md"), self.markdown())?;
        Ok(())
    }

    fn markdown(&self) -> String {
        let beds: Vec<Vec<Vec<Measured>>> = self
            .runs
            .chunk_by(|a, b| a.bed == b.bed)
            .map(|runs| runs.iter().map(|run| run.measured.clone()).collect())
            .collect();
        table::markdown(&beds.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }
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

/// Runs all that is wanted, `MACHINES` at a time, and keeps each result as it comes.
fn boot_all(
    root: &Path,
    onramp: &Path,
    wanted: &[(usize, u64)],
    results: &Mutex<Results>,
) -> Result<()> {
    let next = AtomicUsize::new(0);
    let cancel = Arc::new(AtomicBool::new(false));
    let on_signal = Arc::clone(&cancel);
    ctrlc::set_handler(move || on_signal.store(true, Ordering::Relaxed))?;
    std::thread::scope(|scope| {
        let work = || -> Result<()> {
            loop {
                let position = next.fetch_add(1, Ordering::Relaxed);
                let Some((bed, seed)) = wanted.get(position) else {
                    return Ok(());
                };
                let name = format!("{} with seed {seed}", Bed::ALL[*bed].name());
                let measured =
                    boot(root, onramp, *bed, *seed, &cancel).with_context(|| name.clone())?;
                eprintln!("{name}: measured, {} of {}", position + 1, wanted.len());
                let run = Run {
                    bed: *bed,
                    seed: *seed,
                    measured,
                };
                results.lock().expect("no thread panics").replace(run)?;
            }
        };
        let machines: Vec<_> = (0..MACHINES).map(|_| scope.spawn(work)).collect();
        machines
            .into_iter()
            .try_for_each(|m| m.join().expect("no thread panics"))
    })
}

fn boot(
    root: &Path,
    onramp: &Path,
    bed: usize,
    seed: u64,
    cancel: &AtomicBool,
) -> Result<Vec<Measured>> {
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
    vm.run(&job, cancel, &mut |line| eprintln!("  {line}"))?
        .success()?;
    let measured = serde_json::from_slice(&std::fs::read(out.join("measured.json"))?)?;
    std::fs::remove_dir_all(&out)?;
    Ok(measured)
}
