//! Paths of a spec, which may not leave the project: neither by `..`, nor as absolute paths, nor through links.

use std::io;
use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use walkdir::WalkDir;

/// Why a path of a spec is not used.
#[derive(Debug, thiserror::Error)]
pub(super) enum PathError {
    /// It leads out of the project.
    #[error("the path {path:?} leaves the project: name one inside it")]
    Leaves {
        /// As it was written.
        path: String,
    },
    /// It is no glob.
    #[error("{pattern:?} is no glob: {problem}")]
    BadGlob {
        /// As it was written.
        pattern: String,
        /// What is wrong with it.
        problem: String,
    },
    /// It can't be looked at.
    #[error("cannot look at {}: {source}", .path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// The path `written`, from the folder `base` of the project; it need not exist.
pub(super) fn inside(project: &Path, base: &Path, written: &str) -> Result<PathBuf, PathError> {
    let leaves = || PathError::Leaves { path: written.to_owned() };
    let path = base.join(written);
    let below = path.strip_prefix(project).map_err(|_| leaves())?;
    let mut depth = 0_usize;
    for part in below.components() {
        depth = match part {
            Component::Normal(_) => depth + 1,
            Component::ParentDir => depth.checked_sub(1).ok_or_else(leaves)?,
            _ => depth,
        };
    }
    let real = |path: &Path| path.canonicalize().map_err(|source| PathError::Io { path: path.to_owned(), source });
    let root = real(project)?;
    // What does not exist yet is where its nearest existing folder is. A dangling link exists as a link.
    let existing = path.ancestors().find(|p| p.symlink_metadata().is_ok()).ok_or_else(leaves)?;
    match existing.canonicalize() {
        Ok(existing) if existing.starts_with(&root) => Ok(path),
        Ok(_) => Err(leaves()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(path),
        Err(source) => Err(PathError::Io { path: existing.to_owned(), source }),
    }
}

/// Whether a file or folder matches the glob `pattern`, taken from the folder `base` of the project. `*` stays within
/// a folder, `**` does not; `{a,b}` and `[a-z]` work. Links to folders are not followed.
pub(super) fn any_matches(project: &Path, base: &Path, pattern: &str) -> Result<bool, PathError> {
    let (literal, glob) = split(pattern);
    if glob.split('/').any(|part| part == "..") {
        return Err(PathError::Leaves { path: pattern.to_owned() });
    }
    let start = inside(project, base, literal)?;
    if glob.is_empty() {
        return Ok(start.exists());
    }
    let matcher = compile(glob, pattern)?;
    let depth = if glob.contains("**") || glob.contains('{') { usize::MAX } else { glob.split('/').count() };
    // Folders that can't be read hold no match that anybody can use.
    let mut entries = WalkDir::new(&start).min_depth(1).max_depth(depth).into_iter().flatten();
    Ok(entries.any(|entry| {
        let below = entry.path().strip_prefix(&start).unwrap_or(entry.path());
        matcher.is_match(below) && entry.path().exists()
    }))
}

/// Divides a pattern into leading folders without wildcards and the rest.
fn split(pattern: &str) -> (&str, &str) {
    let Some(wild) = pattern.find(['*', '?', '[', '{', '\\']) else { return (pattern, "") };
    match pattern[..wild].rfind('/') {
        Some(0) => ("/", &pattern[1..]),
        Some(slash) => (&pattern[..slash], &pattern[slash + 1..]),
        None => ("", pattern),
    }
}

fn compile(glob: &str, pattern: &str) -> Result<GlobMatcher, PathError> {
    let glob = GlobBuilder::new(glob).literal_separator(true).build();
    glob.map(|g| g.compile_matcher())
        .map_err(|e| PathError::BadGlob { pattern: pattern.to_owned(), problem: e.kind().to_string() })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn project() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("p/src/deep")).unwrap();
        fs::write(dir.path().join("p/src/a.rs"), "").unwrap();
        fs::write(dir.path().join("p/src/deep/b.rs"), "").unwrap();
        fs::write(dir.path().join("secret.txt"), "").unwrap();
        symlink("..", dir.path().join("p/up")).unwrap();
        symlink("../secret.txt", dir.path().join("p/link")).unwrap();
        symlink("src/a.rs", dir.path().join("p/ok")).unwrap();
        dir
    }

    #[test]
    fn paths_that_leave_the_project_are_refused() {
        let dir = project();
        let root = dir.path().join("p");
        for path in ["..", "../secret.txt", "src/../../secret.txt", "/etc/passwd", "up/secret.txt", "link", "up/new"] {
            let error = inside(&root, &root, path).unwrap_err();
            assert!(matches!(error, PathError::Leaves { .. }), "{path}: {error}");
        }
        for path in ["", "src", "src/../src/a.rs", "ok", "not/yet", root.join("src").to_str().unwrap()] {
            inside(&root, &root, path).unwrap();
        }
        inside(&root, &root.join("src"), "../src/a.rs").unwrap();
        inside(&root, &root.join("src"), "../..").unwrap_err();
    }

    #[test]
    fn globs_match_as_a_shell_would() {
        let dir = project();
        let root = dir.path().join("p");
        let matches = |pattern: &str| any_matches(&root, &root, pattern).unwrap();
        for pattern in
            ["src/*.rs", "**/b.rs", "s?c/{a,x}.rs", "src/a.rs", "./src/*.rs", "src/[a-c].rs", "*", "{src/deep/b,x}.rs"]
        {
            assert!(matches(pattern), "{pattern}");
        }
        for pattern in ["*.rs", "src/*.py", "nowhere/*", "up/*.txt.no", "src/b.rs"] {
            assert!(!any_matches(&root, &root, pattern).unwrap_or(false), "{pattern}");
        }
        assert!(any_matches(&root, &root.join("src"), "*.rs").unwrap());
    }

    #[test]
    fn globs_that_leave_the_project_or_are_none_are_refused() {
        let dir = project();
        let root = dir.path().join("p");
        for pattern in ["../*.txt", "*/../../secret.txt", "up/*.txt", "/etc/*"] {
            assert!(matches!(any_matches(&root, &root, pattern), Err(PathError::Leaves { .. })), "{pattern}");
        }
        assert!(matches!(any_matches(&root, &root, "src/[a"), Err(PathError::BadGlob { .. })));
    }
}
