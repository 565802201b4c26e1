// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A UDP socket whose packets the kernel stamps, and the clocks that the stamps are of.
//!
//! Software stamps are CLOCK_REALTIME, the data path's clock is CLOCK_MONOTONIC. The difference
//! between the two is constant until somebody sets the wall clock (both are slewed alike), so it is
//! measured once, ever more narrowly, and a reading that does not fit says that there was a step.
//! Does not: use a NIC's own clock; its stamps would be of yet another one.

use std::{
    collections::BTreeSet,
    io,
    io::IoSliceMut,
    net::{IpAddr, SocketAddr, UdpSocket},
    os::fd::{AsRawFd, RawFd},
};

use nix::{
    cmsg_space,
    errno::Errno,
    sys::{
        socket::{
            recvmsg, setsockopt, sockopt, ControlMessageOwned, MsgFlags, SockaddrStorage,
            TimestampingFlag,
        },
        time::TimeSpec,
    },
    time::{clock_gettime, clock_nanosleep, ClockId, ClockNanosleepFlags},
};
use socket2::{SockFilter, SockRef};
use tracing::warn;

use crate::{
    machine::{Beside, Lacked, Machine, Received, Stamped, Transmitted},
    wire,
};

/// What the stamps come from, for status.
pub const SOURCE: &str = "software (kernel)";

/// The longest looped frame, its headers included.
const FRAME: usize = wire::LONGEST + 100;
/// For the reports of a thousand members at a time.
const BUFFER: usize = 4 << 20;
/// Packets taken from a queue at a time: a flood must not keep the thread from its work.
const MOST_AT_ONCE: usize = 8192;
/// Ports of members that a filter tells from others; a fleet with more of them hears all.
const MOST_PORTS: usize = 64;
/// A reading of two clocks that took longer says little.
const SLOW_NS: i64 = 20_000;
/// By how much a difference of two clocks is rounded.
const ROUNDED_NS: i64 = 2;
/// Two clocks are read beside each other if that takes less than this, ns, in so many attempts.
const BESIDE_NS: i64 = 200;
const BESIDE: usize = 3;

/// CLOCK_MONOTONIC, ns: the clock that the BPF programs read.
pub fn now_mono_ns() -> i64 {
    now_ns(ClockId::CLOCK_MONOTONIC)
}

/// A clock of this host, ns.
pub fn now_ns(clock: ClockId) -> i64 {
    let now = clock_gettime(clock).expect("Linux has this clock");
    ns(&now)
}

fn ns(time: &TimeSpec) -> i64 {
    time.tv_sec() * 1_000_000_000 + time.tv_nsec()
}

/// CLOCK_MONOTONIC and CLOCK_MONOTONIC_RAW beside each other; none if something came between.
fn beside() -> Option<Beside> {
    let before = now_mono_ns();
    let raw_ns = now_ns(ClockId::CLOCK_MONOTONIC_RAW);
    let took_ns = now_mono_ns() - before;
    (0..BESIDE_NS).contains(&took_ns).then_some(Beside {
        mono_ns: before + took_ns / 2,
        raw_ns,
    })
}

/// Sleeps until CLOCK_MONOTONIC reads this.
pub fn sleep_until(mono_ns: i64) {
    let until = TimeSpec::new(mono_ns / 1_000_000_000, mono_ns % 1_000_000_000);
    let flags = ClockNanosleepFlags::TIMER_ABSTIME;
    // Interrupted by a signal: early, which harms nothing here.
    let _ = clock_nanosleep(ClockId::CLOCK_MONOTONIC, flags, &until);
}

/// What a clock of this host is ahead of CLOCK_MONOTONIC: constant but for steps.
#[derive(Debug)]
pub struct Ahead {
    clock: ClockId,
    /// It lies between these, ns; none before the first reading.
    bounds: Option<(i64, i64)>,
}

impl Ahead {
    /// How far CLOCK_REALTIME is ahead, which whoever sets the clock steps, or of CLOCK_BOOTTIME, which goes on
    /// while the host is suspended.
    pub fn of(clock: ClockId) -> Ahead {
        Ahead {
            clock,
            bounds: None,
        }
    }

    /// Reads both clocks. True: it is not what it was.
    pub fn changed(&mut self) -> bool {
        let before = now_mono_ns();
        let read = now_ns(self.clock);
        self.narrow(before, read, now_mono_ns())
    }

