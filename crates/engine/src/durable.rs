//! What others wrote, made to outlive a loss of power: before something is said that rests on it, and before that is thrown
//! away which it replaces.
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// More files than this are not waited for one by one; the whole file system is written out instead, once.
const ONE_BY_ONE: usize = 128;

/// Waits until the content of `files` and their names are on the disk. They are on the file system of `root`, which must
/// exist. What is gone by now, or is no file, needs nothing.
pub(crate) fn make_durable(root: &Path, files: &[PathBuf]) -> io::Result<()> {
    if files.len() > ONE_BY_ONE {
        return write_all_out(root);
    }
    let folders: BTreeSet<&Path> = files.iter().filter_map(|file| file.parent()).collect();
    for path in files.iter().map(PathBuf::as_path).chain(folders) {
        match sync(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // Nobody may sync what cannot be opened, but the system writes it out with all the rest.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return write_all_out(root),
            other => other?,
        }
    }
    Ok(())
}

fn sync(path: &Path) -> io::Result<()> {
    let kind = fs::symlink_metadata(path)?.file_type();
    // A link is part of its folder; opening a fifo would wait, or wake somebody.
    if kind.is_file() || kind.is_dir() { File::open(path)?.sync_all() } else { Ok(()) }
}

#[cfg(target_os = "linux")]
fn write_all_out(root: &Path) -> io::Result<()> {
    Ok(rustix::fs::syncfs(File::open(root)?)?)
}

#[cfg(not(target_os = "linux"))]
#[expect(clippy::unnecessary_wraps, reason = "where one file system can be written out, that can fail")]
fn write_all_out(_root: &Path) -> io::Result<()> {
    rustix::fs::sync();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_or_is_no_file_needs_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "x").unwrap();
        std::os::unix::fs::symlink("nowhere", at("link")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            at("fifo"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        let files = ["file", "link", "fifo", "gone", "gone/too"].map(at);
        make_durable(folder.path(), &files).unwrap();
        let many: Vec<PathBuf> = (0..=ONE_BY_ONE).map(|number| at(&format!("f{number}"))).collect();
        make_durable(folder.path(), &many).unwrap();
    }
}
