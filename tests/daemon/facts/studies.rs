// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Comparisons with what others have, side by side in one run. They print; what they assert is what our
//! documentation says.
use std::{
    fs,
    process::{Child, Stdio},
    thread,
    time::Duration,
};

use onramp_sync::synthetic::Oscillator;

use super::huygens::{load, Fleet, CLOCKS};
use crate::{
    maps::{clock, now_mono_ns, offset_at},
    net::{Host, Star},
};

/// Until the slowest of them has found its clock's drift.
const SETTLING_S: f64 = 80.0;
/// Under load until the measured time begins, and that.
const BEFORE_S: f64 = 4.0;
const MEASURED_S: f64 = 20.0;
/// How far a host's clock is from host 1's, ns: at these instants.
type Errors = Vec<f64>;

/// A daemon of somebody else's on every host, each above a wrong clock of its own.
struct Others {
    name: &'static str,
    children: Vec<Child>,
}

impl Drop for Others {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Others {
    /// chronyd: host 1 is the server. Sixteen exchanges a second, interleaved, so that its stamps are the
    /// kernel's on transmission too: the best that its manual offers for a local network.
    fn chrony(star: &Star) -> Others {
        fs::write("/etc/passwd", "root:x:0:0::/:/bin/sh\n").expect("/etc is writable");
        let command = |n: usize, _: &Host| {
            let role = match n {
                0 => "local stratum 1\nallow\n",
                _ => "server 10.0.0.1 iburst minpoll -4 maxpoll -4 xleave\nmakestep 0.0001 3\n",
            };
            let file = format!("/tmp/chrony{n}.conf");
            let rest = format!("cmdport 0\nbindcmdaddress /\npidfile /tmp/chrony{n}.pid\n");
            fs::write(&file, format!("{role}{rest}")).expect("/tmp is writable");
            format!("/job/chronyd -d -u root -f {file}")
        };
        Others::start("chrony", star, command)
    }

    /// ptp4l with software stamps: host 1 is the grandmaster. Four exchanges a second: with more, its servo
    /// watches for longer than this before it begins.
    fn ptp4l(star: &Star) -> Others {
        fs::create_dir_all("/var/run").expect("/var is writable");
        let command = |n: usize, _: &Host| {
            let role = if n == 0 { "--priority1 10" } else { "-s" };
            let rates = "--logSyncInterval -2 --logMinDelayReqInterval -2";
            format!("/job/ptp4l -S -4 -m -i eth0 --tx_timestamp_timeout 50 --uds_address /tmp/ptp{n} {rates} {role}")
        };
        Others::start("ptp4l", star, command)
    }

    fn start(name: &'static str, star: &Star, command: impl Fn(usize, &Host) -> String) -> Others {
        let launch = |(n, host): (usize, &Host)| {
            let line = command(n, host);
            let words: Vec<&str> = line.split_whitespace().collect();
            let wrong: Oscillator = CLOCKS[n].parse().expect("a clock");
            let (offset, period) = (wrong.offset.as_ns(), wrong.period.as_ns());
            let log = fs::File::create(format!("/tmp/{name}{n}.log")).expect("/tmp is writable");
            let mut command = host.ns.command(&words);
            command
                .env("LD_PRELOAD", "/job/wrong_clock.so")
                .env(
                    "WRONG_CLOCK",
                    format!("{offset} {} {} {period}", wrong.drift, wrong.wander),
                )
                .env("WRONG_CLOCK_LOG", notes(name, n))
                .stdin(Stdio::null())
                .stderr(log.try_clone().expect("a file"))
                .stdout(log);
            command.spawn().expect("it was fetched by tools/setup")
        };
        let children = star.hosts.iter().enumerate().map(launch).collect();
        Others { name, children }
    }

