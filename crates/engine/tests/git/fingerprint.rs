//! Everything that a person could notice of a repository, independent of the code under test.
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

use crate::world::World;

/// What is to be seen, by name.
#[derive(PartialEq, Eq)]
pub(crate) struct Fingerprint(BTreeMap<Vec<u8>, String>);

pub(crate) fn of(world: &World) -> Fingerprint {
    let mut seen = BTreeMap::new();
    look(&world.top, &world.top, &mut seen);
    let git = [
        "git for-each-ref --format='%(refname) %(objectname)' | grep -v refs/ralphloop || true",
        "git stash list",
        "git ls-files --stage --debug",
        "git ls-files -v",
        "git config --list --local",
        "git status --porcelain=v2 --branch --ignored -uall",
        "git rev-parse HEAD || true",
    ];
    for command in git {
        seen.insert(command.as_bytes().to_vec(), String::from_utf8_lossy(&world.output(command).stdout).into_owned());
    }
    Fingerprint(seen)
}

fn look(top: &Path, path: &Path, seen: &mut BTreeMap<Vec<u8>, String>) {
    let relative = path.strip_prefix(top).unwrap();
    let name = relative.as_os_str().as_bytes();
    let in_git = relative.components().any(|part| part.as_os_str() == ".git");
    if in_git
        && (relative.ends_with("objects")
            || relative.ends_with("refs/ralphloop")
            || relative.ends_with(".git/ralphloop"))
    {
        return;
    }
    let metadata = std::fs::symlink_metadata(path).unwrap();
    let kind = metadata.file_type();
    let mut line = format!("mode {:o} owner {}:{}", metadata.mode(), metadata.uid(), metadata.gid());
    line += &attributes(path);
    // Git itself renews the time of a shared index whenever it reads it.
    let renewed = relative.file_name().is_some_and(|name| name.to_string_lossy().starts_with("sharedindex."));
    if !renewed && (!kind.is_dir() || !in_git) {
        line += &format!(" time {}.{:09}", metadata.mtime(), metadata.mtime_nsec());
    }
    if kind.is_symlink() {
        line += &format!(" link {:?}", std::fs::read_link(path).unwrap());
    } else if kind.is_file() {
        line += &format!(
            " names {} content {:?}",
            metadata.nlink(),
            String::from_utf8_lossy(&std::fs::read(path).unwrap())
        );
    } else if kind.is_fifo() {
        line += " fifo";
    } else if kind.is_socket() {
        line += " socket";
    }
    seen.insert(name.to_vec(), line);
    if kind.is_dir() {
        for item in std::fs::read_dir(path).unwrap() {
            look(top, &item.unwrap().path(), seen);
        }
    }
}

/// The extended attributes of a path, access lists among them; nothing where there are none.
fn attributes(path: &Path) -> String {
    let mut names = [0_u8; 4096];
    let count = rustix::fs::llistxattr(path, &mut names).unwrap_or(0);
    let mut all = Vec::new();
    for name in names[..count].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let mut value = [0_u8; 4096];
        let length = rustix::fs::lgetxattr(path, name, &mut value).unwrap_or(0);
        all.push(format!(" {}={:?}", String::from_utf8_lossy(name), &value[..length]));
    }
    all.sort_unstable();
    all.concat()
}

impl Fingerprint {
    /// The lines in which the two differ.
    pub(crate) fn difference(&self, other: &Self) -> Vec<String> {
        let names = self.0.keys().chain(other.0.keys()).collect::<std::collections::BTreeSet<_>>();
        let show = |side: &Self, name: &[u8]| {
            side.0.get(name).map_or("(nothing)".to_owned(), |line| line.chars().take(600).collect())
        };
        names
            .into_iter()
            .filter(|name| self.0.get(*name) != other.0.get(*name))
            .map(|name| {
                format!("{}:\n  was {}\n  is  {}", String::from_utf8_lossy(name), show(self, name), show(other, name))
            })
            .collect()
    }
}
