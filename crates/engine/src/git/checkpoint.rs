//! Checkpoints: taken, found again, dropped.
use std::path::PathBuf;
use std::sync::Arc;

use ralphloop_core::ids::{CommitId, TreeId};
use serde::{Deserialize, Serialize};

use super::answers::Kept;
use super::content::{Filler, Purpose, tree_id};
use super::names::slug;
use super::record::{Listing, Record};
use super::scan::{Scan, ScanError};
use super::store::StoreError;
use super::{GitError, Repository};

/// A checkpoint can't be taken or found.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The tree or git's state could not be read.
    #[error("no checkpoint could be taken: {0}")]
    Scan(#[from] ScanError),
    /// The store could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// What the working tree and git's state can be put back to. The handle is plain data; what it stands for is in the store
/// and is found by its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The name it was taken under.
    pub name: String,
    /// The full name of the branch; `None` when HEAD was detached.
    pub branch: Option<String>,
    /// The commit that HEAD pointed at; `None` before the first one.
    pub head: Option<CommitId>,
    /// The content of the tree.
    pub tree: TreeId,
    /// What is not kept, for people.
    pub notes: Vec<String>,
}

impl Checkpoint {
    fn of(record: &Record) -> Self {
        Self {
            name: record.name.clone(),
            branch: record.head.branch.clone(),
            head: record.head.commit.map(|oid| CommitId(oid.to_string())),
            tree: tree_id(&record.work),
            notes: record.notes.clone(),
        }
    }

    pub(super) fn slug(&self) -> String {
        slug(&self.name)
    }
}

/// A look at everything whose contents are in the store or in git.
struct Saved {
    scan: Scan,
    /// By git directory, the entries that were read.
    read: Vec<Vec<usize>>,
    notes: Vec<String>,
}

impl Repository {
    /// Records everything: HEAD, refs, index, configuration and hooks, and every path of the tree, tracked or not, with
    /// content, mode and times. Nothing of the user's is changed. A checkpoint of the same name is replaced.
    pub async fn checkpoint(&self, name: &str) -> Result<Checkpoint, CheckpointError> {
        let scan = self.scan(None).await?;
        self.checkpoint_of(scan, name).await
    }

    /// The same, where nothing was done in the tree since its id was last asked for: it is not walked again if that was just
    /// now.
    pub async fn checkpoint_as_looked_at(&self, name: &str) -> Result<Checkpoint, CheckpointError> {
        match self.scan_on(Vec::new()).await? {
            Some(scan) => self.checkpoint_of(scan, name).await,
            None => self.checkpoint(name).await,
        }
    }

    async fn checkpoint_of(&self, scan: Scan, name: &str) -> Result<Checkpoint, CheckpointError> {
        let name = name.to_owned();
        let clock = scan.work.clock;
        let (saved, settled) = tokio::join!(
            self.blocking(move |this| this.save(scan)),
            self.blocking(move |this| this.settle_before_checkpoint(clock)),
        );
        let Saved { scan, read, notes } = saved?;
        settled?;
        self.hold(&scan, &read).await?;
        let checkpoint = self
            .blocking(move |this| {
                let slug = slug(&name);
                let record = Record {
                    name,
                    head: scan.head,
                    work: Arc::unwrap_or_clone(scan.work),
                    git: scan.git,
                    submodules: scan.submodules,
                    settings: scan.answers.settings.clone(),
                    notes,
                };
                this.store().write_record(&slug, &record)?;
                this.store().remove_old_packs(&record);
                let checkpoint = Checkpoint::of(&record);
                let record = Arc::new(record);
                this.remember(|memory| {
                    memory.answers = Some(Arc::new(Kept::of_record(scan.answers, Arc::clone(&record))));
                    memory.record = Some(record);
                });
                Ok::<_, StoreError>(checkpoint)
            })
            .await?;
        Ok(checkpoint)
    }

    /// The checkpoint of that name, from an earlier process too.
    pub async fn load(&self, name: &str) -> Result<Checkpoint, CheckpointError> {
        let name = name.to_owned();
        Ok(self.blocking(move |this| this.record(&name).map(|record| Checkpoint::of(&record))).await?)
    }

