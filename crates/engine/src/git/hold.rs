//! Hidden refs that keep alive every object which a checkpoint's state points at, so that whatever an agent does to refs,
//! logs and the object store, `gc --prune=now` takes nothing that a revert needs.
//!
//! `refs/ralphloop/held/<object>` holds one object. Where many are new at once, one commit has them as parents, or one
//! tree as entries, and the file `held` in the store says which.
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt::Write as _;
use std::io::Write as _;

use super::command::GitError;
use super::names::REFS;
use super::oid::{Oid, mentioned};
use super::record::{Head, Listing};
use super::scan::{Scan, ScanError};
use super::{Repository, StoreError, content, head};

/// New objects up to this many get a ref each.
const SINGLE: usize = 16;

/// Parents of one commit that holds others.
const PARENTS: usize = 500;

impl Repository {
    /// Holds what the state in `scan` points at. `read` are the entries of the git directories that were read anew.
    pub(super) async fn hold(&self, scan: &Scan, read: &[Vec<usize>]) -> Result<(), ScanError> {
        let (held, whole) = self.already_held();
        let mut wanted: BTreeSet<Oid> = scan.head.commit.into_iter().collect();
        let mut index_is_new = !whole;
        for (listing, read) in scan.git.iter().zip(read) {
            let all: Vec<usize> = (0..listing.entries.len()).collect();
            for at in if whole { read } else { &all } {
                index_is_new |= self.mentions(listing, *at, &mut wanted)?;
            }
        }
        wanted.retain(|oid| !held.contains(oid));
        let only_head = scan.head.commit.is_some_and(|head| wanted.iter().all(|oid| *oid == head));
        let known_tree = self.known_tree(&scan.head);
        let index_is_known = !index_is_new || (known_tree.is_some() && known_tree == scan.index.known_tree());
        if only_head && index_is_known {
            return self.hold_each(wanted.into_iter()).await;
        }
        let (types, tree) = self.types_of(&wanted, &scan.head).await?;
        if let (Some(commit), Some(tree)) = (scan.head.commit, tree) {
            self.remember(|memory| memory.head_tree = Some((commit, tree)));
        }
        let mut commits: Vec<Oid> = Vec::new();
        let mut others: Vec<Oid> = Vec::new();
        for (oid, kind) in types {
            if kind == "commit" { commits.push(oid) } else { others.push(oid) }
        }
        let mut staged = BTreeSet::new();
        if index_is_new && (tree.is_none() || tree != scan.index.known_tree()) {
            staged = self.staged_blobs(&scan.head).await?;
            staged.retain(|oid| !held.contains(oid));
        }
        if commits.len() > SINGLE {
            for parents in commits.chunks(PARENTS) {
                self.hold_together(parents, Together::Commits).await?;
            }
            commits.clear();
        }
        if staged.len() > SINGLE {
            self.hold_together(&staged.into_iter().collect::<Vec<_>>(), Together::Blobs).await?;
            staged = BTreeSet::new();
        }
        self.hold_each(commits.into_iter().chain(others).chain(staged)).await
    }

    /// What is held by refs that are still there, and whether all that ever was held still is.
    fn already_held(&self) -> (HashSet<Oid>, bool) {
        let prefix = format!("{REFS}/held/");
        let refs = head::ours(&self.places().common_dir);
        let mut held: HashSet<Oid> =
            refs.iter().filter(|(name, _)| name.starts_with(&prefix)).map(|(_, oid)| *oid).collect();
        let text = std::fs::read_to_string(self.store().root().join("held")).unwrap_or_default();
        let mut whole = !text.is_empty();
        for line in text.lines() {
            let mut oids = line.split(' ').filter_map(|oid| Oid::from_hex(oid.as_bytes()));
            match oids.next() {
                Some(holder) if held.contains(&holder) => held.extend(oids),
                _ => whole = false,
            }
        }
        (held, whole)
    }

