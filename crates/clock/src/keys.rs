// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The fleet's keys, which authenticate OR-ACKs and clock messages: the key file and the tags.

use std::{hash::Hasher, io::Read, net::SocketAddr, os::unix::fs::PermissionsExt, path::Path};

use siphasher::sip::SipHasher24;

/// Most keys that a host accepts at the same time, for rotation (ONR_KEYS of bpf/abi.h).
pub const KEYS: u32 = 4;
/// Bytes of a key.
pub const KEY_BYTES: usize = 16;
/// Permission bits that let group or others read or write a file.
const SHARED: u32 = 0o066;

/// One key of the fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// 0 to [`KEYS`] - 1; messages carry it.
    pub id: u32,
    /// For SipHash-2-4.
    pub bytes: [u8; KEY_BYTES],
}

/// Why a key file is refused.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// It cannot be read.
    #[error(
        "cannot read the key file {path}: {source}; to create one, run: \
         onramp keygen {path}"
    )]
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// It belongs to another user, or its owner may not read it: daemons drop the capability to read such files.
    #[error(
        "cannot read the key file {path}: it must belong to the user that runs the daemon, and its owner must be \
         allowed to read it, also if that is root; run: chown root {path} && chmod 600 {path}"
    )]
    Foreign {
        /// The file.
        path: String,
    },
    /// Group or others may read or write it.
    #[error(
        "the key file {path} has mode {mode:03o}: group or others can read or write it, \
         and at most mode 600 is allowed; run: chmod 600 {path}"
    )]
    Shared {
        /// The file.
        path: String,
        /// Its permission bits.
        mode: u32,
    },
    /// A line is malformed.
    #[error("{path}:{line}: {what}; write: ID HEX, where ID is 0-3 and HEX has 32 hex digits")]
    Line {
        /// The file.
        path: String,
        /// The first line is 1.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
    /// It has only comments and empty lines.
    #[error("the key file {0} has no key; add a line: ID HEX, where ID is 0-3 and HEX has 32 hex digits")]
    Empty(String),
}

/// All keys that a host accepts. It signs with the first.
#[derive(Clone, Debug)]
pub struct Keys(Vec<Key>);

impl Keys {
    /// One well-known key, for hosts without a key file. It authenticates nothing.
    pub fn well_known() -> Keys {
        Keys(vec![Key {
            id: 0,
            bytes: [0; KEY_BYTES],
        }])
    }

    /// Reads a key file. Each line has an ID (0-3) and 32 hex digits; lines that begin with # are comments.
    ///
    /// # Errors
    /// The file cannot be read, group or others can read or write it, a line is malformed, or it has no key.
    pub fn read(path: &Path) -> Result<Keys, KeyError> {
        let name = path.display().to_string();
        let unreadable = |source: std::io::Error| {
            let path = name.clone();
            match source.kind() {
                std::io::ErrorKind::PermissionDenied => KeyError::Foreign { path },
                _ => KeyError::Unreadable { path, source },
            }
        };
        let (mode, text) = mode_and_text(path).map_err(unreadable)?;
        if mode & SHARED != 0 {
            return Err(KeyError::Shared { path: name, mode });
        }
        Keys::parse(&name, &text)
    }

    /// The keys in the text of a key file; `name` is the file's, for errors.
    ///
    /// # Errors
    /// A line is malformed, or there is no key.
    pub fn parse(name: &str, text: &str) -> Result<Keys, KeyError> {
        let lines = text.lines().enumerate();
        let keys: Vec<Key> = lines
            .filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
            .map(|(n, line)| {
                parse(line).map_err(|what| KeyError::Line {
                    path: name.to_owned(),
                    line: n + 1,
                    what,
                })
            })
            .collect::<Result<_, _>>()?;
        if keys.is_empty() {
            return Err(KeyError::Empty(name.to_owned()));
        }
        Ok(Keys(keys))
    }

    /// All keys, in the order of the file.
    pub fn all(&self) -> &[Key] {
        &self.0
    }

