//! What git does not carry, brought into a worktree from the user's checkout: copies, and for heavy folders clones that
//! share their bytes until somebody writes, where the file system can do that, else links.

use std::io;
use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// What is to be brought.
#[derive(Debug)]
pub(super) struct Wanted {
    copied: GlobSet,
    linked: GlobSet,
    /// A pattern without a folder names what is at the top, and a large tree need not be walked for it.
    depth: usize,
}

impl Wanted {
    pub(super) fn of(copy: &[String], link: &[String]) -> Result<Self, String> {
        let is_deep = copy.iter().chain(link).any(|pattern| pattern.trim_end_matches('/').contains('/'));
        let depth = if is_deep { usize::MAX } else { 1 };
        Ok(Self { copied: globs(copy)?, linked: globs(link)?, depth })
    }
}

fn globs(patterns: &[String]) -> Result<GlobSet, String> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let glob = GlobBuilder::new(pattern.trim_end_matches('/')).literal_separator(true).build();
        set.add(glob.map_err(|e| format!("`{pattern}` is no pattern: {e}"))?);
    }
    set.build().map_err(|e| e.to_string())
}

/// Copies and links what is wanted, from the top of the checkout. What the worktree has stays, but for copies of ours that
/// are old: `is_git's` tells what is not ours. Never what is git's or ours by itself. Says how heavy folders were brought.
pub(super) fn bring(
    from: &Path,
    to: &Path,
    wanted: &Wanted,
    is_gits: &dyn Fn(&Path) -> bool,
) -> io::Result<Vec<String>> {
    let mut said = Vec::new();
    if wanted.copied.is_empty() && wanted.linked.is_empty() {
        return Ok(said);
    }
    let mut items = walkdir::WalkDir::new(from).min_depth(1).max_depth(wanted.depth).follow_links(false).into_iter();
    while let Some(item) = items.next() {
        // What cannot be looked at is no file that anybody has named.
        let Ok(item) = item else { continue };
        let Ok(below) = item.path().strip_prefix(from) else { continue };
        let is_folder = item.file_type().is_dir();
        if item.file_name() == ".git" {
            if is_folder {
                items.skip_current_dir();
            }
            continue;
        }
        let target = to.join(below);
        let (linked, copied) = (wanted.linked.is_match(below), wanted.copied.is_match(below));
        if is_folder && (linked || copied) {
            items.skip_current_dir();
        }
        if linked {
            if std::fs::symlink_metadata(&target).is_err() {
                make_parent(&target)?;
                said.push(format!("{} is {}", below.display(), clone_or_link(item.path(), &target)?));
            }
        } else if copied {
            copy(item.path(), &target, &|path| is_gits(&below.join(path)), &|from, to| {
                std::fs::copy(from, to).map(drop)
            })?;
        }
    }
    Ok(said)
}

/// A clone that shares its bytes with the original until one of them is written, or a link where that cannot be. Says which.
fn clone_or_link(from: &Path, to: &Path) -> io::Result<&'static str> {
    let all_are_gits = |_: &Path| true;
    match copy(from, to, &all_are_gits, &clone) {
        Ok(()) => return Ok("cloned: what is written there stays in the worktree"),
        // Half of it would be worse than none of it.
        Err(_) if std::fs::symlink_metadata(to).is_ok_and(|meta| meta.is_dir()) => std::fs::remove_dir_all(to)?,
        Err(_) => match std::fs::remove_file(to) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        },
    }
    std::os::unix::fs::symlink(from, to)?;
    Ok("linked: what is written there is written in the checkout")
}

/// Copies a file's bytes by reference.
#[cfg(target_os = "linux")]
fn clone(from: &Path, to: &Path) -> io::Result<()> {
    let source = std::fs::File::open(from)?;
    let target = std::fs::OpenOptions::new().write(true).create_new(true).open(to)?;
    let cloned = rustix::fs::ioctl_ficlone(&target, &source).map_err(io::Error::from);
    cloned.and_then(|()| {
        let meta = source.metadata()?;
        target.set_permissions(meta.permissions())?;
        // What builds compare.
        target.set_modified(meta.modified()?)
    })
}