    /// What is held now: everything that the state pointed at when it was last saved.
    pub(super) fn held_objects(&self) -> HashSet<Oid> {
        self.already_held().0
    }

    /// The tree of HEAD, where it is remembered.
    pub(super) fn known_tree(&self, head: &Head) -> Option<Oid> {
        let memory = self.shared.memory.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        memory.head_tree.filter(|(commit, _)| Some(*commit) == head.commit).map(|(_, tree)| tree)
    }

    /// Adds the objects that a file of git's names; whether the file is an index.
    fn mentions(&self, listing: &Listing, at: usize, wanted: &mut BTreeSet<Oid>) -> Result<bool, ScanError> {
        let Some(entry) = listing.entries.get(at) else { return Ok(false) };
        let path = entry.path.as_slice();
        // Objects of a submodule are in its own store.
        if path == b"index" || path.starts_with(b"modules/") {
            return Ok(path == b"index");
        }
        let may_name_objects = !path.starts_with(b"hooks/") && path != b"config" && path != b"description";
        if may_name_objects && let Some(bytes) = content::packed_bytes(self.store(), self.shared.hash, entry)? {
            wanted.extend(mentioned(&bytes, self.shared.hash.digits()));
        }
        Ok(false)
    }

    /// The objects of `wanted` that exist, with their types, and the tree of HEAD.
    async fn types_of(
        &self,
        wanted: &BTreeSet<Oid>,
        head: &Head,
    ) -> Result<(Vec<(Oid, String)>, Option<Oid>), GitError> {
        let mut lines = String::new();
        for oid in wanted {
            let _ = writeln!(lines, "{oid}");
        }
        if let Some(commit) = head.commit {
            let _ = writeln!(lines, "{commit}^{{tree}}");
        }
        if lines.is_empty() {
            return Ok((Vec::new(), None));
        }
        let answer =
            self.read().args(["cat-file", "--batch-check=%(objectname) %(objecttype)"]).stdin(lines).run().await?;
        let text = String::from_utf8_lossy(&answer.stdout);
        let mut types = Vec::new();
        let mut lines = text.lines();
        for oid in wanted {
            let line = lines.next().ok_or_else(|| answer.unexpected())?;
            if let Some((_, kind @ ("commit" | "tag" | "tree" | "blob"))) = line.split_once(' ') {
                types.push((*oid, kind.to_owned()));
            }
        }
        let tree = lines.next().and_then(|line| Oid::from_hex(line.split(' ').next()?.as_bytes()));
        Ok((types, tree))
    }

    /// Blobs that only the index has.
    async fn staged_blobs(&self, head: &Head) -> Result<BTreeSet<Oid>, GitError> {
        let listing = match head.commit {
            None => self.read().args(["ls-files", "--stage", "-z"]).run().await?.stdout,
            Some(commit) => {
                let commit = commit.to_string();
                let changed = ["diff-index", "--cached", "--raw", "--no-renames", "--no-abbrev", "-z", &commit];
                let unmerged = ["ls-files", "--unmerged", "-z"];
                let mut all = self.read().args(changed).run().await?.stdout;
                all.extend(self.read().args(unmerged).run().await?.stdout);
                all
            }
        };
        let blobs: BTreeSet<Oid> = mentioned(&listing, self.shared.hash.digits()).collect();
        let types = self.types_of(&blobs, &Head { branch: None, commit: None }).await?.0;
        Ok(types.into_iter().filter(|(_, kind)| kind == "blob").map(|(oid, _)| oid).collect())
    }

    /// A ref for each, written as git writes them: nobody else writes below this name, and a program for it costs more than
    /// all the rest of a hold.
    pub(super) async fn hold_each(&self, oids: impl Iterator<Item = Oid>) -> Result<(), ScanError> {
        let oids: Vec<Oid> = oids.collect();
        if oids.is_empty() {
            return Ok(());
        }
        self.blocking(move |this| {
            for oid in &oids {
                this.write_held(*oid)?;
            }
            this.note_held(oids.iter().map(|oid| (*oid, &[][..])));
            Ok(())
        })
        .await
    }

