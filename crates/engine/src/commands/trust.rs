//! Which commands of which repository this user has trusted: kept with the user, out of reach of any repository.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::files::{self, FileError};

/// What is kept: for each repository, by its common git directory, the hashes of the trusted commands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trusted {
    /// When something was trusted last, RFC 3339.
    pub at: String,
    /// Hashes of commands.
    pub commands: BTreeSet<String>,
}

/// The user's file.
#[derive(Debug)]
pub struct Trust {
    path: PathBuf,
    repositories: BTreeMap<String, Trusted>,
}

/// Why the user's file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// It could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// It is no such file.
    #[error("{}: it does not say what is trusted ({why}); remove it, and `ralphloop trust` asks anew", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// Others could have written it.
    #[error("{}: others can write it, so that it says nothing; `chmod 600` it once you know what is in it", .path.display())]
    Open {
        /// The file.
        path: PathBuf,
    },
    /// There is no folder for it.
    #[error("there is no folder for what is trusted: neither XDG_STATE_HOME nor HOME is set")]
    NoHome,
}

impl Trust {
    /// Reads the user's file; `variable` looks up the environment.
    pub fn open(variable: impl Fn(&str) -> Option<String>) -> Result<Self, TrustError> {
        let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let folder = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
        Self::at(&folder.ok_or(TrustError::NoHome)?.join("ralphloop/trust.json"))
    }

    fn at(path: &Path) -> Result<Self, TrustError> {
        let path = path.to_owned();
        let meta = match std::fs::metadata(&path) {
            Ok(meta) => meta,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self { path, repositories: BTreeMap::new() });
            }
            Err(e) => return Err(FileError::new("read", &path, e).into()),
        };
        if meta.mode() & 0o022 != 0 || meta.uid() != rustix::process::geteuid().as_raw() {
            return Err(TrustError::Open { path });
        }
        let bytes = std::fs::read(&path).map_err(|e| FileError::new("read", &path, e))?;
        let repositories = serde_json::from_slice(&bytes)
            .map_err(|e| TrustError::Damaged { path: path.clone(), why: e.to_string() })?;
        Ok(Self { path, repositories })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a command of the repository with this common git directory is trusted.
    pub fn has(&self, common_dir: &Path, command: &str) -> bool {
        self.repositories.get(&name(common_dir)).is_some_and(|trusted| trusted.commands.contains(&hash(command)))
    }

    /// Trusts these commands of a repository, also those that come from other files of it later.
    pub fn add<'c>(
        &mut self,
        common_dir: &Path,
        commands: impl IntoIterator<Item = &'c str>,
    ) -> Result<(), TrustError> {
        let trusted = self.repositories.entry(name(common_dir)).or_default();
        trusted.at = jiff::Timestamp::now().to_string();
        trusted.commands.extend(commands.into_iter().map(hash));
        self.write()
    }

    /// Trusts nothing of a repository any more; tells how many commands that were.
    pub fn forget(&mut self, common_dir: &Path) -> Result<usize, TrustError> {
        let forgotten = self.repositories.remove(&name(common_dir)).map_or(0, |trusted| trusted.commands.len());
        if forgotten > 0 {
            self.write()?;
        }
        Ok(forgotten)
    }

    fn write(&self) -> Result<(), TrustError> {
        if let Some(folder) = self.path.parent() {
            files::create_private_dir(folder)?;
        }
        let bytes = serde_json::to_vec_pretty(&self.repositories)
            .map_err(|e| FileError::new("encode", &self.path, std::io::Error::other(e)))?;
        Ok(files::write_atomic(&self.path, &bytes, files::Access::Private)?)
    }
}

fn name(common_dir: &Path) -> String {
    std::fs::canonicalize(common_dir).unwrap_or_else(|_| common_dir.to_owned()).display().to_string()
}

fn hash(command: &str) -> String {
    blake3::hash(command.as_bytes()).to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn what_is_trusted_is_known_again_of_that_repository_and_to_the_letter() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().display().to_string();
        let open = || Trust::open(|name| (name == "HOME").then(|| home.clone()));
        let mut trust = open().unwrap();
        trust.add(Path::new("/a/.git"), ["./check.sh", "sh x"]).unwrap();
        let mut trust = {
            drop(trust);
            open().unwrap()
        };
        assert!(trust.has(Path::new("/a/.git"), "./check.sh"));
        assert!(!trust.has(Path::new("/b/.git"), "./check.sh"));
        assert!(!trust.has(Path::new("/a/.git"), "./check.sh "));
        assert_eq!(std::fs::metadata(trust.path()).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!((trust.forget(Path::new("/a/.git")).unwrap(), trust.forget(Path::new("/a/.git")).unwrap()), (2, 0));
        assert!(!open().unwrap().has(Path::new("/a/.git"), "sh x"));
    }

    #[test]
    fn a_file_that_others_can_write_or_that_is_none_says_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trust.json");
        std::fs::write(&path, "{}").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        assert!(matches!(Trust::at(&path), Err(TrustError::Open { .. })));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&path, "yes").unwrap();
        assert!(matches!(Trust::at(&path), Err(TrustError::Damaged { .. })));
        assert!(matches!(Trust::open(|_| None), Err(TrustError::NoHome)));
    }
}
