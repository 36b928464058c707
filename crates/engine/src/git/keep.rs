//! Keeping an attempt: its whole tree as a commit under a hidden ref, so that it can be looked at and nothing is lost when
//! the tree is put back. Neither the index nor any ref of the user's is touched.
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use ralphloop_core::ids::CommitId;

use super::checkpoint::{Checkpoint, CheckpointError};
use super::content::read_whole;
use super::head;
use super::inspect::{Frame, differences};
use super::names::REFS;
use super::oid::Oid;
use super::record::{Class, Entry, Node, Record, RelPath};
use super::revert::RevertError;
use super::scan::{Scan, ScanError};
use super::{GitError, Repository, Scope, path};

/// Bytes of new files that one attempt's commit takes; what is beyond is moved out of the tree by a revert instead.
const NEW_BYTES: u64 = 512 * 1024 * 1024;

/// Branches, tags and stashes of an attempt that its commit reaches.
const MAX_PARENTS: usize = 100;

/// An attempt could not be kept. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    /// The repository is gone or another one.
    #[error("{why}; nothing was touched")]
    Broken {
        /// What is missing.
        why: String,
    },
    /// The checkpoint or the tree could not be read.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// Damaged configuration or a damaged index could not be put back to work with the repository at all.
    #[error(transparent)]
    Restore(#[from] Box<RevertError>),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The commit was made and can't be found.
    #[error("the attempt was kept, but {reference} can't be read back")]
    Unconfirmed {
        /// The ref.
        reference: String,
    },
}

impl From<ScanError> for KeepError {
    fn from(error: ScanError) -> Self {
        Self::Checkpoint(error.into())
    }
}

impl From<super::StoreError> for KeepError {
    fn from(error: super::StoreError) -> Self {
        Self::Checkpoint(error.into())
    }
}

/// Where an attempt is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Its commit. The first parent is the checkpoint's commit; further ones are what the attempt committed itself.
    pub commit: CommitId,
    /// The ref that holds it.
    pub reference: String,
    /// Changed paths that are not in it: too large, or not to be read. A revert moves them out of the tree.
    pub not_kept: Vec<PathBuf>,
}

impl Repository {
    /// Keeps what differs from the checkpoint, if anything does; says whether something is kept there now. What a revert
    /// before a crash has kept stays.
    pub async fn keep_changes(
        &self,
        checkpoint: &Checkpoint,
        reference: &str,
        message: &str,
    ) -> Result<bool, KeepError> {
        let inspection = self.inspect(checkpoint).await?;
        if inspection.changes.is_empty() && inspection.frame == Frame::Intact {
            return Ok(self.kept_refs().iter().any(|(name, _)| name == reference));
        }
        self.keep(checkpoint, reference, message).await?;
        Ok(true)
    }

    /// Keeps what is there now under `reference`, with everything that differs from the checkpoint: committed, loose and
    /// ignored files, deletions, and the attempt's own commits. What was kept there before stays reachable from it.
    pub async fn keep(&self, checkpoint: &Checkpoint, reference: &str, message: &str) -> Result<Kept, KeepError> {
        if let Some(why) = self.missing_frame() {
            return Err(KeepError::Broken { why });
        }
        let record = self.record(&checkpoint.name)?;
        let scan = match self.scan(Some(Arc::clone(&record))).await {
            Err(ScanError::Git(_) | ScanError::Index(_)) => {
                self.restore_settings(checkpoint).await.map_err(Box::new)?;
                self.scan(Some(Arc::clone(&record))).await?
            }
            other => other?,
        };
        let scan = Arc::new(self.blocking(move |this| this.compare_contents(scan)).await?);
        self.keep_scan(&record, &scan, reference, message).await
    }

    /// The same, of a look that was just taken.
    pub(super) async fn keep_scan(
        &self,
        record: &Arc<Record>,
        scan: &Arc<Scan>,
        reference: &str,
        message: &str,
    ) -> Result<Kept, KeepError> {
        let places = self.places();
        let mut parents = self.new_commits(record, scan).await?;
        parents.extend(head::resolve(places, reference));
        let (files, not_kept) = {
            let (record, scan) = (Arc::clone(record), Arc::clone(scan));
            self.blocking(move |this| this.files_to_keep(&record, &scan)).await
        };
        let converted = if scan.conversions { self.convert(&files).await } else { Vec::new() };
        let stream = {
            let (record, reference, message) = (Arc::clone(record), reference.to_owned(), message.to_owned());
            let submodules = changed_submodules(&record, scan);
            self.blocking(move |this| {
                let header = header(&reference, &message, record.head.commit, &parents);
                this.stream(header, &files, &converted, &submodules)
            })
            .await
        };
        let since = record.work.clock;
        self.blocking(move |this| this.settle_objects(since)).await?;
        self.write().args(["fast-import", "--quiet", "--done"]).of_many_objects().stdin(stream).run().await?;
        let commit = head::resolve(places, reference)
            .ok_or_else(|| KeepError::Unconfirmed { reference: reference.to_owned() })?;
        for (submodule, commit) in changed_submodules(record, scan) {
            // In its own repository: the parent's object store does not have it.
            let name = format!("{REFS}/kept/{commit}");
            let folder = places.top.join(path(&submodule));
            self.git().write(&folder).args(["update-ref", &name, &commit.to_string()]).run().await?;
        }
        Ok(Kept { commit: CommitId(commit.to_string()), reference: reference.to_owned(), not_kept })
    }

