// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! An output directory: only one command at a time writes into it, and all its results have the same plan.
//!
//! `plan.json` has the plan. A file lock keeps other commands out until the [`OutputDirectory`] is dropped
//! or its process ends.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{flock, statvfs, FlockOperation};
use serde::{Deserialize, Serialize};
use serde_json::Value;

const PLAN: &str = "plan.json";
const LOCK: &str = ".lock";
/// The folder of the files of single runs. `onramp-results` writes them.
pub const RUNS: &str = "runs";

/// Free disk space that any results need.
const LEAST_ROOM: u64 = 4_000_000;

/// The plan of a directory's runs: `plan.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// "sim" or "rack".
    pub world: String,
    /// Version of onramp.
    pub version: String,
    /// Digest of the sources that the results depend on.
    pub model: String,
    /// All other input of the runs: the resolved scenario with its seed, and options.
    pub asked: Value,
}

impl Plan {
    /// How `found` differs from this plan; sources do not count.
    fn difference(&self, found: &Plan) -> Option<&'static str> {
        match found {
            _ if found.world != self.world => Some("the other world (simulator or rack)"),
            _ if found.version != self.version => Some("another version of onramp"),
            _ if found.asked != self.asked => Some("another scenario, seed or options"),
            _ => None,
        }
    }
}

/// What to do with results in the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// Keep those of the same plan; refuse a directory with others.
    Keep,
    /// Keep those of the same plan, even if other sources made them; replace others.
    KeepOrReplace,
    /// Replace all.
    Replace,
}

/// A directory into which only this process writes results.
#[derive(Debug)]
pub struct OutputDirectory {
    path: PathBuf,
    of_other_sources: bool,
    replaced: bool,
    _lock: File,
}

/// Errors of an output directory.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// A file of it cannot be read or written.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// The operation.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another command writes into it.
    #[error("{} is in use by another onramp; wait until it ends, or set another --out", .0.display())]
    InUse(PathBuf),
    /// It has results that are not of this plan.
    #[error("{} has results of {what}; set another --out, or replace them with --force", path.display())]
    OtherResults {
        /// The directory.
        path: PathBuf,
        /// The difference.
        what: &'static str,
    },
    /// It has files that are not results.
    #[error("{} has {name}, which is not a result of onramp; set another --out", path.display())]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// One of them.
        name: String,
    },
    /// The disk has too little free space.
    #[error(
        "{} has {} MB of free space, below the {} MB that the results need; free some, or set another --out",
        path.display(), free / 1_000_000, needed.div_ceil(1_000_000)
    )]
    NoRoom {
        /// The directory.
        path: PathBuf,
        /// Bytes.
        free: u64,
        /// Bytes.
        needed: u64,
    },
}

