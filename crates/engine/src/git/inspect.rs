//! What an attempt did: the tree and the frame around it, measured from the checkpoint to what is there now.
use std::path::PathBuf;

use ralphloop_core::ids::{CommitId, TreeId};

use super::checkpoint::{Checkpoint, CheckpointError};
use super::content::tree_id;
use super::object::loose_file;
use super::oid::Oid;
use super::record::{Class, Entry, Listing, Node, Pair, Pairs, Record};
use super::scan::{Scan, ScanError};
use super::{Repository, path};

/// What happened to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// It was not there.
    Added,
    /// Its content is another one.
    Modified,
    /// It is gone.
    Deleted,
    /// It is another kind of thing: a link where a file was.
    TypeChanged,
    /// Only its permissions are other ones.
    ModeChanged,
}

/// How git sees a path: now, or when it was last there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// In the index.
    Tracked,
    /// Neither in the index nor ignored.
    Untracked,
    /// Ignored.
    Ignored,
    /// Inside another repository.
    Nested,
    /// A submodule with another commit checked out.
    Submodule,
}

/// One path that is not as it was. Directories are no changes of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Relative to the top of the working tree.
    pub path: PathBuf,
    /// What happened.
    pub kind: ChangeKind,
    /// How git sees it.
    pub standing: Standing,
}

/// The repository around the tree, against the checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// As it was.
    Intact,
    /// Other than it was, and can be put right by [`Repository::land`] and [`Repository::revert`].
    Repairable(Vec<Repair>),
    /// Gone or another one. The run has to stop with nothing touched.
    Broken {
        /// What is missing.
        why: String,
    },
}

/// What will be put right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repair {
    /// HEAD is on another branch, or on none.
    BranchSwitched {
        /// The full name of the branch it was on.
        from: Option<String>,
        /// The full name of the branch it is on.
        to: Option<String>,
    },
    /// HEAD is another commit that descends from the checkpoint's.
    Committed {
        /// The commit now.
        head: CommitId,
    },
    /// HEAD does not descend from the checkpoint's commit: amended, reset.
    HistoryChanged {
        /// The commit now.
        head: Option<CommitId>,
    },
    /// A merge, rebase … was begun and is not ended.
    OperationUnderWay {
        /// Which.
        operation: &'static str,
    },
    /// A lock was left behind.
    StaleLock {
        /// The file.
        path: PathBuf,
    },
    /// Configuration, hooks, other refs, the stash or the like are not as they were.
    StateChanged {
        /// Files in the git directory.
        paths: Vec<PathBuf>,
    },
    /// Git can't work with the repository as it was left; what is damaged is put back by a revert.
    Unusable {
        /// Git's words.
        why: String,
    },
}

impl std::fmt::Display for Repair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let branch = |name: &Option<String>| name.clone().unwrap_or_else(|| "a detached HEAD".to_owned());
        match self {
            Self::BranchSwitched { from, to } => write!(f, "switched from {} to {}", branch(from), branch(to)),
            Self::Committed { head } => write!(f, "committed by itself, up to {head}"),
            Self::HistoryChanged { .. } => f.write_str("HEAD no longer descends from the checkpoint"),
            Self::OperationUnderWay { operation } => write!(f, "a {operation} was left under way"),
            Self::StaleLock { path } => write!(f, "the lock {} was left behind", path.display()),
            Self::StateChanged { paths } => {
                let names: Vec<_> = paths.iter().take(5).map(|path| path.display().to_string()).collect();
                write!(f, "git's own state was changed: {}", names.join(", "))?;
                if paths.len() > 5 { write!(f, " and {} more", paths.len() - 5) } else { Ok(()) }
            }
            Self::Unusable { why } => write!(f, "the repository can't be used as it was left: {why}"),
        }
    }
}

/// What an attempt did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// Every path that is not as it was, committed by the agent or not, sorted.
    pub changes: Vec<Change>,
    /// The content of the tree now.
    pub tree: TreeId,
    /// The repository around it.
    pub frame: Frame,
}

/// Two sides of one path.
pub(super) struct Difference<'a> {
    pub(super) before: Option<&'a Entry>,
    pub(super) after: Option<&'a Entry>,
    pub(super) kind: ChangeKind,
}

impl<'a> Difference<'a> {
    pub(super) fn path(&self) -> &'a [u8] {
        self.after.or(self.before).map_or(b"", |entry| &entry.path)
    }

    /// As git sees it now, or saw it last.
    fn standing(&self) -> Standing {
        match self.after.or(self.before).map(|entry| entry.class) {
            Some(Class::Tracked) => Standing::Tracked,
            Some(Class::Ignored) => Standing::Ignored,
            Some(Class::Nested) => Standing::Nested,
            Some(Class::Untracked | Class::Internal) | None => Standing::Untracked,
        }
    }
}

