// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A PTP hardware clock as the source of fleet time: that of `ptp_vmclock`, whose page (onramp_rack::vm::PtpClock) the facts
//! change as a hypervisor does.
use std::{
    fs::{self, File, OpenOptions},
    os::fd::AsRawFd,
    ptr,
    sync::atomic::{fence, Ordering},
    thread,
    time::Duration,
};

use nix::time::{clock_gettime, ClockId};
use onramp_rack::vm::{PtpClock, PTP_PAGE, PTP_PAGE_BYTES};
use onramp_status::Clock;

use super::clocks::proves_the_bound_wrong;
use crate::{
    agent::Agent,
    host::PTP_CLOCK,
    maps::now_mono_ns,
    net::{Plan, Star},
};

/// A clock changes what it is within this time.
const MOST: Duration = Duration::from_secs(5);
const DEVICE: &str = "/dev/ptp0";
const DRIVER: &str = "/sys/bus/platform/drivers/vmclock";
/// The device's name in it.
const ACPI_DEVICE: &str = "AMZNC10C:00";

/// The page of the clock, as the hypervisor writes it.
struct Page {
    bytes: *mut u8,
    edition: u32,
}

impl Page {
    fn map() -> Page {
        let memory = OpenOptions::new().read(true).write(true).open("/dev/mem");
        let memory = memory.expect("root may");
        // SAFETY: a new mapping of memory that the kernel uses for nothing else.
        let bytes = unsafe {
            libc::mmap(
                ptr::null_mut(),
                PTP_PAGE_BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                memory.as_raw_fd(),
                PTP_PAGE as libc::off_t,
            )
        };
        assert_ne!(
            bytes,
            libc::MAP_FAILED,
            "{}",
            std::io::Error::last_os_error()
        );
        Page {
            bytes: bytes.cast(),
            edition: 0,
        }
    }

    /// Replaces what it says. An odd edition says that the rest is not valid.
    fn set(&mut self, clock: PtpClock) {
        const EDITION: usize = 12;
        self.edition += 2;
        let new = clock.page(self.edition);
        let write = |at: usize, bytes: &[u8]| {
            // SAFETY: within the mapping.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.bytes.add(at), bytes.len()) };
            fence(Ordering::SeqCst);
        };
        write(EDITION, &(self.edition - 1).to_le_bytes());
        write(EDITION + 4, &new[EDITION + 4..]);
        write(EDITION, &new[EDITION..EDITION + 4]);
    }
}

fn pause_s(seconds: f64) {
    thread::sleep(Duration::from_secs_f64(seconds));
}

/// Two hosts whose fleet time is the clock, right within 5 us.
fn by_phc(of_sender: &[&str]) -> (Star, Agent, Agent) {
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    let clock = ["--clock", "phc", "--clock-device", DEVICE];
    let options = [&clock[..], &["--clock-bound", "5us", "--lease", "1s"]].concat();
    let shaped = [&options[..], &["--shape", "200Mbit/s"], of_sender].concat();
    let agents = (Agent::start(from, &shaped), Agent::start(to, &options));
    agents.0.await_clock(MOST, |clock| clock.lease_left_ns > 0);
    agents.1.await_clock(MOST, |clock| clock.lease_left_ns > 0);
    (star, agents.0, agents.1)
}

/// How far the daemon's line is from the clock now, ns.
fn error_ns(clock: &Clock) -> f64 {
    let device = File::open(DEVICE).expect("the clock");
    let id = ClockId::from_raw((!device.as_raw_fd() << 3) | 3);
    let before = now_mono_ns();
    let read = clock_gettime(id).expect("a time");
    let mono = (before + now_mono_ns()) / 2;
    let ahead = read.tv_sec() * 1_000_000_000 + read.tv_nsec() - mono;
    let line = clock.drift * (mono - clock.reference_mono_ns) as f64;
    (clock.offset_ns - ahead) as f64 + line
}

