// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The system clock that a real chronyd keeps, as the source of fleet time. All hosts of a machine share that clock: one
//! chronyd serves it and leaves it alone, another one steers it.
use std::{
    fs,
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use onramp_status::Clock;

use crate::{
    agent::Agent,
    net::{Host, Plan, Star},
};

/// The kernel adds 0.5 ms a second to the largest error of a clock that nobody sets; 100 ms are doubted.
const DOUBTED_AFTER_S: f64 = 200.0;
/// chronyd needs some exchanges until it believes a server.
const SETTLED_S: f64 = 30.0;

/// A chronyd, killed when dropped.
struct Chronyd(Child);

impl Chronyd {
    fn start(host: &Host, options: &[&str], settings: &str) -> Chronyd {
        fs::write("/etc/passwd", "root:x:0:0::/:/bin/sh\n").expect("/etc is writable");
        let name = &host.ns.0;
        let file = format!("/tmp/chrony-{name}.conf");
        let rest = format!("cmdport 0\nbindcmdaddress /\npidfile /tmp/chrony-{name}.pid\n");
        fs::write(&file, format!("{settings}{rest}")).expect("/tmp is writable");
        let words = ["/job/chronyd", "-d", "-u", "root", "-f", &file];
        let log = fs::File::create(format!("/tmp/chrony-{name}.log")).expect("/tmp is writable");
        let mut command = host.ns.command(&[&words, options].concat());
        command
            .stdin(Stdio::null())
            .stderr(log.try_clone().expect("a file"))
            .stdout(log);
        Chronyd(command.spawn().expect("it was fetched by tools/setup"))
    }

    /// Serves the system clock as it is.
    fn server(host: &Host) -> Chronyd {
        Chronyd::start(host, &["-x"], "local stratum 1\nallow\n")
    }

    /// Makes the system clock follow the server.
    fn client(host: &Host, server: &Host) -> Chronyd {
        let server = format!("server {} iburst minpoll -4 maxpoll -4 xleave\n", server.v4);
        Chronyd::start(host, &[], &format!("{server}rtcsync\n"))
    }
}

impl Drop for Chronyd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Seconds until the daemon's clock is so, at most `most_s`.
fn seconds_until(agent: &Agent, most_s: f64, is_so: impl Fn(&Clock) -> bool) -> f64 {
    let since = Instant::now();
    let clock = agent.await_clock(Duration::from_secs_f64(most_s), is_so);
    let passed_s = since.elapsed().as_secs_f64();
    println!("after {passed_s:.1} s: {clock:?}");
    passed_s
}

/// It is believed while chronyd runs. chronyd dies: the kernel's largest error grows until the clock is doubted; then nothing
/// is held, and traffic flows. The next chronyd makes it believed again.
pub fn the_clock_is_believed_until_its_chronyd_has_been_dead_for_long() {
    let star = Star::build(&Plan {
        hosts: 3,
        ..Plan::USUAL
    });
    let [from, to, server] = star.hosts.as_slice() else {
        panic!("three hosts");
    };
    let options = [
        "--clock",
        "system",
        "--clock-bound",
        "50us",
        "--lease",
        "1s",
    ];
    let sender = Agent::start(from, &[&options[..], &["--shape", "200Mbit/s"]].concat());
    let _receiver = Agent::start(to, &options);
    let has = |words: &'static str| {
        move |clock: &Clock| {
            clock
                .doubt
                .as_ref()
                .is_some_and(|doubt| doubt.contains(words))
        }
    };
    let is_believed = |clock: &Clock| clock.lease_left_ns > 0;
    seconds_until(&sender, 1.0, has("not synchronised"));

    let _server = Chronyd::server(server);
    let client = Chronyd::client(from, server);
    seconds_until(&sender, SETTLED_S, is_believed);
    let (_, holds) = sender.traffic(to);
    assert!(holds > 0, "nothing is held");
    let doubts = sender.status().clock.doubts;

    drop(client);
    let passed_s = seconds_until(&sender, DOUBTED_AFTER_S + 2.0, has("largest error"));
    assert!(passed_s > DOUBTED_AFTER_S - 20.0, "{passed_s} s");
    sender.assert_open(to);
    assert_eq!(sender.status().clock.doubts, doubts + 1);

    let _client = Chronyd::client(from, server);
    seconds_until(&sender, SETTLED_S, is_believed);
    let (_, holds) = sender.traffic(to);
    assert!(holds > 0, "nothing is held after chronyd is back");
    sender.assert_harmless();
}