    /// The key that signs.
    pub fn signing(&self) -> Key {
        self.0[0]
    }

    /// The tag of `text` between two sockets, made with the key `id`; none if there is no such key. The
    /// tag covers both addresses, so a message that is replayed between other hosts is refused.
    pub fn tag(&self, id: u32, from: SocketAddr, to: SocketAddr, text: &[u8]) -> Option<u64> {
        let key = self.0.iter().find(|key| key.id == id)?;
        let mut hash = SipHasher24::new_with_key(&key.bytes);
        for end in [from, to] {
            hash.write(&crate::address::address_bytes(end));
        }
        hash.write(text);
        Some(hash.finish())
    }
}

/// Permission bits and content of one open file, so that both are of the same file.
fn mode_and_text(path: &Path) -> std::io::Result<(u32, String)> {
    let mut file = std::fs::File::open(path)?;
    let mode = file.metadata()?.permissions().mode() & 0o777;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok((mode, text))
}

fn parse(line: &str) -> Result<Key, String> {
    let (id, hex) = line
        .trim()
        .split_once(char::is_whitespace)
        .ok_or("the line is not ID HEX")?;
    let id: u32 = id
        .parse()
        .map_err(|_| format!("key id {id} is not a number"))?;
    if id >= KEYS {
        return Err(format!("key id is {id}, above {}", KEYS - 1));
    }
    let hex = hex.trim();
    let mut bytes = [0u8; KEY_BYTES];
    if hex.len() != 2 * KEY_BYTES || !hex.is_ascii() {
        return Err(format!(
            "the key has {} hex digits, not {}",
            hex.len(),
            2 * KEY_BYTES
        ));
    }
    for (byte, digits) in bytes.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
        let digits = std::str::from_utf8(digits).expect("it is ASCII");
        *byte =
            u8::from_str_radix(digits, 16).map_err(|_| format!("{digits} is not hexadecimal"))?;
    }
    Ok(Key { id, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_ids_and_32_hex_digits() {
        let key = parse("3 000102030405060708090a0b0c0d0eff").unwrap();
        assert_eq!((key.id, key.bytes[15]), (3, 0xff));
        assert!(parse("4 000102030405060708090a0b0c0d0eff").is_err());
        assert!(parse("0 0001").is_err());
        assert!(parse("0 zz0102030405060708090a0b0c0d0eff").is_err());
    }

    #[test]
    fn a_key_file_that_group_or_others_can_read_or_write_is_refused() {
        let name = format!("onramp-keys-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, "1 000102030405060708090a0b0c0d0eff\n").unwrap();
        let read = |mode: u32| {
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(&path, permissions).unwrap();
            Keys::read(&path).map_err(|error| error.to_string())
        };
        for mode in [0o666, 0o640, 0o620, 0o604, 0o602] {
            let error = read(mode).expect_err("others share the key");
            let mode = format!("has mode {mode:o}");
            let fix = format!(
                "at most mode 600 is allowed; run: chmod 600 {}",
                path.display()
            );
            assert!(error.contains(&mode) && error.contains(&fix), "{error}");
        }
        for mode in [0o600, 0o400, 0o700] {
            assert_eq!(read(mode).expect("it is private").signing().id, 1);
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_missing_key_file_is_named_with_the_command_that_creates_one() {
        let error = Keys::read(Path::new("/nope")).unwrap_err().to_string();
        assert!(
            error.starts_with("cannot read the key file /nope"),
            "{error}"
        );
        assert!(error.contains("onramp keygen /nope"), "{error}");
    }

    #[test]
    fn a_tag_is_for_one_direction_and_one_key() {
        let keys = Keys::well_known();
        let (a, b) = (
            "10.0.0.1:5198".parse().unwrap(),
            "10.0.0.2:5198".parse().unwrap(),
        );
        let tag = keys.tag(0, a, b, b"text");
        assert_ne!(tag, keys.tag(0, b, a, b"text"));
        assert_ne!(tag, keys.tag(0, a, b, b"texu"));
        assert_eq!(keys.tag(1, a, b, b"text"), None);
    }
}