    /// The clock read `read` between `before` and `after`.
    fn narrow(&mut self, before: i64, read: i64, after: i64) -> bool {
        let (low, high) = (read - after - ROUNDED_NS, read - before + ROUNDED_NS);
        match self.bounds {
            Some((least, most)) if low <= most && high >= least => {
                if after - before < SLOW_NS {
                    self.bounds = Some((least.max(low), most.min(high)));
                }
                false
            }
            known => {
                self.bounds = Some((low, high));
                known.is_some()
            }
        }
    }

    /// By how much, ns.
    pub fn ns(&self) -> i64 {
        let (low, high) = self.bounds.unwrap_or_default();
        low + (high - low) / 2
    }

    /// How exactly that is known, ns.
    pub fn error_ns(&self) -> i64 {
        let (low, high) = self.bounds.unwrap_or_default();
        (high - low) / 2
    }

    /// CLOCK_MONOTONIC when this clock read `ns`.
    pub fn to_mono(&self, ns: i64) -> i64 {
        ns - self.ns()
    }
}

/// A host's socket for probes and control messages.
pub struct Socket {
    socket: UdpSocket,
    wall: Ahead,
    boot: Ahead,
    /// Only from these ports; empty: from all.
    ports: BTreeSet<u16>,
    /// Datagrams that the kernel has dropped.
    dropped: u32,
    /// For what the kernel says of a packet: stamps, and an extended error with an address.
    notes: Vec<u8>,
}

/// A packet, or one of ours that is looped back with its transmit stamp.
struct Packet<'a> {
    from: Option<SocketAddr>,
    bytes: &'a [u8],
    stamp_real_ns: Option<i64>,
    /// How many the kernel had dropped before it, if it says.
    dropped: Option<u32>,
}

impl Socket {
    /// Binds to one of this host's addresses, and asks for stamps.
    ///
    /// # Errors
    /// The address is not ours or taken, or the kernel does not stamp.
    pub fn bind(own: SocketAddr) -> io::Result<Socket> {
        let socket = UdpSocket::bind(own)?;
        socket.set_nonblocking(true)?;
        let stamps = TimestampingFlag::SOF_TIMESTAMPING_SOFTWARE
            | TimestampingFlag::SOF_TIMESTAMPING_RX_SOFTWARE
            | TimestampingFlag::SOF_TIMESTAMPING_TX_SOFTWARE;
        setsockopt(&socket, sockopt::Timestamping, &stamps)?;
        setsockopt(&socket, sockopt::RxqOvfl, &1)?;
        if setsockopt(&socket, sockopt::RcvBufForce, &BUFFER).is_err() {
            setsockopt(&socket, sockopt::RcvBuf, &BUFFER)?;
        }
        let (mut wall, mut boot) = (
            Ahead::of(ClockId::CLOCK_REALTIME),
            Ahead::of(ClockId::CLOCK_BOOTTIME),
        );
        wall.changed();
        boot.changed();
        Ok(Socket {
            socket,
            wall,
            boot,
            ports: BTreeSet::new(),
            dropped: 0,
            notes: cmsg_space!([TimeSpec; 3], u32, [u8; 128]),
        })
    }

    fn drain(
        &mut self,
        queue: MsgFlags,
        each: &mut dyn FnMut(&Packet<'_>, Option<Stamped>),
    ) -> bool {
        let fd = self.socket.as_raw_fd();
        let mut buffer = [0; FRAME];
        let mut stepped = false;
        for _ in 0..MOST_AT_ONCE {
            let Some(packet) = take(fd, queue, &mut buffer, &mut self.notes) else {
                break;
            };
            self.dropped = packet.dropped.unwrap_or(self.dropped);
            // After the stamp has been made: a step before this spoils it.
            stepped |= self.wall.changed();
            let stamp = packet.stamp_real_ns.filter(|_| !stepped);
            let stamped = |ns| Stamped {
                at_mono_ns: self.wall.to_mono(ns),
                read_mono_ns: now_mono_ns(),
            };
            each(&packet, stamp.map(stamped));
        }
        stepped
    }
}

impl Machine for Socket {
    fn now_mono_ns(&mut self) -> i64 {
        now_mono_ns()
    }

    fn beside(&mut self) -> Option<Beside> {
        (0..BESIDE).find_map(|_| beside())
    }

    fn send(&mut self, datagram: &[u8], to: SocketAddr) -> bool {
        self.socket.send_to(datagram, to).is_ok()
    }

    fn receive(&mut self, each: Received<'_>) -> bool {
        self.drain(MsgFlags::empty(), &mut |packet, at| {
            if let Some(from) = packet.from {
                each(from, packet.bytes, at);
            }
        })
    }

