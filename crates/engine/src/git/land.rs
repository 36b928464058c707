//! Landing: everything that the attempt changed, and only that, as one commit on the branch of the checkpoint, through the
//! user's hooks and signing.
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ralphloop_core::ids::CommitId;
use tokio_util::sync::CancellationToken;

pub use super::guard::Guard;
pub use super::holdback::{HeldBack, HoldBack};

use super::checkpoint::{Checkpoint, CheckpointError};
use super::command::OF_SUBMODULES_COMMITS_ONLY;
use super::head::{HeadError, read_head};
use super::holdback;
use super::hooks::Walls;
use super::inspect::{Difference, differences};
use super::keep::{KeepError, Kept};
use super::object::{Commit, loose_commit};
use super::oid::Oid;
use super::record::{Class, Entry, Head, Node, Record, RelPath, is_within};
use super::restore::Tree;
use super::revert::RevertError;
use super::scan::{Scan, ScanError};
use super::seal::Seal;
use super::signing;
use super::{GitError, Repository, Scope, StoreError, bytes_of, path};

/// Up to so many new objects are synced one by one.
const FEW: usize = 16;

/// What is to land, and how.
#[derive(Debug, Clone)]
pub struct Landing {
    /// Subject, body and trailers.
    pub message: String,
    /// The ref under which what does not land is kept: held-back files, the agent's own commits.
    pub kept_under: String,
    /// Files of the spec with their new bytes, by paths relative to the top: always written, committed if tracked.
    pub write_back: Vec<(PathBuf, Vec<u8>)>,
    /// Which new files are held back.
    pub hold_back: HoldBack,
    /// What stops the commit, if anything does.
    pub guard: Option<Guard>,
    /// Signs the commit.
    pub seal: Option<Seal>,
    /// Where hooks run, if not as git runs them.
    pub walls: Option<Walls>,
    /// Make a commit also when nothing changed.
    pub allow_empty: bool,
    /// Nothing was done in the tree since it was last looked at: it is not walked again if that was just now.
    pub as_looked_at: bool,
    /// Ends git, hooks and signing when cancelled; a commit that is there by then counts.
    pub stop: CancellationToken,
}

/// What landed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Landed {
    /// The commit on the branch.
    pub commit: CommitId,
    /// New files that were not committed; they are in `kept` and no longer in the tree.
    pub held_back: Vec<HeldBack>,
    /// The commit that keeps what did not land, where there was such a thing.
    pub kept: Option<Kept>,
    /// What the attempt changed of it, by paths relative to the top.
    pub committed: Vec<PathBuf>,
    /// Paths of the commit that a hook changed.
    pub changed_by_hooks: Vec<PathBuf>,
    /// Tracked paths that differ from the commit although it was made: a hook left them so. No story should start on top.
    pub left_dirty: Vec<PathBuf>,
    /// What was written into the tree for the commit, by paths relative to the top; `None` where a hook could have changed
    /// more, or something was taken out.
    pub written: Option<Vec<PathBuf>>,
    /// What else a person should know.
    pub notes: Vec<String>,
}