impl OutputDirectory {
    /// Creates or opens `path` for runs of `plan` that write about `room` bytes.
    ///
    /// # Errors
    /// See [`DirectoryError`]. An error leaves the directory unchanged.
    pub fn open(
        path: &Path,
        plan: &Plan,
        existing: Existing,
        room: u64,
    ) -> Result<OutputDirectory, DirectoryError> {
        std::fs::create_dir_all(path).map_err(at("make", path))?;
        refuse_foreign(path)?;
        let lock = lock(path)?;
        has_room(path, room)?;
        let (content, found) = (content(path)?, read_plan(path));
        let difference = match &found {
            _ if content.is_empty() => None,
            Some(found) => plan.difference(found),
            None => Some("an unknown scenario"),
        };
        let other_sources = found
            .as_ref()
            .is_some_and(|found| found.model != plan.model);
        let refusal = match existing {
            Existing::Keep => difference.or(other_sources.then_some("another build of onramp")),
            Existing::KeepOrReplace | Existing::Replace => None,
        };
        if let Some(what) = refusal {
            let path = path.to_owned();
            return Err(DirectoryError::OtherResults { path, what });
        }
        let replaced = existing == Existing::Replace || difference.is_some();
        if replaced {
            clear(path, &content)?;
        }
        if replaced || found.is_none() {
            write_plan(path, plan)?;
        }
        Ok(OutputDirectory {
            path: path.to_owned(),
            of_other_sources: other_sources && !replaced,
            replaced: replaced && !content.is_empty(),
            _lock: lock,
        })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether results of other sources of onramp are kept.
    pub fn is_of_other_sources(&self) -> bool {
        self.of_other_sources
    }

    /// Whether previous results were removed.
    pub fn has_replaced(&self) -> bool {
        self.replaced
    }
}

/// Digest of the input of a run, for a [`Plan`].
pub fn digest(bytes: &[u8]) -> u64 {
    siphasher::sip::SipHasher13::new().hash(bytes)
}

fn at<'a>(doing: &'static str, path: &'a Path) -> impl Fn(io::Error) -> DirectoryError + 'a {
    move |source| DirectoryError::Io {
        doing,
        path: path.to_owned(),
        source,
    }
}

/// Names of its files except the lock, and of those in the folder of runs: `runs/run-0.json`.
fn content(path: &Path) -> Result<Vec<String>, DirectoryError> {
    let mut names = names(path)?;
    names.retain(|name| name != LOCK);
    if let Some(folder) = names.iter().position(|name| name == RUNS) {
        let below = path.join(RUNS);
        if below.is_dir() {
            names.swap_remove(folder);
            let of_runs = self::names(&below)?.into_iter();
            names.extend(of_runs.map(|name| format!("{RUNS}/{name}")));
        }
    }
    Ok(names)
}

fn names(path: &Path) -> Result<Vec<String>, DirectoryError> {
    let entries = std::fs::read_dir(path).map_err(at("read", path))?;
    let name = |entry: io::Result<std::fs::DirEntry>| {
        entry.map(|entry| entry.file_name().to_string_lossy().into_owned())
    };
    let names: io::Result<Vec<String>> = entries.map(name).collect();
    names.map_err(at("read", path))
}

/// A directory without a plan is ours only if all its files have names of results; otherwise it is not
/// even locked.
fn refuse_foreign(path: &Path) -> Result<(), DirectoryError> {
    let content = content(path)?;
    let foreign = content.into_iter().find(|name| !is_ours(name));
    match (read_plan(path), foreign) {
        (None, Some(name)) => Err(DirectoryError::Foreign {
            path: path.to_owned(),
            name,
        }),
        _ => Ok(()),
    }
}

/// Whether a result has this file name.
fn is_ours(name: &str) -> bool {
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    let stem = stem.rsplit('/').next().unwrap_or(stem);
    match extension {
        "parquet" | "part" | "pcapng" => true,
        "json" => {
            let is_of_runs = ["run-", "points-"]
                .iter()
                .any(|first| stem.starts_with(first));
            is_of_runs || ["plan", "summary", "figure", "sweep"].contains(&stem)
        }
        _ => false,
    }
}

fn lock(directory: &Path) -> Result<File, DirectoryError> {
    let path = directory.join(LOCK);
    let mut options = OpenOptions::new();
    let file = options.create(true).append(true).open(&path);
    let file = file.map_err(at("write", &path))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(DirectoryError::InUse(directory.to_owned())),
        Err(error) => Err(at("lock", &path)(error.into())),
    }
}

fn has_room(path: &Path, room: u64) -> Result<(), DirectoryError> {
    let disk = statvfs(path).map_err(|error| at("read", path)(error.into()))?;
    let (free, needed) = (disk.f_bavail * disk.f_frsize, room.max(LEAST_ROOM));
    match free < needed {
        true => Err(DirectoryError::NoRoom {
            path: path.to_owned(),
            free,
            needed,
        }),
        false => Ok(()),
    }
}

/// The plan in the directory, if it has this layout.
fn read_plan(directory: &Path) -> Option<Plan> {
    let text = std::fs::read(directory.join(PLAN)).ok()?;
    serde_json::from_slice(&text).ok()
}

fn write_plan(directory: &Path, plan: &Plan) -> Result<(), DirectoryError> {
    let (path, part) = (directory.join(PLAN), directory.join("plan.json.part"));
    let mut text = serde_json::to_vec_pretty(plan).expect("plain data has a JSON form");
    text.push(b'\n');
    let written = std::fs::write(&part, text).and_then(|()| std::fs::rename(&part, &path));
    written.map_err(at("write", &path))
}

