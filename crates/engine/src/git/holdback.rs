//! What an attempt made and no commit should have: secrets, dumps, dependency trees. Only new files are judged.
use std::collections::HashSet;

use super::record::{Class, Entry, Listing, Node, RelPath, file_name};

/// Which new files are held back from a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HoldBack {
    /// Hold back what looks like a secret, a dump or a dependency tree.
    pub suspects: bool,
    /// Hold back files larger than this, in bytes.
    pub larger_than: u64,
}

impl Default for HoldBack {
    fn default() -> Self {
        Self { suspects: true, larger_than: 10 * 1024 * 1024 }
    }
}

/// A new file that was not committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldBack {
    /// Relative to the top of the working tree.
    pub path: std::path::PathBuf,
    /// Why.
    pub why: &'static str,
}

/// Directories that tools fill and nobody commits.
const TREES: &[&[u8]] = &[
    b"node_modules",
    b"bower_components",
    b".venv",
    b"__pycache__",
    b".tox",
    b".nox",
    b".mypy_cache",
    b".pytest_cache",
    b".ruff_cache",
    b".gradle",
    b".terraform",
    b".next",
    b".nuxt",
    b".parcel-cache",
    b".svn",
    b".hg",
];

/// Names of files that hold secrets.
const SECRETS: &[&[u8]] = &[
    b"id_rsa",
    b"id_dsa",
    b"id_ecdsa",
    b"id_ed25519",
    b".netrc",
    b".pgpass",
    b".git-credentials",
    b".htpasswd",
    b".envrc",
    b"credentials.json",
    b"client_secret.json",
    b"secrets.yml",
    b"secrets.yaml",
    b"secrets.json",
];

/// Ends of names of files that hold keys.
const KEY_STORES: &[&[u8]] = &[b".p12", b".pfx", b".keystore", b".jks", b".kdbx", b".ppk"];

/// Ends of names that mark a file of settings as an example.
const EXAMPLES: &[&[u8]] = &[b".example", b".sample", b".template", b".dist", b".defaults", b".schema"];

/// Directories whose content is made by tools, by a mark that they carry themselves.
pub(super) fn made_by_tools(now: &Listing) -> HashSet<RelPath> {
    let marks: &[&[u8]] = &[b"CACHEDIR.TAG", b"pyvenv.cfg"];
    now.entries
        .iter()
        .filter(|entry| marks.contains(&entry.name()) && entry.path.contains(&b'/'))
        .map(|entry| super::scan::parent(&entry.path).to_vec())
        .collect()
}

/// Why a new file is held back. `head` reads its first bytes.
pub(super) fn why(
    entry: &Entry,
    policy: HoldBack,
    made_by_tools: &HashSet<RelPath>,
    head: &dyn Fn(&Entry) -> Vec<u8>,
) -> Option<&'static str> {
    if entry.class == Class::Nested {
        return Some("it is in another repository");
    }
    let is_file = matches!(entry.node, Node::File(_));
    if is_file && entry.stat.size > policy.larger_than {
        return Some("it is large");
    }
    if !policy.suspects {
        return None;
    }
    let mut parts = entry.path.split(|byte| *byte == b'/').rev();
    let name = parts.next().unwrap_or_default();
    if parts.any(|part| TREES.contains(&part)) || above(&entry.path).any(|folder| made_by_tools.contains(folder)) {
        return Some("it is part of a dependency or build tree");
    }
    let name = name.to_ascii_lowercase();
    let is_settings = name == b".env" || name.starts_with(b".env.") || name.ends_with(b".env");
    if is_settings && !EXAMPLES.iter().any(|end| name.ends_with(end)) {
        return Some("its name is that of a file with secrets");
    }
    let is_credentials = name == b"credentials" && file_name(super::scan::parent(&entry.path)) == b".aws";
    if SECRETS.contains(&name.as_slice()) || is_credentials || KEY_STORES.iter().any(|end| name.ends_with(end)) {
        return Some("its name is that of a file with secrets");
    }
    if name == b"core" || name.ends_with(b".hprof") || name.ends_with(b".dmp") || name.ends_with(b".dump") {
        return Some("it is a dump of memory");
    }
    if is_file && is_private_key(&head(entry)) {
        return Some("it begins like a private key");
    }
    None
}

/// The directories that a path is in.
fn above(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| path.get(..at).unwrap_or_default())
}

fn is_private_key(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    text.lines().map(str::trim).any(|line| {
        line.starts_with("-----BEGIN ") && line.ends_with("PRIVATE KEY-----")
            || line.starts_with("PuTTY-User-Key-File-")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::record::{Content, Stat};

    fn judged(path: &str, size: u64, head: &'static [u8]) -> Option<&'static str> {
        let stat = Stat { dev: 0, ino: 0, size, mtime: 0, ctime: 0, links: 1 };
        let entry = Entry {
            path: path.into(),
            class: Class::Untracked,
            mode: 0o644,
            owner: (0, 0),
            attributes: Vec::new(),
            stat,
            node: Node::File(Content::Unknown),
        };
        why(&entry, HoldBack::default(), &HashSet::from([b"target".to_vec()]), &|_| head.to_vec())
    }

    #[test]
    fn secrets_dumps_and_dependency_trees_are_held_back() {
        for path in [
            ".env",
            "api/.env.local",
            "prod.env",
            "id_ed25519",
            "node_modules/p/i.js",
            "target/debug/x",
            "core",
            "a/.aws/credentials",
        ] {
            assert!(judged(path, 10, b"").is_some(), "{path}");
        }
        assert!(judged("data.bin", 11 << 20, b"").is_some());
        assert!(judged("some.txt", 10, b"-----BEGIN OPENSSH PRIVATE KEY-----\nx").is_some());
    }

    #[test]
    fn ordinary_files_are_not_held_back() {
        for path in [
            ".env.example",
            "src/core/mod.rs",
            "core/mod.rs",
            "src/target/mod.rs",
            "id_rsa.pub",
            "environment.ts",
            "docs/env.md",
        ] {
            assert_eq!(judged(path, 10, b"let x = \"-----BEGIN RSA PRIVATE KEY-----\";"), None, "{path}");
        }
    }
}
