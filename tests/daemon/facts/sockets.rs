// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Kinds of connections: MPTCP, TCP Fast Open, kTLS, options in IP headers, sequence numbers that wrap. Each fact begins
//! without On-Ramp.
//! machine: its time is virtual (main.rs).
use std::{
    io::{Read, Write},
    net::{IpAddr, SocketAddr, TcpListener, TcpStream},
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    thread,
    time::{Duration, Instant},
};

use nix::sys::socket::{bind, connect, listen, Backlog, SockaddrStorage};

use super::devices::with_two_devices;
use crate::{
    agent::Agent,
    compare::{compare, Compared, Ends},
    net::{Host, Plan, Star},
    tcp::{content, finish_all, Load, Transfer},
};

const TCP_ULP: i32 = 31;
const TCP_FASTOPEN_CONNECT: i32 = 30;
const SOL_TLS: i32 = 282;
const TLS_TX: i32 = 1;
const TLS_RX: i32 = 2;

/// Sets an option of a socket to the bytes of a value.
fn set(socket: &impl AsRawFd, level: i32, name: i32, value: &[u8]) {
    let (bytes, size) = (value.as_ptr().cast(), value.len() as u32);
    // SAFETY: the value has this size.
    let error = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, bytes, size) };
    let why = std::io::Error::last_os_error();
    assert_eq!(error, 0, "option {name} of {level}: {why}");
}

fn set_number(socket: &impl AsRawFd, level: i32, name: i32, value: u32) {
    set(socket, level, name, &value.to_ne_bytes());
}

/// How to make the sockets of a connection.
#[derive(Clone, Copy)]
struct Kind {
    protocol: i32,
    v6: bool,
    /// Before the sockets connect and listen.
    client: fn(&OwnedFd),
    server: fn(&OwnedFd),
}

fn nothing(_: &OwnedFd) {}

const TCP: Kind = Kind {
    protocol: libc::IPPROTO_TCP,
    v6: false,
    client: nothing,
    server: nothing,
};

impl Kind {
    fn socket(&self) -> OwnedFd {
        let family = if self.v6 {
            libc::AF_INET6
        } else {
            libc::AF_INET
        };
        let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
        // SAFETY: a new descriptor, which nobody else owns.
        unsafe {
            let fd = libc::socket(family, kind, self.protocol);
            assert!(fd >= 0, "{}", std::io::Error::last_os_error());
            OwnedFd::from_raw_fd(fd)
        }
    }

    fn address(&self, host: &Host) -> IpAddr {
        if self.v6 {
            host.v6
        } else {
            host.v4
        }
    }

    fn listen(&self, host: &Host) -> TcpListener {
        let listener = host.ns.enter(|| {
            let socket = self.socket();
            (self.server)(&socket);
            let any = SocketAddr::new(self.address(host), 0);
            bind(socket.as_raw_fd(), &SockaddrStorage::from(any)).expect("a free port");
            listen(&socket, Backlog::new(16).expect("a length")).expect("it is bound");
            socket
        });
        TcpListener::from(listener)
    }

    /// A socket that is connected, from this port or from any.
    fn connect(&self, host: &Host, port: u16, to: SocketAddr) -> TcpStream {
        let stream = host.ns.enter(|| {
            let socket = self.socket();
            (self.client)(&socket);
            let own = SocketAddr::new(self.address(host), port);
            bind(socket.as_raw_fd(), &SockaddrStorage::from(own)).expect("a free port");
            connect(socket.as_raw_fd(), &SockaddrStorage::from(to)).expect("it listens");
            socket
        });
        TcpStream::from(stream)
    }

    /// Two flows, after `prepare` has seen the ends of each; their goodput. The server listens meanwhile: subflows of MPTCP
    /// come to its port.
    fn two_flows(&self, from: &Host, to: &Host, prepare: fn(&TcpStream)) -> f64 {
        let listener = self.listen(to);
        let address = listener.local_addr().expect("it is bound");
        let one = |_| {
            let stream = self.connect(from, 0, address);
            let (accepted, _) = listener.accept().expect("it is connected");
            prepare(&stream);
            prepare(&accepted);
            Transfer::over(stream, accepted, Load::seconds(1.5))
        };
        finish_all((0..2).map(one).collect())
    }
}

/// Compares flows of a kind with those without On-Ramp.
fn compared(plan: Plan, kind: Kind) -> Compared {
    let star = Star::build(&plan);
    let (from, to) = star.pair();
    compare(Ends::of(from, to), || kind.two_flows(from, to, |_| ()))
}

