// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Control groups with a processor quota, as containers have them: whoever has used its part of a period waits for the next one.
use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{self, Child, Command},
    sync::atomic::{AtomicU32, Ordering},
};

/// A group's period, the usual one, us.
const PERIOD_US: u64 = 100_000;

/// A group with a busy loop in it, which uses up its quota. Ended when dropped.
pub struct Group {
    dir: PathBuf,
    is_v2: bool,
    busy: Option<Child>,
}

impl Group {
    /// Without a quota yet, with a busy loop.
    ///
    /// # Errors
    /// This machine lets us make no such group.
    pub fn new() -> io::Result<Group> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let root = Path::new("/sys/fs/cgroup");
        let is_v2 = root.join("cgroup.controllers").exists();
        if is_v2 {
            fs::write(root.join("cgroup.subtree_control"), "+cpu")?;
        }
        let parent = if is_v2 {
            root.to_owned()
        } else {
            root.join("cpu")
        };
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let dir = parent.join(format!("onramp-test-{}-{number}", process::id()));
        fs::create_dir(&dir)?;
        let mut group = Group {
            dir,
            is_v2,
            busy: None,
        };
        group.set_quota(None)?;
        let busy = Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn()?;
        let id = busy.id();
        group.busy = Some(busy);
        group.take(id)?;
        Ok(group)
    }

    /// Takes a process in.
    pub fn take(&self, process: u32) -> io::Result<()> {
        fs::write(self.dir.join("cgroup.procs"), process.to_string())
    }

    /// All in it together have so much processor time in each 100 ms from now on, or as much as they want.
    pub fn set_quota(&self, quota_us: Option<u64>) -> io::Result<()> {
        let (file, text) = match (self.is_v2, quota_us) {
            (true, Some(us)) => ("cpu.max", format!("{us} {PERIOD_US}")),
            (true, None) => ("cpu.max", "max".to_owned()),
            (false, Some(us)) => ("cpu.cfs_quota_us", us.to_string()),
            (false, None) => ("cpu.cfs_quota_us", "-1".to_owned()),
        };
        fs::write(self.dir.join(file), text)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(busy) = &mut self.busy {
            let _ = busy.kill();
            let _ = busy.wait();
        }
        // Daemons may still be in it.
        let parent = self.dir.parent().expect("it has one").join("cgroup.procs");
        for process in fs::read_to_string(self.dir.join("cgroup.procs"))
            .unwrap_or_default()
            .lines()
        {
            let _ = fs::write(&parent, process);
        }
        let _ = fs::remove_dir(&self.dir);
    }
}
