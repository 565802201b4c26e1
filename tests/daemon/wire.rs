// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Frames with OR-ACKs on a switch port, by packet sockets: seen, sent, and rerouted through a
//! middlebox that does to them whatever a network or an attacker may do.
//! machine: its time is virtual (main.rs).
use std::{
    collections::BTreeMap,
    ffi::CString,
    io,
    mem::{size_of, zeroed},
    net::Ipv4Addr,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    sync::{
        atomic::{AtomicBool, Ordering},
        Arc,
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use crate::net::{Host, Namespace, Star};

const PORT: u32 = crate::orack::PORT as u32;
const ETH_P_ALL: u16 = 0x0003;

const LOAD_8: u32 = libc::BPF_LD | libc::BPF_B | libc::BPF_ABS;
const LOAD_16: u32 = libc::BPF_LD | libc::BPF_H | libc::BPF_ABS;
const EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ;
/// Accepts frames to a UDP port over IPv4 without options or IPv6 without extensions, in
/// classic BPF: (code, jump if true, jump if false, operand).
const fn to_port(port: u32) -> [(u32, u8, u8, u32); 12] {
    [
        (LOAD_16, 0, 0, 12), // EtherType
        (EQUAL, 0, 4, 0x0800),
        (LOAD_8, 0, 0, 23), // protocol
        (EQUAL, 0, 7, 17),
        (LOAD_16, 0, 0, 36), // destination port
        (EQUAL, 4, 5, port),
        (LOAD_8, 0, 0, 20), // next header
        (EQUAL, 0, 3, 17),
        (LOAD_16, 0, 0, 56),
        (EQUAL, 0, 1, port),
        (libc::BPF_RET, 0, 0, 65535),
        (libc::BPF_RET, 0, 0, 0),
    ]
}

/// A packet socket on one device.
pub struct Wire(OwnedFd);

impl Wire {
    /// Opens a socket that sees the OR-ACKs which come out of the cable of `dev`.
    pub fn open(namespace: &Namespace, dev: &str) -> Self {
        Self::open_for(namespace, dev, PORT)
    }

    /// The same for datagrams to another UDP port.
    pub fn open_for(namespace: &Namespace, dev: &str, port: u32) -> Self {
        let socket = namespace.enter(|| open(dev, port));
        Self(socket.unwrap_or_else(|e| panic!("packet socket on {dev}: {e}")))
    }

    /// The next frame, if one comes before `deadline`.
    pub fn receive(&self, deadline: Instant) -> Option<Vec<u8>> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let mut polled = libc::pollfd {
                fd: self.0.as_raw_fd(),
                events: libc::POLLIN,
                revents: 0,
            };
            // Rounded up: a poll of 0 ms would spin until the deadline.
            let timeout_ms = left.as_micros().div_ceil(1000) as i32;
            // SAFETY: one valid pollfd.
            if unsafe { libc::poll(&mut polled, 1, timeout_ms) } <= 0 {
                return None;
            }
            let mut frame = vec![0u8; 2048];
            // SAFETY: all zero is a valid address.
            let mut from: libc::sockaddr_ll = unsafe { zeroed() };
            let mut from_size = size_of::<libc::sockaddr_ll>() as u32;
            // SAFETY: buffer and address are valid for the sizes given.
            let size = unsafe {
                libc::recvfrom(
                    self.0.as_raw_fd(),
                    frame.as_mut_ptr().cast(),
                    frame.len(),
                    0,
                    (&raw mut from).cast(),
                    &mut from_size,
                )
            };
            if size > 0 && from.sll_pkttype != libc::PACKET_OUTGOING {
                frame.truncate(size as usize);
                return Some(frame);
            }
        }
    }

    /// All frames that are waiting.
    pub fn drain(&self) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| self.receive(Instant::now())).collect()
    }

    /// Puts a frame on the cable.
    pub fn send(&self, frame: &[u8]) {
        // SAFETY: the buffer is valid for its length.
        let sent = unsafe { libc::send(self.0.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
        assert_eq!(sent, frame.len() as isize, "{}", io::Error::last_os_error());
    }
}

fn open(dev: &str, port: u32) -> io::Result<OwnedFd> {
    let check = |result: i32| {
        if result < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(result)
        }
    };
    let name = CString::new(dev)?;
    let code = |(code, jt, jf, k): (u32, u8, u8, u32)| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let mut filter: Vec<libc::sock_filter> = to_port(port).into_iter().map(code).collect();
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    let room: i32 = 8 << 20;
    // SAFETY: plain system calls on a descriptor that is ours, with valid pointers and sizes.
    unsafe {
        let protocol = i32::from(ETH_P_ALL.to_be());
        let fd = check(libc::socket(
            libc::AF_PACKET,
            libc::SOCK_RAW | libc::SOCK_CLOEXEC,
            0,
        ))?;
        let socket = OwnedFd::from_raw_fd(fd);
        let set = |option, value: *const libc::c_void, size: usize| {
            check(libc::setsockopt(
                fd,
                libc::SOL_SOCKET,
                option,
                value,
                size as u32,
            ))
        };
        set(
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            size_of::<libc::sock_fprog>(),
        )?;
        set(
            libc::SO_RCVBUFFORCE,
            (&raw const room).cast(),
            size_of::<i32>(),
        )?;
        let mut address: libc::sockaddr_ll = zeroed();
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol as u16;
        address.sll_ifindex = check(libc::if_nametoindex(name.as_ptr()) as i32)?;
        check(libc::bind(
            fd,
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as u32,
        ))?;
        Ok(socket)
    }
}

