//! Names of git objects, and the name that bytes have as a blob.
use std::fmt;

use serde::{Deserialize, Serialize};

/// The name of an object, SHA-1 or SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Oid {
    bytes: [u8; 32],
    length: u8,
}

impl Oid {
    pub(crate) fn new(name: &[u8]) -> Option<Self> {
        if !matches!(name.len(), 20 | 32) {
            return None;
        }
        let mut bytes = [0; 32];
        bytes.get_mut(..name.len())?.copy_from_slice(name);
        Some(Self { bytes, length: u8::try_from(name.len()).ok()? })
    }

    /// From 40 or 64 hexadecimal digits.
    pub(crate) fn from_hex(digits: &[u8]) -> Option<Self> {
        if !matches!(digits.len(), 40 | 64) {
            return None;
        }
        let mut bytes = [0_u8; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Self { bytes, length: u8::try_from(digits.len() / 2).ok()? })
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// Git's name for "no object".
    pub(crate) fn is_null(&self) -> bool {
        self.as_bytes().iter().all(|byte| *byte == 0)
    }
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Which hash a repository names its objects by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum HashKind {
    /// 40 digits.
    Sha1,
    /// 64 digits.
    Sha256,
}

impl HashKind {
    pub(crate) fn gix(self) -> gix_hash::Kind {
        match self {
            Self::Sha1 => gix_hash::Kind::Sha1,
            Self::Sha256 => gix_hash::Kind::Sha256,
        }
    }

    /// How many hexadecimal digits a name has.
    pub(crate) fn digits(self) -> usize {
        match self {
            Self::Sha1 => 40,
            Self::Sha256 => 64,
        }
    }

    /// The name that `bytes` have as a blob, unconverted.
    pub(crate) fn blob(self, bytes: &[u8]) -> std::io::Result<Oid> {
        let mut hasher = gix_hash::hasher(self.gix());
        hasher.update(format!("blob {}\0", bytes.len()).as_bytes());
        hasher.update(bytes);
        let name = hasher.try_finalize().map_err(std::io::Error::other)?;
        Oid::new(name.as_slice()).ok_or_else(|| std::io::Error::other("a hash of unknown length"))
    }
}

/// Every name of an object that a text mentions: runs of exactly `digits` hexadecimal digits, the null name left out.
pub(crate) fn mentioned(text: &[u8], digits: usize) -> impl Iterator<Item = Oid> + '_ {
    text.split(|byte| !byte.is_ascii_hexdigit())
        .filter(move |run| run.len() == digits)
        .filter_map(Oid::from_hex)
        .filter(|oid| !oid.is_null())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blob_has_the_name_that_git_gives_it() {
        assert_eq!(HashKind::Sha1.blob(b"").unwrap().to_string(), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        assert_eq!(HashKind::Sha1.blob(b"hello\n").unwrap().to_string(), "ce013625030ba8dba906f756967f9e9ca394464a");
    }

    #[test]
    fn names_are_found_in_a_log_line_and_the_null_name_is_not_one() {
        let line = format!("{} {} A <a@b> 1 +0000\tcommit", "0".repeat(40), "ab".repeat(20));
        let found: Vec<_> = mentioned(line.as_bytes(), 40).map(|oid| oid.to_string()).collect();
        assert_eq!(found, ["ab".repeat(20)]);
    }
}
