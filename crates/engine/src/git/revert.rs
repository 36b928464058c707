//! Putting everything back as it was at the checkpoint. Only what differs from the record is touched, no link is followed,
//! and a revert that was interrupted is finished by reverting again.
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::checkpoint::Checkpoint;
use super::content::{packed_bytes, read_whole};
use super::durable::settle_below;
use super::head;
use super::oid::{HashKind, Oid};
use super::record::{Class, Content, Entry, Listing, Node, Pair, Pairs, RelPath, is_within};
use super::restore::{Tree, TreeError};
use super::scan::{ScanError, parent};
use super::{GitError, Repository, StoreError, path};

/// Blobs are asked of git in portions of about this many bytes.
const PORTION: u64 = 32 * 1024 * 1024;

/// A revert that could not be completed. The tree is in between; nothing may start in it.
#[derive(Debug, thiserror::Error)]
pub enum RevertError {
    /// A path could not be put back.
    #[error("can't put back {}: {source}; mend that and revert again (`ralphloop resume` does)", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Content is neither in the store nor in the repository.
    #[error("the content of {} is lost: {why}", path.display())]
    Lost {
        /// The path.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The repository itself is gone or another one. Nothing was touched.
    #[error("{why}; nothing was touched")]
    Broken {
        /// What is missing.
        why: String,
    },
    /// The tree could not be looked at.
    #[error(transparent)]
    Scan(#[from] ScanError),
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl From<TreeError> for RevertError {
    fn from(error: TreeError) -> Self {
        Self::Path { path: error.path, source: error.source }
    }
}

/// What a revert did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RevertReport {
    /// Paths of the tree that were written, changed in mode or time, or made again.
    pub restored: Vec<PathBuf>,
    /// Paths of the tree that were removed.
    pub removed: Vec<PathBuf>,
    /// What had to leave and is too large for git, or another repository: where it was and where it is now.
    pub parked: Vec<(PathBuf, PathBuf)>,
    /// Paths that could not be put back since their content was never kept (see the checkpoint's notes), and new ignored
    /// directories too large to be looked into, which stay.
    pub left: Vec<PathBuf>,
    /// What the system did not let us give its owner, access list or attributes back.
    pub unfit: Vec<PathBuf>,
}

/// What has to be done to one root.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// To go, children first.
    remove: Vec<Entry>,
    /// Directories to be made, parents first.
    make: Vec<Entry>,
    /// Files and others to be written.
    write: Vec<Entry>,
    /// Right content, wrong mode or time.
    adjust: Vec<Entry>,
    /// To leave the tree in one piece.
    park: Vec<RelPath>,
    left: Vec<RelPath>,
}

impl Work {
    /// Leaves out all paths but these.
    fn only(&mut self, which: fn(&[u8]) -> bool) {
        for list in [&mut self.remove, &mut self.make, &mut self.write, &mut self.adjust] {
            list.retain(|entry| which(&entry.path));
        }
    }
}

impl Repository {
    /// Puts the tree, the index, HEAD, refs, configuration and hooks back, exactly. Nothing that came after the checkpoint
    /// is needed: [`keep`](Self::keep) first what has to stay reachable.
    pub async fn revert(&self, checkpoint: &Checkpoint) -> Result<RevertReport, RevertError> {
        if let Some(why) = self.missing_frame() {
            return Err(RevertError::Broken { why });
        }
        self.restore_git_state(checkpoint).await?;
        let record = self.record(&checkpoint.name)?;
        let scan = self.scan(Some(Arc::clone(&record))).await?;
        let slug = checkpoint.slug();
        let (mut work, mut report) = {
            let record = Arc::clone(&record);
            self.blocking(move |this| {
                let work = this.plan_revert(&record.work, &scan.work)?;
                let report = this.make_room(&work, &slug)?;
                Ok::<_, RevertError>((work, report))
            })
            .await?
        };
        for portion in portions(std::mem::take(&mut work.write)) {
            let blobs = self.blobs(&portion).await?;
            report.restored.extend(portion.iter().map(|entry| path(&entry.path)));
            let record = Arc::clone(&record);
            let unfit = self.blocking(move |this| this.write_portion(&record.work, &portion, &blobs)).await?;
            report.unfit.extend(unfit);
        }
        self.blocking(move |this| {
            let tree = Tree::new(&this.places().top);
            for entry in &work.adjust {
                if tree.adjust(entry)? {
                    report.restored.push(path(&entry.path));
                }
            }
            tree.settle_directories(&record.work)?;
            // The checkpoint that holds their content is forgotten next.
            this.settle_files(&report.restored)?;
            report.unfit.extend(tree.unfit().iter().map(|unfit| path(unfit)));
            Ok(report)
        })
        .await
    }