/// While it is wrong or gone nothing is held, and traffic flows; afterwards it is used again.
pub fn its_time_is_used_until_it_steps_fails_or_vanishes() {
    let mut page = Page::map();
    page.set(PTP_CLOCK);
    let (star, sender, _receiver) = by_phc(&[]);
    let (_, to) = star.pair();
    pause_s(2.5);
    let clock = sender.status().clock;
    println!("{clock:?}");
    let (error, drift) = (error_ns(&clock), clock.drift);
    println!("error {error:.0} ns, drift {:.3} ppm", drift * 1e6);
    assert_eq!((clock.source.as_str(), clock.doubts), ("phc", 0));
    assert_eq!(clock.sigma_ns, 5_000);
    assert!(error.abs() < 2_000.0, "{error} ns");
    assert!((drift - PTP_CLOCK.drift).abs() < 5e-6, "{drift}");
    assert!(sender.traffic(to).1 > 0);
    let owd = sender.peer(to).owd_min_ns;
    assert!(
        owd.is_some_and(|owd| (0..20_000_000).contains(&owd)),
        "{owd:?}"
    );

    let is_doubted = |what: &str, words: &str, doubts: u64| {
        let clock = sender.await_clock(MOST, |clock| clock.doubts == doubts);
        println!("{what}: {clock:?}");
        assert!(clock.doubt.is_some_and(|doubt| doubt.contains(words)));
        assert!(clock.lease_left_ns < 0, "{what}");
        sender.assert_open(to);
    };
    let is_used = || {
        sender.await_clock(MOST, |clock| clock.lease_left_ns > 0);
        pause_s(0.5); // the receiver's
        assert!(sender.traffic(to).1 > 0);
        assert_eq!(sender.status().clock.doubt, None);
    };
    let stepped = PtpClock {
        start_ns: PTP_CLOCK.start_ns + 1_000_000,
        ..PTP_CLOCK
    };
    page.set(stepped);
    is_doubted("stepped by 1 ms", "was stepped", 1);
    is_used();
    page.set(PtpClock {
        is_reliable: false,
        ..stepped
    });
    is_doubted("unreliable", "/dev/ptp0 cannot be read", 2);
    page.set(stepped);
    is_used();
    let bind = |file: &str| fs::write(format!("{DRIVER}/{file}"), ACPI_DEVICE).expect("root may");
    bind("unbind");
    is_doubted("gone", "/dev/ptp0 cannot be", 3);
    bind("bind");
    is_used();
    sender.assert_harmless();
}

/// Where the system clock does not count what the clock counts, the kernel cannot read both at one moment: the daemon takes the
/// times around a reading.
pub fn a_clock_with_a_counter_of_its_own_is_read_as_well() {
    const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let usual = fs::read_to_string(SOURCE).expect("sysfs");
    Page::map().set(PTP_CLOCK);
    fs::write(SOURCE, "hpet").expect("root may");
    let (star, sender, _receiver) = by_phc(&[]);
    let (_, to) = star.pair();
    pause_s(2.5);
    let clock = sender.status().clock;
    let error = error_ns(&clock);
    let said = sender.text();
    let said = said.lines().find(|line| line.contains("is read within"));
    println!("{usual} {error:.0} ns, {clock:?}; {said:?}");
    let (_, holds) = sender.traffic(to);
    fs::write(SOURCE, usual).expect("root may");
    assert!(holds > 0 && clock.doubts == 0, "{holds} holds, {clock:?}");
    assert!(error.abs() < 5_000.0, "{error} ns");
}

pub fn an_impossible_delay_proves_its_bound_wrong() {
    Page::map().set(PTP_CLOCK);
    proves_the_bound_wrong(by_phc);
}

/// Without `clock.device` the daemon takes the clock of its first device. A veth has none.
pub fn a_device_without_one_is_refused_by_name() {
    let star = Star::build(&Plan::USUAL);
    let host = &star.hosts[0];
    let options = ["--clock", "phc", "--clock-bound", "5us"];
    let text = Agent::refuse(host, &options).text;
    assert!(text.contains("eth0 has no PTP hardware clock"), "{text}");
    let none = [&options[..], &["--clock-device", "/dev/ptp7"]].concat();
    let text = Agent::refuse(host, &none).text;
    assert!(text.contains("/dev/ptp7 cannot be opened"), "{text}");
    assert!(
        host.ns.qdisc("eth0").is_none(),
        "a refused daemon leaves the device alone"
    );
}
