// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Outside the machine: boots one for each bed, and writes docs/cost.json and docs/cost.md.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        atomic::{AtomicBool, AtomicUsize, Ordering},
        Arc, Mutex,
    },
    time::Duration,
};

use anyhow::{bail, ensure, Context, Result};
use onramp_rack::vm::{Content, GuestFile, Job, Kernel, Vm};
use serde::{de::DeserializeOwned, Deserialize, Serialize};

use crate::{
    bed::{Bed, Setup},
    compare, congestion,
    guest::{Counted, Split},
    laws,
    profile::{self, Calls, Profile},
    table,
    transfer::Moved,
};

/// A run and its repetition differ in the emulator's random numbers: hash seeds, ports.
pub const SEEDS: [u64; 2] = [1, 2];
const MACHINES: usize = 2;
const MEMORY_MIB: u32 = 1024;
const PATIENCE: Duration = Duration::from_secs(1800);
/// Functions of a difference that are printed.
pub const LINES: usize = 50;

/// Everything about one bed with one seed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    pub bed: Bed,
    pub seed: u64,
    /// Digest of the data path that was measured.
    pub data_path: String,
    /// fq, split between the two ends.
    pub split: Split,
    pub measured: Vec<Measured>,
}

/// One set-up.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    pub counted: Counted,
    /// Instructions that the machine executed during the transfer, all programs and both ends.
    pub executed: u64,
    /// On-Ramp's programs among them, without the kernel's functions that they call.
    pub programs: BTreeMap<String, Calls>,
}

/// Arguments: positions of beds to measure again (the results of the others stay; none: all), or
/// `profile BED SETUP SETUP`: which functions of the kernel make the difference (of a set-up and
/// itself: between two seeds), or `several [KIND PROCESSORS]...`: machines with several processors, or
/// `congestion`: congestion controls, or `laws`: laws, or `table`: writes docs/cost.md and docs/cost-table.json anew from docs/cost.json.
pub fn run(arguments: &[String]) -> Result<()> {
    let ours = |argument: &&String| *argument != "--bench"; // cargo's
    let arguments: Vec<String> = arguments.iter().filter(ours).cloned().collect();
    if arguments.first().is_some_and(|a| a == "table") {
        return Results::read(&root())?.write();
    }
    let world = World::new()?;
    if arguments.first().is_some_and(|a| a == "profile") {
        return world.profile(&arguments[1..]);
    }
    if arguments.first().is_some_and(|a| a == "several") {
        compare::measure(&world, &arguments[1..])?;
        return Results::read(&world.root)?.write();
    }
    if arguments.first().is_some_and(|a| a == "congestion") {
        congestion::measure(&world)?;
        return Results::read(&world.root)?.write();
    }
    if arguments.first().is_some_and(|a| a == "laws") {
        laws::measure(&world)?;
        return Results::read(&world.root)?.write();
    }
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
    let results = Mutex::new(Results::read(&world.root)?);
    world.measure_all(&wanted, &results)?;
    let results = results.into_inner().expect("no thread panics");
    println!("{}", table::markdown(&results.runs));
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
        let runs = read_runs(&directory, "cost.json")?;
        Ok(Self { directory, runs })
    }

    /// Puts a run in the place of the one before it, and writes both files.
    fn replace(&mut self, run: Run) -> Result<()> {
        let place = |run: &Run| (Bed::ALL.iter().position(|bed| *bed == run.bed), run.seed);
        self.runs.retain(|r| place(r) != place(&run));
        self.runs.push(run);
        self.runs.sort_by_key(place);
        self.write()
    }

    fn write(&self) -> Result<()> {
        let json = serde_json::to_vec_pretty(&self.runs)?;
        std::fs::write(self.directory.join("cost.json"), json)?;
        let added = serde_json::to_vec_pretty(&table::cost_table(&self.runs))?;
        std::fs::write(self.directory.join("cost-table.json"), added)?;
        let text = table::markdown(&self.runs) + &compare::markdown(&self.directory)?;
        let text = text + &laws::markdown(&self.directory)?;
        let text = text + &congestion::markdown(&self.directory)?;
        Ok(std::fs::write(self.directory.join("cost.md"), text)?)
    }
}