    /// Puts git's own state back: HEAD, refs, logs, index, configuration, hooks, operations under way. The tree is not
    /// touched, and git is not needed, since it may not work as things are.
    pub(super) async fn restore_git_state(&self, checkpoint: &Checkpoint) -> Result<(), RevertError> {
        self.restore_git_files(checkpoint, |_| true).await
    }

    /// Puts back the frame around an attempt's work and leaves the work: what was committed in submodules is part of it.
    pub(super) async fn restore_frame(&self, checkpoint: &Checkpoint) -> Result<(), RevertError> {
        self.restore_git_files(checkpoint, |path| !is_within(path, b"modules")).await
    }

    /// The same, but for the index.
    pub(super) async fn restore_around_index(&self, checkpoint: &Checkpoint) -> Result<(), RevertError> {
        self.restore_git_files(checkpoint, |path| !is_within(path, b"modules") && path != b"index").await
    }

    /// Puts back only what git needs to work at all, where an attempt damaged it.
    pub(super) async fn restore_settings(&self, checkpoint: &Checkpoint) -> Result<(), RevertError> {
        self.restore_git_files(checkpoint, |path| matches!(path, b"config" | b"config.worktree" | b"index")).await
    }

    async fn restore_git_files(&self, checkpoint: &Checkpoint, which: fn(&[u8]) -> bool) -> Result<(), RevertError> {
        let name = checkpoint.name.clone();
        self.blocking(move |this| {
            let record = this.record(&name)?;
            this.unpack_our_refs().map_err(|(path, source)| RevertError::Path { path, source })?;
            let now = this.scan_git_state()?;
            for ((before, now), root) in record.git.iter().zip(&now).zip(this.git_roots()) {
                let mut work = Work::default();
                // What git wrote just before the checkpoint has times that prove nothing.
                compare(before, now, u64::MAX, &mut work, &mut |before, _| {
                    Ok(holds_the_same(&root, before, this.shared.hash))
                })?;
                work.only(which);
                let tree = Tree::new(&root);
                for entry in &work.remove {
                    tree.remove(entry)?;
                }
                for entry in &work.make {
                    tree.make_directory(entry)?;
                }
                for entry in &work.write {
                    let bytes = packed_bytes(this.store(), this.shared.hash, entry)?;
                    tree.write(entry, bytes.as_deref())?;
                }
                for entry in work.adjust.iter().filter(|entry| !entry.node.is_directory()) {
                    tree.adjust(entry)?;
                }
                settle_below(&root, &work.write.iter().map(|entry| path(&entry.path)).collect::<Vec<_>>())?;
            }
            Ok(())
        })
        .await
    }

    /// Our own refs that git packed since would go with the packed file; each gets a file of its own first.
    fn unpack_our_refs(&self) -> Result<(), (PathBuf, std::io::Error)> {
        use std::io::Write as _;
        let common = &self.places().common_dir;
        for (name, oid) in head::packed(common) {
            let file = common.join(&name);
            if !name.starts_with(super::names::REFS) || file.exists() {
                continue;
            }
            let write = || -> std::io::Result<()> {
                if let Some(folder) = file.parent() {
                    std::fs::create_dir_all(folder)?;
                }
                std::fs::OpenOptions::new()
                    .write(true)
                    .create_new(true)
                    .open(&file)?
                    .write_all(format!("{oid}\n").as_bytes())
            };
            write().map_err(|error| (file.clone(), error))?;
        }
        Ok(())
    }

    fn plan_revert(&self, base: &Listing, now: &Listing) -> Result<Work, RevertError> {
        let top = &self.places().top;
        let hash = self.shared.hash;
        let mut work = Work::default();
        compare(base, now, self.shared.limits.file, &mut work, &mut |before, _| Ok(holds_the_same(top, before, hash)))?;
        Ok(work)
    }

