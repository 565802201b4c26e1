// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Makes and changes key files: new keys, which key signs, keys that are no longer accepted. A key file is written whole,
//! with mode 600, or not at all.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use crate::keys::{Key, KeyError, Keys, KEYS, KEY_BYTES};

/// Permission bits of a key file.
const MODE: u32 = 0o600;
/// The kernel's random numbers.
const RANDOM: &str = "/dev/urandom";

/// Why a key file is not made or changed.
#[derive(Debug, thiserror::Error)]
pub enum KeygenError {
    /// It is there already.
    #[error(
        "{} exists, and keys are not overwritten: hosts that have them would no longer be believed; to change them one \
         by one, use --add, --sign-with and --remove",
        .0.display()
    )]
    Exists(PathBuf),
    /// It cannot be read.
    #[error(transparent)]
    Keys(#[from] KeyError),
    /// It cannot be written.
    #[error("cannot write {}: {source}; name a file in a directory that exists and is writable", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There are no random numbers.
    #[error("cannot read {RANDOM}: {0}")]
    Random(io::Error),
    /// All ids are taken.
    #[error("{} has {KEYS} keys, which is the maximum; remove one that no host signs with: --remove ID", .0.display())]
    Full(PathBuf),
    /// It has no such key.
    #[error("{} has no key {id}; its keys are {ids}", path.display())]
    Unknown {
        /// The file.
        path: PathBuf,
        /// The id that was asked for.
        id: u32,
        /// Those that it has.
        ids: String,
    },
    /// The key signs.
    #[error("key {id} of {} signs, so it stays; let another sign first: --sign-with ID", path.display())]
    Signs {
        /// The file.
        path: PathBuf,
        /// The key.
        id: u32,
    },
}

/// Makes a file with one new key.
///
/// # Errors
/// The file exists or cannot be written.
pub fn create(path: &Path) -> Result<u32, KeygenError> {
    let key = new_key(0)?;
    write_new(path, &[key]).map_err(|error| match error {
        KeygenError::Unwritable { source, .. } if source.kind() == io::ErrorKind::AlreadyExists => {
            KeygenError::Exists(path.to_owned())
        }
        error => error,
    })?;
    Ok(key.id)
}

/// Adds a new key, which is accepted and does not sign. Returns its id.
///
/// # Errors
/// The file cannot be read or written, or has the most keys that there can be.
pub fn add(path: &Path) -> Result<u32, KeygenError> {
    let mut keys = Keys::read(path)?.all().to_vec();
    let is_free = |id: &u32| keys.iter().all(|key| key.id != *id);
    let id = (0..KEYS)
        .find(is_free)
        .ok_or_else(|| KeygenError::Full(path.to_owned()))?;
    keys.push(new_key(id)?);
    replace(path, &keys)?;
    Ok(id)
}

/// Lets a key of the file sign.
///
/// # Errors
/// The file cannot be read or written, or has no such key.
pub fn sign_with(path: &Path, id: u32) -> Result<(), KeygenError> {
    let mut keys = Keys::read(path)?.all().to_vec();
    let at = position(path, &keys, id)?;
    keys[..=at].rotate_right(1);
    replace(path, &keys)
}

/// Removes a key that does not sign.
///
/// # Errors
/// The file cannot be read or written, or the key signs or is not there.
pub fn remove(path: &Path, id: u32) -> Result<(), KeygenError> {
    let mut keys = Keys::read(path)?.all().to_vec();
    let at = position(path, &keys, id)?;
    if at == 0 {
        let path = path.to_owned();
        return Err(KeygenError::Signs { path, id });
    }
    keys.remove(at);
    replace(path, &keys)
}

fn position(path: &Path, keys: &[Key], id: u32) -> Result<usize, KeygenError> {
    let ids = || {
        keys.iter()
            .map(|key| key.id.to_string())
            .collect::<Vec<_>>()
            .join(", ")
    };
    keys.iter()
        .position(|key| key.id == id)
        .ok_or_else(|| KeygenError::Unknown {
            path: path.to_owned(),
            id,
            ids: ids(),
        })
}

fn new_key(id: u32) -> Result<Key, KeygenError> {
    let mut bytes = [0; KEY_BYTES];
    let read = File::open(RANDOM).and_then(|mut random| random.read_exact(&mut bytes));
    read.map_err(KeygenError::Random)?;
    Ok(Key { id, bytes })
}

/// Puts a whole new file in the place of the former one.
fn replace(path: &Path, keys: &[Key]) -> Result<(), KeygenError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let beside = PathBuf::from(name);
    let unwritable = |source| KeygenError::Unwritable {
        path: path.to_owned(),
        source,
    };
    match std::fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(unwritable(error)),
        _ => {}
    }
    write_new(&beside, keys)?;
    std::fs::rename(&beside, path).map_err(unwritable)
}

fn write_new(path: &Path, keys: &[Key]) -> Result<(), KeygenError> {
    let unwritable = |source| KeygenError::Unwritable {
        path: path.to_owned(),
        source,
    };
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(MODE).open(path);
    let mut file = file.map_err(unwritable)?;
    file.write_all(text(keys).as_bytes()).map_err(unwritable)?;
    file.sync_all().map_err(unwritable)
}

fn text(keys: &[Key]) -> String {
    let mut out =
        "# Keys of an On-Ramp fleet: ID HEX. The first key signs; all are accepted.\n".to_owned();
    for key in keys {
        let hex: String = key.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        out += &format!("{} {hex}\n", key.id);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn keys_are_rotated_without_a_time_at_which_hosts_do_not_believe_each_other() {
        let path = std::env::temp_dir().join(format!("onramp-keygen-{}", std::process::id()));
        create(&path).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, MODE);
        let first = Keys::read(&path).unwrap().signing();
        assert!(matches!(create(&path), Err(KeygenError::Exists(_))));
        assert_eq!(Keys::read(&path).unwrap().signing(), first);

        // Two hosts at each pair of neighbouring steps accept each other's tags.
        let mut steps = vec![Keys::read(&path).unwrap()];
        assert_eq!(add(&path).unwrap(), 1);
        steps.push(Keys::read(&path).unwrap());
        sign_with(&path, 1).unwrap();
        steps.push(Keys::read(&path).unwrap());
        assert!(matches!(
            remove(&path, 1),
            Err(KeygenError::Signs { id: 1, .. })
        ));
        remove(&path, 0).unwrap();
        steps.push(Keys::read(&path).unwrap());
        let accepts = |host: &Keys, key: Key| host.all().contains(&key);
        for pair in steps.windows(2) {
            assert!(accepts(&pair[0], pair[1].signing()) && accepts(&pair[1], pair[0].signing()));
        }
        assert_eq!(steps[3].all().len(), 1);
        assert_ne!(steps[3].signing().bytes, first.bytes);

        let unknown = sign_with(&path, 3).unwrap_err().to_string();
        assert!(
            unknown.ends_with("has no key 3; its keys are 1"),
            "{unknown}"
        );
        for _ in 1..KEYS {
            add(&path).unwrap();
        }
        assert!(matches!(add(&path), Err(KeygenError::Full(_))));
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_file_in_no_directory_is_named() {
        let error = create(Path::new("/nope/keys")).unwrap_err().to_string();
        assert!(error.starts_with("cannot write /nope/keys: "), "{error}");
    }
}