    /// Errors of the hosts but the first between two instants of CLOCK_MONOTONIC.
    fn errors(&self, from: i64, to: i64) -> Errors {
        let first = read_notes(self.name, 0);
        let errors = |n| {
            let within = |(at, _): &(i64, f64)| (from..to).contains(at);
            let notes = read_notes(self.name, n).into_iter().filter(within);
            notes
                .filter_map(|(at, ahead)| Some(ahead - between(&first, at)?))
                .collect::<Errors>()
        };
        (1..self.children.len()).flat_map(errors).collect()
    }
}

fn notes(name: &str, n: usize) -> String {
    format!("/tmp/{name}{n}.notes")
}

/// What wrong_clock.c noted.
fn read_notes(name: &str, n: usize) -> Vec<(i64, f64)> {
    let text = fs::read_to_string(notes(name, n)).unwrap_or_default();
    let pair = |line: &str| {
        let (at, ahead) = line.split_once(' ')?;
        Some((at.parse().ok()?, ahead.parse().ok()?))
    };
    text.lines().filter_map(pair).collect()
}

/// What a clock that was noted before and after `at` was ahead then.
fn between(notes: &[(i64, f64)], at: i64) -> Option<f64> {
    let after = notes.partition_point(|(noted, _)| *noted < at);
    let ((t0, v0), (t1, v1)) = (notes.get(after.checked_sub(1)?)?, notes.get(after)?);
    Some(v0 + (v1 - v0) * (at - t0) as f64 / (t1 - t0).max(1) as f64)
}

/// Ours, ten times a second while `seconds` pass.
fn our_errors(fleet: &Fleet, seconds: f64) -> Errors {
    let mut all = vec![];
    for _ in 0..(10.0 * seconds) as usize {
        let now = now_mono_ns();
        let times: Vec<f64> = fleet
            .running()
            .map(|agent| offset_at(&clock(agent), now))
            .collect();
        all.extend(times[1..].iter().map(|time| time - times[0]));
        thread::sleep(Duration::from_millis(100));
    }
    all
}

/// Prints a line of the table; the 99th percentile.
fn row(name: &str, when: &str, errors: &Errors) -> f64 {
    let mut sizes: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let at = |part: f64| sizes[((sizes.len() - 1) as f64 * part) as usize];
    let log = || fs::read_to_string(format!("/tmp/{name}1.log")).unwrap_or_default();
    assert!(
        sizes.len() > 100,
        "{name} {when}: {} samples: {}",
        sizes.len(),
        log()
    );
    println!(
        "| {name} | {when} | {:.0} | {:.0} | {:.0} | {} |",
        at(0.5),
        at(0.99),
        at(1.0),
        sizes.len()
    );
    at(0.99)
}

/// The same clocks, the same network, the same load at the same time.
pub fn clocks_beside_chrony_and_ptp4l() {
    let fleet = Fleet::start(false, &[]);
    let others = [Others::chrony(&fleet.star), Others::ptp4l(&fleet.star)];
    thread::sleep(Duration::from_secs_f64(SETTLING_S));
    println!("| clock | | median, ns | p99 | worst | samples |");
    let measure = |when: &str| {
        let from = now_mono_ns();
        let ours = row("onramp", when, &our_errors(&fleet, MEASURED_S));
        let theirs = others
            .each_ref()
            .map(|other| row(other.name, when, &other.errors(from, now_mono_ns())));
        (ours, theirs)
    };
    measure("idle");
    let (ours, [chrony, ptp4l]) = thread::scope(|scope| {
        scope.spawn(|| load(&fleet.star, BEFORE_S + MEASURED_S));
        thread::sleep(Duration::from_secs_f64(BEFORE_S));
        measure("80 % load")
    });
    println!(
        "p99 under load: chrony {:.0} times ours, ptp4l {:.0} times",
        chrony / ours,
        ptp4l / ours
    );
    assert!(
        ours < chrony && 100.0 * ours < ptp4l,
        "{ours} ns, {chrony} ns, {ptp4l} ns"
    );
}

/// As the fact of the same name, for long.
pub fn ten_million_forged_oracks_change_nothing() {
    super::faults::flood(10_000_000);
}

/// The table of docs/kernels.md.
pub fn edt_beside_edge() {
    super::edt::beside_edge();
}

/// The rows of docs/results/verifier.md.
pub fn programs_by_kernel() {
    super::programs::print_rows();
}

/// The table of docs/operate.md.
pub fn replacements_beside_tc() {
    super::replacements::beside_tc();
}
