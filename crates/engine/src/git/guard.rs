//! What no story may bring into a commit: secrets, compiled programs, blobs, the tool's own files. Unlike what is only
//! held back, it stops the landing: somebody has to take it out, or to say that it is meant.
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use ralphloop_agent::redact::{Found, Redactor};

use super::record::{Record, RelPath};
use super::{Repository, path};
use crate::bytes::Bytes;
use crate::patterns::FilePatterns;

/// A binary file larger than this is a blob, in bytes.
const BLOB: u64 = 1 << 20;
/// A file larger than this is not searched, in bytes.
const SEARCHED: u64 = 16 << 20;
/// So many objections are said.
const SAID: usize = 20;

/// What is looked for.
#[derive(Debug, Clone)]
pub struct Guard {
    /// Knows secrets.
    pub redactor: Redactor,
    /// What is not looked at.
    pub exempt: FilePatterns,
    /// No file may grow beyond this, in bytes.
    pub larger_than: u64,
}

impl Repository {
    /// Why the change of these paths must not be committed, a line each.
    pub(super) async fn objections(&self, record: &Record, paths: &[RelPath], guard: &Guard) -> Vec<String> {
        let mut said = Vec::new();
        for at in paths {
            let relative = path(at);
            if guard.exempt.has(&relative) {
                continue;
            }
            let full = self.places().top.join(&relative);
            let shown = relative.display();
            if is_our_own(&relative) {
                said.push(format!("{shown}: it says how the loop judges, and an attempt may not change that"));
                continue;
            }
            let Some(size) = fs::symlink_metadata(&full).ok().filter(fs::Metadata::is_file).map(|meta| meta.len())
            else {
                continue;
            };
            let Some(bytes) = (size <= SEARCHED).then(|| fs::read(&full).ok()).flatten() else {
                if size > guard.larger_than && self.before(record, at).await.is_none_or(|old| !is_large(&old, guard)) {
                    said.push(format!("{shown}: it has grown to {}", Bytes(size)));
                }
                continue;
            };
            let found = guard.redactor.find(&bytes);
            let binary = why_binary(&bytes);
            if found.is_empty() && binary.is_none() && size <= guard.larger_than {
                continue;
            }
            // What was there before is not this story's doing.
            let old = self.before(record, at).await;
            if let Some(why) = binary.filter(|_| old.is_none()) {
                said.push(format!("{shown}: {why}"));
            }
            if size > guard.larger_than && old.as_deref().is_none_or(|old| !is_large(old, guard)) {
                said.push(format!("{shown}: it has grown to {}", Bytes(size)));
            }
            let old = old.unwrap_or_default();
            let is_new = |found: &&Found| memchr::memmem::find(&old, &bytes[found.range.clone()]).is_none();
            said.extend(found.iter().filter(is_new).map(|found| format!("{shown}:{}: {}", found.line, found.what)));
        }
        if said.len() > SAID {
            let more = said.len() - SAID;
            said.truncate(SAID);
            said.push(format!("and {more} more"));
        }
        said
    }

    /// The bytes of a path in the commit of the checkpoint.
    async fn before(&self, record: &Record, at: &RelPath) -> Option<Vec<u8>> {
        let commit = record.head.commit?;
        let mut name = format!("{commit}:").into_bytes();
        name.extend_from_slice(at);
        let answer = self.read().args(["cat-file", "blob"]).arg(std::ffi::OsStr::from_bytes(&name)).answer().await;
        answer.ok().filter(super::command::Answer::success).map(|answer| answer.stdout)
    }
}

fn is_large(old: &[u8], guard: &Guard) -> bool {
    old.len() as u64 > guard.larger_than
}

/// The project's settings of ours, and what we write for a moment.
fn is_our_own(path: &Path) -> bool {
    let name = path.file_name().map(std::ffi::OsStr::as_bytes).unwrap_or_default();
    name == b"ralphloop.toml" || name.starts_with(b".ralphloop-") && name.ends_with(b".tmp")
}

/// Why a new file is nothing that is committed, if it is so.
fn why_binary(bytes: &[u8]) -> Option<&'static str> {
    const PROGRAMS: [&[u8]; 6] =
        [b"\x7fELF", b"\xfe\xed\xfa\xce", b"\xfe\xed\xfa\xcf", b"\xce\xfa\xed\xfe", b"\xcf\xfa\xed\xfe", b"!<arch>\n"];
    let is_windows =
        bytes.starts_with(b"MZ") && bytes.get(..4096.min(bytes.len())).is_some_and(|head| head.contains(&0));
    if is_windows || PROGRAMS.iter().any(|magic| bytes.starts_with(magic)) {
        return Some("it is a compiled program");
    }
    let head = bytes.get(..8192.min(bytes.len())).unwrap_or_default();
    (bytes.len() as u64 > BLOB && head.contains(&0)).then_some("it is a binary file of more than 1 MiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_and_blobs_are_told_from_pictures_and_text() {
        assert!(why_binary(b"\x7fELF\x02\x01\x01\0").is_some());
        assert!(why_binary(&vec![0; (1 << 20) + 1]).is_some());
        assert!(why_binary(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR").is_none());
        assert!(why_binary(&vec![b'a'; 3 << 20]).is_none());
    }

    #[test]
    fn the_settings_of_ours_are_our_own_wherever_they_are() {
        assert!(is_our_own(Path::new("sub/ralphloop.toml")) && !is_our_own(Path::new("ralphloop.toml.md")));
    }
}
