// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Cgroups of version 2 as the data path knows them. A cgroup's number is the inode of its directory; one that is made
//! again, as that of a service that restarts, has another number.
use std::{fs, os::unix::fs::MetadataExt, path::Path};

use onramp_law::abi::ONR_CGROUP_LEVELS;

/// Most names in the path of a cgroup that the data path knows.
pub const MOST_LEVELS: u32 = ONR_CGROUP_LEVELS - 1;

/// A cgroup at a level below the root. The default stands for any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cgroup {
    pub id: u64,
    pub level: u32,
}

/// The cgroup of this path below the root, if it is there.
pub fn find(path: &str) -> Option<Cgroup> {
    let directory = fs::metadata(format!("{}{path}", mounted()?)).ok()?;
    Some(Cgroup {
        id: directory.ino(),
        level: level(path),
    })
}

/// Where version 2 is mounted and to be seen: usually /sys/fs/cgroup.
pub fn mounted() -> Option<String> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let of_v2 = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (_, place, kind) = (words.next()?, words.next()?, words.next()?);
        (kind == "cgroup2").then(|| place.to_owned())
    });
    let mut of_v2 = of_v2.filter(|place| Path::new(place).join("cgroup.procs").exists());
    of_v2.next()
}

/// Is it a path such as "/system.slice/backup.service", not too deep for the data path?
pub fn is_path(text: &str) -> bool {
    let Some(below) = text.strip_prefix('/') else {
        return false;
    };
    let is_name = |name: &str| !["", ".", ".."].contains(&name) && !name.contains(char::is_control);
    below.split('/').all(is_name) && level(text) <= MOST_LEVELS
}

fn level(path: &str) -> u32 {
    path.matches('/').count() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_a_cgroup_below_the_root() {
        for right in ["/a", "/system.slice/backup.service", "/1/2/3/4/5/6/7"] {
            assert!(is_path(right), "{right}");
        }
        for wrong in [
            "",
            "/",
            "a",
            "/a/",
            "//a",
            "/a/../b",
            "/./a",
            "/1/2/3/4/5/6/7/8",
            "/a\n",
        ] {
            assert!(!is_path(wrong), "{wrong}");
        }
    }
}