/// A connection with a subflow by each of two devices: each is a flow, and is held.
pub fn subflows_of_mptcp_are_held_each() {
    let kind = Kind {
        protocol: libc::IPPROTO_MPTCP,
        ..TCP
    };
    let (star, _) = with_two_devices();
    let (from, to) = star.pair();
    to.ns.run("ip mptcp limits set subflow 2");
    for line in [
        "ip mptcp limits set subflow 2",
        "ip mptcp endpoint add 10.0.1.1 dev eth1 subflow",
        "ip route add 10.0.0.0/24 dev eth1 src 10.0.1.1 table 7",
        "ip rule add from 10.0.1.1 table 7",
    ] {
        from.ns.run(line);
    }
    let joined = || from.counted("netstat", "MPTcpExt:", "MPJoinSynAckRx");
    let traffic = || {
        let before = joined();
        let goodput = kind.two_flows(from, to, |_| ());
        assert_eq!(joined(), before + 2, "each has a second subflow");
        goodput
    };
    let ends = Ends {
        at_sender: &["--dev", "eth0,eth1", "--peers", "10.0.0.0/8"],
        at_receiver: &["--peers", "10.0.0.0/8"],
        ..Ends::of(from, to)
    };
    let compared = compare(ends, traffic);
    compared.assert_held();
    assert_eq!(compared.sender.get("flows_created"), 4);
}

/// A connection whose SYN carries the request, from this port; and the time from the call that connects until the server
/// has the request, ms.
fn fast_open(from: &Host, listener: &TcpListener, port: u16) -> (TcpStream, TcpStream, f64) {
    const FAST: Kind = Kind {
        client: |socket| {
            set_number(socket, libc::IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1);
            set_number(socket, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1);
        },
        ..TCP
    };
    let started = Instant::now();
    let mut stream = FAST.connect(from, port, listener.local_addr().expect("it is bound"));
    stream.write_all(&content(0)[..1000]).expect("it connects");
    let (mut accepted, _) = listener.accept().expect("it is connected");
    let mut request = [0; 1000];
    accepted.read_exact(&mut request).expect("it arrives");
    assert_eq!(request[..], content(0)[..1000]);
    (stream, accepted, started.elapsed().as_secs_f64() * 1e3)
}

/// Such a connection sends 300 kB more and ends with a reset, so that neither end remembers it. Returns the time.
fn fast_open_and_reset(from: &Host, listener: &TcpListener, port: u16) -> f64 {
    let (mut stream, mut accepted, took_ms) = fast_open(from, listener, port);
    let reader = thread::spawn(move || {
        let mut rest = vec![0; 300_000];
        accepted.read_exact(&mut rest).expect("it arrives");
        let _ = accepted.read(&mut [0]); // fails with the reset
    });
    for _ in 0..6 {
        let part = &content(0)[..50_000];
        stream.write_all(part).expect("it is connected");
    }
    thread::sleep(Duration::from_millis(100));
    let at_once = [1_u32.to_ne_bytes(), 0_u32.to_ne_bytes()].concat(); // struct linger
    set(&stream, libc::SOL_SOCKET, libc::SO_LINGER, &at_once);
    drop(stream);
    reader.join().expect("it reads all");
    took_ms
}

/// Requests in SYNs, from the same port again and again, each after a reset: nothing of the connection before is left,
/// and the connection that begins keeps its place in the table.
pub fn a_request_in_the_syn_begins_a_new_flow() {
    const PORT: u16 = 40_000;
    let star = Star::build(&Plan::USUAL);
    let (from, to) = star.pair();
    for host in [from, to] {
        // Without cookies, which another connection would have to fetch before.
        host.ns.sysctl("net.ipv4.tcp_fastopen", "519");
    }
    let fast = Kind {
        server: |socket| set_number(socket, libc::IPPROTO_TCP, libc::TCP_FASTOPEN, 16),
        ..TCP
    };
    let listener = fast.listen(to);
    fast_open_and_reset(from, &listener, PORT);
    let worst = || {
        let all = (0..5).map(|_| fast_open_and_reset(from, &listener, PORT));
        all.fold(0.0, f64::max)
    };
    let without = worst();
    let sender = Agent::start(from, &["--flows", "16"]);
    let receiver = Agent::start(to, &[]);
    let with = worst();
    println!("without {without:.2} ms, with {with:.2} ms");
    assert!(with < without + 0.5, "{without} and {with} ms");
    assert_eq!(sender.counter("flows_created"), 1, "one entry");

    let (stream, accepted, _) = fast_open(from, &listener, PORT);
    let long = Transfer::over(stream, accepted, Load::seconds(4.0));
    for _ in 0..60 {
        Transfer::start(from, to, Load::bytes(2000)).finish();
    }
    long.finish();
    println!("{:?}", sender.status().counters);
    assert!(to.counted("netstat", "TcpExt:", "TCPFastOpenPassive") >= 11);
    assert_eq!(sender.counter("flows_created"), 61, "the long one stays");
    assert_eq!(sender.counter("flow_table_full"), 0);
    sender.assert_harmless();
    receiver.assert_harmless();
}

/// TLS 1.2 with AES-GCM of 128 bits and a key for all: struct tls12_crypto_info_aes_gcm_128.
fn encrypt(socket: &TcpStream) {
    let mut info = vec![];
    info.extend(0x0303_u16.to_ne_bytes()); // version
    info.extend(51_u16.to_ne_bytes()); // cipher
    info.extend([7; 8 + 16 + 4]); // initialization vector, key, salt
    info.extend([0; 8]); // number of the first record
    set(socket, libc::IPPROTO_TCP, TCP_ULP, b"tls\0");
    set(socket, SOL_TLS, TLS_TX, &info);
    set(socket, SOL_TLS, TLS_RX, &info);
}

