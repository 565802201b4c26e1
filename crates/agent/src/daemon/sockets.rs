// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Where clients find the daemon: a socket for each of its devices, which is renamed with its device.
use std::{
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use anyhow::Result;
use nix::{
    errno::Errno,
    fcntl::{renameat2, RenameFlags, AT_FDCWD},
};
use onramp_status::socket_path;
use tracing::warn;

use crate::server::Door;

/// The sockets of a daemon. Dropping it removes them.
pub(super) struct Sockets {
    netns: u64,
    all: Vec<Socket>,
    /// Where the daemon itself asks for its metrics.
    first: Arc<Mutex<PathBuf>>,
}

struct Socket {
    path: PathBuf,
    /// Two daemons whose devices exchange their names do not take each other's socket for their own.
    inode: u64,
}

impl Sockets {
    /// Opens a door at each.
    ///
    /// # Errors
    /// A socket cannot be bound.
    pub fn open(netns: u64, paths: &[PathBuf]) -> Result<(Sockets, Vec<Door>)> {
        let first = paths.first().cloned().unwrap_or_default();
        let mut sockets = Sockets {
            netns,
            all: vec![],
            first: Arc::new(Mutex::new(first)),
        };
        let mut doors = vec![];
        for path in paths {
            doors.push(Door::open(path)?);
            sockets.all.push(Socket {
                path: path.clone(),
                inode: inode(path).unwrap_or(0),
            });
        }
        Ok((sockets, doors))
    }

    /// Where one of them is, whatever it is called at the time.
    pub fn first(&self) -> Arc<Mutex<PathBuf>> {
        Arc::clone(&self.first)
    }

    /// A device has another name. The path of `--socket` stays.
    pub fn rename(&mut self, from: &str, to: &str) {
        let paths = [from, to].map(|dev| socket_path(self.netns, dev));
        if let Err(error) = self.move_one(&paths[0], &paths[1]) {
            warn!("clients find the daemon at {}: {error}", paths[0].display());
        }
    }

    fn move_one(&mut self, from: &Path, to: &Path) -> nix::Result<()> {
        let Some(socket) = self.all.iter_mut().find(|socket| socket.path == from) else {
            return Ok(());
        };
        if inode(to) != Some(socket.inode) {
            let exchanged = renameat2(AT_FDCWD, from, AT_FDCWD, to, RenameFlags::RENAME_EXCHANGE);
            match exchanged {
                Err(Errno::ENOENT) => {
                    renameat2(AT_FDCWD, from, AT_FDCWD, to, RenameFlags::RENAME_NOREPLACE)?
                }
                other => other?,
            }
        }
        to.clone_into(&mut socket.path);
        let first = self.all[0].path.clone();
        *self.first.lock().expect("nobody panics with it") = first;
        Ok(())
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        for socket in &self.all {
            if inode(&socket.path) == Some(socket.inode) {
                let _ = std::fs::remove_file(&socket.path);
            }
        }
    }
}

fn inode(path: &Path) -> Option<u64> {
    std::fs::symlink_metadata(path).ok().map(|file| file.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: &Path) -> (Sockets, Vec<Door>) {
        Sockets::open(1, &[path.to_owned()]).expect("/tmp is writable")
    }

    #[test]
    fn a_socket_moves_with_its_device_and_goes_with_its_daemon() {
        let folder = tempfile::tempdir().expect("/tmp is writable");
        let [from, to] = ["a", "b"].map(|name| folder.path().join(name));
        let (mut sockets, _doors) = open(&from);
        let own = inode(&from);
        sockets.move_one(&from, &to).expect("it is there");
        assert_eq!((inode(&from), inode(&to)), (None, own));
        assert_eq!(*sockets.first().lock().unwrap(), to);
        drop(sockets);
        assert_eq!(inode(&to), None);
    }

    #[test]
    fn two_daemons_whose_devices_exchange_their_names_keep_their_own_sockets() {
        let folder = tempfile::tempdir().expect("/tmp is writable");
        let [a, b] = ["a", "b"].map(|name| folder.path().join(name));
        let (mut first, _doors) = open(&a);
        let (mut second, _more) = open(&b);
        let before = (inode(&a), inode(&b));
        first.move_one(&a, &b).expect("both are there");
        second.move_one(&b, &a).expect("both are there");
        assert_eq!((inode(&b), inode(&a)), before);
        drop(first);
        assert_eq!((inode(&b), inode(&a)), (None, before.1));
    }
}