/// A TCP segment of 1448 B from the first host of a star to the second.
pub fn data_frame(from_port: u16, to_port: u16, seq: u32) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    let (from, to) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
    frame.extend([0x45, 0, 0x05, 0xd0, 0, 0, 0x40, 0, 64, 6, 0, 0]);
    frame.extend(from.octets());
    frame.extend(to.octets());
    let sum: u32 = frame[14..34]
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]))
        .sum();
    let check = !((sum & 0xffff) + (sum >> 16)) as u16;
    frame[24..26].copy_from_slice(&check.to_be_bytes());
    frame.extend(from_port.to_be_bytes());
    frame.extend(to_port.to_be_bytes());
    frame.extend(seq.to_be_bytes());
    frame.extend([0, 0, 0, 1, 0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0]);
    frame.resize(14 + 20 + 20 + 1448, 7);
    frame
}

/// What a middlebox makes of a frame: frames to send, each after a while.
pub type Treated = Vec<(Duration, Vec<u8>)>;

/// Takes the OR-ACKs from one host out of the network and puts others in on the way to another.
pub struct Middlebox {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<usize>>,
}

impl Middlebox {
    pub fn between(
        star: &Star,
        from: &Host,
        to: &Host,
        treat: impl FnMut(&[u8]) -> Treated + Send + 'static,
    ) -> Self {
        let taken = Wire::open(&star.switch, &from.port);
        let given = Wire::open(&star.switch, &to.port);
        let port = &from.port;
        star.switch.run(&format!("tc qdisc add dev {port} clsact"));
        for (preference, protocol) in [(1, "ip"), (2, "ipv6")] {
            star.switch.run(&format!(
                "tc filter add dev {port} ingress pref {preference} protocol {protocol} \
                 flower ip_proto udp dst_port {PORT} action drop"
            ));
        }
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || forward(&taken, &given, treat, &stopped));
        Self {
            stop,
            thread: Some(thread),
        }
    }

    /// Waits until everything that was delayed is out; how many frames went in.
    pub fn finish(mut self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        self.thread
            .take()
            .expect("it runs")
            .join()
            .expect("the middlebox succeeds")
    }
}

fn forward(
    taken: &Wire,
    given: &Wire,
    mut treat: impl FnMut(&[u8]) -> Treated,
    stop: &AtomicBool,
) -> usize {
    let mut due: BTreeMap<(Instant, usize), Vec<u8>> = BTreeMap::new();
    let (mut frames, mut order) = (0, 0);
    loop {
        let now = Instant::now();
        while due
            .first_key_value()
            .is_some_and(|((time, _), _)| *time <= now)
        {
            given.send(&due.pop_first().expect("one is due").1);
        }
        if stop.load(Ordering::Relaxed) && due.is_empty() {
            return frames;
        }
        let tick = now + Duration::from_millis(20);
        let wake = due
            .first_key_value()
            .map_or(tick, |((time, _), _)| tick.min(*time));
        let Some(frame) = taken.receive(wake) else {
            continue;
        };
        frames += 1;
        for (delay, frame) in treat(&frame) {
            due.insert((Instant::now() + delay, order), frame);
            order += 1;
        }
    }
}
