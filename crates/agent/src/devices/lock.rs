// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! One daemon a device: whoever attaches to a device holds a lock, on a file that goes with it. The kernel ends the lock of
//! a daemon that is killed.
use std::{
    fs::{File, OpenOptions},
    io::{Read, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use anyhow::{bail, Context, Result};
use nix::{
    errno::Errno,
    fcntl::{Flock, FlockArg},
};

/// The right to attach to a device. Dropping it ends it.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    _file: Flock<File>,
}

impl Lock {
    /// Takes the lock of a device.
    ///
    /// # Errors
    /// Another daemon has it, or the file cannot be written.
    pub fn take(path: PathBuf) -> Result<Lock> {
        let cannot = || format!("cannot write {}", path.display());
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory).with_context(cannot)?;
        }
        loop {
            let file = open(&path).with_context(cannot)?;
            match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                // Whoever had it may have removed the file meanwhile.
                Ok(mut file) if is_at(&file, &path) => {
                    file.set_len(0).with_context(cannot)?;
                    write!(file, "{}", std::process::id()).with_context(cannot)?;
                    return Ok(Lock { path, _file: file });
                }
                Ok(_) => {}
                Err((mut file, Errno::EWOULDBLOCK)) => {
                    let mut pid = String::new();
                    let _ = file.read_to_string(&mut pid);
                    bail!("another daemon has it (pid {pid}); stop that one first: kill {pid}");
                }
                Err((_, error)) => return Err(error).with_context(cannot),
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn open(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create(true).truncate(false);
    options.mode(0o600).open(path)
}

/// Is it the file that has this name now?
fn is_at(file: &File, path: &Path) -> bool {
    let inode = |found: std::io::Result<std::fs::Metadata>| found.map(|found| found.ino()).ok();
    inode(file.metadata()) == inode(std::fs::metadata(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_refused_by_name_until_the_first_has_ended() {
        let folder = tempfile::tempdir().expect("/tmp is writable");
        let path = folder.path().join("run").join("eth0.lock");
        let first = Lock::take(path.clone()).expect("nobody has it");
        let error = Lock::take(path.clone()).unwrap_err().to_string();
        let kill = format!("kill {}", std::process::id());
        assert!(error.contains(&kill), "{error}");
        drop(first);
        assert!(!path.exists());
        Lock::take(path).expect("nobody has it");
    }

    #[test]
    fn the_file_of_a_killed_daemon_is_no_lock() {
        let folder = tempfile::tempdir().expect("/tmp is writable");
        let path = folder.path().join("eth0.lock");
        std::fs::write(&path, "123456789").expect("/tmp is writable");
        let _lock = Lock::take(path.clone()).expect("nobody has it");
        let pid = std::fs::read_to_string(path).expect("it is there");
        assert_eq!(pid, std::process::id().to_string());
    }
}