    /// The first stamp of a packet counts: virtual devices on its way may stamp it again.
    fn transmitted(&mut self, each: Transmitted<'_>) -> bool {
        self.drain(MsgFlags::MSG_ERRQUEUE, &mut |packet, at| {
            if let (Some((id, index)), Some(at)) = (wire::sent_probe(packet.bytes), at) {
                each(id, index, at);
            }
        })
    }

    fn hear(&mut self, ports: &BTreeSet<u16>) {
        if *ports == self.ports {
            return;
        }
        let socket = SockRef::from(&self.socket);
        let done = match (1..=MOST_PORTS).contains(&ports.len()) {
            true => socket.attach_filter(&from_ports(ports)),
            false if self.ports.is_empty() => Ok(()),
            false => socket.detach_filter(),
        };
        match done {
            Ok(()) => self.ports.clone_from(ports),
            Err(error) => warn!("clock: datagrams from ports of no member take room: {error}"),
        }
    }

    fn dropped(&self) -> u64 {
        self.dropped.into()
    }

    fn was_suspended(&mut self) -> bool {
        self.boot.changed()
    }

    fn lacked(&mut self) -> Lacked {
        crate::lacked::read()
    }

    fn cpu_ns(&mut self) -> i64 {
        now_ns(ClockId::CLOCK_THREAD_CPUTIME_ID)
    }
}

/// A socket filter (classic BPF) that lets UDP datagrams from these ports in. It sees the UDP header first.
fn from_ports(ports: &BTreeSet<u16>) -> Vec<SockFilter> {
    const LOAD_HALF: u16 = 0x28; // BPF_LD | BPF_H | BPF_ABS
    const JUMP_IF_EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
    const RETURN: u16 = 0x06; // BPF_RET | BPF_K
    const ALL: u32 = u32::MAX;
    let jumps = ports.iter().zip((1..=ports.len() as u8).rev());
    let jumps =
        jumps.map(|(port, to_all)| SockFilter::new(JUMP_IF_EQUAL, to_all, 0, (*port).into()));
    let nothing = SockFilter::new(RETURN, 0, 0, 0);
    let all = SockFilter::new(RETURN, 0, 0, ALL);
    let source_port = SockFilter::new(LOAD_HALF, 0, 0, 0);
    [source_port]
        .into_iter()
        .chain(jumps)
        .chain([nothing, all])
        .collect()
}

/// Takes a packet from a queue if one waits.
fn take<'a>(
    fd: RawFd,
    queue: MsgFlags,
    buffer: &'a mut [u8],
    notes: &mut [u8],
) -> Option<Packet<'a>> {
    let flags = queue | MsgFlags::MSG_DONTWAIT;
    let mut slices = [IoSliceMut::new(buffer)];
    let (bytes, from, stamp_real_ns, dropped) = loop {
        match recvmsg::<SockaddrStorage>(fd, &mut slices, Some(notes), flags) {
            Ok(got) => {
                let (mut made_at, mut dropped) = (None, None);
                for note in got.cmsgs().into_iter().flatten() {
                    match note {
                        ControlMessageOwned::RxqOvfl(number) => dropped = Some(number),
                        note => made_at = made_at.or(stamp(note)),
                    }
                }
                break (
                    got.bytes,
                    got.address.as_ref().and_then(address),
                    made_at,
                    dropped,
                );
            }
            // Told once: an ICMP error of a packet that nobody wanted.
            Err(Errno::ECONNREFUSED | Errno::EHOSTUNREACH | Errno::ENETUNREACH | Errno::EINTR) => {}
            Err(_) => return None,
        }
    };
    Some(Packet {
        from,
        bytes: &buffer[..bytes],
        stamp_real_ns,
        dropped,
    })
}

fn address(storage: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = storage
        .as_sockaddr_in()
        .map(|a| (IpAddr::V4(a.ip()), a.port()));
    let (ip, port) = v4.or_else(|| storage.as_sockaddr_in6().map(|a| (a.ip().into(), a.port())))?;
    Some(SocketAddr::new(ip, port))
}

