// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The host's side: one libtest-mimic trial a fact, the facts shared out between machines that run at the same time.
//! A machine that dies fails the fact it was at and is booted again for the rest.
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap},
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    sync::{atomic::AtomicBool, Arc, Condvar, Mutex},
    thread,
    time::{Duration, Instant},
};

use libtest_mimic::{Arguments, Failed, Trial};
use onramp_rack::vm::{Card, Content, GuestFile, Job, Kernel, PtpClock, Vm, VmError};

use crate::{
    facts::{Fact, Machine, FACTS},
    guest,
};

/// Most machines at a time. One for each processor begins: four on two processors slowed each other's caches by a fifth.
/// On some hosts a machine uses only half a processor, because it waits for its own timers between two moments of its
/// time. So another one begins whenever IDLE_PART of the processors' time was idle for IDLE_FOR.
const MOST_MACHINES: usize = 4;
const IDLE_PART: f64 = 0.2;
const IDLE_FOR: Duration = Duration::from_secs(10);
/// A boot takes as long as a fact.
const LEAST_SHARE_S: u32 = 40;
/// For the 4,000 connections of one fact and the flow tables of two daemons.
const MEMORY_MIB: u32 = 1024;
/// A machine without a word for this much of its own time is given up; guest.rs ends a fact before that.
const PATIENCE: Duration = Duration::from_secs(300);
/// 100 Mbit/s in frames of 1500 B.
const CARD: Card = Card {
    frame_time: Duration::from_micros(120),
};
/// It runs 20 ppm faster than the processor's counter.
pub const PTP_CLOCK: PtpClock = PtpClock {
    start_ns: 1_735_689_637_000_000_000,
    drift: 20e-6,
    is_reliable: true,
};
const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// What became of a fact: nothing, or what it printed until it failed.
type Verdict = Result<(), String>;

/// Filled by the machines, awaited by the trials.
#[derive(Default)]
struct Verdicts {
    known: Mutex<HashMap<&'static str, Verdict>>,
    grown: Condvar,
}

impl Verdicts {
    fn put(&self, name: &'static str, verdict: Verdict) {
        self.known.lock().unwrap().insert(name, verdict);
        self.grown.notify_all();
    }

    fn wait(&self, name: &str) -> Verdict {
        let known = self.known.lock().unwrap();
        let mut known = self
            .grown
            .wait_while(known, |k| !k.contains_key(name))
            .unwrap();
        known.remove(name).unwrap_or(Ok(()))
    }
}

