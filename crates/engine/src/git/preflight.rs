//! Everything about the repository that could spoil a run, found at once and before anything is paid for.
use std::path::{Path, PathBuf};

use ralphloop_core::ids::RunId;

use super::inspect::OPERATIONS;
use super::names::{REFS, slug};
use super::{GitError, Repository, path, signing};
use crate::bytes::Bytes;

/// Bytes that have to be free where the repository is: room for a journal, a checkpoint and a commit of a small project.
const MIN_FREE: u64 = 4 * 1024 * 1024;

/// With fewer bytes free than this an agent may well fill the disk.
const LITTLE_FREE: u64 = 200 * 1024 * 1024;

/// Paths that one message lists.
const LISTED: usize = 10;

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FindingKind {
    /// HEAD is on no branch.
    DetachedHead,
    /// The branch has no commit.
    NoCommits,
    /// A merge, rebase, cherry-pick, revert, am or bisect is under way.
    OperationUnderWay,
    /// Paths are unmerged.
    Unmerged,
    /// Tracked files are changed or the index is not empty: the finding that is about work of the user.
    Dirty,
    /// No name or address for commits.
    NoIdentity,
    /// Commits are to be signed and can't be, or not without a person.
    Signing,
    /// A lock of git is there.
    Locked,
    /// Refs or index are kept in a way that can't be put back exactly.
    Unsupported,
    /// Little space is left.
    DiskSpace,
}

/// Whether a run may start all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// It has to be mended first.
    Refusal,
    /// It may go wrong later, and then loses nothing.
    Warning,
}

/// One thing that has to be mended before a run, or known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What it is about.
    pub kind: FindingKind,
    /// Whether a run may start all the same.
    pub severity: Severity,
    /// What was found, with paths.
    pub message: String,
    /// What to do: a command where there is one.
    pub remedy: String,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}; {}", self.message, self.remedy)
    }
}