fn stamp(message: ControlMessageOwned) -> Option<i64> {
    match message {
        ControlMessageOwned::ScmTimestampsns(stamps) => {
            Some(ns(&stamps.system)).filter(|ns| *ns > 0)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        keys::Keys,
        wire::{Body, Message, Probe},
    };

    #[test]
    fn readings_narrow_the_difference_and_steps_show() {
        let mut ahead = Ahead::of(ClockId::CLOCK_REALTIME);
        assert!(!ahead.narrow(1_000, 500_000 + 1_400, 2_000));
        assert!(!ahead.narrow(5_000, 500_000 + 5_050, 5_100));
        assert!(ahead.to_mono(500_000).abs() <= 52);
        assert!(
            !ahead.narrow(5_000, 500_000 + 15_000, 25_000),
            "slow, but it fits"
        );
        assert!(ahead.narrow(6_000, 600_000 + 6_050, 6_100));
        assert!(ahead.to_mono(600_000).abs() <= 52);
        assert!(!ahead.narrow(7_000, 600_000 + 7_050, 7_100));
    }

    #[test]
    fn the_raw_clock_is_read_beside_the_other() {
        let soon = || {
            (0..1_000_000)
                .find_map(|_| beside())
                .expect("a reading that nothing interrupts")
        };
        let first = soon();
        sleep_until(first.mono_ns + 100_000_000); // machine: a longer time is as good
        let then = soon();
        let (mono_ns, raw_ns) = (then.mono_ns - first.mono_ns, then.raw_ns - first.raw_ns);
        // No program changes the rate by more than 500 ppm.
        assert!(
            (mono_ns - raw_ns).abs() < mono_ns / 1_000,
            "{mono_ns}, {raw_ns}"
        );
    }

    /// A flood from a port that no member has takes no room from members' messages, and is counted.
    #[test]
    fn datagrams_from_other_ports_are_dropped_before_the_queue() {
        let mut socket = Socket::bind("127.0.0.1:0".parse().unwrap()).expect("a free port");
        let own = socket.socket.local_addr().unwrap();
        let [member, other, last] =
            std::array::from_fn(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
        let port = |socket: &UdpSocket| socket.local_addr().unwrap().port();
        let heard = |socket: &mut Socket, from: [&UdpSocket; 3]| {
            from.iter()
                .for_each(|from| assert_eq!(from.send_to(b"x", own).unwrap(), 1));
            let mut ports = vec![];
            // On loopback it has arrived when it was sent.
            socket.receive(&mut |from, _, _| ports.push(from.port()));
            ports
        };
        let all = [&member, &other, &last];
        assert_eq!(
            heard(&mut socket, all),
            all.map(port),
            "before there is a fleet"
        );
        socket.hear(&[1, port(&member), port(&last)].into());
        for _ in 0..100 {
            assert_eq!(heard(&mut socket, all), [port(&member), port(&last)]);
        }
        assert_eq!(
            socket.dropped(),
            100,
            "each before the last member's datagram"
        );
        socket.hear(&(1..=100).collect());
        assert_eq!(
            heard(&mut socket, all),
            all.map(port),
            "too many ports to tell"
        );
    }

    /// On loopback: a packet leaves, then arrives, between two readings of the clock.
    fn is_stamped(own: &str) {
        let mut socket = Socket::bind(own.parse().unwrap()).expect("a free port");
        let own = socket.socket.local_addr().unwrap();
        let datagram = |id| {
            let probe = Probe {
                index: 1,
                id,
                ..Probe::default()
            };
            let message = Message {
                seq: 0,
                term: 0,
                body: Body::Probe(probe),
            };
            message.encode(&Keys::well_known(), own, own)
        };
        // The kernel begins to stamp what arrives a while after it was asked.
        for id in 1.. {
            let before = now_mono_ns();
            let sent = datagram(id);
            assert!(socket.send(&sent, own));
            let (mut left, mut arrived) = (None, None);
            while left.is_none() || arrived.is_none() {
                socket.receive(&mut |from, bytes, stamped| {
                    assert_eq!((from, bytes), (own, &sent[..]));
                    arrived = Some(stamped);
                });
                socket.transmitted(&mut |of, index, stamped| {
                    assert_eq!((of, index), (id, 1));
                    left = Some(stamped);
                });
            }
            if let (Some(left), Some(Some(arrived))) = (left, arrived) {
                let at = [left.at_mono_ns, arrived.at_mono_ns, arrived.read_mono_ns];
                return assert!(before - 100 <= at[0] && at.is_sorted(), "{at:?}");
            }
        }
    }

    #[test]
    fn packets_are_stamped_over_ipv4() {
        is_stamped("127.0.0.1:0");
    }

    #[test]
    fn packets_are_stamped_over_ipv6() {
        is_stamped("[::1]:0");
    }
}
