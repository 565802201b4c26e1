// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What each door gets.
//!
//! machine: a client that gets no answer for a while goes on with the next request.
use std::{
    io::{Read, Write},
    net::{Shutdown, TcpStream, UdpSocket},
    os::unix::net::UnixStream,
    thread,
    time::Duration,
};

use etcd_client::{Client, Compare, CompareOp, Txn, TxnOp};
use rand_chacha::{
    rand_core::{RngCore, SeedableRng},
    ChaCha8Rng,
};

use crate::rack::{Rack, HOST, METRICS};

/// Sends so many requests.
type Flood = fn(&Rack, u64);

pub const DOORS: [(&str, Flood); 5] = [
    ("status, Unix", status), // first: the next one fills the table of flows, and each status counts them
    ("metrics, TCP", metrics),
    ("clock messages, UDP 5198", clock),
    ("OR-ACKs, UDP 5199", oracks),
    ("etcd's answers", etcd),
];
/// At one time; half as many as the port of the metrics serves.
const CLIENTS: u64 = 8;
const PATIENCE: Duration = Duration::from_secs(5);
/// Operations of a transaction, which is what etcd allows.
const BATCH: u64 = 128;

/// A flood comes from other machines: here it has what the daemons leave of the processors.
fn yield_to_daemons() {
    // SAFETY: no pointers. 0 is this thread.
    let done = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 19) };
    assert_eq!(done, 0, "a lower priority is always granted");
}

/// Divides the requests among clients. Each has a source of chance of its own.
fn shared(number: u64, client: impl Fn(u64, &mut ChaCha8Rng) + Sync) {
    thread::scope(|scope| {
        for seed in 0..CLIENTS {
            let (client, number) = (&client, number / CLIENTS);
            scope.spawn(move || {
                yield_to_daemons();
                let mut chance = ChaCha8Rng::seed_from_u64(seed);
                (0..number).for_each(|_| client(chance.next_u64(), &mut chance));
            });
        }
    });
}

fn noise(chance: &mut ChaCha8Rng, most: usize) -> Vec<u8> {
    let mut bytes = vec![0; chance.next_u64() as usize % (most + 1)];
    chance.fill_bytes(&mut bytes);
    bytes
}

/// Bytes of a request that a client writes at once.
fn request(kind: u64, good: &[u8], chance: &mut ChaCha8Rng) -> Vec<u8> {
    match kind % 8 {
        0 => good.to_vec(),
        1 => b"POST /metrics HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n".to_vec(),
        2 => [b"GET /", &[b'%'; 9_000][..]].concat(),
        3 => vec![],
        4 => good[..good.len() / 2].to_vec(),
        5 => good.repeat(20),
        6 => [good, &noise(chance, 2_000)].concat(),
        _ => noise(chance, 2_000),
    }
}

/// Writes, says that this was all, and reads whatever comes.
fn converse(mut stream: impl Read + Write, bytes: &[u8], shut: impl FnOnce()) {
    let _ = stream.write_all(bytes); // it may be closed before all is read
    shut();
    let mut answer = [0; 65_536];
    while stream.read(&mut answer).is_ok_and(|n| n > 0) {}
}

fn metrics(rack: &Rack, number: u64) {
    rack.within(|| {
        shared(number, |kind, chance| {
            let bytes = request(kind, b"GET /metrics HTTP/1.1\r\n\r\n", chance);
            let stream = TcpStream::connect((HOST, METRICS)).expect("the port is open");
            stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
            converse(&stream, &bytes, || drop(stream.shutdown(Shutdown::Write)));
        });
    });
}

fn status(rack: &Rack, number: u64) {
    let socket = rack.socket();
    shared(number, |kind, chance| {
        let bytes = request(kind, b"status\n", chance);
        let stream = UnixStream::connect(&socket).expect("the daemon listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        converse(&stream, &bytes, || drop(stream.shutdown(Shutdown::Write)));
    });
}

/// Datagrams of the right length with the right first bytes, and any others.
fn datagrams(rack: &Rack, number: u64, port: u16, begins: &[u8], length: usize) {
    rack.within(|| {
        shared(number, |kind, chance| {
            thread_local! {
                static SOCKET: UdpSocket = UdpSocket::bind("0.0.0.0:0").expect("a port");
            }
            let mut bytes = noise(chance, 1_400);
            if kind % 2 == 0 {
                bytes.resize(length, 0);
                bytes[..begins.len()].copy_from_slice(begins);
            }
            // A full buffer of the sender loses one.
            SOCKET.with(|socket| drop(socket.send_to(&bytes, (HOST, port))));
        });
    });
}

fn clock(rack: &Rack, number: u64) {
    use onramp_clock::wire::{PORT, PROBE, VERSION};
    datagrams(rack, number, PORT, &[VERSION, 1, 1, 0], PROBE);
}

fn oracks(rack: &Rack, number: u64) {
    use onramp_law::abi::{onr_orack, ONR_ORACK_PORT, ONR_ORACK_VERSION};
    let (port, version) = (ONR_ORACK_PORT as u16, ONR_ORACK_VERSION as u8);
    datagrams(
        rack,
        number,
        port,
        &[version, 0, 0, 1],
        size_of::<onr_orack>(),
    );
}

/// Members whose records are nonsense change all the time. etcd tells the daemon of each change.
fn etcd(rack: &Rack, number: u64) {
    rack.within(|| {
        yield_to_daemons();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.expect("a runtime").block_on(async {
            let mut client = Client::connect(["http://10.77.0.2:2379"], None)
                .await
                .expect("it listens");
            let mut chance = ChaCha8Rng::seed_from_u64(1);
            for batch in 0..number.div_ceil(BATCH) {
                let put = |n: u64| {
                    TxnOp::put(
                        format!("/onramp/default/members/x{n}"),
                        noise(&mut chance, 40),
                        None,
                    )
                };
                let puts: Vec<TxnOp> = (0..BATCH).map(put).collect();
                let always = [Compare::version("none", CompareOp::Equal, 0)];
                let done = client.txn(Txn::new().when(always).and_then(puts)).await;
                let revision = done
                    .expect("etcd works")
                    .header()
                    .expect("a header")
                    .revision();
                if batch % 100 == 99 {
                    client.compact(revision, None).await.expect("etcd works");
                }
            }
            let all = etcd_client::DeleteOptions::new().with_prefix();
            client
                .delete("/onramp/default/members/x", Some(all))
                .await
                .expect("etcd works");
        });
    });
}
