//! A task that mends another is added to the spec, in a commit of the run's own.

use std::path::{Path, PathBuf};

use ralphloop_agent::sanitize;
use ralphloop_core::effect::FixTask;
use ralphloop_core::event::Fact;
use ralphloop_core::ids::{AttemptId, CallNumber, CommitId, RunId, StoryId, TaskId};
use ralphloop_core::plan::{Story, WorkId};
use ralphloop_core::run::Run;
use ralphloop_spec::{MarkError, SpecText};
use tokio_util::sync::CancellationToken;

use super::message::{Message, trailer_id};
use super::tree::{self, Refusal};
use super::{Parts, Place};
use crate::files::{Access, write_atomic};
use crate::git::{self, Checkpoint, LandError};
use crate::work;

/// No agent is called before such a commit.
const NO_CALL: CallNumber = CallNumber(0);

/// The task that is to be added.
#[derive(Debug)]
pub(super) struct Order {
    fix: FixTask,
    run: RunId,
    work: WorkId,
}

impl Order {
    pub(super) fn of(run: &Run, fix: FixTask) -> Self {
        Self { fix, run: run.id().clone(), work: run.plan().work.clone() }
    }

    fn message(&self, story: &StoryId, task: &TaskId) -> Message {
        let one = |text: &str| sanitize::one_line(text, usize::MAX);
        let (story, task) = (trailer_id(story), one(task.as_str()));
        let text = format!(
            "chore({story}): add the fix task {task}\n\n{}: {}\n{}: {}\n{}: {task}\n",
            git::RUN,
            one(self.run.as_str()),
            git::WORK,
            one(&self.work.to_string()),
            git::FIX_TASK,
        );
        Message { run: self.run.clone(), text }
    }
}

/// Why there is no new task.
enum NoTask {
    /// There cannot be one.
    Unfit { why: String },
    /// It could not be committed.
    Refused(Refusal),
}

impl From<Refusal> for NoTask {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// What was added.
struct Added {
    task: TaskId,
    story: Box<Story>,
    commit: Option<CommitId>,
}

pub(super) async fn add(parts: &Parts, attempt: AttemptId, order: Order, cancel: CancellationToken) {
    let stop = CancellationToken::new();
    let adding = try_to_add(parts, &attempt, &order, stop.clone());
    let fact = match tree::with_grace(parts, adding, &stop, cancel).await {
        Ok(Added { task, story, commit }) => Fact::FixTaskAdded { attempt, task, story, commit },
        Err(NoTask::Unfit { why }) => Fact::NoFixTask { attempt, why },
        Err(NoTask::Refused(refusal)) => refusal.into_fact(parts, attempt, NO_CALL),
    };
    parts.shared.say(fact);
}

async fn try_to_add(
    parts: &Parts,
    attempt: &AttemptId,
    order: &Order,
    stop: CancellationToken,
) -> Result<Added, NoTask> {
    if let Some(Fact::Trespassed { why, .. }) = tree::trespass(parts, attempt).await {
        return Err(Refusal::Trespassed { why }.into());
    }
    let unfit = |error: MarkError| NoTask::Unfit { why: error.to_string() };
    let mut files = work::load(&parts.work).map_err(Refusal::failed)?;
    let (task, edits) = ralphloop_spec::add_fix_task(&files, &attempt.story, &order.fix).map_err(unfit)?;
    let changed = ralphloop_spec::apply_in(&files, &edits).map_err(Refusal::failed)?;
    let name = parts.shared.folder.checkpoint_name(attempt);
    for file in &changed {
        let all = std::iter::once(&mut files.main).chain(&mut files.more);
        all.filter(|known| known.path == file.path).for_each(|known| known.bytes.clone_from(&file.bytes));
    }
    let plan = ralphloop_spec::read(&files).map_err(Refusal::failed)?.plan;
    let Some(story) = plan.stories.into_iter().find(|story| story.id == attempt.story) else {
        return Err(Refusal::failed(format!("{} is no longer in the spec", attempt.story)).into());
    };
    let mut commit = None;
    match parts.repository.find_checkpoint(&name).await.map_err(Refusal::failed)? {
        Some(checkpoint) => {
            if !changed.is_empty() {
                let message = order.message(&attempt.story, &task);
                parts.shared.announced.mending(&story);
                let written = write_and_commit(parts, attempt, &checkpoint, message, &changed, stop).await;
                commit = written.inspect_err(|_| parts.shared.announced.withdraw(&attempt.story))?;
            }
            tree::forget(&parts.repository, &parts.shared.folder, attempt, &checkpoint).await;
        }
        // It was done before.
        None if changed.is_empty() => {}
        None => return Err(Refusal::failed(format!("there is no checkpoint of {attempt}")).into()),
    }
    Ok(Added { task, story: Box::new(story), commit })
}

/// Writes the files and commits those that git tracks, if there are such.
async fn write_and_commit(
    parts: &Parts,
    attempt: &AttemptId,
    checkpoint: &Checkpoint,
    message: Message,
    changed: &[SpecText],
    stop: CancellationToken,
) -> Result<Option<CommitId>, Refusal> {
    let (inside, outside) = where_to(parts, changed);
    let mut commit = None;
    if !inside.is_empty() {
        let kept_under = git::attempt_ref(&parts.shared.folder.id, attempt);
        let landing = tree::landing_of(parts, message, &kept_under, inside.clone(), stop);
        match parts.repository.land(checkpoint, &landing).await {
            Ok(landed) => {
                if parts.place == Place::Worktrees {
                    tree::publish(parts, checkpoint, &landed, &kept_under).await?;
                }
                commit = Some(landed.commit);
            }
            Err(LandError::NothingToCommit) => write(inside, &parts.repository.places().top)?,
            Err(error) => return Err(error.into()),
        }
    }
    write(outside, Path::new(""))?;
    Ok(commit)
}

/// Files with their new bytes.
type Written = Vec<(PathBuf, Vec<u8>)>;

/// Those that lie in the lane, relative to its top, and those that do not.
fn where_to(parts: &Parts, changed: &[SpecText]) -> (Written, Written) {
    let top = &parts.repository.places().top;
    let (mut inside, mut outside) = (Vec::new(), Vec::new());
    for file in changed {
        let path = parts.work.place_of(&file.path);
        let real = std::fs::canonicalize(&path).unwrap_or(path);
        match real.strip_prefix(top) {
            Ok(below) => inside.push((below.to_owned(), file.bytes.clone())),
            Err(_) => outside.push((real, file.bytes.clone())),
        }
    }
    (inside, outside)
}

fn write(files: Written, below: &Path) -> Result<(), Refusal> {
    let mut files = files.into_iter();
    files.try_for_each(|(path, bytes)| write_atomic(&below.join(path), &bytes, Access::Usual)).map_err(Refusal::failed)
}