    /// What an attempt changed, as a patch; `commit` is one that was kept or landed, by id or ref.
    pub async fn diff(&self, commit: &str) -> Result<Vec<u8>, GitError> {
        let answer = self
            .read()
            .args(["show", "--format=", "--patch", "--diff-merges=first-parent", "--no-ext-diff", "--no-color"])
            .args(["--end-of-options", commit])
            .run()
            .await?;
        Ok(answer.stdout)
    }

    /// All refs that runs left, by name, with the commits they hold.
    pub fn kept_refs(&self) -> Vec<(String, CommitId)> {
        let held = format!("{REFS}/held/");
        let refs = head::ours(&self.places().common_dir);
        refs.into_iter()
            .filter(|(name, _)| !name.starts_with(&held))
            .map(|(name, oid)| (name, CommitId(oid.to_string())))
            .collect()
    }

    /// The refs whose moves are an attempt's doing.
    pub(super) fn refs_of_attempt(&self) -> BTreeMap<String, Oid> {
        match self.shared.scope {
            Scope::Repository => head::all(&self.places().common_dir),
            // Others move them too. HEAD is looked at by itself.
            Scope::Worktree => BTreeMap::new(),
        }
    }

    /// Commits that refs point at and that the checkpoint did not know.
    async fn new_commits(&self, record: &Record, scan: &Scan) -> Result<Vec<Oid>, KeepError> {
        let known = self.held_objects();
        let ours = format!("{REFS}/");
        let mut tips: BTreeSet<Oid> = self
            .refs_of_attempt()
            .into_iter()
            .filter(|(name, oid)| !name.starts_with(&ours) && !known.contains(oid))
            .map(|(_, oid)| oid)
            .collect();
        let head = scan.head.commit.filter(|now| record.head.commit != Some(*now));
        tips.extend(head);
        if tips.is_empty() {
            return Ok(Vec::new());
        }
        let questions: Vec<u8> = tips.iter().flat_map(|tip| format!("{tip}^{{commit}}\n").into_bytes()).collect();
        let answer = self.read().args(["cat-file", "--batch-check=%(objectname)"]).stdin(questions).run().await?;
        let found = String::from_utf8_lossy(&answer.stdout)
            .lines()
            .filter_map(|line| Oid::from_hex(line.as_bytes()))
            .collect::<BTreeSet<_>>();
        let mut commits: Vec<Oid> = head.into_iter().collect();
        commits.extend(found.into_iter().filter(|oid| Some(*oid) != head && Some(*oid) != record.head.commit));
        commits.truncate(MAX_PARENTS);
        Ok(commits)
    }

    /// Every changed path: what is there now, or `None` where it is gone; and those that git does not take.
    fn files_to_keep(&self, record: &Record, scan: &Scan) -> (Vec<(RelPath, Option<Entry>)>, Vec<PathBuf>) {
        let mut files = Vec::new();
        let mut not_kept = Vec::new();
        let mut new = Vec::new();
        for difference in differences(&record.work, &scan.work) {
            let (before, after) = (difference.before, difference.after);
            match after {
                Some(entry) if entry.stat.size > self.shared.limits.file => not_kept.push(path(&entry.path)),
                Some(entry) if !matches!(entry.node, Node::File(_) | Node::Link(_)) => {}
                Some(entry) if before.is_none() => new.push(entry),
                Some(entry) => files.push((entry.path.clone(), Some(entry.clone()))),
                None => files.push((difference.path().to_vec(), None)),
            }
        }
        let fits = fits(new.iter().map(|entry| entry.stat.size));
        for entry in new {
            if entry.stat.size <= fits {
                files.push((entry.path.clone(), Some(entry.clone())));
            } else {
                not_kept.push(path(&entry.path));
            }
        }
        // Deletions come first: a file may stand where a directory was.
        files.sort_by_key(|(_, entry)| entry.is_some());
        (files, not_kept)
    }

    /// The blobs of files as git would commit them, for those where it can: line ends, filters and encodings applied.
    async fn convert(&self, files: &[(RelPath, Option<Entry>)]) -> Vec<(RelPath, Oid)> {
        let convertible = |entry: &&Entry| {
            matches!(entry.node, Node::File(_)) && entry.class != Class::Nested && !entry.path.contains(&b'\n')
        };
        let paths: Vec<_> = files
            .iter()
            .filter_map(|(_, entry)| entry.as_ref().filter(convertible))
            .map(|entry| entry.path.clone())
            .collect();
        let mut lines = Vec::new();
        for path in &paths {
            lines.extend_from_slice(path);
            lines.push(b'\n');
        }
        if paths.is_empty() {
            return Vec::new();
        }
        // A filter that is missing or fails is no reason to lose work: the bytes are kept as they are.
        let Ok(answer) = self.write().args(["hash-object", "-w", "--stdin-paths"]).stdin(lines).run().await else {
            return Vec::new();
        };
        let oids = answer.stdout.split(|byte| *byte == b'\n').filter_map(Oid::from_hex);
        paths.into_iter().zip(oids).collect()
    }

