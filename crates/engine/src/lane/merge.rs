//! Bringing a proven attempt onto where the branch stands now, or onto what is about to land there, in its own lane.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use ralphloop_core::effect::{Candidate, Onto};
use ralphloop_core::event::Fact;
use ralphloop_core::evidence::Merge;
use ralphloop_core::ids::{AttemptId, CallNumber, CommitId, TreeId};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use super::generate::{Regenerated, regenerate};
use super::{Marking, Parts, tree};
use crate::files;
use crate::git::{self, Keeping, Merging, Repository, Work};

/// Work as it is before its merges, so that each of them begins from the same.
pub(super) type Unmerged = Mutex<Option<(AttemptId, CallNumber, Work)>>;

/// Merged trees that are on their way to the branch, by attempt and content: others may be prepared on top of them.
#[derive(Debug, Default)]
pub struct Foreseen(Mutex<HashMap<(AttemptId, TreeId), Arc<Landing>>>);

/// A commit that is likely to be made.
#[derive(Debug)]
struct Landing {
    tree: String,
    onto: CommitId,
    /// Files of the spec as they will be written.
    spec: Vec<(PathBuf, Vec<u8>)>,
    /// Made when it is first asked for.
    commit: OnceCell<CommitId>,
}

impl Foreseen {
    fn note(&self, attempt: &AttemptId, content: &TreeId, landing: Landing) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert((attempt.clone(), content.clone()), Arc::new(landing));
    }

    /// The commit of a candidate.
    async fn commit(&self, candidate: &Candidate, repository: &Repository) -> Result<CommitId, String> {
        let key = (candidate.attempt.clone(), candidate.tree.clone());
        let landing = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        let Some(landing) = landing else { return Err(format!("{} was not merged as that tree", candidate.attempt)) };
        let make = || repository.commit_foreseen(&landing.tree, &landing.onto, &landing.spec);
        landing.commit.get_or_try_init(make).await.cloned().map_err(|e| e.to_string())
    }
}

/// What is to be merged.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) call: CallNumber,
    pub(super) number: u32,
    pub(super) onto: Onto,
    pub(super) marking: Marking,
}

/// Merges the attempt; `inspected` is the tree where nothing has run since it was inspected.
pub(super) async fn merge(
    parts: &Parts,
    attempt: AttemptId,
    order: Order,
    inspected: Option<TreeId>,
    cancel: CancellationToken,
) {
    let (call, number) = (order.call, order.number);
    let fact = match try_to_merge(parts, &attempt, &order, inspected, cancel).await {
        Ok(Ok(merge)) => Fact::Merged { attempt, call, number, merge },
        Ok(Err(moved)) => Fact::Trespassed { attempt, why: moved },
        Err(why) => Fact::MergeFailed { attempt, why },
    };
    parts.shared.say(fact);
}

/// The inner error is what somebody else moved.
async fn try_to_merge(
    parts: &Parts,
    attempt: &AttemptId,
    order: &Order,
    inspected: Option<TreeId>,
    cancel: CancellationToken,
) -> Result<Result<Merge, String>, String> {
    let shared = &parts.shared;
    if let Some(moved) = shared.target.trespass(&shared.home).await.map_err(|e| e.to_string())? {
        return Ok(Err(moved));
    }
    let checkpoint = tree::load(parts, attempt).await?;
    let onto = match &order.onto {
        Onto::Branch => shared.target.tip().await.ok_or_else(|| "the branch has no commit".to_owned())?,
        Onto::Candidate(candidate) => shared.foreseen.commit(candidate, &parts.repository).await?,
    };
    if checkpoint.head.as_ref() == Some(&onto) {
        parts.tree_is(inspected);
        return Ok(Ok(Merge::Current));
    }
    let work = unmerged(parts, attempt, order.call);
    let (reference, message) = kept_as(parts, attempt);
    let spec = if work.is_some() { Vec::new() } else { tree::spec_in_tree(parts, attempt)? };
    let keeping = Keeping { under: &reference, message: &message, spec: &spec };
    let merging = Merging { onto: &onto, work, keeping };
    let mut trial = parts.repository.try_merge(&checkpoint, merging).await.map_err(|e| e.to_string())?;
    *parts.unmerged.lock().unwrap_or_else(PoisonError::into_inner) =
        Some((attempt.clone(), order.call, trial.work.clone()));
    let names = |files: &[PathBuf]| files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>();
    let is_generated = parts.shared.settings.generated.all_made(&trial.conflicts);
    if order.onto != Onto::Branch && !trial.conflicts.is_empty() && !is_generated {
        return Ok(Ok(Merge::Conflicts { files: names(&trial.conflicts), notes: Vec::new() }));
    }
    parts.repository.take_merge(&checkpoint, &onto, &trial).await.map_err(|e| e.to_string())?;
    tree::keep_spec(parts, attempt).await?;
    let mut notes = Vec::new();
    if is_generated && !trial.conflicts.is_empty() {
        match regenerate(parts, &onto, &trial, cancel).await? {
            Regenerated::Made { tree, how } => {
                trial.tree = tree;
                trial.conflicts.clear();
                notes.push(how);
            }
            Regenerated::Failed { why } => notes.push(why),
        }
    }
    if !trial.conflicts.is_empty() {
        let path = shared.folder.merged_tree(attempt);
        files::write_atomic(&path, trial.tree.as_bytes(), files::Access::Private).map_err(|e| e.to_string())?;
        return Ok(Ok(Merge::Conflicts { files: names(&trial.conflicts), notes }));
    }
    let mut report = tree::look(parts, attempt, &[]).await?;
    report.notes.extend(notes);
    parts.tree_is(Some(report.tree.clone()));
    let spec = tree::spec_once_landed(parts, attempt, order.marking)?;
    shared.foreseen.note(attempt, &report.tree, Landing { tree: trial.tree, onto, spec, commit: OnceCell::new() });
    Ok(Ok(Merge::Merged { report: Box::new(report) }))
}

/// The ref under which work is kept as it was before its merges, and the message of that.
fn kept_as(parts: &Parts, attempt: &AttemptId) -> (String, String) {
    let run = &parts.shared.folder.id;
    (git::attempt_ref(run, attempt), format!("attempt {attempt} of run {run}: before it was merged"))
}

/// Does what the merge of a proven attempt begins with, while it waits for its turn. What cannot be done is done again then,
/// and told.
pub(super) async fn prepare(parts: &Parts, attempt: &AttemptId, call: CallNumber) {
    if unmerged(parts, attempt, call).is_some() {
        return;
    }
    let (Ok(checkpoint), Ok(spec)) = (tree::load(parts, attempt).await, tree::spec_in_tree(parts, attempt)) else {
        return;
    };
    let (reference, message) = kept_as(parts, attempt);
    let keeping = Keeping { under: &reference, message: &message, spec: &spec };
    if let Ok(work) = parts.repository.make_work(&checkpoint, keeping).await {
        *parts.unmerged.lock().unwrap_or_else(PoisonError::into_inner) = Some((attempt.clone(), call, work));
    }
}

/// The work as that call left it, if it was made a commit before.
fn unmerged(parts: &Parts, attempt: &AttemptId, call: CallNumber) -> Option<Work> {
    let known = parts.unmerged.lock().unwrap_or_else(PoisonError::into_inner);
    known.as_ref().filter(|(of, after, _)| (of, *after) == (attempt, call)).map(|(_, _, work)| work.clone())
}
