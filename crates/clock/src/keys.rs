//! The fleet's keys: a file that OR-ACKs and clock messages share, and the tags made with them.

use std::{hash::Hasher, net::SocketAddr, path::Path};

use siphasher::sip::SipHasher24;

/// Keys valid at a time, for rotation (ONR_KEYS of bpf/abi.h).
pub const KEYS: u32 = 4;
/// Bytes of a key.
pub const KEY_BYTES: usize = 16;

/// One key of the fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// 0 to [`KEYS`] - 1, as messages name it.
    pub id: u32,
    /// For SipHash-2-4.
    pub bytes: [u8; KEY_BYTES],
}

/// Why a key file is none.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// It cannot be read.
    #[error("cannot read the keys in {path}: {source}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// A line is no key.
    #[error("{path}:{line}: {what}")]
    Line {
        /// The file.
        path: String,
        /// From 1.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
    /// Nothing in it.
    #[error("{0} holds no key")]
    Empty(String),
}

/// All keys that a host accepts; the first signs.
#[derive(Clone, Debug)]
pub struct Keys(Vec<Key>);

impl Keys {
    /// One well-known key that authenticates nothing, for when there is no file.
    pub fn well_known() -> Keys {
        Keys(vec![Key {
            id: 0,
            bytes: [0; KEY_BYTES],
        }])
    }

    /// The keys of a file, a line each: ID (0-3) and 32 hex digits. Lines with # are comments.
    ///
    /// # Errors
    /// The file cannot be read, a line is no key, or there is none.
    pub fn read(path: &Path) -> Result<Keys, KeyError> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|source| KeyError::Unreadable {
            path: name.clone(),
            source,
        })?;
        let lines = text.lines().enumerate();
        let keys: Vec<Key> = lines
            .filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
            .map(|(n, line)| {
                parse(line).map_err(|what| KeyError::Line {
                    path: name.clone(),
                    line: n + 1,
                    what,
                })
            })
            .collect::<Result<_, _>>()?;
        if keys.is_empty() {
            return Err(KeyError::Empty(name));
        }
        Ok(Keys(keys))
    }

    /// In the order of the file.
    pub fn all(&self) -> &[Key] {
        &self.0
    }

    /// The key that signs.
    pub fn signing(&self) -> Key {
        self.0[0]
    }

    /// The tag of `text` on the way between two sockets, with the key of this id if there is one. The
    /// addresses are in it, so that a message says nothing on another way.
    pub fn tag(&self, id: u32, from: SocketAddr, to: SocketAddr, text: &[u8]) -> Option<u64> {
        let key = self.0.iter().find(|key| key.id == id)?;
        let mut hash = SipHasher24::new_with_key(&key.bytes);
        for end in [from, to] {
            hash.write(&crate::wire::address_bytes(end));
        }
        hash.write(text);
        Some(hash.finish())
    }
}

fn parse(line: &str) -> Result<Key, String> {
    let (id, hex) = line
        .trim()
        .split_once(char::is_whitespace)
        .ok_or("not `ID HEX`")?;
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
            "the key has {} digits, not {}",
            hex.len(),
            2 * KEY_BYTES
        ));
    }
    for (byte, digits) in bytes.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
        let digits = std::str::from_utf8(digits).expect("it is ASCII");
        *byte = u8::from_str_radix(digits, 16).map_err(|_| format!("{digits} is not hex"))?;
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
    fn a_tag_is_of_one_way_and_one_key() {
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