pub fn flows_of_ktls_are_held() {
    // The ciphers of this machine leave no 100 Mbit/s.
    let star = Star::build(&Plan {
        port_mbit: Some(20),
        buffer_packets: 80,
        ..Plan::USUAL
    });
    let (from, to) = star.pair();
    let ends = Ends {
        at_sender: &["--threshold", "20ms", "--gso-max", "4kB"],
        ..Ends::of(from, to)
    };
    let compared = compare(ends, || TCP.two_flows(from, to, encrypt));
    println!("{}", from.ns.run("cat /proc/net/tls_stat"));
    compared.assert_held();
}

/// A client whose first sequence number is 5 MB before `wrap`.
fn begins_before(socket: &OwnedFd, wrap: u32) {
    let tcp = libc::IPPROTO_TCP;
    set_number(socket, tcp, libc::TCP_REPAIR, 1);
    set_number(socket, tcp, libc::TCP_REPAIR_QUEUE, 2); // of what it sends
    set_number(
        socket,
        tcp,
        libc::TCP_QUEUE_SEQ,
        wrap.wrapping_sub(5_000_000),
    );
    set_number(socket, tcp, libc::TCP_REPAIR, 0);
}

/// From 2^32 on they begin with 0 again, and from 2^31 on the difference to 0 is negative.
pub fn sequence_numbers_may_wrap() {
    let usual = compared(Plan::USUAL, TCP);
    let at_zero = Kind {
        client: |socket| begins_before(socket, 0),
        ..TCP
    };
    let in_the_middle = Kind {
        client: |socket| begins_before(socket, 1 << 31),
        ..TCP
    };
    for kind in [at_zero, in_the_middle] {
        let compared = compared(Plan::USUAL, kind);
        compared.assert_held();
        let [as_usual, wrapped] = [&usual, &compared].map(|c| c.sender.get("oracks_used") as f64);
        assert!(wrapped > 0.9 * as_usual, "{as_usual} and {wrapped} used");
        assert_eq!(compared.sender.get("oracks_absurd"), 0);
    }
}

/// Padding of 8 bytes, as an extension header that the host at the end reads, and as one that each router reads.
const PADDING: [u8; 8] = [0, 0, 1, 4, 0, 0, 0, 0];

pub fn ipv6_with_extension_headers_passes_unheld() {
    let to_the_end = Kind {
        v6: true,
        client: |socket| set(socket, libc::IPPROTO_IPV6, libc::IPV6_DSTOPTS, &PADDING),
        ..TCP
    };
    let to_each = Kind {
        client: |socket| set(socket, libc::IPPROTO_IPV6, libc::IPV6_HOPOPTS, &PADDING),
        ..to_the_end
    };
    for kind in [to_the_end, to_each] {
        let compared = compared(Plan::USUAL, kind);
        compared.assert_unheld();
        assert_eq!(compared.sender.get("flows_created"), 0);
        assert_eq!(compared.receiver.get("oracks_sent"), 0);
    }
}

/// Four times "no operation".
pub fn ipv4_with_options_is_held() {
    let with_options = Kind {
        client: |socket| set(socket, libc::IPPROTO_IP, libc::IP_OPTIONS, &[1; 4]),
        ..TCP
    };
    compared(Plan::USUAL, with_options).assert_held();
}

/// More than 4 GB at 2.5 Gbit/s: the sequence numbers come round once, and OR-ACKs go on.
pub fn a_flow_beyond_4_gb_is_measured_to_its_end() {
    const BYTES: u64 = 4_500_000_000;
    const ROUND: u64 = 1 << 32;
    let star = Star::build(&Plan {
        port_mbit: Some(2500),
        tso: true,
        ..Plan::USUAL
    });
    let (from, to) = star.pair();
    let without = Transfer::start(from, to, Load::bytes(BYTES / 10)).finish();
    let sender = Agent::start(from, &["--gso-max", "64kB"]);
    let _receiver = Agent::start(to, &[]);
    let flow = Transfer::start(from, to, Load::bytes(BYTES));
    let mut at_the_end = 0;
    while !flow.is_finished() {
        thread::sleep(Duration::from_millis(50));
        if flow.received() < ROUND {
            at_the_end = sender.counter("oracks_used");
        }
    }
    let with = flow.finish();
    let used = sender.counter("oracks_used");
    println!("without {without:?}, with {with:?}; {at_the_end} and {used} OR-ACKs used");
    println!("{:?}", sender.status().counters);
    assert!(with.mbit_per_s() > 0.9 * without.mbit_per_s());
    let by_byte = at_the_end as f64 / ROUND as f64;
    let after = (used - at_the_end) as f64 / (BYTES - ROUND) as f64;
    assert!(after > 0.5 * by_byte, "fewer after the wrap");
    assert_eq!(sender.counter("oracks_absurd"), 0);
    sender.assert_harmless();
}