    fn write_held(&self, oid: Oid) -> Result<(), ScanError> {
        let file = self.places().common_dir.join(format!("{REFS}/held/{oid}"));
        // A name that git passes over among refs; working trees side by side may hold the same object.
        let lock = file.with_extension(format!("{}.lock", uuid::Uuid::now_v7().simple()));
        let write = || -> std::io::Result<()> {
            if let Some(folder) = file.parent() {
                std::fs::create_dir_all(folder)?;
            }
            let mut lock_file = std::fs::File::create(&lock)?;
            lock_file.write_all(format!("{oid}\n").as_bytes())?;
            // An empty ref would stop `git gc`.
            lock_file.sync_data()?;
            std::fs::rename(&lock, &file)
        };
        write().map_err(|source| StoreError::Io { what: "write", path: file.clone(), source }.into())
    }

    /// One object that holds many.
    async fn hold_together(&self, oids: &[Oid], together: Together) -> Result<(), GitError> {
        let answer = match together {
            Together::Commits => {
                let tree = self.write().arg("mktree").run().await?;
                let mut command = self.write().args(["commit-tree", tree.line()?, "-m", "held by ralphloop"]);
                for name in ["AUTHOR", "COMMITTER"] {
                    command = command
                        .env(format!("GIT_{name}_NAME"), "ralphloop")
                        .env(format!("GIT_{name}_EMAIL"), "ralphloop@localhost");
                }
                for oid in oids {
                    command = command.arg("-p").arg(oid.to_string());
                }
                command.option("commit.gpgSign=false").run().await?
            }
            Together::Blobs => {
                let mut lines = String::new();
                for oid in oids {
                    let _ = writeln!(lines, "100644 blob {oid}\t{oid}");
                }
                self.write().arg("mktree").stdin(lines).run().await?
            }
        };
        let holder = Oid::from_hex(answer.line()?.as_bytes()).ok_or_else(|| answer.unexpected())?;
        let name = format!("{REFS}/held/{holder}");
        self.write().args(["update-ref", &name, &holder.to_string()]).run().await?;
        self.note_held([(holder, oids)].into_iter());
        Ok(())
    }

    /// Writes down what is held. A note that is lost costs time at the next checkpoint, nothing else.
    fn note_held<'a>(&self, held: impl Iterator<Item = (Oid, &'a [Oid])>) {
        let mut text = String::new();
        for (holder, oids) in held {
            let _ = write!(text, "{holder}");
            for oid in oids {
                let _ = write!(text, " {oid}");
            }
            text.push('\n');
        }
        let path = self.store().root().join("held");
        let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
        drop(file.and_then(|mut file| file.write_all(text.as_bytes())));
    }

    /// Lets go of everything held, where no checkpoint needs it any more.
    pub(super) async fn release_held(&self) -> Result<(), GitError> {
        // Checkpoints of other working trees need them too.
        if !self.store().is_idle() || !self.store().others_are_idle() {
            return Ok(());
        }
        let prefix = format!("{REFS}/held/");
        let mut commands = String::new();
        let held: HashMap<_, _> =
            head::ours(&self.places().common_dir).into_iter().filter(|(name, _)| name.starts_with(&prefix)).collect();
        for name in held.keys() {
            let _ = writeln!(commands, "delete {name}");
        }
        if !commands.is_empty() {
            self.write().args(["update-ref", "--stdin"]).stdin(commands).run().await?;
        }
        for name in ["held", "latest"] {
            // What is left is found to be without refs and read anew.
            drop(std::fs::remove_file(self.store().root().join(name)));
        }
        self.remember(|memory| memory.record = None);
        Ok(())
    }
}

enum Together {
    Commits,
    Blobs,
}
