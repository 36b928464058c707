//! Hooks of a commit inside of the sandbox: they run what lies in the working tree, where an agent wrote.
//!
//! The commit is made once for them alone, inside, in a git directory that is thrown away; it begins with what is staged and
//! can write into nothing else of the repository. What they made of it, a tree and a message, is then committed outside,
//! without hooks.
use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::land::{LandError, Landing, refusal};
use super::object::loose_commit;
use super::oid::{HashKind, Oid};
use super::record::{Head, Record};
use super::{Command, Places, Repository, head, path};
use crate::process::Call;

/// Confines what is started in a working tree.
#[derive(Clone)]
pub struct Walls {
    temporary: PathBuf,
    confine: Arc<dyn Fn(Call) -> Call + Send + Sync>,
}

impl Walls {
    /// By `confine`, which leaves the folder `temporary` to be written.
    pub fn new(temporary: PathBuf, confine: impl Fn(Call) -> Call + Send + Sync + 'static) -> Self {
        Self { temporary, confine: Arc::new(confine) }
    }

    pub(super) fn confine(&self, call: Call) -> Call {
        (self.confine)(call)
    }
}

impl fmt::Debug for Walls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Walls").field("temporary", &self.temporary).finish_non_exhaustive()
    }
}

/// What the hooks let through.
#[derive(Debug)]
pub(super) struct Judged {
    /// What is to be committed.
    pub(super) tree: Oid,
    pub(super) message: String,
    /// Paths that are other ones than were staged.
    pub(super) changed: Vec<PathBuf>,
}

impl Repository {
    /// Has the hooks judge the commit of the tree `staged`, which the index holds, and stages what they changed.
    pub(super) async fn judged_by_hooks(
        &self,
        record: &Record,
        staged: Oid,
        landing: &Landing,
        walls: &Walls,
    ) -> Result<Judged, LandError> {
        let failed = |source| LandError::WriteBack { path: walls.temporary.clone(), source };
        let folder = tempfile::Builder::new().prefix("commit-").tempdir_in(&walls.temporary).map_err(failed)?;
        let git_dir = folder.path().join("git");
        self.lay_out(&git_dir, &record.head).map_err(failed)?;
        let command = || self.behind(walls, &git_dir);
        let mut commit = command()
            .option(setting("core.hooksPath=", &record.settings.hooks))
            .option("commit.gpgSign=false")
            .option("i18n.commitEncoding=UTF-8")
            .args(["commit", "--quiet", "--cleanup=whitespace", "--file=-"]);
        if landing.allow_empty {
            commit = commit.arg("--allow-empty");
        }
        let outcome = commit.stdin(landing.message.as_bytes()).stopped_by(&landing.stop).answer().await;
        let made = Places { git_dir: git_dir.clone(), common_dir: git_dir.clone(), ..self.places().clone() };
        let head = head::read_head(&made)?;
        let Some(oid) = head.commit.filter(|made| Some(*made) != record.head.commit) else {
            return Err(refusal(outcome, record.settings.has_refusing_hooks()));
        };
        let unexpected = |why: String| LandError::Unexpected { why };
        let commit = loose_commit(&git_dir, oid).ok_or_else(|| unexpected(format!("{oid} cannot be read")))?;
        if commit.parents.iter().ne(&record.head.commit) || head.branch != record.head.branch {
            return Err(unexpected(format!("{oid} is on another commit or branch: a hook went its own way")));
        }
        let mut changed = Vec::new();
        if commit.tree != staged {
            let (before, after) = (staged.to_string(), commit.tree.to_string());
            let names = command().args(["diff-tree", "-r", "-z", "--name-only", &before, &after]).run().await?;
            let update = ["update-index", "--add", "--remove", "--replace", "-z", "--stdin"];
            self.write().args(update).stdin(names.stdout.clone()).run().await?;
            if self.staged_tree().await? != commit.tree {
                return Err(unexpected("a hook staged something else than lies in the tree".to_owned()));
            }
            changed = names.items().map(path).collect();
        }
        Ok(Judged { tree: commit.tree, message: commit.message, changed })
    }