/// Every path below which something differs, contents known on both sides. Directories are left out, and so is what is
/// inside the git directories of other repositories.
pub(super) fn differences<'a>(base: &'a Listing, now: &'a Listing) -> Vec<Difference<'a>> {
    let is_gits_own = |entry: &Entry| {
        entry.class == Class::Nested && entry.path.split(|byte| *byte == b'/').any(|part| part == b".git")
    };
    let counts = |entry: &Entry| !entry.node.is_directory() && !is_gits_own(entry);
    let mut all = Vec::new();
    for pair in Pairs::new(&base.entries, &now.entries) {
        let (before, after) = match pair {
            Pair::Left(before) => (Some(before), None),
            Pair::Right(after) => (None, Some(after)),
            Pair::Both(before, after) => (Some(before), Some(after)),
        };
        let kind = match (before.filter(|entry| counts(entry)), after.filter(|entry| counts(entry))) {
            (None, None) => continue,
            (None, Some(_)) => ChangeKind::Added,
            (Some(_), None) => ChangeKind::Deleted,
            (Some(before), Some(after)) => match change_between(before, after) {
                Some(kind) => kind,
                None => continue,
            },
        };
        let side = |entry: Option<&'a Entry>| entry.filter(|entry| counts(entry));
        all.push(Difference { before: side(before), after: side(after), kind });
    }
    all
}

fn change_between(before: &Entry, after: &Entry) -> Option<ChangeKind> {
    let same = match (&before.node, &after.node) {
        (Node::File(a), Node::File(b)) => match (a.oid(), b.oid()) {
            (Some(a), Some(b)) => a == b,
            _ => before.stat.agrees(&after.stat),
        },
        (a, b) if a.same_kind(b) => a == b,
        _ => return Some(ChangeKind::TypeChanged),
    };
    match (same, before.mode == after.mode) {
        (false, _) => Some(ChangeKind::Modified),
        (true, false) => Some(ChangeKind::ModeChanged),
        (true, true) => None,
    }
}

impl Repository {
    /// Measures what happened since the checkpoint. Changes nothing.
    pub async fn inspect(&self, checkpoint: &Checkpoint) -> Result<Inspection, CheckpointError> {
        let nothing = |frame| Inspection { changes: Vec::new(), tree: checkpoint.tree.clone(), frame };
        if let Some(why) = self.missing_frame() {
            return Ok(nothing(Frame::Broken { why }));
        }
        let record = self.record(&checkpoint.name)?;
        let looks = (self.unreadable_objects(&record), self.scan(Some(std::sync::Arc::clone(&record))));
        let (unreadable, scan) = tokio::join!(looks.0, looks.1);
        if let Some(why) = unreadable? {
            return Ok(nothing(Frame::Broken { why }));
        }
        let scan = match scan {
            Ok(scan) => scan,
            Err(error @ (ScanError::Git(_) | ScanError::Index(_) | ScanError::Head(_))) => {
                return Ok(nothing(Frame::Repairable(vec![Repair::Unusable { why: error.to_string() }])));
            }
            Err(error) => return Err(error.into()),
        };
        let scan = self.blocking(move |this| this.compare_contents(scan)).await?;
        let descends = match (record.head.commit, scan.head.commit) {
            (Some(before), Some(now)) if before != now => self.is_ancestor(before, now).await?,
            (Some(_), None) => false,
            _ => true,
        };
        let frame = frame(self, &record, &scan, descends);
        let mut changes: Vec<Change> = differences(&record.work, &scan.work)
            .iter()
            .map(|difference| Change {
                path: path(difference.path()),
                kind: difference.kind,
                standing: difference.standing(),
            })
            .collect();
        for (submodule, commit) in &scan.submodules {
            if record.submodules.iter().any(|(path, before)| path == submodule && before != commit) {
                let path = path(submodule);
                changes.push(Change { path, kind: ChangeKind::Modified, standing: Standing::Submodule });
            }
        }
        Ok(Inspection { changes, tree: tree_id(&scan.work), frame })
    }

    /// What is missing of the repository, found without git.
    pub(super) fn missing_frame(&self) -> Option<String> {
        let places = self.places();
        let gone = |path: &std::path::Path| format!("the repository is gone: {} is missing", path.display());
        let link = places.top.join(".git");
        if std::fs::symlink_metadata(&link).is_err() {
            return Some(gone(&link));
        }
        for path in [places.git_dir.join("HEAD"), places.common_dir.join("objects"), places.common_dir.join("refs")] {
            if std::fs::symlink_metadata(&path).is_err() {
                return Some(gone(&path));
            }
        }
        // Whoever starts where the loop runs would be in that one, and git does what its configuration says.
        let between = places.project.ancestors().take_while(|folder| *folder != places.top);
        if let Some(other) = between.map(|folder| folder.join(".git")).find(|other| other.exists()) {
            return Some(format!("another repository was made where the loop runs: remove {}", other.display()));
        }
        let is_ours = if link.is_dir() {
            std::fs::canonicalize(&link).is_ok_and(|link| link == places.git_dir)
        } else {
            std::fs::read(&link).is_ok_and(|text| {
                text.strip_prefix(b"gitdir:").is_some_and(|target| {
                    std::fs::canonicalize(places.top.join(path(target.trim_ascii())))
                        .is_ok_and(|real| real == places.git_dir)
                })
            })
        };
        (!is_ours).then(|| format!("{} leads to another repository than before", link.display()))
    }