pub fn run() -> ExitCode {
    let mut arguments = Arguments::from_args();
    let no_vm = std::env::var_os("ONRAMP_NO_VM").is_some_and(|v| v == "1");
    let has_filter = arguments.filter.is_some();
    // Guests get a PTP hardware clock by a table of ACPI, which the emulator has for x86 only.
    let has_machine = |fact: &Fact| cfg!(target_arch = "x86_64") || !fact.machine().has_ptp_clock;
    let left_out = move |fact: &Fact| no_vm || fact.is_left_out(has_filter) || !has_machine(fact);
    let verdicts = Arc::new(Verdicts::default());
    let trials = FACTS.iter().map(|fact| {
        let verdicts = Arc::clone(&verdicts);
        let trial = move || verdicts.wait(fact.name).map_err(Failed::from);
        Trial::test(fact.name, trial).with_ignored_flag(left_out(fact))
    });
    let trials: Vec<Trial> = trials.collect();

    if !arguments.list {
        let runs = |fact: &&Fact| match left_out(fact) {
            true => arguments.ignored || arguments.include_ignored,
            false => !arguments.ignored,
        };
        let wanted = FACTS.iter().filter(runs);
        let wanted = wanted.filter(|fact| is_wanted(&arguments, fact.name));
        start_machines(wanted.collect(), &verdicts);
    }
    // Trials only wait; none may keep another from reporting.
    arguments.test_threads = Some(FACTS.len());
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// libtest's rules for names.
fn is_wanted(arguments: &Arguments, name: &str) -> bool {
    let hit = |pattern: &str| {
        if arguments.exact {
            name == pattern
        } else {
            name.contains(pattern)
        }
    };
    arguments.filter.as_deref().is_none_or(hit) && !arguments.skip.iter().any(|s| hit(s))
}

/// Modules of what facts put between hosts and beside programs: filters and NAT, tunnels with their ciphers, TLS.
const COMPANIONS: &[&str] = &[
    "nf_tables",
    "nft_ct",
    "nft_chain_nat",
    "nft_masq",
    "act_police",
    "wireguard",
    "xfrm_user",
    "xfrm_interface",
    "esp4",
    "gcm",
    "ctr",
    "seqiv",
    "tls",
];

/// A machine goes through a share of the facts, then another boots for the next share.
type Shares = std::vec::IntoIter<(usize, Share)>;
type Share = Vec<&'static Fact>;

fn start_machines(wanted: Vec<&'static Fact>, verdicts: &Arc<Verdicts>) {
    let shares: Vec<_> = shares(wanted).into_iter().enumerate().collect();
    let shares = Arc::new(Mutex::new(shares.into_iter()));
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let first = processors.min(MOST_MACHINES);
    (0..first).for_each(|_| start_machine(&shares, verdicts));
    let (shares, verdicts) = (Arc::clone(&shares), Arc::clone(verdicts));
    thread::spawn(move || {
        for _ in first..MOST_MACHINES {
            while idle_part(IDLE_FOR) < IDLE_PART {}
            start_machine(&shares, &verdicts);
        }
    });
}

fn start_machine(shares: &Arc<Mutex<Shares>>, verdicts: &Arc<Verdicts>) {
    let (shares, verdicts) = (Arc::clone(shares), Arc::clone(verdicts));
    let next = move || shares.lock().expect("no panic while it is locked").next();
    thread::spawn(move || {
        while let Some((number, share)) = next() {
            run_share(number, share, &verdicts);
        }
    });
}

/// Part of the processors' time that nobody uses, from 0 to 1.
fn idle_part(over: Duration) -> f64 {
    /// All and idle (idle, and waiting for a disk), in ticks.
    fn ticks() -> (u64, u64) {
        let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        let line = stat.lines().next().unwrap_or_default();
        let fields = line.split_whitespace().skip(1).take(8);
        let fields: Vec<u64> = fields.map(|field| field.parse().unwrap_or(0)).collect();
        (fields.iter().sum(), fields.iter().skip(3).take(2).sum())
    }
    let before = ticks();
    thread::sleep(over); // machine: decides when another machine begins, not what it does
    let after = ticks();
    let idle = after.1.saturating_sub(before.1);
    idle as f64 / after.0.saturating_sub(before.0).max(1) as f64
}

/// The facts that need a special machine are a share; the others are as many shares as machines, of the same cost. The
/// most expensive share is first. The same facts always meet in a machine.
fn shares(wanted: Vec<&'static Fact>) -> Vec<Share> {
    let mut kinds: BTreeMap<Machine, Share> = BTreeMap::new();
    for fact in wanted {
        kinds.entry(fact.machine()).or_default().push(fact);
    }
    let cost_s = |share: &Share| share.iter().map(|fact| fact.cost_s).sum::<u32>();
    let mut usual = kinds.remove(&Machine::USUAL).unwrap_or_default();
    usual.sort_by_key(|fact| Reverse(fact.cost_s));
    let number = (cost_s(&usual) / LEAST_SHARE_S).clamp(1, MOST_MACHINES as u32);
    let mut shares = vec![Share::new(); number as usize];
    for fact in usual {
        let least = shares.iter_mut().min_by_key(|share| cost_s(share));
        least.expect("there is one").push(fact);
    }
    shares.extend(kinds.into_values());
    shares.retain(|share| !share.is_empty());
    shares.sort_by_key(|share| Reverse(cost_s(share)));
    shares
}

fn run_share(number: usize, mut share: Vec<&'static Fact>, verdicts: &Verdicts) {
    while !share.is_empty() {
        let names: Vec<&str> = share.iter().map(|fact| fact.name).collect();
        let mut lines = Lines::new(verdicts);
        let error = match run_machine(number, share[0].machine(), &names, &mut |line| {
            lines.take(line)
        }) {
            Ok(()) => "the guest ended before it came to this fact".to_owned(),
            Err(error) => error.to_string(),
        };
        let Lines {
            done,
            current,
            output,
            ..
        } = lines;
        let before = share.len();
        share.retain(|fact| !done.contains(fact.name));
        if let Some(at) = share.iter().position(|fact| current == Some(fact.name)) {
            verdicts.put(share.remove(at).name, Err(format!("{output}{error}")));
        }
        if share.len() == before {
            for fact in share.drain(..) {
                verdicts.put(fact.name, Err(error.clone()));
            }
        }
    }
}

/// Boots one machine, which goes through `names`.
fn run_machine(
    number: usize,
    machine: Machine,
    names: &[&str],
    on_line: &mut dyn FnMut(&str),
) -> Result<(), VmError> {
    let cache = cache();
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("machine{number}"));
    let guest = std::env::current_exe().expect("this program's path");
    let io = |source| VmError::Io {
        path: scratch.clone(),
        source,
    };
    std::fs::create_dir_all(&scratch).map_err(io)?;
    let mut command = vec!["env".to_owned()];
    command.extend(settings());
    command.extend(["./guest".to_owned(), guest::ALL.to_owned()]);
    command.extend(names.iter().map(|name| (*name).to_owned()));
    let needs_companions = ["paths::", "beside::", "sockets::"]
        .iter()
        .any(|file| of(names, file));
    let kernel = kernel(&cache)?;
    let files = files(&guest, &kernel, names, needs_companions, &scratch)?;
    let job = Job {
        command,
        files,
        out: scratch.join("out"),
        patience: PATIENCE,
    };
    let vm = Vm {
        kernel,
        cache,
        memory_mib: MEMORY_MIB,
        processors: machine.processors,
        seed: seed(),
        plugin: None,
        cards: vec![CARD; machine.cards],
        ptp_clock: machine.has_ptp_clock.then_some(PTP_CLOCK),
        modules: if needs_companions { COMPANIONS } else { &[] },
    };
    let log = is_logged();
    let mut logged = |line: &str| {
        if log {
            eprintln!("[{number}] {line}");
        }
        on_line(line);
    };
    vm.run(&job, &AtomicBool::new(false), &mut logged)?
        .success()
        .map(drop)
}