    /// The checkpoint of that name, if there is one.
    pub async fn find_checkpoint(&self, name: &str) -> Result<Option<Checkpoint>, CheckpointError> {
        match self.load(name).await {
            Ok(checkpoint) => Ok(Some(checkpoint)),
            Err(CheckpointError::Store(StoreError::Missing { .. })) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Forgets a checkpoint. One that is not there is forgotten already.
    pub async fn drop_checkpoint(&self, checkpoint: &Checkpoint) -> Result<(), CheckpointError> {
        let slug = checkpoint.slug();
        Ok(self.blocking(move |this| this.store().drop_record(&slug)).await?)
    }

    /// Gives back what checkpoints needed between each other: the hidden refs that held objects, and what was remembered of
    /// files. Does nothing while a checkpoint is kept. For the end of a run.
    pub async fn release(&self) -> Result<(), CheckpointError> {
        Ok(self.release_held().await?)
    }

    /// The content of the tree now: of all files that git tracks or does not ignore. Equal content has an equal id, committed
    /// or not.
    pub async fn tree_id(&self) -> Result<TreeId, ScanError> {
        let base = self.remembered_record();
        let scan = self.scan(base).await?;
        self.blocking(move |this| {
            let scan = this.compare_contents(scan)?;
            Ok(tree_id(&scan.work))
        })
        .await
    }

    /// The same, where nothing was done in the tree since the last look but that `written` were written: only they are looked
    /// at, if that look was just now.
    pub async fn tree_id_after(&self, written: &[PathBuf]) -> Result<TreeId, ScanError> {
        let written = written.iter().map(|path| super::bytes_of(path).to_vec()).collect();
        match self.scan_on(written).await? {
            None => self.tree_id().await,
            Some(scan) => {
                self.blocking(move |this| {
                    let scan = this.compare_contents(scan)?;
                    Ok(tree_id(&scan.work))
                })
                .await
            }
        }
    }

    pub(super) fn record(&self, name: &str) -> Result<Arc<Record>, StoreError> {
        if let Some(record) = self.remembered_record().filter(|record| record.name == name) {
            return Ok(record);
        }
        let record = Arc::new(self.store().read_record(&slug(name), name)?);
        self.remember(|memory| memory.record = Some(Arc::clone(&record)));
        Ok(record)
    }

    /// Finds out every content of the tree, to compare it.
    pub(super) fn compare_contents(&self, mut scan: Scan) -> Result<Scan, ScanError> {
        let record = self.remembered_record();
        let look = self.remembered_look();
        let earlier: Vec<&Listing> = record.iter().map(|record| &record.work).chain(look.as_deref()).collect();
        let filler = Filler {
            root: &self.places().top,
            hash: self.shared.hash,
            limits: self.shared.limits,
            index: Some((&scan.index, scan.conversions)),
            earlier,
        };
        filler.fill(Arc::make_mut(&mut scan.work), Purpose::Compare)?;
        let look = Arc::clone(&scan.work);
        let kept = Kept::of_look(Arc::clone(&scan.answers), Arc::clone(&look), scan.git.clone(), &scan.index);
        self.remember(|memory| {
            memory.look = Some(look);
            memory.looked = Some(scan.looked);
            memory.answers = Some(Arc::new(kept));
        });
        Ok(scan)
    }

    /// Saves every content that nothing else keeps.
    fn save(&self, mut scan: Scan) -> Result<Saved, ScanError> {
        let previous = self.remembered_record().or_else(|| self.store().newest_record().map(Arc::new));
        let mut pack = self.store().open_pack(previous.as_deref())?;
        let reuse = previous.filter(|record| uses_only(record, pack.number()));
        let limits = self.shared.limits;
        let mut filler = Filler {
            root: &self.places().top,
            hash: self.shared.hash,
            limits,
            index: Some((&scan.index, scan.conversions)),
            earlier: reuse.iter().map(|record| &record.work).collect(),
        };
        let contents = filler.fill(Arc::make_mut(&mut scan.work), Purpose::Save(&mut pack))?;
        let mut notes: Vec<String> = scan
            .work
            .left_alone
            .iter()
            .map(|path| {
                format!(
                    "{} is left alone: too large or closed; it is neither kept nor put back",
                    super::path(path).display()
                )
            })
            .collect();
        notes.extend(contents.not_kept.iter().map(|path| {
            format!("{} is too large to be kept (or closed): it is watched by size and time only", path.display())
        }));
        let roots = self.git_roots();
        let mut read = Vec::new();
        for (at, listing) in scan.git.iter_mut().enumerate() {
            filler = Filler {
                root: roots.get(at).map_or(&self.places().git_dir, |root| root),
                hash: self.shared.hash,
                // Git's own state is kept whatever its size.
                limits: super::SnapshotLimits { file: u64::MAX, total: u64::MAX, ..limits },
                index: None,
                earlier: reuse.iter().filter_map(|record| record.git.get(at)).collect(),
            };
            read.push(filler.fill(listing, Purpose::Save(&mut pack))?.read);
        }
        pack.finish()?;
        Ok(Saved { scan, read, notes })
    }
}

/// Whether all that a record has in packs is in this one; a pack that is left behind is not relied on again.
fn uses_only(record: &Record, number: u32) -> bool {
    use super::record::{Content, Node};
    record.git.iter().chain([&record.work]).flat_map(|listing| &listing.entries).all(|entry| match entry.node {
        Node::File(Content::Packed { pack, .. }) => pack == number,
        _ => true,
    })
}