#[cfg(target_os = "macos")]
fn clone(from: &Path, to: &Path) -> io::Result<()> {
    let source = std::fs::File::open(from)?;
    rustix::fs::fclonefileat(&source, rustix::fs::CWD, to, rustix::fs::CloneFlags::empty()).map_err(io::Error::from)
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn clone(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

fn make_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), std::fs::create_dir_all)
}

/// Copies a file or a folder with all that is in it, modes and links kept. What is there already stays if it is git's, or the
/// same.
fn copy(
    from: &Path,
    to: &Path,
    is_gits: &dyn Fn(&Path) -> bool,
    file: &dyn Fn(&Path, &Path) -> io::Result<()>,
) -> io::Result<()> {
    for item in walkdir::WalkDir::new(from).follow_links(false) {
        let item = item.map_err(io::Error::from)?;
        let below = item.path().strip_prefix(from).unwrap_or(Path::new(""));
        let target = if below.as_os_str().is_empty() { to.to_owned() } else { to.join(below) };
        if item.file_type().is_dir() {
            std::fs::create_dir_all(&target)?;
            continue;
        }
        if std::fs::symlink_metadata(&target).is_ok() {
            if is_gits(below) || is_same(item.path(), &target) {
                continue;
            }
            std::fs::remove_file(&target)?;
        }
        make_parent(&target)?;
        if item.file_type().is_symlink() {
            std::os::unix::fs::symlink(std::fs::read_link(item.path())?, &target)?;
        } else if item.file_type().is_file() {
            file(item.path(), &target)?;
        }
    }
    Ok(())
}

fn is_same(one: &Path, other: &Path) -> bool {
    let (Ok(a), Ok(b)) = (std::fs::symlink_metadata(one), std::fs::symlink_metadata(other)) else { return false };
    if a.is_symlink() || b.is_symlink() {
        return std::fs::read_link(one).ok() == std::fs::read_link(other).ok() && a.is_symlink() && b.is_symlink();
    }
    a.is_file() && b.is_file() && a.len() == b.len() && std::fs::read(one).ok() == std::fs::read(other).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(folder: &Path, name: &str, text: &str) {
        make_parent(&folder.join(name)).expect("a folder");
        std::fs::write(folder.join(name), text).expect("a file");
    }

    #[test]
    fn copies_are_renewed_but_what_git_has_stays() {
        let (from, to) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        for (folder, text) in [(&from, "new"), (&to, "old")] {
            written(folder.path(), ".env", text);
            written(folder.path(), ".env.example", text);
        }
        let wanted = Wanted::of(&[".env*".to_owned()], &[]).expect("a pattern");
        let is_gits = |path: &Path| path == Path::new(".env.example");
        bring(from.path(), to.path(), &wanted, &is_gits).expect("brought");
        let read = |name: &str| std::fs::read_to_string(to.path().join(name)).expect("it is there");
        assert_eq!((read(".env").as_str(), read(".env.example").as_str()), ("new", "old"));
    }

    #[test]
    fn a_heavy_folder_is_there_cloned_or_linked_and_it_is_said_which() {
        let (from, to) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        written(from.path(), "cache/deep/file", "bytes");
        let wanted = Wanted::of(&[], &["cache/".to_owned()]).expect("a pattern");
        let said = bring(from.path(), to.path(), &wanted, &|_| false).expect("brought");
        assert_eq!(std::fs::read_to_string(to.path().join("cache/deep/file")).expect("it is there"), "bytes");
        let is_link = std::fs::symlink_metadata(to.path().join("cache")).expect("it is there").is_symlink();
        assert!(said[0].starts_with(if is_link { "cache is linked" } else { "cache is cloned" }), "{said:?}");
        written(to.path(), "cache/deep/file", "other");
        let original = std::fs::read_to_string(from.path().join("cache/deep/file")).expect("it is there");
        assert_eq!(original, if is_link { "other" } else { "bytes" });
    }
}
