// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Real TCP between hosts, byte-exact: the receiver compares everything with what was sent.
//! machine: its time is virtual (main.rs).
use std::{
    io::{Read, Write},
    net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        atomic::{AtomicU64, Ordering},
        Arc, OnceLock,
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use nix::sys::socket::{setsockopt, sockopt};

use crate::net::Host;

/// Period of the content: a prime, so that no lost or doubled segment looks right.
const PERIOD: usize = 65_521;
/// Most bytes of one write or read.
const CHUNK: usize = 65_536;
/// A connection that moves nothing for this long is stuck.
const STUCK: Duration = Duration::from_secs(60);

/// How much to send.
#[derive(Clone, Copy, Debug)]
pub enum Amount {
    Bytes(u64),
    For(Duration),
}

/// What one connection carries, and how.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub amount: Amount,
    pub v6: bool,
    /// Type of service, or traffic class, of the data.
    pub tos: u8,
    /// Bytes of a write.
    pub write: usize,
    /// Bytes of a segment at most, as the receiver asks for.
    pub mss: Option<u32>,
    /// The sender rests before each write.
    pub pause: Duration,
    /// The receiver reads nothing for this long.
    pub deaf: Duration,
}

impl Load {
    pub fn bytes(bytes: u64) -> Self {
        Self {
            amount: Amount::Bytes(bytes),
            v6: false,
            tos: 0,
            write: CHUNK,
            mss: None,
            pause: Duration::ZERO,
            deaf: Duration::ZERO,
        }
    }

    pub fn seconds(seconds: f64) -> Self {
        Self {
            amount: Amount::For(Duration::from_secs_f64(seconds)),
            ..Self::bytes(0)
        }
    }
}

/// A connection under way.
pub struct Transfer {
    sender: JoinHandle<u64>,
    receiver: JoinHandle<Received>,
    /// Port of the sender; the receiver's is `to_port`.
    pub from_port: u16,
    pub to_port: u16,
    arrived: Arc<AtomicU64>,
}

/// What arrived.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    pub bytes: u64,
    /// From the connection to the end of the stream.
    pub took: Duration,
    /// The longest time between two reads.
    pub longest_gap: Duration,
}

impl Received {
    pub fn mbit_per_s(&self) -> f64 {
        self.bytes as f64 * 8e-6 / self.took.as_secs_f64()
    }
}

impl Transfer {
    pub fn start(from: &Host, to: &Host, load: Load) -> Self {
        let address: IpAddr = if load.v6 { to.v6 } else { to.v4 };
        let listener = to
            .ns
            .enter(|| TcpListener::bind((address, 0)))
            .expect("a free port");
        if let Some(mss) = load.mss {
            setsockopt(&listener, sockopt::TcpMaxSeg, &mss).expect("a plausible size");
        }
        let stream = connect(from, listener.local_addr().expect("it is bound"));
        if load.v6 {
            setsockopt(&stream, sockopt::Ipv6TClass, &i32::from(load.tos)).expect("a class");
        } else {
            setsockopt(&stream, sockopt::Ipv4Tos, &i32::from(load.tos)).expect("a type of service");
        }
        let (accepted, _) = listener.accept().expect("it is connected");
        Self::over(stream, accepted, load)
    }

    /// From one end of a connection to the other.
    pub fn over(stream: TcpStream, accepted: TcpStream, load: Load) -> Self {
        stream
            .set_nodelay(load.write < CHUNK)
            .expect("an option of TCP");
        let port = |end: &TcpStream| end.local_addr().expect("it is connected").port();
        let (from_port, to_port) = (port(&stream), port(&accepted));
        let arrived = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&arrived);
        Self {
            sender: thread::spawn(move || send(stream, load)),
            receiver: thread::spawn(move || receive(accepted, load.deaf, &counted)),
            from_port,
            to_port,
            arrived,
        }
    }

    /// Waits for the end; every byte that was sent must have arrived, unchanged and in order.
    pub fn finish(self) -> Received {
        let sent = self.sender.join().expect("the sender succeeds");
        let received = self.receiver.join().expect("the receiver succeeds");
        assert_eq!(sent, received.bytes, "bytes sent, received");
        received
    }

    /// Bytes that the receiver has read by now.
    pub fn received(&self) -> u64 {
        self.arrived.load(Ordering::Relaxed)
    }

    pub fn is_finished(&self) -> bool {
        self.receiver.is_finished()
    }
}

/// Several equal transfers at once.
pub fn transfers(from: &Host, to: &Host, load: Load, number: usize) -> Vec<Transfer> {
    (0..number)
        .map(|_| Transfer::start(from, to, load))
        .collect()
}

/// Waits for all of them; their goodput together, Mbit/s.
pub fn finish_all(transfers: Vec<Transfer>) -> f64 {
    transfers.into_iter().map(|t| t.finish().mbit_per_s()).sum()
}

/// A connected socket in `from`'s namespace.
pub fn connect(from: &Host, to: SocketAddr) -> TcpStream {
    let stream = from
        .ns
        .enter(|| TcpStream::connect(to))
        .expect("the receiver listens");
    stream
        .set_write_timeout(Some(STUCK))
        .expect("a timeout above zero");
    stream
}

/// Content from `offset` of a stream on: at least CHUNK bytes.
pub fn content(offset: u64) -> &'static [u8] {
    static CONTENT: OnceLock<Vec<u8>> = OnceLock::new();
    let content = CONTENT.get_or_init(|| {
        let mut x = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            x as u8
        };
        let period: Vec<u8> = (0..PERIOD).map(|_| next()).collect();
        period
            .iter()
            .cycle()
            .take(PERIOD + CHUNK)
            .copied()
            .collect()
    });
    &content[(offset % PERIOD as u64) as usize..]
}

fn send(mut stream: TcpStream, load: Load) -> u64 {
    let started = Instant::now();
    let mut sent = 0;
    loop {
        let size = match load.amount {
            Amount::Bytes(bytes) => (bytes - sent).min(load.write as u64) as usize,
            Amount::For(time) if started.elapsed() >= time => 0,
            Amount::For(_) => load.write,
        };
        if size == 0 {
            break;
        }
        thread::sleep(load.pause);
        stream
            .write_all(&content(sent)[..size])
            .unwrap_or_else(|e| panic!("sending after {sent} B: {e}"));
        sent += size as u64;
    }
    stream.shutdown(Shutdown::Write).expect("it is connected");
    sent
}

fn receive(mut stream: TcpStream, deaf: Duration, arrived: &AtomicU64) -> Received {
    let started = Instant::now();
    thread::sleep(deaf);
    stream
        .set_read_timeout(Some(STUCK))
        .expect("a timeout above zero");
    let mut buffer = vec![0; CHUNK];
    let mut bytes = 0;
    let (mut last, mut longest_gap) = (Instant::now(), Duration::ZERO);
    loop {
        let size = stream
            .read(&mut buffer)
            .unwrap_or_else(|e| panic!("receiving after {bytes} B: {e}"));
        longest_gap = longest_gap.max(last.elapsed());
        last = Instant::now();
        if size == 0 {
            return Received {
                bytes,
                took: started.elapsed(),
                longest_gap,
            };
        }
        assert!(
            buffer[..size] == content(bytes)[..size],
            "other bytes than were sent, after {bytes} B"
        );
        bytes += size as u64;
        arrived.store(bytes, Ordering::Relaxed);
    }
}