/// Nothing landed. The work is in the tree; HEAD and the index are as at the checkpoint.
#[derive(Debug, thiserror::Error)]
pub enum LandError {
    /// The repository is gone or another one.
    #[error("{why}; nothing was touched")]
    Broken {
        /// What is missing.
        why: String,
    },
    /// Nothing differs from the checkpoint.
    #[error("there is nothing to commit")]
    NothingToCommit,
    /// A link was put where a directory with the user's files was, or leads out of the repository.
    #[error("{} was replaced by a link to {}: {why}; look at it by hand", path.display(), target.display())]
    Suspicious {
        /// The path.
        path: PathBuf,
        /// Where it leads.
        target: PathBuf,
        /// Why that is not taken.
        why: &'static str,
    },
    /// A hook refused the commit.
    #[error("a hook refused the commit: {output}")]
    HookRefused {
        /// What it wrote.
        output: String,
    },
    /// The commit would hold what no commit should.
    #[error("the commit would hold what no commit should: {}", .objections.join("; "))]
    Objected {
        /// Each with its place.
        objections: Vec<String>,
    },
    /// The commit could not be signed.
    #[error(
        "the commit could not be signed: {why}; unlock or name the key (user.signingkey, gpg.program, gpg.format), or do \
         without signatures: `git config commit.gpgsign false`"
    )]
    NotSigned {
        /// What the signing program said, in one line.
        why: String,
    },
    /// The commit, a hook or the signing did not end in time.
    #[error("the commit did not end within {after:?} and was stopped: a hook or the signing hangs")]
    TimedOut {
        /// The limit.
        after: Duration,
    },
    /// The commit that was made is not the one that was asked for.
    #[error("the commit is not what was asked for: {why}")]
    Unexpected {
        /// What is wrong.
        why: String,
    },
    /// A file of the spec could not be written.
    #[error("can't write {}: {source}", path.display())]
    WriteBack {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// What should not land could not be kept.
    #[error(transparent)]
    Keep(#[from] KeepError),
    /// The checkpoint or the tree could not be read.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// Git's state could not be put back.
    #[error(transparent)]
    Restore(#[from] RevertError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// HEAD could not be read.
    #[error(transparent)]
    Head(#[from] HeadError),
}

impl From<ScanError> for LandError {
    fn from(error: ScanError) -> Self {
        Self::Checkpoint(error.into())
    }
}

impl From<StoreError> for LandError {
    fn from(error: StoreError) -> Self {
        Self::Checkpoint(error.into())
    }
}

/// What is to happen to each changed path.
#[derive(Debug, Default)]
struct Sorted {
    /// To be staged: there or gone.
    commit: Vec<RelPath>,
    /// Not to be committed.
    held: Vec<(Entry, &'static str)>,
    notes: Vec<String>,
}

impl Repository {
    /// Commits everything that differs from the checkpoint on the checkpoint's branch, whoever committed it meanwhile.
    ///
    /// The agent's own commits, and changes of refs, configuration and hooks, are kept under `kept_under` and undone first, so
    /// that the user's own hooks and settings judge the commit. Files that the user had untracked are never committed;
    /// ignored ones stay where they are.
    pub async fn land(&self, checkpoint: &Checkpoint, landing: &Landing) -> Result<Landed, LandError> {
        if let Some(why) = self.missing_frame() {
            return Err(LandError::Broken { why });
        }
        let record = self.record(&checkpoint.name)?;
        let known = if landing.as_looked_at { self.scan_on(Vec::new()).await? } else { None };
        let scan = match known {
            Some(scan) => scan,
            None => self.scan(Some(Arc::clone(&record))).await?,
        };
        let policy = landing.hold_back;
        let (scan, sorted) = {
            let record = Arc::clone(&record);
            self.blocking(move |this| {
                let scan = this.compare_contents(scan)?;
                let sorted = this.sort_out(&record, &scan, policy)?;
                Ok::<_, LandError>((Arc::new(scan), sorted))
            })
            .await?
        };
        let moved = record.head != scan.head || !self.unknown_tips(&record, &scan).is_empty();
        let mut kept = None;
        if moved || !sorted.held.is_empty() {
            let message = format!("What did not land with: {}", landing.message);
            kept = Some(self.keep_scan(&record, &scan, &landing.kept_under, &message).await?);
        }
        self.restore_frame(checkpoint).await?;
        if let Some(guard) = &landing.guard {
            let objections = self.objections(&record, &sorted.commit, guard).await;
            if !objections.is_empty() {
                return Err(LandError::Objected { objections });
            }
        }
        let mut written = WrittenBack::default();
        match self.commit(&record, &sorted, landing, &mut written).await {
            Ok(mut landed) => {
                landed.kept = kept;
                landed.written = landed.written.filter(|_| sorted.held.is_empty());
                landed.notes.splice(0..0, sorted.notes);
                let held = sorted.held;
                let slug = checkpoint.slug();
                landed.held_back = held.iter().map(|(entry, why)| HeldBack { path: path(&entry.path), why }).collect();
                self.blocking(move |this| this.take_out(&record, &held, &slug)).await?;
                Ok(landed)
            }
            Err(error) => {
                let undone = self.blocking(move |_| written.undo()).await;
                self.restore_frame(checkpoint).await?;
                undone?;
                Err(error)
            }
        }
    }

    async fn commit(
        &self,
        record: &Arc<Record>,
        sorted: &Sorted,
        landing: &Landing,
        written: &mut WrittenBack,
    ) -> Result<Landed, LandError> {
        let mut staged = sorted.commit.clone();
        let index = super::index::Index::read(&self.places().git_dir, self.shared.hash).map_err(ScanError::from)?;
        let mut written_back = Vec::new();
        for (file, bytes) in &landing.write_back {
            let at = written.write(&self.places().top, file, bytes)?;
            written_back.push(at.clone());
            if index.has(bytes_of(&at)) {
                staged.push(bytes_of(&at).to_vec());
            }
        }
        let mut names: Vec<u8> = Vec::new();
        for path in &staged {
            names.extend_from_slice(path);
            names.push(0);
        }
        let stage = async {
            if names.is_empty() {
                return Ok(());
            }
            let update = self.write().args(["update-index", "--add", "--remove", "--replace", "-z", "--stdin"]);
            let update = if staged.len() > FEW { update.of_many_objects() } else { update };
            update.stdin(names).run().await.map(drop)
        };
        let committed: Vec<PathBuf> = staged.iter().map(|at| path(at)).collect();
        let (staging, settled) = tokio::join!(stage, self.settle(record, &committed));
        staging?;
        settled?;
        // Without hooks nobody changes what is committed, and nothing is left behind.
        let has_hooks = record.settings.has_hooks();
        let mut expected = None;
        if has_hooks || !landing.allow_empty || landing.seal.is_some() {
            expected = Some(self.staged_tree().await?);
        }
        if !landing.allow_empty && expected == self.tree_of_head(record).await? {
            return Err(LandError::NothingToCommit);
        }
        let mut commit = self.git().commit(&self.places().top);
        let mut text = landing.message.clone();
        let mut changed_by_hooks = Vec::new();
        if let (Some(walls), Some(staged), true) = (&landing.walls, expected, has_hooks) {
            let judged = self.judged_by_hooks(record, staged, landing, walls).await?;
            (expected, text, changed_by_hooks) = (Some(judged.tree), judged.message, judged.changed);
        }
        if landing.walls.is_some() {
            commit = commit.option("core.hooksPath=/dev/null");
        }
        let mut commit = commit.args(["commit", "--quiet", "--cleanup=whitespace", "--file=-"]);
        if !has_hooks && !record.settings.signs {
            commit = commit.unsupervised();
        }
        if landing.allow_empty {
            commit = commit.arg("--allow-empty");
        }
        let message = match (&landing.seal, expected) {
            (Some(seal), Some(tree)) => {
                let parent = record.head.commit.map(|oid| oid.to_string()).unwrap_or_default();
                seal.sign(&tree.to_string(), &parent, &text)
            }
            _ => text,
        };
        let outcome = commit.stdin(message.as_bytes()).stopped_by(&landing.stop).answer().await;
        let head = read_head(self.places())?;
        if head == record.head {
            return Err(refusal(outcome, record.settings.has_refusing_hooks()));
        }
        let mut notes = Vec::new();
        match outcome {
            Ok(answer) if answer.success() => {}
            Ok(answer) => notes.push(format!("git said after the commit: {}", answer.message())),
            Err(error) => notes.push(format!("the commit was made, but {error}")),
        }
        let mut landed = self.verify(record, expected, landing, notes).await?;
        landed.changed_by_hooks.extend(changed_by_hooks);
        Ok(Landed { committed, written: (!has_hooks).then_some(written_back), ..landed })
    }

    /// Makes durable what the attempt has written and git takes as it is: objects, and the files themselves, where they
    /// stay in the user's checkout.
    async fn settle(&self, record: &Record, files: &[PathBuf]) -> Result<(), StoreError> {
        let since = record.work.clock;
        let files = if self.shared.scope == Scope::Worktree { Vec::new() } else { files.to_vec() };
        self.blocking(move |this| this.settle_objects(since).and_then(|()| this.settle_files(&files))).await
    }

    async fn tree_of_head(&self, record: &Record) -> Result<Option<Oid>, LandError> {
        let Some(commit) = record.head.commit else { return Ok(None) };
        let answer = self.read().args(["rev-parse", &format!("{commit}^{{tree}}")]).run().await?;
        Ok(Oid::from_hex(answer.line()?.as_bytes()))
    }

    /// Looks at the commit that was made.
    async fn verify(
        &self,
        record: &Record,
        expected: Option<Oid>,
        landing: &Landing,
        mut notes: Vec<String>,
    ) -> Result<Landed, LandError> {
        let head = read_head(self.places())?;
        let (oid, commit) = self.commit_at(&head).await?;
        if commit.parents.iter().ne(&record.head.commit) || head.branch != record.head.branch {
            let branch = head.branch.unwrap_or_else(|| "a detached HEAD".to_owned());
            let names = |oids: &[Oid]| oids.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
            let why = format!(
                "commit {oid} on {branch} has the parent `{}`, not `{}`: a hook went its own way",
                names(&commit.parents),
                names(record.head.commit.as_slice()),
            );
            // It leaves the branch, and nothing that was committed may be lost.
            self.hold_each(head.commit.into_iter()).await?;
            return Err(LandError::Unexpected { why });
        }
        let missing: Vec<_> =
            trailers(&landing.message).filter(|line| !commit.message.lines().any(|found| found == *line)).collect();
        if !missing.is_empty() {
            notes.push(format!("a hook took trailers out of the message: {}", missing.join(", ")));
        }
        let mut changed_by_hooks = Vec::new();
        let mut left_dirty = Vec::new();
        if let Some(expected) = expected {
            if commit.tree != expected {
                let (expected, tree) = (expected.to_string(), commit.tree.to_string());
                let args = ["diff-tree", "-r", "-z", "--name-only", &expected, &tree];
                changed_by_hooks = self.read().args(args).run().await?.items().map(path).collect();
            }
            let args =
                ["status", OF_SUBMODULES_COMMITS_ONLY, "--porcelain", "-z", "--untracked-files=no", "--no-renames"];
            left_dirty =
                self.read().args(args).run().await?.items().filter_map(|item| item.get(3..)).map(path).collect();
        }
        self.remember(|memory| memory.head_tree = Some((oid, commit.tree)));
        Ok(Landed {
            commit: CommitId(oid.to_string()),
            held_back: Vec::new(),
            kept: None,
            committed: Vec::new(),
            changed_by_hooks,
            left_dirty,
            written: None,
            notes,
        })
    }

    /// The commit that HEAD leads to, and its name.
    async fn commit_at(&self, head: &Head) -> Result<(Oid, Commit), LandError> {
        if let Some(oid) = head.commit
            && let Some(commit) = loose_commit(&self.places().common_dir, oid)
        {
            return Ok((oid, commit));
        }
        let name = head.commit.map_or_else(|| "HEAD".to_owned(), |oid| oid.to_string());
        let show = ["show", "--no-patch", "--no-show-signature", "--format=%H%x00%T%x00%P%x00%B"];
        let answer = self.read().args(show).arg(name).run().await?;
        let text = String::from_utf8_lossy(&answer.stdout);
        let read = |text: &str| {
            let [oid, tree, parents, message] = text.splitn(4, '\0').collect::<Vec<_>>()[..] else { return None };
            let id = |hex: &str| Oid::from_hex(hex.as_bytes());
            let parents = parents.split_whitespace().map(id).collect::<Option<_>>()?;
            Some((id(oid)?, Commit { tree: id(tree)?, parents, message: message.to_owned() }))
        };
        read(&text).ok_or_else(|| answer.unexpected().into())
    }

    /// Decides about each changed path.
    fn sort_out(&self, record: &Record, scan: &Scan, policy: HoldBack) -> Result<Sorted, LandError> {
        let changes = differences(&record.work, &scan.work);
        for change in &changes {
            self.refuse_suspicious(record, change)?;
        }
        let made_by_tools = holdback::made_by_tools(&scan.work);
        let head = |entry: &Entry| first_bytes(&self.places().top.join(path(&entry.path)));
        let mut sorted = Sorted::default();
        for change in &changes {
            let at = change.path();
            match (change.before, change.after) {
                (Some(before), _) if before.class == Class::Tracked => sorted.commit.push(at.to_vec()),
                (Some(before), after) if matches!(before.class, Class::Untracked | Class::Ignored) => {
                    let what = if after.is_some() { "changed" } else { "removed" };
                    let note = format!(
                        "{} was yours and in no commit; the attempt {what} it, and it is not committed",
                        path(at).display()
                    );
                    sorted.notes.push(note);
                }
                (Some(_), _) | (None, None) => {}
                (None, Some(after)) if after.class == Class::Ignored => {}
                (None, Some(after)) if !matches!(after.node, Node::File(_) | Node::Link(_)) => {
                    sorted
                        .notes
                        .push(format!("{} is neither file nor link and can't be committed", path(at).display()));
                }
                (None, Some(after)) if is_in_submodule(record, at) => {
                    sorted
                        .notes
                        .push(format!("{} is loose in a submodule and is not committed", path(&after.path).display()));
                }
                (None, Some(after)) => match holdback::why(after, policy, &made_by_tools, &head) {
                    Some(why) => sorted.held.push((after.clone(), why)),
                    None => sorted.commit.push(at.to_vec()),
                },
            }
        }
        for (submodule, commit) in &scan.submodules {
            if record.submodules.iter().any(|(path, before)| path == submodule && before != commit) {
                sorted.commit.push(submodule.clone());
            }
        }
        Ok(sorted)
    }

    /// A link in the place of a directory can lead git and every later step out of the tree.
    fn refuse_suspicious(&self, record: &Record, change: &Difference<'_>) -> Result<(), LandError> {
        let Some(Node::Link(target)) = change.after.map(|entry| &entry.node) else { return Ok(()) };
        let at = change.path();
        if !record.work.get(at).is_some_and(|entry| entry.node.is_directory()) {
            return Ok(());
        }
        let refuse = |why| Err(LandError::Suspicious { path: path(at), target: path(target), why });
        let users = |entry: &Entry| !entry.node.is_directory() && entry.class != Class::Tracked;
        if record.work.within(at).any(users) || record.work.left_alone.iter().any(|left| is_within(left, at)) {
            return refuse("the directory held files that are in no commit");
        }
        let top = &self.places().top;
        let from = top.join(path(at)).parent().map_or_else(|| top.clone(), Path::to_owned);
        match fs::canonicalize(from.join(path(target))) {
            Ok(real) if real.starts_with(top) => Ok(()),
            _ => refuse("it leads out of the repository"),
        }
    }

    /// Takes what was held back out of the tree: it is kept, or moved where it is too large for that.
    fn take_out(&self, record: &Record, held: &[(Entry, &'static str)], slug: &str) -> Result<(), RevertError> {
        let tree = Tree::new(&self.places().top);
        let parking = self.store().parking(slug);
        let mut folders: Vec<RelPath> = Vec::new();
        let fits = super::keep::fits(held.iter().map(|(entry, _)| entry.stat.size)).min(self.shared.limits.file);
        for (entry, _) in held {
            if entry.stat.size > fits {
                tree.park(&entry.path, &parking)?;
            } else {
                tree.remove(entry)?;
            }
            let mut above = super::scan::parent(&entry.path);
            while !above.is_empty() && record.work.get(above).is_none() {
                folders.push(above.to_vec());
                above = super::scan::parent(above);
            }
        }
        folders.sort_unstable();
        folders.dedup();
        for folder in folders.iter().rev() {
            let full = self.places().top.join(path(folder));
            // A folder that still holds something else stays.
            drop(fs::remove_dir(full));
        }
        Ok(())
    }

    fn unknown_tips(&self, record: &Record, scan: &Scan) -> Vec<Oid> {
        let held = self.held_objects();
        self.refs_of_attempt()
            .into_iter()
            .filter(|(name, oid)| !name.starts_with(super::names::REFS) && !held.contains(oid))
            .map(|(_, oid)| oid)
            .chain(scan.head.commit.filter(|commit| Some(*commit) != record.head.commit))
            .collect()
    }
}

fn is_in_submodule(record: &Record, at: &[u8]) -> bool {
    record.submodules.iter().any(|(submodule, _)| is_within(at, submodule))
}

/// Why git made no commit.
pub(super) fn refusal(outcome: Result<super::command::Answer, GitError>, has_hook: bool) -> LandError {
    match outcome {
        Err(GitError::TimedOut { after, .. }) => LandError::TimedOut { after },
        Err(error) => error.into(),
        Ok(answer) => {
            let output = format!("{}\n{}", String::from_utf8_lossy(&answer.stdout).trim(), answer.message());
            let output = output.trim().to_owned();
            let of_git = |words: &[&str]| words.iter().any(|words| output.contains(words));
            if of_git(&[
                "gpg failed to sign",
                "failed to write commit object",
                "Couldn't load public key",
                "Couldn't sign",
            ]) {
                LandError::NotSigned { why: signing::why_not(&output) }
            } else if !has_hook {
                answer.into_error().into()
            } else {
                LandError::HookRefused { output }
            }
        }
    }
}

/// The last paragraph of a message, when its lines are `Name: value`.
fn trailers(message: &str) -> impl Iterator<Item = &str> {
    let last = message.trim_end().rsplit("\n\n").next().unwrap_or_default();
    let all = last.lines().all(|line| line.split_once(": ").is_some_and(|(name, _)| !name.contains(' ')));
    last.lines().filter(move |_| all)
}

fn first_bytes(full: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Ok(file) = fs::File::open(full)
        && file.take(4096).read_to_end(&mut bytes).is_err()
    {
        bytes.clear();
    }
    bytes
}

/// Files of the spec that were written, with what they held before.
#[derive(Debug, Default)]
struct WrittenBack {
    before: Vec<(PathBuf, Option<Vec<u8>>)>,
}

impl WrittenBack {
    /// Writes a file in one step; through a link, as long as that stays inside the tree. Returns the path that was written,
    /// relative to the top.
    fn write(&mut self, top: &Path, file: &Path, bytes: &[u8]) -> Result<PathBuf, LandError> {
        let failed = |source| LandError::WriteBack { path: file.to_owned(), source };
        let full = top.join(file);
        let real = match fs::canonicalize(&full) {
            Ok(real) => real,
            Err(error) if error.kind() == io::ErrorKind::NotFound => full,
            Err(error) => return Err(failed(error)),
        };
        let relative =
            real.strip_prefix(top).map_err(|_| failed(io::Error::other("it leads out of the repository")))?.to_owned();
        let before = fs::read(&real).ok();
        if before.as_deref() != Some(bytes) {
            replace(&real, bytes).map_err(failed)?;
            self.before.push((real, before));
        }
        Ok(relative)
    }

    fn undo(self) -> Result<(), LandError> {
        for (file, before) in self.before {
            let undone = match before {
                Some(bytes) => replace(&file, &bytes),
                None => fs::remove_file(&file),
            };
            undone.map_err(|source| LandError::WriteBack { path: file, source })?;
        }
        Ok(())
    }
}

/// Replaces a file's bytes in one step; mode, owner and attributes stay.
fn replace(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let old = fs::metadata(file).ok();
    let temporary = file.with_file_name(format!(".ralphloop-{}.tmp", uuid::Uuid::now_v7().simple()));
    let write = || -> io::Result<()> {
        let mut new = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        new.write_all(bytes)?;
        match &old {
            Some(old) => crate::files::be_as(&new, &temporary, file, old)?,
            None => new.set_permissions(fs::Permissions::from_mode(0o644))?,
        }
        new.sync_data()?;
        fs::rename(&temporary, file)
    };
    write().inspect_err(|_| drop(fs::remove_file(&temporary)))
}