/// Digest of this version's data path.
pub fn data_path() -> String {
    onramp_reproduce::made_by("").data_path.unwrap_or_default()
}

/// The repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// What every machine needs.
pub struct World {
    pub root: PathBuf,
    onramp: PathBuf,
    plugin: PathBuf,
    cancel: Arc<AtomicBool>,
}

impl World {
    fn new() -> Result<Self> {
        let root = root();
        let cancel = Arc::new(AtomicBool::new(false));
        let on_signal = Arc::clone(&cancel);
        ctrlc::set_handler(move || on_signal.store(true, Ordering::Relaxed))?;
        Ok(Self {
            onramp: build_onramp(&root)?,
            plugin: build_plugin()?,
            root,
            cancel,
        })
    }

    /// Runs all that is wanted, `MACHINES` at a time, and keeps each result as it comes.
    fn measure_all(&self, wanted: &[(usize, u64)], results: &Mutex<Results>) -> Result<()> {
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let work = || -> Result<()> {
                loop {
                    let position = next.fetch_add(1, Ordering::Relaxed);
                    let Some((bed, seed)) = wanted.get(position) else {
                        return Ok(());
                    };
                    let name = format!("{} with seed {seed}", Bed::ALL[*bed].name());
                    let run = self.measure(*bed, *seed).with_context(|| name.clone())?;
                    eprintln!("{name}: measured, {} of {}", position + 1, wanted.len());
                    results.lock().expect("no thread panics").replace(run)?;
                }
            };
            let machines: Vec<_> = (0..MACHINES).map(|_| scope.spawn(work)).collect();
            machines
                .into_iter()
                .try_for_each(|m| m.join().expect("no thread panics"))
        })
    }

    fn measure(&self, bed: usize, seed: u64) -> Result<Run> {
        let out = self.boot(1, seed, &guest("split", bed, &[]))?;
        let split = serde_json::from_slice(&std::fs::read(out.path().join("split.json"))?)?;
        let measured = self.count(bed, seed, &[])?;
        let measured = measured.into_iter().map(|(counted, profile)| Measured {
            counted,
            executed: profile::total(&profile),
            programs: profile
                .into_iter()
                .filter_map(|(name, calls)| Some((name.strip_prefix("bpf:")?.to_owned(), calls)))
                .collect(),
        });
        Ok(Run {
            bed: Bed::ALL[bed],
            seed,
            data_path: data_path(),
            split,
            measured: measured.collect(),
        })
    }

    fn profile(&self, arguments: &[String]) -> Result<()> {
        let [bed, setups @ ..] = arguments else {
            bail!("profile BED SETUP SETUP");
        };
        let known = |name: &String| Setup::ALL.iter().any(|s| format!("{s:?}") == *name);
        ensure!(
            setups.len() == 2 && setups.iter().all(known),
            "profile BED SETUP SETUP: set-ups are {:?}",
            Setup::ALL
        );
        let bed = bed.parse()?;
        let mut counted = self.count(bed, SEEDS[0], setups)?;
        if setups[0] == setups[1] {
            counted.extend(self.count(bed, SEEDS[1], setups)?);
        }
        let [(_, before), (of, after)] = counted.as_slice() else {
            bail!("this bed does not have both set-ups");
        };
        let frames = of.moved.frames as f64;
        print!("{}", profile::difference(before, after, frames, LINES));
        Ok(())
    }

    /// Counts every set-up, or those chosen, on a bed.
    fn count(&self, bed: usize, seed: u64, setups: &[String]) -> Result<Vec<(Counted, Profile)>> {
        let out = self.boot(1, seed, &guest("count", bed, setups))?;
        let all: Vec<Counted> =
            serde_json::from_slice(&std::fs::read(out.path().join("counted.json"))?)?;
        let profile = |number: usize| {
            let file = |name: &str| out.path().join(format!("{name}.{number}"));
            profile::read(&file("counts"), &file("symbols"))
        };
        let counted = all.into_iter().enumerate();
        counted
            .map(|(n, counted)| Ok((counted, profile(n)?)))
            .collect()
    }

    /// One machine that runs `guest` with these arguments; the plugin counts unless it splits. What both
    /// have written.
    pub fn boot(
        &self,
        processors: u8,
        seed: u64,
        arguments: &[String],
    ) -> Result<tempfile::TempDir> {
        let out = tempfile::tempdir()?;
        let cache = self.root.join(".cache");
        let counts = format!(
            "{},out={}",
            self.plugin.display(),
            out.path().join("counts").display()
        );
        let vm = Vm {
            kernel: Kernel::find(&cache)?,
            cache,
            memory_mib: MEMORY_MIB,
            seed,
            processors,
            plugin: (arguments[0] != "split").then_some(counts),
            cards: vec![],
            ptp_clock: None,
            modules: &[],
        };
        let file = |guest: &str, host: &Path| GuestFile {
            path: guest.into(),
            content: Content::Host(host.to_owned()),
        };
        let mut files = vec![
            file("/job/onramp", &self.onramp),
            file("/job/cost", &std::env::current_exe()?),
        ];
        let sysctl = ["/usr/sbin/sysctl", "/sbin/sysctl"].map(Path::new);
        let found = sysctl.into_iter().find(|path| path.exists());
        files.extend(found.map(|path| file("/bin/sysctl", path)));
        let fixed = ["/job/cost", "guest"].map(str::to_owned);
        let job = Job {
            command: fixed.into_iter().chain(arguments.iter().cloned()).collect(),
            files,
            out: out.path().to_owned(),
            patience: PATIENCE,
        };
        vm.run(&job, &self.cancel, &mut |line| eprintln!("  {line}"))?
            .success()?;
        Ok(out)
    }
}

