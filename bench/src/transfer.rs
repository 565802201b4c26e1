// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Bulk transfers between the two namespaces, over one TCP connection.

use std::{
    fs::File,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    os::fd::AsRawFd,
    process::Command,
    thread::JoinHandle,
    time::Duration,
};

use anyhow::{Context, Result};
use nix::{
    errno::Errno,
    libc,
    sched::{sched_setaffinity, setns, CloneFlags, CpuSet},
    unistd::Pid,
};
use serde::{Deserialize, Serialize};

use crate::bed::Bed;

/// One write or read of the applications, bytes.
const CHUNK: usize = 128 << 10;
const PORT: u16 = 5001;
/// Bounds what is in flight to what a line of 10 Gbit/s holds in 0.2 ms. Far below the receive
/// buffer, because near its end ACKs are sent now by the softirq and now by the reader, and a
/// transfer keeps to one of the two, whose costs differ by 900 instructions a frame.
const WINDOW_BYTES: u32 = 256 << 10;

/// What a transfer moved, from the kernel's counters.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Moved {
    /// Frames that left the sender.
    pub frames: u64,
    /// Packets that the sender's IP layer sent: segments handed to the qdisc.
    pub segments: u64,
    /// Frames that came back: TCP ACKs and OR-ACKs.
    pub returned: u64,
    /// Packets that the receiver's IP layer got: after GRO.
    pub delivered: u64,
}

/// Who talks to whom.
#[derive(Clone, Debug)]
pub struct Route {
    /// Namespaces.
    pub from: &'static str,
    pub to: &'static str,
    /// Address and port of the receiver.
    pub address: &'static str,
    pub port: u16,
    /// On which the receiver's application stays.
    pub receivers_processor: Option<usize>,
}

impl Route {
    pub fn of(bed: Bed) -> Self {
        Self {
            from: "a",
            to: "b",
            address: bed.receiver_address(),
            port: PORT,
            receivers_processor: None,
        }
    }
}

/// An open connection; the receiver runs in a thread of its own.
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// After each write.
    rest: Duration,
    receiver: JoinHandle<Result<()>>,
}

impl Connection {
    /// Connects the two hosts. The calling thread is in the sender's namespace from then on.
    pub fn open(route: Route) -> Result<Self> {
        let (ready, listening) = std::sync::mpsc::channel();
        let of = route.clone();
        let receiver = std::thread::spawn(move || {
            stay_on(of.receivers_processor)?;
            enter(of.to)?;
            let listener = TcpListener::bind((of.address, of.port)).context("listening")?;
            ready.send(())?;
            serve(listener.accept()?.0)
        });
        let _ = listening.recv();
        enter(route.from)?;
        let stream = TcpStream::connect((route.address, route.port)).context("connecting")?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: vec![0x5a; CHUNK],
            rest: Duration::ZERO,
            receiver,
        })
    }

    /// Lets the application rest after each write of `CHUNK` bytes, which bounds its rate.
    pub fn rest(&mut self, rest: Duration) {
        self.rest = rest;
    }

    /// Sends `bytes` and waits until the receiver's application has them all.
    pub fn send(&mut self, bytes: u64) -> Result<()> {
        self.stream.write_all(&bytes.to_ne_bytes())?;
        let mut left = bytes;
        while left > 0 {
            let chunk = left.min(CHUNK as u64) as usize;
            self.stream.write_all(&self.buffer[..chunk])?;
            left -= chunk as u64;
            std::thread::sleep(self.rest);
        }
        self.stream.read_exact(&mut [0])?;
        Ok(())
    }

    pub fn close(self) -> Result<()> {
        drop(self.stream);
        self.receiver.join().expect("the receiver does not panic")
    }
}

/// Answers every transfer with a byte once it is complete.
fn serve(mut stream: TcpStream) -> Result<()> {
    let mut buffer = vec![0; CHUNK];
    let mut header = [0; 8];
    // Not before the first full frame, with which the kernel sets the bound anew. Not later: while the window that the
    // receiver has offered is wider than its bound, it acknowledges fewer frames.
    let mut bounded = false;
    while stream.read_exact(&mut header).is_ok() {
        let mut left = u64::from_ne_bytes(header);
        while left > 0 {
            let most = left.min(CHUNK as u64) as usize;
            left -= stream.read(&mut buffer[..most])? as u64;
            if !bounded {
                clamp_window(&stream, WINDOW_BYTES)?;
                bounded = true;
            }
        }
        stream.write_all(&[1])?;
    }
    Ok(())
}