    /// Removes and parks what came after the checkpoint, and makes the directories that went.
    fn make_room(&self, work: &Work, slug: &str) -> Result<RevertReport, RevertError> {
        let tree = Tree::new(&self.places().top);
        let mut report = RevertReport::default();
        let parking = self.store().parking(slug);
        for parked in &work.park {
            let to = tree.park(parked, &parking)?;
            report.parked.push((path(parked), to));
        }
        for entry in &work.remove {
            if work.park.iter().any(|parked| is_within(&entry.path, parked)) {
                continue;
            }
            tree.remove(entry)?;
            report.removed.push(path(&entry.path));
        }
        for entry in &work.make {
            tree.make_directory(entry)?;
        }
        report.left = work.left.iter().map(|left| path(left)).collect();
        Ok(report)
    }

    /// The blobs that a portion needs, from git, unconverted.
    async fn blobs(&self, portion: &[Entry]) -> Result<HashMap<Oid, Vec<u8>>, RevertError> {
        let mut wanted: HashMap<Oid, &Entry> = HashMap::new();
        for entry in portion {
            if let Node::File(Content::Blob(oid)) = entry.node {
                wanted.insert(oid, entry);
            }
        }
        if wanted.is_empty() {
            return Ok(HashMap::new());
        }
        let questions: Vec<u8> = wanted.keys().flat_map(|oid| format!("{oid}\n").into_bytes()).collect();
        let size: u64 = wanted.values().map(|entry| entry.stat.size + 200).sum();
        let answer = self
            .read()
            .args(["cat-file", "--batch"])
            .stdin(questions)
            .max_output(usize::try_from(size).unwrap_or(usize::MAX).saturating_add(1 << 20))
            .run()
            .await?;
        let mut rest = answer.stdout.as_slice();
        let mut blobs = HashMap::new();
        for (oid, entry) in &wanted {
            let lost = |why: &str| RevertError::Lost { path: path(&entry.path), why: why.to_owned() };
            let end = rest.iter().position(|byte| *byte == b'\n').ok_or_else(|| lost("git gave no answer"))?;
            let (line, after) = rest.split_at(end);
            let line = String::from_utf8_lossy(line).into_owned();
            let size: usize = match line.split(' ').collect::<Vec<_>>()[..] {
                [_, "blob", size] => size.parse().map_err(|_| answer.unexpected())?,
                _ => return Err(lost(&format!("git says `{line}`"))),
            };
            let bytes = after.get(1..=size).ok_or_else(|| lost("git's answer is cut"))?;
            blobs.insert(*oid, bytes.to_vec());
            rest = after.get(size + 2..).unwrap_or_default();
        }
        Ok(blobs)
    }