/// The transfers of a guest that left them in moved.json, with what the plugin counted.
pub fn transfers(out: &Path) -> Result<Vec<(Moved, Profile)>> {
    let all: Vec<Moved> = serde_json::from_slice(&std::fs::read(out.join("moved.json"))?)?;
    let counted = |(n, moved): (usize, Moved)| {
        let file = |name: &str| out.join(format!("{name}.{n}"));
        Ok((moved, profile::read(&file("counts"), &file("symbols"))?))
    };
    all.into_iter().enumerate().map(counted).collect()
}

/// The runs of a file of docs/; none if it is not there.
pub fn read_runs<T: DeserializeOwned>(directory: &Path, file: &str) -> Result<Vec<T>> {
    match std::fs::read(directory.join(file)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(vec![]),
        text => serde_json::from_slice(&text.with_context(|| file.to_owned())?)
            .with_context(|| file.to_owned()),
    }
}

/// Arguments of the guest.
fn guest(what: &str, bed: usize, setups: &[String]) -> Vec<String> {
    let fixed = [what.to_owned(), bed.to_string()];
    fixed.into_iter().chain(setups.iter().cloned()).collect()
}

/// Builds the `onramp` command as it ships; it lies two directories above this program.
fn build_onramp(root: &Path) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["build", "--quiet", "--release", "--package", "onramp"])
        .current_dir(root);
    run_or_fail(command)?;
    let here = std::env::current_exe()?;
    let directory = here
        .ancestors()
        .nth(2)
        .context("this program has no place")?;
    Ok(directory.join("onramp"))
}

/// Builds plugin/count.c with the compiler of the BPF programs; it lies beside this program.
fn build_plugin() -> Result<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = own.join("plugin/count.c");
    let plugin = std::env::current_exe()?.with_file_name("count.so");
    let clang = std::env::var_os("CLANG").unwrap_or_else(|| "clang-19".into());
    let mut command = Command::new(clang);
    command
        .args(["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"])
        .arg("-I")
        .arg(own.join("../crates/rack/plugin"))
        .arg(source)
        .arg("-o")
        .arg(&plugin);
    run_or_fail(command).context(
        "building the emulator's plugin needs clang-19: run `make setup`, or name another clang in CLANG",
    )?;
    Ok(plugin)
}

fn run_or_fail(mut command: Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot run {command:?}"))?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}