/// Sets the largest window that the socket offers (TCP_WINDOW_CLAMP, which nix does not have).
fn clamp_window(stream: &TcpStream, bytes: u32) -> Result<()> {
    set_option(stream, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, bytes).context("TCP_WINDOW_CLAMP")
}

fn set_option(stream: &TcpStream, level: i32, option: i32, value: u32) -> Result<()> {
    // SAFETY: the kernel reads the four bytes of `value`.
    let result = unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    Errno::result(result)?;
    Ok(())
}

/// Keeps the calling thread, and what it starts, on a processor.
pub fn stay_on(processor: Option<usize>) -> Result<()> {
    let Some(processor) = processor else {
        return Ok(());
    };
    let mut set = CpuSet::new();
    set.set(processor)?;
    sched_setaffinity(Pid::from_raw(0), &set).with_context(|| format!("processor {processor}"))
}

/// Frames that have left eth0 of a namespace.
pub fn frames_sent(namespace: &str) -> Result<u64> {
    device(&counters(namespace)?, 9)
}

impl Moved {
    /// The kernel's counters now.
    pub fn read(ip6: bool) -> Result<Self> {
        let (a, b) = (counters("a")?, counters("b")?);
        let packets = |text: &str, what: &str| {
            if ip6 {
                named(text, &format!("Ip6{what}"))
            } else {
                column(text, "Ip:", what)
            }
        };
        Ok(Self {
            frames: device(&a, 9)?,
            returned: device(&a, 1)?,
            segments: packets(&a, "OutRequests")?,
            delivered: packets(&b, "InReceives")?,
        })
    }

    pub fn since(self, before: Self) -> Self {
        Self {
            frames: self.frames - before.frames,
            segments: self.segments - before.segments,
            returned: self.returned - before.returned,
            delivered: self.delivered - before.delivered,
        }
    }
}

fn counters(namespace: &str) -> Result<String> {
    let output = Command::new("ip")
        .args([
            "netns",
            "exec",
            namespace,
            "cat",
            "/proc/net/dev",
            "/proc/net/snmp",
            "/proc/net/snmp6",
        ])
        .output()?;
    Ok(String::from_utf8(output.stdout)?)
}

/// A field of eth0's line in /proc/net/dev: 1 = packets received, 9 = packets sent.
fn device(text: &str, field: usize) -> Result<u64> {
    let line = text
        .lines()
        .find_map(|l| l.trim_start().strip_prefix("eth0:"))
        .context("no eth0")?;
    line.split_whitespace()
        .nth(field)
        .and_then(|v| v.parse().ok())
        .context("a field of /proc/net/dev")
}

/// A column of /proc/net/snmp: a line of names, then a line of values.
fn column(text: &str, table: &str, name: &str) -> Result<u64> {
    let mut lines = text.lines().filter(|l| l.starts_with(table));
    let (names, values) = (
        lines.next().context("no names")?,
        lines.next().context("no values")?,
    );
    names
        .split_whitespace()
        .zip(values.split_whitespace())
        .find_map(|(n, v)| (n == name).then(|| v.parse().ok())?)
        .with_context(|| format!("no {name} in {table}"))
}

/// A line of /proc/net/snmp6.
fn named(text: &str, name: &str) -> Result<u64> {
    text.lines()
        .find_map(|l| l.strip_prefix(name)?.trim().parse().ok())
        .with_context(|| format!("no {name}"))
}

/// Moves the calling thread into a network namespace.
pub fn enter(namespace: &str) -> Result<()> {
    let file = File::open(format!("/run/netns/{namespace}"))
        .with_context(|| format!("namespace {namespace}"))?;
    setns(file, CloneFlags::CLONE_NEWNET)
        .with_context(|| format!("entering namespace {namespace}"))?;
    Ok(())
}

/// CLOCK_MONOTONIC, ns.
pub fn now_ns() -> u64 {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC)
        .expect("Linux has CLOCK_MONOTONIC");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}
