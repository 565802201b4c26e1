// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Two network namespaces with a cable between them, an etcd, and a daemon in each.
//!
//! machine: the daemon is asked again when it has not answered for a while; the namespaces have all ports for themselves.
use std::{
    fs::File,
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::Mutex,
    time::Duration,
};

use libbpf_rs::{MapCore, MapHandle};
use nix::sched::{setns, CloneFlags};
use onramp_agent::datapath::clock_map;
use onramp_clock::stamps::now_mono_ns;
use onramp_status::{query_within, socket_path, Status};

use crate::machine::until;

/// The daemon whose doors are flooded.
pub const HOST: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
/// Where the floods come from, and where etcd runs.
pub const OTHER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
pub const METRICS: u16 = 9464;
const ETCD: &str = "http://10.77.0.2:2379";
const ANSWER: Duration = Duration::from_secs(2);

fn run(line: &str) {
    let words: Vec<&str> = line.split_whitespace().collect();
    let output = Command::new(words[0]).args(&words[1..]).output();
    let output = output.unwrap_or_else(|e| panic!("{line}: {e}"));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {text}");
}

pub struct Rack {
    /// The names of the two namespaces.
    ns: [String; 2],
    dir: tempfile::TempDir,
    children: Mutex<Vec<Child>>,
}

impl Rack {
    pub fn build() -> Rack {
        let ns = ["a", "b"].map(|end| format!("doors-{}-{end}", std::process::id()));
        let [a, b] = &ns;
        run(&format!("ip netns add {a}"));
        run(&format!("ip netns add {b}"));
        run(&format!(
            "ip -n {a} link add eth0 type veth peer name eth0 netns {b}"
        ));
        for (name, address) in ns.iter().zip([HOST, OTHER]) {
            run(&format!("ip -n {name} link set lo up"));
            run(&format!("ip -n {name} addr add {address}/24 dev eth0"));
            run(&format!("ip -n {name} link set eth0 up"));
        }
        // A closed connection keeps its port for a minute: a flood would have none left after 28,000 requests.
        run(&format!(
            "ip netns exec {b} sysctl -q net.ipv4.tcp_max_tw_buckets=1000"
        ));
        let dir = tempfile::tempdir().expect("a directory");
        let rack = Rack {
            ns,
            dir,
            children: Mutex::default(),
        };
        rack.start_etcd();
        rack
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Starts a program in a namespace; its messages go to a file. It is killed with the rack.
    fn start(&self, end: usize, name: &str, program: &str, words: &[&str]) -> u32 {
        let log = File::create(self.path(name)).expect("a log");
        let child = Command::new("ip")
            .args(["netns", "exec", &self.ns[end], program])
            .args(words)
            .env_remove("RUST_BACKTRACE") // as under systemd: each refused request would cost a trace
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("ip runs");
        let pid = child.id();
        self.children.lock().expect("no panic").push(child);
        pid
    }

    fn start_etcd(&self) {
        let program = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../.cache/etcd/usr/bin/etcd"
        );
        let (data, peers) = (self.path("etcd"), "http://10.77.0.2:2380");
        let urls = [
            "--listen-client-urls",
            ETCD,
            "--advertise-client-urls",
            ETCD,
        ];
        let peer_urls = [
            "--listen-peer-urls",
            peers,
            "--initial-advertise-peer-urls",
            peers,
        ];
        let cluster = format!("default={peers}");
        let rest = [
            "--initial-cluster",
            &cluster,
            "--data-dir",
            &data.to_string_lossy(),
        ];
        // It is on another machine, too, and what it does of a flood may take nothing from the daemons.
        self.start(
            1,
            "etcd.log",
            "nice",
            &[&["-n", "19", program][..], &urls, &peer_urls, &rest].concat(),
        );
        self.within(|| until("etcd listens", || TcpStream::connect((OTHER, 2379)).is_ok()));
    }