    /// The commit in the language of `git fast-import`.
    fn stream(
        &self,
        mut stream: Vec<u8>,
        files: &[(RelPath, Option<Entry>)],
        converted: &[(RelPath, Oid)],
        submodules: &[(RelPath, Oid)],
    ) -> Vec<u8> {
        let top = &self.places().top;
        for (at, entry) in files {
            let beside;
            let at = match submodules.iter().find(|(submodule, _)| super::record::is_within(at, submodule)) {
                None => at,
                Some((submodule, _)) => {
                    let rest = at.get(submodule.len()..).unwrap_or_default();
                    beside = [submodule.as_slice(), b".ralphloop-changes", rest].concat();
                    &beside
                }
            };
            let Some(entry) = entry else {
                stream.extend_from_slice(b"D ");
                quote(at, &mut stream);
                stream.push(b'\n');
                continue;
            };
            let is_link = matches!(entry.node, Node::Link(_));
            let mode = match (is_link, entry.mode & 0o100 != 0) {
                (true, _) => "120000",
                (false, true) => "100755",
                (false, false) => "100644",
            };
            if let Some((_, oid)) = converted.iter().find(|(path, _)| *path == entry.path) {
                stream.extend_from_slice(format!("M {mode} {oid} ").as_bytes());
                quote(at, &mut stream);
                stream.push(b'\n');
                continue;
            }
            let bytes = match &entry.node {
                Node::Link(target) => Ok(target.clone()),
                _ => read_whole(&top.join(path(&entry.path))).map(|(bytes, _, _)| bytes),
            };
            // A file that went or changed since it was listed: the caller owns the tree, so it was nobody's work.
            let Ok(bytes) = bytes else { continue };
            stream.extend_from_slice(format!("M {mode} inline ").as_bytes());
            quote(at, &mut stream);
            stream.extend_from_slice(format!("\ndata {}\n", bytes.len()).as_bytes());
            stream.extend_from_slice(&bytes);
            stream.push(b'\n');
        }
        for (submodule, commit) in submodules {
            stream.extend_from_slice(format!("M 160000 {commit} ").as_bytes());
            quote(submodule, &mut stream);
            stream.push(b'\n');
        }
        stream.extend_from_slice(b"\ndone\n");
        stream
    }
}

/// The largest size of which all new files up to it fit into one attempt's commit.
pub(super) fn fits(sizes: impl Iterator<Item = u64>) -> u64 {
    let mut sizes: Vec<u64> = sizes.collect();
    sizes.sort_unstable();
    let mut total = 0_u64;
    for (at, size) in sizes.iter().enumerate() {
        total = total.saturating_add(*size);
        if total > NEW_BYTES {
            // Files of the same size stand or fall together, so that the answer depends on nothing else.
            return sizes
                .get(..at)
                .unwrap_or_default()
                .iter()
                .rev()
                .find(|smaller| *smaller < size)
                .copied()
                .unwrap_or(0);
        }
    }
    u64::MAX
}

fn changed_submodules(record: &Record, scan: &Scan) -> Vec<(RelPath, Oid)> {
    scan.submodules
        .iter()
        .filter(|now| record.submodules.iter().any(|before| before.0 == now.0 && before.1 != now.1))
        .filter_map(|(path, commit)| Some((path.clone(), (*commit)?)))
        .collect()
}

fn header(reference: &str, message: &str, base: Option<Oid>, parents: &[Oid]) -> Vec<u8> {
    let seconds = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let mut lines = vec![
        format!("commit {reference}"),
        format!("committer ralphloop <ralphloop@localhost> {seconds} +0000"),
        format!("data {}", message.len()),
        message.to_owned(),
    ];
    let mut seen = BTreeSet::new();
    for parent in base.iter().chain(parents).filter(|oid| seen.insert(**oid)) {
        let verb = if lines.len() == 4 { "from" } else { "merge" };
        lines.push(format!("{verb} {parent}"));
    }
    if base.is_none() {
        // The first commits of a new repository: the tree is what is there, not what was committed plus that.
        lines.push("deleteall".to_owned());
    }
    lines.push(String::new());
    lines.join("\n").into_bytes()
}

/// A path as `fast-import` reads it: quoted like a C string.
fn quote(path: &[u8], into: &mut Vec<u8>) {
    into.push(b'"');
    for byte in path {
        match byte {
            b'"' | b'\\' => into.extend_from_slice(&[b'\\', *byte]),
            b' '..=b'~' => into.push(*byte),
            _ => into.extend_from_slice(format!("\\{byte:03o}").as_bytes()),
        }
    }
    into.push(b'"');
}