    fn write_portion(
        &self,
        base: &Listing,
        portion: &[Entry],
        blobs: &HashMap<Oid, Vec<u8>>,
    ) -> Result<Vec<PathBuf>, RevertError> {
        let tree = Tree::new(&self.places().top);
        for entry in portion {
            if entry.stat.links > 1 && tree.link_to_sibling(entry, base)? {
                continue;
            }
            let packed;
            let bytes = match entry.node {
                Node::File(Content::Blob(oid)) => blobs.get(&oid).map(Vec::as_slice),
                Node::File(_) => {
                    packed = packed_bytes(self.store(), self.shared.hash, entry)?;
                    packed.as_deref()
                }
                _ => None,
            };
            tree.write(entry, bytes)?;
        }
        Ok(tree.unfit().iter().map(|unfit| path(unfit)).collect())
    }
}

/// Whether a file below `root` has the bytes by now that it had.
fn holds_the_same(root: &Path, before: &Entry, hash: HashKind) -> bool {
    let Node::File(content) = before.node else { return false };
    let Some(oid) = content.oid() else { return false };
    read_whole(&root.join(path(&before.path)))
        .is_ok_and(|(bytes, _, _)| hash.blob(&bytes).is_ok_and(|found| found == oid))
}

fn portions(entries: Vec<Entry>) -> Vec<Vec<Entry>> {
    let mut all = Vec::new();
    let mut portion = Vec::new();
    let mut size = 0;
    for entry in entries {
        if size + entry.stat.size > PORTION && !portion.is_empty() {
            all.push(std::mem::take(&mut portion));
            size = 0;
        }
        size += entry.stat.size;
        portion.push(entry);
    }
    if !portion.is_empty() {
        all.push(portion);
    }
    all
}

/// Finds what separates `now` from `base`. `has_content` is asked of a file whose times or size leave it open whether it
/// has the content of the record. Files larger than `limit` were not kept when they came, and are moved, not removed.
fn compare(
    base: &Listing,
    now: &Listing,
    limit: u64,
    work: &mut Work,
    has_content: &mut dyn FnMut(&Entry, &Entry) -> Result<bool, RevertError>,
) -> Result<(), RevertError> {
    let mut extra: Vec<&Entry> = Vec::new();
    for pair in Pairs::new(&base.entries, &now.entries) {
        match pair {
            Pair::Right(now) => extra.push(now),
            Pair::Left(before) => put(before, work),
            Pair::Both(before, now) if before.node.same_kind(&now.node) => {
                if before.is_untouched(base.clock, now) {
                    continue;
                }
                match &before.node {
                    Node::Directory => work.adjust.push(before.clone()),
                    Node::File(Content::StatOnly) => {
                        if !before.stat.agrees(&now.stat) {
                            work.left.push(before.path.clone());
                        } else if before.mode != now.mode {
                            work.adjust.push(before.clone());
                        }
                    }
                    Node::File(_) => {
                        let same_name = before.stat.links < 2 || before.stat.ino == now.stat.ino;
                        let could_be = before.stat.size == now.stat.size && same_name;
                        if could_be && has_content(before, now)? {
                            // Whatever else of it may have changed is looked at then.
                            work.adjust.push(before.clone());
                        } else {
                            if now.stat.size > limit {
                                work.park.push(now.path.clone());
                            }
                            work.write.push(before.clone());
                        }
                    }
                    Node::Fifo | Node::Socket if before.stat.mtime == now.stat.mtime => {
                        work.adjust.push(before.clone());
                    }
                    _ => {
                        extra.push(now);
                        put(before, work);
                    }
                }
            }
            Pair::Both(before, now) => {
                extra.push(now);
                put(before, work);
            }
        }
    }
    let mut stay: BTreeSet<&[u8]> = BTreeSet::new();
    for entry in &extra {
        if now.left_alone.binary_search(&entry.path).is_ok() {
            work.left.push(entry.path.clone());
            let mut above: &[u8] = &entry.path;
            while !above.is_empty() && stay.insert(above) {
                above = parent(above);
            }
        } else if is_nested_object(entry) && base.get(top_of_nested(&entry.path)).is_some() {
            stay.insert(&entry.path);
        } else if entry.name() == b".git" && entry.class == Class::Nested && entry.node.is_directory() {
            work.park.push(entry.path.clone());
        }
    }
    let is_file = |entry: &&&Entry| matches!(entry.node, Node::File(_));
    let fitting = extra.iter().filter(is_file).filter(|entry| entry.stat.size <= limit).map(|entry| entry.stat.size);
    let limit = limit.min(super::keep::fits(fitting));
    work.park
        .extend(extra.iter().filter(is_file).filter(|entry| entry.stat.size > limit).map(|entry| entry.path.clone()));
    work.remove = extra.into_iter().rev().filter(|entry| !stay.contains(entry.path.as_slice())).cloned().collect();
    Ok(())
}

fn put(before: &Entry, work: &mut Work) {
    match before.node {
        Node::Directory => work.make.push(before.clone()),
        Node::File(Content::StatOnly) => work.left.push(before.path.clone()),
        _ => work.write.push(before.clone()),
    }
}

/// Objects in a repository inside the tree: only ever added, since nothing else may hold them.
fn is_nested_object(entry: &Entry) -> bool {
    entry.class == Class::Nested && position(&entry.path, b"/.git/objects/").is_some()
}

/// The `.git` of the repository inside the tree that a path is in.
fn top_of_nested(path: &[u8]) -> &[u8] {
    position(path, b"/.git/").and_then(|at| path.get(..at + 5)).unwrap_or(path)
}

fn position(path: &[u8], part: &[u8]) -> Option<usize> {
    path.windows(part.len()).position(|window| window == part)
}
