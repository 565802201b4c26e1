// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The system calls that no library wraps safely: device offloads, TCP socket options, network
//! namespaces without names. All `unsafe` of the rack outside libbpf lives here.

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::thread::{move_into_link_name_space, LinkNameSpaceType, UnshareFlags};
use std::ffi::CString;
use std::io;
use std::mem::{size_of, zeroed};

/// Files that the load generator may have open: both ends of all connections.
const OPEN_FILES: u64 = 1 << 20;

/// Lets this process open as many files as it may, or more where it may say so.
pub fn raise_open_files() {
    use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};
    let most = getrlimit(Resource::Nofile).maximum;
    let limits = |limit| Rlimit {
        current: limit,
        maximum: limit,
    };
    if setrlimit(Resource::Nofile, limits(Some(OPEN_FILES))).is_err() {
        // What it may without privilege; if that is too little, opening says so.
        let _ = setrlimit(Resource::Nofile, limits(most));
    }
}

/// A network namespace held open by a file descriptor and by nothing else: it and its devices
/// vanish when the last process that uses it is gone, however that process ended.
#[derive(Debug)]
pub struct NetNs(OwnedFd);

impl NetNs {
    /// The namespace of this thread.
    pub fn current() -> io::Result<NetNs> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        Ok(NetNs(rustix::fs::open(
            "/proc/thread-self/ns/net",
            flags,
            Mode::empty(),
        )?))
    }

    /// A new, empty namespace; this thread stays where it is.
    pub fn create() -> io::Result<NetNs> {
        let home = NetNs::current()?;
        // SAFETY: changes the network namespace of this thread only, and no descriptor table.
        unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET)? };
        let created = NetNs::current();
        home.join()?;
        created
    }

    /// Moves this thread there.
    fn join(&self) -> io::Result<()> {
        Ok(move_into_link_name_space(
            self.0.as_fd(),
            Some(LinkNameSpaceType::Network),
        )?)
    }

    /// Runs `work` with this thread inside the namespace. Sockets and devices it opens stay there.
    pub fn within<T>(&self, work: impl FnOnce() -> T) -> io::Result<T> {
        let home = NetNs::current()?;
        self.join()?;
        let done = work();
        home.join()?;
        Ok(done)
    }

    /// A path by which other processes can name the namespace while this one lives.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }

    /// For joining it in a child between fork and exec.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Joins the namespace; for `pre_exec`, so it allocates nothing.
pub fn join_in_child(namespace: i32) -> io::Result<()> {
    // SAFETY: setns on a descriptor that the parent keeps open across the fork.
    match unsafe { libc::setns(namespace, libc::CLONE_NEWNET) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Has the kernel end this child when its parent is gone; for `pre_exec`.
pub fn die_with_parent() -> io::Result<()> {
    // SAFETY: sets an attribute of the calling process.
    match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Index of the device `name` in this thread's namespace.
pub fn ifindex(name: &str) -> io::Result<i32> {
    let name = CString::new(name)?;
    // SAFETY: `name` is a C string for the time of the call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index as i32),
    }
}

/// A device's offload that the rack switches.
#[derive(Debug, Clone, Copy)]
pub enum Offload {
    /// Segmentation by the device. Off: the stack segments after the qdisc.
    Tso = 0x1f, // ETHTOOL_STSO
    /// Merging of received segments. On a veth it also switches NAPI on.
    Gro = 0x2c, // ETHTOOL_SGRO
}

/// Switches an offload of the device `name` in this thread's namespace.
pub fn set_offload(name: &str, offload: Offload, on: bool) -> io::Result<()> {
    #[repr(C)]
    struct EthtoolValue {
        cmd: u32,
        data: u32,
    }
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None)?;
    let mut value = EthtoolValue {
        cmd: offload as u32,
        data: u32::from(on),
    };
    // SAFETY: an all-zero ifreq is valid.
    let mut request: libc::ifreq = unsafe { zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: SIOCETHTOOL reads the name and reads and writes `value`; both outlive the call.
    match unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sets SO_RCVLOWAT: the socket is readable once `bytes` wait in it.
pub fn set_receive_low_water(socket: impl AsFd, bytes: u32) -> io::Result<()> {
    let fd = socket.as_fd().as_raw_fd();
    let length = size_of::<u32>() as libc::socklen_t;
    let value = (&raw const bytes).cast();
    // SAFETY: `value` points to `length` bytes.
    match unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_RCVLOWAT, value, length) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// TCP_INFO. Fields that an old kernel does not know are zero.
pub fn tcp_info(socket: impl AsFd) -> io::Result<libc::tcp_info> {
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: an all-zero tcp_info is valid.
    let mut info: libc::tcp_info = unsafe { zeroed() };
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    let value = (&raw mut info).cast();
    // SAFETY: `value` points to `length` bytes, of which the kernel writes at most as many.
    match unsafe {
        libc::getsockopt(
            fd,
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            value,
            &raw mut length,
        )
    } {
        0 => Ok(info),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Discards up to `capacity` received bytes without copying them; how many they were. 0 means the
/// peer is done.
pub fn discard(socket: impl AsFd, capacity: usize) -> io::Result<usize> {
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: TCP with MSG_TRUNC never writes to the buffer (tcp(7)), which may so be absent.
    let count = unsafe { libc::recv(fd, std::ptr::null_mut(), capacity, libc::MSG_TRUNC) };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}