/// Whether some of these facts are of this file.
fn of(names: &[&str], file: &str) -> bool {
    names.iter().any(|name| name.starts_with(file))
}

/// What the machine gets: the programs that its facts start, and the modules of their drivers.
fn files(
    guest: &Path,
    kernel: &Kernel,
    names: &[&str],
    needs_companions: bool,
    scratch: &Path,
) -> Result<Vec<GuestFile>, VmError> {
    let cache = cache();
    let program = |host: &Path, name: &str| GuestFile {
        path: Path::new("/job").join(name),
        content: Content::Host(stripped(host, &scratch.join(name))),
    };
    let mut files = vec![
        program(guest, "guest"),
        program(Path::new(env!("CARGO_BIN_EXE_onramp")), "onramp"),
    ];
    if of(names, "studies::") {
        files.extend(others(&cache, scratch)?);
    }
    if of(names, "chrony::") {
        files.push(program(&cache.join("others/usr/sbin/chronyd"), "chronyd"));
    }
    if of(names, "refusals::") {
        let modules = cache.join("kernel/usr/lib/modules").join(&kernel.release);
        files.extend(
            DRIVERS
                .iter()
                .filter_map(|name| driver(&modules, scratch, name)),
        );
    }
    if of(names, "upgrades::") {
        files.push(program(&older()?, "onramp-older"));
    }
    if of(names, "fleets::") {
        files.push(program(&cache.join("etcd/usr/bin/etcd"), "etcd"));
    }
    if needs_companions {
        let root = root(&cache);
        files.push(program(&root.join("usr/sbin/nft"), "nft"));
        files.push(program(&root.join("usr/bin/wg"), "wg"));
    }
    Ok(files)
}

/// `ONRAMP_VM_LOG`: what guests print is shown at once.
fn is_logged() -> bool {
    std::env::var_os("ONRAMP_VM_LOG").is_some()
}

/// `ONRAMP_CACHE`: where tools/setup has put what guests need, if their processor is not this machine's (tools/arm64).
fn cache() -> PathBuf {
    let default = || Path::new(REPOSITORY).join(".cache");
    std::env::var_os("ONRAMP_CACHE").map_or_else(default, PathBuf::from)
}

/// The system whose programs guests run: Debian's for their processor (tools/setup arm64), or this machine's.
fn root(cache: &Path) -> PathBuf {
    let fetched = cache.join("root");
    match fetched.is_dir() {
        true => fetched,
        false => PathBuf::from("/"),
    }
}

/// `ONRAMP_KERNEL`: another kernel, as `onramp rack --kernel` takes it.
fn kernel(cache: &Path) -> Result<Kernel, VmError> {
    match std::env::var_os("ONRAMP_KERNEL") {
        Some(path) => Kernel::at(Path::new(&path)),
        None => Kernel::find(cache),
    }
}

/// Variables of the environment that facts read, as NAME=VALUE.
fn settings() -> impl Iterator<Item = String> {
    let all = std::env::vars().filter(|(name, _)| name.starts_with("ONRAMP_SOAK_"));
    all.map(|(name, value)| format!("{name}={value}"))
}