    /// Starts the daemons of both; returns that of [`HOST`].
    pub fn daemon(&self) -> Daemon<'_> {
        let keys = self.path("keys");
        std::fs::write(&keys, "1 0123456789abcdef0123456789abcdef\n").expect("a file");
        let mode = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(&keys, mode).expect("our file");
        let keys = keys.to_string_lossy().into_owned();
        let start = |end: usize, metrics: &str| {
            let log = format!("daemon{end}.log");
            let what = [
                "agent",
                "run",
                "--dev",
                "eth0",
                "--peers",
                "10.77.0.0/24",
                "--observe",
            ];
            let node = format!("door{end}");
            let fleet = ["--etcd", ETCD, "--node", &node, "--key-file", &keys];
            let clock = [&["--clock", "huygens"], &fleet[..]].concat();
            let words = [&what[..], &clock, &["--metrics", metrics]].concat();
            self.start(end, &log, env!("CARGO_BIN_EXE_onramp"), &words)
        };
        start(1, "10.77.0.2:9464");
        let pid = start(0, "10.77.0.1:9464");
        let inode = File::open(format!("/run/netns/{}", self.ns[0]));
        let inode = inode
            .and_then(|file| file.metadata())
            .expect("it is there")
            .ino();
        let daemon = Daemon {
            rack: self,
            pid,
            socket: socket_path(inode, "eth0"),
        };
        until("it answers", || {
            assert!(daemon.runs(), "the daemon has ended");
            daemon.answers()
        });
        daemon
    }

    pub fn socket(&self) -> PathBuf {
        let inode = std::fs::metadata(format!("/run/netns/{}", self.ns[0]));
        socket_path(inode.expect("it is there").ino(), "eth0")
    }

    /// Runs something in the namespace of [`OTHER`], in a thread of its own.
    pub fn within<T: Send>(&self, what: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let ns = File::open(format!("/run/netns/{}", self.ns[1])).expect("it is there");
                setns(ns, CloneFlags::CLONE_NEWNET).expect("root may");
                what()
            });
            thread.join().expect("no panic")
        })
    }
}

impl Drop for Rack {
    fn drop(&mut self) {
        for child in self.children.get_mut().expect("no panic") {
            let _ = child.kill();
            let _ = child.wait();
        }
        for end in [0, 1] {
            if std::thread::panicking() {
                let log = std::fs::read_to_string(self.path(&format!("daemon{end}.log")));
                eprintln!("daemon {end}: {}", log.unwrap_or_default());
            }
            let _ = Command::new("ip")
                .args(["netns", "delete", &self.ns[end]])
                .status();
        }
    }
}

pub struct Daemon<'a> {
    rack: &'a Rack,
    pid: u32,
    socket: PathBuf,
}

impl Daemon<'_> {
    /// A line of /proc/PID/status.
    fn line(&self, name: &str) -> Option<String> {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).ok()?;
        let mut lines = text.lines();
        lines.find_map(|line| line.strip_prefix(name).map(|rest| rest.trim().to_owned()))
    }

    pub fn rss_kib(&self) -> u64 {
        let text = self.line("VmRSS:").expect("it runs");
        let number = text.split_whitespace().next();
        number.and_then(|n| n.parse().ok()).expect("kB")
    }

    pub fn runs(&self) -> bool {
        self.line("State:")
            .is_some_and(|state| !state.starts_with('Z'))
    }

    /// Does each door that answers anybody answer?
    pub fn answers(&self) -> bool {
        let status = query_within::<Status>(&self.socket, ANSWER).is_ok();
        let metrics = self.rack.within(|| {
            let address = SocketAddr::from((HOST, METRICS));
            let mut text = String::new();
            let mut stream = TcpStream::connect_timeout(&address, ANSWER)?;
            stream.set_read_timeout(Some(ANSWER))?;
            stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n")?;
            stream.read_to_string(&mut text)?;
            std::io::Result::Ok(text.contains("onramp_"))
        });
        status && metrics.unwrap_or(false)
    }

    /// The clock of its data path.
    pub fn clock(&self) -> MapHandle {
        let entries = std::fs::read_dir(format!("/proc/{}/fdinfo", self.pid)).expect("it runs");
        let texts = entries
            .flatten()
            .filter_map(|e| std::fs::read_to_string(e.path()).ok());
        let mut maps = texts.filter_map(|text| {
            let id = text.lines().find_map(|line| line.strip_prefix("map_id:"))?;
            MapHandle::from_map_id(id.trim().parse().ok()?).ok()
        });
        maps.find(|map| map.name() == "clock").expect("it has one")
    }
}

/// The rest of the lease of a data path's clock.
pub fn lease_left_ns(clock: &MapHandle) -> i64 {
    let params = clock_map::read(clock).expect("an array of two");
    params.lease_expires_mono_ns - now_mono_ns()
}