/// Each on a line of its own.
pub(crate) fn lines(findings: &[Finding]) -> String {
    findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

impl Finding {
    fn new(kind: FindingKind, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { kind, severity: Severity::Refusal, message: message.into(), remedy: remedy.into() }
    }
}

impl Repository {
    /// Looks at everything and changes nothing. Empty: a run may start.
    pub async fn preflight(&self) -> Result<Vec<Finding>, GitError> {
        let mut findings = self.locks();
        let settings = async { self.read().args(["config", "--null", "--list"]).run().await };
        let status = ["status", "--porcelain=v2", "--branch", "-z", "--untracked-files=no", "--no-renames"];
        let status = async { self.read().args(status).run().await };
        let (settings, status, identity) = tokio::join!(settings, status, self.identity());
        let settings = settings?;
        if let Some(finding) = unsupported_refs(&settings.stdout) {
            // Nothing else can be relied on.
            return Ok(vec![finding]);
        }
        let status = status?;
        let status = Status::read(status.items());
        findings.extend(status.of_head());
        findings.extend(self.operations());
        findings.extend(status.dirt());
        findings.extend(self.index());
        let signs = is_set(&settings.stdout, b"commit.gpgsign");
        match identity? {
            Some(finding) => findings.push(finding),
            None if signs => findings.extend(self.signing().await?),
            None => {}
        }
        findings.extend(free_space(&self.places().common_dir));
        Ok(findings)
    }

    fn operations(&self) -> Vec<Finding> {
        OPERATIONS
            .iter()
            .map(|(name, operation)| (self.places().git_dir.join(name), operation))
            .filter(|(file, _)| file.exists())
            .map(|(file, operation)| {
                let remedy = match *operation {
                    "bisect" => "git bisect reset".to_owned(),
                    "merge" | "rebase" | "cherry-pick" | "revert" => {
                        format!("git {operation} --continue, or git {operation} --abort")
                    }
                    _ => "finish or abort it: git status says how".to_owned(),
                };
                let message = format!("a {operation} is under way ({})", file.display());
                Finding::new(FindingKind::OperationUnderWay, message, remedy)
            })
            .collect()
    }

    /// Locks of git that are there: of this working tree and others of the repository, of the branch, of our own refs.
    pub(crate) fn git_locks(&self) -> Vec<PathBuf> {
        let places = self.places();
        let below = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
        let trees = below(&places.common_dir.join("worktrees")).map(|tree| tree.path());
        let mut folders: Vec<PathBuf> = trees.chain([places.git_dir.clone(), places.common_dir.clone()]).collect();
        folders.sort();
        folders.dedup();
        let ours = walkdir::WalkDir::new(places.common_dir.join(REFS)).into_iter().filter_map(Result::ok);
        let files = folders.iter().flat_map(|folder| below(folder)).map(|file| file.path());
        let locks = files.chain(ours.map(walkdir::DirEntry::into_path));
        locks.filter(|file| file.extension().is_some_and(|e| e == "lock")).chain(self.lock_of_branch()).collect()
    }

    fn lock_of_branch(&self) -> Option<PathBuf> {
        let branch = self.current_branch().ok()??;
        Some(self.places().common_dir.join(format!("{branch}.lock"))).filter(|lock| lock.exists())
    }

    /// Where the refs of a run are.
    pub(crate) fn refs_of(&self, run: &RunId) -> PathBuf {
        self.places().common_dir.join(REFS).join(slug(run.as_str()))
    }

    fn locks(&self) -> Vec<Finding> {
        let places = self.places();
        let mut locks = vec![places.git_dir.join("index.lock"), places.git_dir.join("HEAD.lock")];
        locks.extend(["config.lock", "packed-refs.lock"].map(|name| places.common_dir.join(name)));
        locks.extend(self.lock_of_branch());
        locks.sort();
        locks.dedup();
        locks
            .into_iter()
            .filter_map(|lock| {
                let age = std::fs::symlink_metadata(&lock).ok()?.modified().ok()?.elapsed().unwrap_or_default();
                Some(Finding::new(
                    FindingKind::Locked,
                    format!(
                        "{} is there since {} seconds: another git runs, or one was killed",
                        lock.display(),
                        age.as_secs()
                    ),
                    format!("if no git runs here: rm '{}'", lock.display()),
                ))
            })
            .collect()
    }

    fn index(&self) -> Option<Finding> {
        let error = super::index::Index::read(&self.places().git_dir, self.shared.hash).err()?;
        Some(Finding::new(FindingKind::Unsupported, error.to_string(), error.remedy()))
    }

    /// Whether git knows a name and an address for both sides of a commit.
    async fn identity(&self) -> Result<Option<Finding>, GitError> {
        let ask = |variable| self.read().args(["var", variable]).answer();
        let (committer, author) = tokio::try_join!(ask("GIT_COMMITTER_IDENT"), ask("GIT_AUTHOR_IDENT"))?;
        let unknown = [committer, author].into_iter().find(|answer| !answer.success());
        Ok(unknown.map(|answer| {
            let words = answer.message();
            let words = words.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no identity");
            Finding::new(
                FindingKind::NoIdentity,
                format!("git has no identity (user.name, user.email) for commits: {words}"),
                "git config user.name \"Your Name\"; git config user.email you@example.com",
            )
        }))
    }

    /// Signs a commit that is kept nowhere, as the run will have to: it must not ask and must not hang.
    async fn signing(&self) -> Result<Option<Finding>, GitError> {
        let finding = |why: String| {
            Finding::new(
                FindingKind::Signing,
                format!("commits are to be signed (commit.gpgsign) and signing fails: {why}"),
                "unlock the key (sign something once by hand: git commit -S), or mend gpg.program and user.signingkey, \
                 or git config commit.gpgsign false",
            )
        };
        let scratch = match tempfile::tempdir() {
            Ok(scratch) => scratch,
            Err(error) => return Ok(Some(finding(error.to_string()))),
        };
        let probe = self
            .git()
            .commit(&self.places().top)
            .env("GIT_OBJECT_DIRECTORY", scratch.path())
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", self.places().common_dir.join("objects"));
        let tree = probe.clone().args(["hash-object", "-t", "tree", "-w", "--stdin"]).run().await?;
        let answer =
            probe.args(["commit-tree", "-S", tree.line()?, "-m", "ralphloop: can commits be signed?"]).answer().await;
        Ok(match answer {
            Ok(answer) if answer.success() => None,
            Ok(answer) => Some(finding(signing::why_not(&answer.message()))),
            // It may be slow, or wait for a touch that comes in time later; whether it asks for ever can't be known.
            Err(GitError::TimedOut { after, .. }) => Some(Finding {
                severity: Severity::Warning,
                ..finding(format!(
                    "the signing program did not end within {} seconds; if it asks for a passphrase, no story can land",
                    after.as_secs()
                ))
            }),
            Err(error) => return Err(error),
        })
    }
}

/// What `git status --porcelain=v2 --branch -z` says.
#[derive(Debug, Default)]
struct Status {
    detached: bool,
    unborn: bool,
    unmerged: Vec<String>,
    changed: Vec<String>,
}

impl Status {
    fn read<'a>(items: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut status = Self::default();
        for item in items {
            // `1 XY sub mH mI mW hH hI path` and `u XY sub m1 m2 m3 mW h1 h2 h3 path`.
            let named = |fields: usize| {
                let name = item.splitn(fields + 1, |byte| *byte == b' ').nth(fields).unwrap_or_default();
                path(name).display().to_string()
            };
            match item {
                b"# branch.oid (initial)" => status.unborn = true,
                b"# branch.head (detached)" => status.detached = true,
                [b'1', ..] => status.changed.push(named(8)),
                [b'2', ..] => status.changed.push(named(9)),
                [b'u', ..] => status.unmerged.push(named(10)),
                _ => {}
            }
        }
        status
    }

    fn of_head(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        if self.detached {
            findings.push(Finding::new(
                FindingKind::DetachedHead,
                "HEAD is detached: commits made here would belong to no branch",
                "git switch BRANCH, or git switch -c NEW-BRANCH",
            ));
        }
        if self.unborn {
            findings.push(Finding::new(
                FindingKind::NoCommits,
                "the repository has no commits yet",
                "git commit --allow-empty -m \"Initial commit\"",
            ));
        }
        findings
    }

    fn dirt(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        if !self.unmerged.is_empty() {
            findings.push(Finding::new(
                FindingKind::Unmerged,
                format!("paths are unmerged: {}", list(&self.unmerged)),
                "resolve them, git add them and commit",
            ));
        }
        if !self.changed.is_empty() {
            findings.push(Finding::new(
                FindingKind::Dirty,
                format!("uncommitted changes: {}", list(&self.changed)),
                "git commit them, or set them aside by hand (git stash)",
            ));
        }
        findings
    }
}