/// `ONRAMP_VM_SEED`: another seed is another machine, as another build is. What facts claim of
/// traffic has to hold for all of them.
fn seed() -> u64 {
    let seed = std::env::var("ONRAMP_VM_SEED").map_or(Ok(1), |seed| seed.parse());
    seed.expect("ONRAMP_VM_SEED is a number")
}

/// `ONRAMP_OLDER`: the program of another commit, as tools/upgrade-test builds it.
fn older() -> Result<PathBuf, VmError> {
    let missing = || VmError::Io {
        path: "ONRAMP_OLDER".into(),
        source: std::io::Error::other("it names no program; run tools/upgrade-test COMMIT"),
    };
    let path = std::env::var_os("ONRAMP_OLDER").ok_or_else(missing)?;
    Ok(path.into())
}

/// Programs that ours are compared with, as tools/setup fetched them, and the clock that is put under
/// them.
fn others(cache: &Path, scratch: &Path) -> Result<Vec<GuestFile>, VmError> {
    let io = |path: &Path, source| VmError::Io {
        path: path.to_owned(),
        source,
    };
    let shim = scratch.join("wrong_clock.so");
    let source = Path::new(REPOSITORY).join("tests/daemon/wrong_clock.c");
    let mut compiler = Command::new("gcc");
    compiler.args(["-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-o"]);
    let done = compiler.args([&shim, &source]).arg("-lm").status();
    let done = done.map_err(|error| io(&source, error))?;
    assert!(done.success(), "{} does not compile", source.display());
    let sbin = cache.join("others/usr/sbin");
    let file = |host: PathBuf| GuestFile {
        path: Path::new("/job").join(host.file_name().expect("a file")),
        content: Content::Host(host),
    };
    Ok(vec![
        file(sbin.join("chronyd")),
        file(sbin.join("ptp4l")),
        file(shim),
    ])
}

/// Drivers that facts load themselves, because other guests have no use for them.
const DRIVERS: &[&str] = &["drivers/net/team/team", "net/ipv4/gre", "net/ipv4/ip_gre"];

/// The driver, unpacked; none for a kernel that tools/setup has not fetched.
fn driver(modules: &Path, scratch: &Path, name: &str) -> Option<GuestFile> {
    let packed = modules.join(format!("kernel/{name}.ko.xz"));
    let to = scratch.join(packed.with_extension("").file_name()?);
    let unpacked = Command::new("xz").arg("-dc").arg(packed).output().ok()?;
    std::fs::write(&to, unpacked.stdout).ok()?;
    Some(GuestFile {
        path: Path::new("/job").join(to.file_name()?),
        content: Content::Host(to),
    })
}

/// A copy without debug information, which only costs memory and boot time; the program itself if
/// it cannot be stripped.
fn stripped(program: &Path, to: &Path) -> PathBuf {
    // Of this machine's programs, and of those for arm64.
    let is_done = ["strip", "aarch64-linux-gnu-strip"].iter().any(|strip| {
        let mut command = Command::new(strip);
        let command = command.arg("-g").arg("-o").args([to, program]);
        command
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    });
    if is_done {
        to.to_owned()
    } else {
        program.to_owned()
    }
}

/// Reads the guest's lines: marks of guest.rs, and what facts print.
struct Lines<'a> {
    verdicts: &'a Verdicts,
    done: BTreeSet<&'static str>,
    current: Option<&'static str>,
    began: Option<Instant>,
    output: String,
}

impl<'a> Lines<'a> {
    fn new(verdicts: &'a Verdicts) -> Self {
        Self {
            verdicts,
            done: BTreeSet::new(),
            current: None,
            began: None,
            output: String::new(),
        }
    }

    fn take(&mut self, line: &str) {
        let name_of = |name: &str| FACTS.iter().map(|f| f.name).find(|n| *n == name);
        if let Some(name) = line.strip_prefix(guest::BEGIN) {
            self.current = name_of(name);
            self.began = Some(Instant::now()); // machine: only shown
            self.output.clear();
        } else if let (Some(rest), Some(name)) = (line.strip_prefix(guest::END), self.current) {
            let took = self
                .began
                .map_or(0.0, |began| began.elapsed().as_secs_f64()); // machine: only shown
            eprintln!("{name}: took {took:.0} s");
            let output = std::mem::take(&mut self.output);
            self.verdicts.put(
                name,
                if rest == guest::PASSED {
                    Ok(())
                } else {
                    Err(output)
                },
            );
            self.done.insert(name);
            self.current = None;
        } else {
            self.output.push_str(line);
            self.output.push('\n');
        }
    }
}