    /// The tree that the index holds.
    pub(super) async fn staged_tree(&self) -> Result<Oid, LandError> {
        let answer = self.write().arg("write-tree").run().await?;
        Oid::from_hex(answer.line()?.as_bytes()).ok_or_else(|| answer.unexpected().into())
    }

    /// A command of git in that git directory, with all that it starts inside, where programs of the tree are found too.
    fn behind(&self, walls: &Walls, git_dir: &Path) -> Command<'_> {
        let top = &self.places().top;
        let command = self.git().commit(top).within(walls).env("GIT_DIR", git_dir).env("GIT_WORK_TREE", top);
        match std::env::var_os("PATH") {
            Some(path) => command.env("PATH", path),
            None => command,
        }
    }

    /// Makes a git directory with what this one has at hand: settings, staged files, branches and history, none of which
    /// can be written by way of it.
    fn lay_out(&self, git_dir: &Path, head: &Head) -> io::Result<()> {
        let Places { git_dir: own, common_dir: common, .. } = self.places();
        fs::create_dir_all(git_dir.join("objects/info"))?;
        fs::create_dir_all(git_dir.join("refs"))?;
        fs::write(git_dir.join("objects/info/alternates"), line(&common.join("objects")))?;
        let mut settings = match self.shared.hash {
            HashKind::Sha1 => "[core]\n\trepositoryFormatVersion = 0\n\tbare = false\n".to_owned(),
            HashKind::Sha256 => {
                "[core]\n\trepositoryFormatVersion = 1\n\tbare = false\n[extensions]\n\tobjectFormat = sha256\n"
                    .to_owned()
            }
        }
        .into_bytes();
        for file in [common.join("config"), own.join("config.worktree")].iter().filter(|file| file.exists()) {
            settings.extend_from_slice(b"[include]\n\tpath = \"");
            settings.extend(file.as_os_str().as_bytes().iter().flat_map(|byte| match byte {
                b'"' | b'\\' => vec![b'\\', *byte],
                _ => vec![*byte],
            }));
            settings.extend_from_slice(b"\"\n");
        }
        fs::write(git_dir.join("config"), settings)?;
        for name in ["info", "lfs", "packed-refs", "shallow", "refs/tags", "refs/remotes"] {
            if common.join(name).exists() {
                symlink(common.join(name), git_dir.join(name))?;
            }
        }
        for branch in walkdir::WalkDir::new(common.join("refs/heads")).into_iter().filter_map(Result::ok) {
            let Ok(name) = branch.path().strip_prefix(common) else { continue };
            if branch.file_type().is_dir() {
                fs::create_dir_all(git_dir.join(name))?;
            } else {
                fs::copy(branch.path(), git_dir.join(name))?;
            }
        }
        for file in fs::read_dir(own)?.filter_map(Result::ok) {
            let name = file.file_name();
            if name == "index" || name.as_bytes().starts_with(b"sharedindex.") {
                fs::copy(file.path(), git_dir.join(name))?;
            }
        }
        match (&head.branch, head.commit) {
            (Some(branch), commit) => {
                fs::write(git_dir.join("HEAD"), format!("ref: {branch}\n"))?;
                if let Some(commit) = commit {
                    let file = git_dir.join(branch);
                    fs::create_dir_all(file.parent().unwrap_or(git_dir))?;
                    fs::write(file, format!("{commit}\n"))?;
                }
                Ok(())
            }
            (None, Some(commit)) => fs::write(git_dir.join("HEAD"), format!("{commit}\n")),
            (None, None) => Err(io::Error::other("HEAD is nowhere")),
        }
    }
}

fn line(path: &Path) -> Vec<u8> {
    [path.as_os_str().as_bytes(), b"\n"].concat()
}

fn setting(name: &str, value: &Path) -> std::ffi::OsString {
    let mut setting = std::ffi::OsString::from(name);
    setting.push(AsRef::<OsStr>::as_ref(value));
    setting
}