    /// Whether the checkpoint's commit can still be read.
    async fn unreadable_objects(&self, record: &Record) -> Result<Option<String>, CheckpointError> {
        let Some(commit) = record.head.commit else { return Ok(None) };
        // Where both lie in files of their own, as they do when a run has just made them, git need not be asked.
        if let Some(tree) = self.known_tree(&record.head)
            && self.lies_alone(commit)
            && self.lies_alone(tree)
        {
            return Ok(None);
        }
        let question = format!("{commit}^{{tree}}");
        let answer = self.read().args(["cat-file", "-e", &question]).answer().await?;
        if answer.success()
            || answer.message().contains("bad config")
            || answer.message().contains("bad numeric config")
        {
            return Ok(None);
        }
        Ok(Some(format!(
            "the repository is not the one of the checkpoint: commit {commit} can't be read: {}",
            answer.message()
        )))
    }

    fn lies_alone(&self, oid: Oid) -> bool {
        std::fs::symlink_metadata(loose_file(&self.places().common_dir, oid))
            .is_ok_and(|found| found.is_file() && found.len() > 0)
    }

    async fn is_ancestor(&self, before: Oid, now: Oid) -> Result<bool, CheckpointError> {
        let (before, now) = (before.to_string(), now.to_string());
        Ok(self.read().args(["merge-base", "--is-ancestor", &before, &now]).answer().await?.success())
    }
}

/// Files of a git directory that stand for an operation under way.
pub(super) const OPERATIONS: &[(&str, &str)] = &[
    ("MERGE_HEAD", "merge"),
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase (or git am)"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("BISECT_LOG", "bisect"),
    ("sequencer", "cherry-pick or revert of several commits"),
];

fn frame(repository: &Repository, record: &Record, scan: &Scan, descends: bool) -> Frame {
    let mut repairs = Vec::new();
    let id = |oid: Oid| CommitId(oid.to_string());
    if record.head.branch != scan.head.branch {
        repairs.push(Repair::BranchSwitched { from: record.head.branch.clone(), to: scan.head.branch.clone() });
    }
    match scan.head.commit {
        now if now == record.head.commit => {}
        Some(now) if descends => repairs.push(Repair::Committed { head: id(now) }),
        now => repairs.push(Repair::HistoryChanged { head: now.map(id) }),
    }
    let mut state = Vec::new();
    for ((before, now), root) in record.git.iter().zip(&scan.git).zip(repository.git_roots()) {
        for pair in Pairs::new(&before.entries, &now.entries) {
            let (entry, is_new) = match &pair {
                Pair::Left(before) => (*before, false),
                Pair::Right(now) => (*now, true),
                Pair::Both(before, now) if before.stat.agrees(&now.stat) && before.mode == now.mode => continue,
                Pair::Both(_, now) => (*now, false),
            };
            let operation = OPERATIONS.iter().find(|(name, _)| is_new && name.as_bytes() == entry.path);
            if let Some((_, operation)) = operation {
                repairs.push(Repair::OperationUnderWay { operation });
            } else if is_new && entry.path.ends_with(b".lock") {
                repairs.push(Repair::StaleLock { path: root.join(path(&entry.path)) });
            } else if !entry.node.is_directory() && says_something(&entry.path, record.head.branch.as_deref()) {
                state.push(root.join(path(&entry.path)));
            }
        }
    }
    if !state.is_empty() {
        repairs.push(Repair::StateChanged { paths: state });
    }
    if repairs.is_empty() { Frame::Intact } else { Frame::Repairable(repairs) }
}

/// Whether a change of this file in a git directory is worth a word: not what every git command writes, nor what is told
/// in other words.
fn says_something(path: &[u8], branch: Option<&str>) -> bool {
    let ordinary: &[&[u8]] =
        &[b"index", b"HEAD", b"COMMIT_EDITMSG", b"ORIG_HEAD", b"FETCH_HEAD", b"gc.log", b"MERGE_MSG"];
    !ordinary.contains(&path)
        && !path.starts_with(b"logs/")
        && !path.starts_with(b"modules/")
        && branch.is_none_or(|branch| branch.as_bytes() != path)
}
