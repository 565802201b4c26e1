// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Tcx programs of congestion controls at devices: pinned, and attached by pinned links, so that they stay without a
//! process. A device is one of the network namespace of the calling thread.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use libbpf_rs::libbpf_sys as sys;

/// Names of the programs' pins.
pub const INGRESS: &str = "ingress";
/// See above.
pub const EGRESS: &str = "egress";
const DIRECTIONS: [(&str, sys::bpf_attach_type); 2] = [
    (INGRESS, sys::BPF_TCX_INGRESS),
    (EGRESS, sys::BPF_TCX_EGRESS),
];
/// Devices whose frames begin with an Ethernet header.
const ETHERNET: u16 = libc::ARPHRD_ETHER;

/// Why a device does not get the programs.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such device here.
    #[error("--dev {dev}: this network namespace has no device {dev}; `ip link` lists them")]
    Unknown {
        /// Its name.
        dev: String,
    },
    /// Its frames have no Ethernet header.
    #[error("--dev {dev} is of type {kind}, as in /sys/class/net/{dev}/type; expected Ethernet, type {ETHERNET}")]
    Type {
        /// Its name.
        dev: String,
        /// As the kernel has it.
        kind: u16,
    },
    /// It has them.
    #[error("--dev {dev} has the programs already")]
    Present {
        /// Its name.
        dev: String,
    },
    /// The kernel refuses them.
    #[error("--dev {dev}: the kernel does not attach the tcx programs, which need Linux >= 6.6: {source}")]
    Kernel {
        /// Its name.
        dev: String,
        /// What it says.
        source: io::Error,
    },
}

fn path_of(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).expect("a path has no zero")
}

fn index_of(dev: &str) -> Result<i32, Error> {
    let unknown = || Error::Unknown { dev: dev.into() };
    let name = CString::new(dev).map_err(|_| unknown())?;
    // SAFETY: `name` is a C string for the time of the call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(unknown()),
        index => Ok(index as i32),
    }
}

/// Its pins' names, unique on this host, as far as the direction.
fn stem(index: i32) -> io::Result<String> {
    let namespace = std::fs::metadata("/proc/thread-self/ns/net")?.ino();
    Ok(format!("{namespace}-{index}"))
}

/// Asks the namespace of the thread; /sys may show another.
fn type_of(dev: &str) -> io::Result<u16> {
    let socket = std::net::UdpSocket::bind(("0.0.0.0", 0))?;
    // SAFETY: an all-zero ifreq is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request
        .ifr_name
        .iter_mut()
        .zip(dev.bytes().take(libc::IFNAMSIZ - 1))
    {
        *to = from as libc::c_char;
    }
    // SAFETY: SIOCGIFHWADDR reads the name and writes the address of `request`, which outlives the call.
    match unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFHWADDR, &raw mut request) } {
        // SAFETY: the kernel has written this member.
        0 => Ok(unsafe { request.ifr_ifru.ifru_hwaddr }.sa_family),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Attaches the programs that are pinned in `pins` to `dev`, behind those that it has.
///
/// # Errors
///
/// See [`Error`]. Then the device has none.
pub fn attach(pins: &Path, dev: &str) -> Result<(), Error> {
    let kernel = |source| Error::Kernel {
        dev: dev.into(),
        source,
    };
    let index = index_of(dev)?;
    let kind = type_of(dev).map_err(kernel)?;
    if kind != ETHERNET {
        let dev = dev.into();
        return Err(Error::Type { dev, kind });
    }
    let stem = stem(index).map_err(kernel)?;
    let pin = |direction| pins.join(format!("{stem}-{direction}"));
    let mut done: Vec<PathBuf> = vec![];
    for (direction, hook) in DIRECTIONS {
        let pinned = pin(direction);
        if is_attached(&pinned, index).map_err(kernel)? {
            return Err(Error::Present { dev: dev.into() });
        }
        if let Err(source) = link(&pins.join(direction), index, hook, &pinned) {
            for path in done {
                let _ = std::fs::remove_file(path); // the first error is the one to report
            }
            return Err(kernel(source));
        }
        done.push(pinned);
    }
    Ok(())
}

/// Whether the pinned link is one of this device. The pin of a device that is gone, whose numbers another one has now, is
/// removed.
fn is_attached(pin: &Path, index: i32) -> io::Result<bool> {
    if !pin.exists() {
        return Ok(false);
    }
    let path = path_of(pin);
    let mut info = sys::bpf_link_info::default();
    let mut size = size_of_val(&info) as u32;
    // SAFETY: the path is a C string, the descriptor is new, and `info` has `size` bytes; the kernel writes the member that
    // a link of tcx has.
    let attached = unsafe {
        let link = owned(sys::bpf_obj_get(path.as_ptr()))?;
        match sys::bpf_link_get_info_by_fd(link.as_raw_fd(), &mut info, &mut size) {
            0 => info.__bindgen_anon_1.tcx.ifindex,
            error => return Err(io::Error::from_raw_os_error(-error)),
        }
    };
    if attached != index as u32 {
        std::fs::remove_file(pin)?;
    }
    Ok(attached == index as u32)
}

fn link(program: &Path, index: i32, hook: sys::bpf_attach_type, pin: &Path) -> io::Result<()> {
    let (program, pin) = (path_of(program), path_of(pin));
    // SAFETY: both paths are C strings for the time of the calls, and each descriptor is new, with one owner.
    unsafe {
        let program = owned(sys::bpf_obj_get(program.as_ptr()))?;
        let fd = sys::bpf_link_create(program.as_raw_fd(), index, hook, std::ptr::null());
        let link = owned(fd)?;
        match sys::bpf_obj_pin(link.as_raw_fd(), pin.as_ptr()) {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(-error)),
        }
    }
}

/// # Safety
///
/// `fd` is an error of libbpf, or a descriptor without another owner.
unsafe fn owned(fd: i32) -> io::Result<OwnedFd> {
    match fd {
        ..0 => Err(io::Error::from_raw_os_error(-fd)),
        // SAFETY: see above.
        _ => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_that_cannot_have_them_are_named_with_the_reason() {
        let said = |dev| attach(Path::new("/nowhere"), dev).unwrap_err().to_string();
        assert_eq!(
            said("nodev0"),
            "--dev nodev0: this network namespace has no device nodev0; `ip link` lists them"
        );
        assert_eq!(
            said("lo"),
            "--dev lo is of type 772, as in /sys/class/net/lo/type; expected Ethernet, type 1"
        );
    }
}