/// Removes results; other files stay.
fn clear(directory: &Path, content: &[String]) -> Result<(), DirectoryError> {
    for name in content.iter().filter(|name| is_ours(name)) {
        let path = directory.join(name);
        std::fs::remove_file(&path).map_err(at("remove", &path))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(asked: &str) -> Plan {
        Plan {
            world: "sim".to_owned(),
            version: "1".to_owned(),
            model: "abc".to_owned(),
            asked: asked.into(),
        }
    }

    /// A directory with a plan, a result, and a picture of the user.
    fn used() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        OutputDirectory::open(directory.path(), &plan("a"), Existing::Keep, 0).unwrap();
        std::fs::create_dir(directory.path().join(RUNS)).unwrap();
        for name in ["runs/run-0.json", "flows.parquet", "picture.png"] {
            std::fs::write(directory.path().join(name), "content").unwrap();
        }
        directory
    }

    fn open(
        directory: &tempfile::TempDir,
        plan: &Plan,
        existing: Existing,
    ) -> Result<OutputDirectory, String> {
        OutputDirectory::open(directory.path(), plan, existing, 0).map_err(|e| e.to_string())
    }

    fn names(directory: &tempfile::TempDir) -> Vec<String> {
        let mut names = content(directory.path()).unwrap();
        names.sort();
        names
    }

    #[test]
    fn a_directory_in_use_is_refused_until_the_other_has_ended() {
        let directory = used();
        let first = open(&directory, &plan("a"), Existing::Keep).unwrap();
        for existing in [Existing::Keep, Existing::KeepOrReplace, Existing::Replace] {
            let error = open(&directory, &plan("a"), existing).unwrap_err();
            assert!(error.contains("is in use by another onramp"), "{error}");
        }
        drop(first);
        assert!(open(&directory, &plan("a"), Existing::Keep).is_ok());
    }

    #[test]
    fn results_of_the_same_plan_are_kept() {
        let directory = used();
        let opened = open(&directory, &plan("a"), Existing::Keep).unwrap();
        assert!(!opened.is_of_other_sources() && !opened.has_replaced());
        let all = [
            "flows.parquet",
            "picture.png",
            "plan.json",
            "runs/run-0.json",
        ];
        assert_eq!(names(&directory), all);
    }

    #[test]
    fn results_of_another_plan_are_refused_and_with_force_replaced() {
        let directory = used();
        let error = open(&directory, &plan("b"), Existing::Keep).unwrap_err();
        assert!(
            error.contains("another scenario, seed or options"),
            "{error}"
        );
        assert!(error.contains("--force"), "{error}");
        assert_eq!(names(&directory).len(), 4);
        let opened = open(&directory, &plan("b"), Existing::Replace).unwrap();
        assert!(opened.has_replaced());
        assert_eq!(names(&directory), ["picture.png", "plan.json"]);
        assert_eq!(read_plan(directory.path()), Some(plan("b")));
    }

    #[test]
    fn results_of_other_sources_are_refused_or_kept_and_marked() {
        let directory = used();
        let other = Plan {
            model: "def".to_owned(),
            ..plan("a")
        };
        let error = open(&directory, &other, Existing::Keep).unwrap_err();
        assert!(error.contains("another build of onramp"), "{error}");
        let opened = open(&directory, &other, Existing::KeepOrReplace).unwrap();
        assert!(opened.is_of_other_sources());
        assert_eq!(read_plan(directory.path()), Some(plan("a")));
        assert_eq!(names(&directory).len(), 4);
    }

    #[test]
    fn files_that_are_no_results_are_never_touched() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("letter.txt"), "mine").unwrap();
        let error = open(&directory, &plan("a"), Existing::Replace).unwrap_err();
        assert!(error.contains("letter.txt"), "{error}");
        assert_eq!(names(&directory), ["letter.txt"]);
    }

    #[test]
    fn a_folder_of_somebody_elses_runs_is_never_touched() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join(RUNS)).unwrap();
        std::fs::write(directory.path().join("runs/letter.txt"), "mine").unwrap();
        let error = open(&directory, &plan("a"), Existing::Replace).unwrap_err();
        assert!(error.contains("runs/letter.txt"), "{error}");
        assert_eq!(names(&directory), ["runs/letter.txt"]);
    }

    #[test]
    fn results_without_a_plan_are_another_scenarios() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("summary.json"), "{}").unwrap();
        let error = open(&directory, &plan("a"), Existing::Keep).unwrap_err();
        assert!(error.contains("an unknown scenario"), "{error}");
        open(&directory, &plan("a"), Existing::KeepOrReplace).unwrap();
        assert_eq!(names(&directory), ["plan.json"]);
    }

    #[test]
    fn a_disk_without_room_is_found_before_anything_is_written() {
        let directory = tempfile::tempdir().unwrap();
        let error = OutputDirectory::open(directory.path(), &plan("a"), Existing::Keep, u64::MAX);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("MB of free space"), "{error}");
        assert!(names(&directory).is_empty());
    }

    #[test]
    fn a_file_in_its_place_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, "mine").unwrap();
        let error = OutputDirectory::open(&file, &plan("a"), Existing::Replace, 0).unwrap_err();
        assert!(
            error.to_string().contains(&file.display().to_string()),
            "{error}"
        );
        assert_eq!(std::fs::read(&file).unwrap(), b"mine");
    }
}