fn list(paths: &[String]) -> String {
    let shown = paths.iter().take(LISTED).cloned().collect::<Vec<_>>().join(", ");
    if paths.len() > LISTED { format!("{shown} and {} more", paths.len() - LISTED) } else { shown }
}

/// The last value of a setting in `git config --null --list`, as a truth value.
fn is_set(settings: &[u8], name: &[u8]) -> bool {
    let last = value_of(settings, name);
    last.is_some_and(|value| super::settings::is_true(&value))
}

/// Items are `name`, a line feed and the value; without a line feed the setting is there without a value, which is true.
fn value_of(settings: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    settings
        .split(|byte| *byte == 0)
        .filter_map(|item| {
            let rest = item.strip_prefix(name)?;
            match rest.split_first() {
                None => Some(b"true".to_vec()),
                Some((b'\n', value)) => Some(value.to_vec()),
                Some(_) => None,
            }
        })
        .next_back()
}

fn unsupported_refs(settings: &[u8]) -> Option<Finding> {
    let format = value_of(settings, b"extensions.refstorage").filter(|format| format != b"files")?;
    Some(Finding::new(
        FindingKind::Unsupported,
        format!("refs are kept as `{}`, which a checkpoint can't put back", String::from_utf8_lossy(&format)),
        "git refs migrate --ref-format=files",
    ))
}

fn free_space(at: &Path) -> Option<Finding> {
    let space = rustix::fs::statvfs(at).ok()?;
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    let severity = match free {
        0..MIN_FREE => Severity::Refusal,
        MIN_FREE..LITTLE_FREE => Severity::Warning,
        LITTLE_FREE.. => return None,
    };
    Some(Finding {
        severity,
        ..Finding::new(
            FindingKind::DiskSpace,
            format!("only {} are free on the disk where {} is", Bytes(free), at.display()),
            "make room",
        )
    })
}
