// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What stays of a device's data path when its daemon ends without restoring it (crash, OOM kill, upgrade): maps, tcx
//! programs and their links, as files of a BPF file system. The next daemon with the same programs uses them on.
//!
//! BPFFS/onramp/PROGRAMS/DEVICE/NAME: PROGRAMS is the digest of the BPF programs, so programs never meet maps of
//! another layout; DEVICE contains network namespace and device, as the names of the qdiscs.
use std::{
    ffi::CString,
    fs::DirBuilder,
    io,
    os::{
        fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
        unix::{ffi::OsStrExt, fs::DirBuilderExt},
    },
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use libbpf_rs::MapHandle;
use nix::sys::{
    statfs::{statfs, BPF_FS_MAGIC},
    statvfs::{statvfs, FsFlags},
};

/// Digest of the BPF programs, by build.rs.
const PROGRAMS: &str = env!("ONRAMP_PROGRAMS");
/// On-Ramp's directory in the BPF file system.
const OWN: &str = "onramp";
/// The last pin of a device.
pub const LAST: &str = "link_egress";
/// For root alone: who opens a pinned map can change it.
const OWNER_ONLY: u32 = 0o700;

/// The pins of one device.
#[derive(Clone, Debug)]
pub struct Pins {
    /// On-Ramp's directory, with the pins of all programs and devices.
    all: PathBuf,
    device: String,
}

impl Pins {
    /// The pins of the device with this name, if there is a BPF file system at `bpffs`.
    pub fn of(bpffs: &Path, device: String) -> Option<Self> {
        (bpffs_at(bpffs) != BpfFs::None).then(|| Self {
            all: bpffs.join(OWN),
            device,
        })
    }

    fn dir(&self) -> PathBuf {
        self.all.join(PROGRAMS).join(&self.device)
    }

    /// Pins a map, a program or a link, in place of one that has this name.
    ///
    /// # Errors
    /// The directory cannot be made, or the kernel refuses.
    pub fn pin(&self, name: &str, object: BorrowedFd<'_>) -> Result<()> {
        let path = self.dir().join(name);
        let pin = || -> io::Result<()> {
            let mut builder = DirBuilder::new();
            builder
                .recursive(true)
                .mode(OWNER_ONLY)
                .create(self.dir())?;
            let _ = std::fs::remove_file(&path);
            let name = CString::new(path.as_os_str().as_bytes())?;
            // SAFETY: the descriptor is open and the path is valid for the call.
            match unsafe { libbpf_sys::bpf_obj_pin(object.as_raw_fd(), name.as_ptr()) } {
                0 => Ok(()),
                error => Err(io::Error::from_raw_os_error(-error)),
            }
        };
        pin().with_context(|| format!("cannot pin {}", path.display()))
    }

    /// A pinned map of this daemon's programs, if there is one.
    pub fn map(&self, name: &str) -> Option<MapHandle> {
        MapHandle::from_pinned_path(self.dir().join(name)).ok()
    }

    /// A pinned program or link of this daemon's programs, if there is one.
    pub fn object(&self, name: &str) -> Option<OwnedFd> {
        open(&self.dir().join(name))
    }

    /// The same of whichever programs.
    pub fn of_any_programs(&self, name: &str) -> Option<OwnedFd> {
        let dirs = self.dirs();
        dirs.iter().find_map(|dir| open(&dir.join(name)))
    }

    /// Removes the pins of the device, whichever programs they are of. Returns whether there were any.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub fn clear(&self) -> Result<bool> {
        let dirs = self.dirs();
        for dir in &dirs {
            std::fs::remove_dir_all(dir)
                .with_context(|| format!("cannot remove {}", dir.display()))?;
            let _ = dir.parent().map(std::fs::remove_dir); // unless it has other devices
        }
        let _ = std::fs::remove_dir(&self.all);
        Ok(!dirs.is_empty())
    }

    /// The directories of the device, by programs.
    fn dirs(&self) -> Vec<PathBuf> {
        let programs = std::fs::read_dir(&self.all).into_iter().flatten().flatten();
        let dirs = programs.map(|programs| programs.path().join(&self.device));
        dirs.filter(|dir| dir.is_dir()).collect()
    }
}

/// The names of all devices that have pins, of every network namespace.
pub fn devices(bpffs: &Path) -> Vec<String> {
    let entries = |dir: PathBuf| std::fs::read_dir(dir).into_iter().flatten().flatten();
    let programs = entries(bpffs.join(OWN));
    let devices = programs.flat_map(|programs| entries(programs.path()));
    let mut names: Vec<String> = devices
        .map(|device| device.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names.dedup();
    names
}

/// What a directory for pins is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BpfFs {
    /// A BPF file system.
    Writable,
    /// One that is mounted read-only for this process.
    ReadOnly,
    /// Another file system, or nothing.
    None,
}

/// What is mounted at `path`.
pub fn bpffs_at(path: &Path) -> BpfFs {
    let is_bpffs = statfs(path).is_ok_and(|fs| fs.filesystem_type() == BPF_FS_MAGIC);
    let is_read_only = || statvfs(path).is_ok_and(|fs| fs.flags().contains(FsFlags::ST_RDONLY));
    match is_bpffs {
        false => BpfFs::None,
        true if is_read_only() => BpfFs::ReadOnly,
        true => BpfFs::Writable,
    }
}

fn open(path: &Path) -> Option<OwnedFd> {
    let name = CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: the path is valid for the call.
    let fd = unsafe { libbpf_sys::bpf_obj_get(name.as_ptr()) };
    // SAFETY: a new descriptor, which nobody else owns.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })
}
