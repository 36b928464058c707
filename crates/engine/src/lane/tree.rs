//! The lane's tree: checkpoint, inspection, landing, going back; and the spec's file in it.

use std::path::PathBuf;
use std::sync::PoisonError;
use std::time::Duration;

use ralphloop_core::event::{Fact, PlanChange};
use ralphloop_core::evidence::{SHOWN_FILES, TreeReport};
use ralphloop_core::ids::{AttemptId, CallNumber, CommitId, StoryId, TreeId};
use ralphloop_core::plan::{Plan, WorkState};
use ralphloop_core::policy::Place;
use tokio_util::sync::CancellationToken;

use super::announced::Ours;
use super::message::{Message, trailer_id};
use super::{Marking, Parts, SpecFile};
use crate::files::{self, FileError};
use crate::git::{
    self, AdvanceError, Change, Checkpoint, Frame, Guard, HoldBack, LandError, Landed, LandedStory, Landing,
    Repository, RevertReport, Standing,
};
use crate::runs::RunFolder;
use crate::work::state::{Reconciled, WorkState as SpecState};
use crate::work::{self, WorkRef};

/// How long a commit may go on once the run is to stop.
const LANDING_GRACE: Duration = Duration::from_secs(5);

/// What became of the spec since it was read as `known`, beside what the run has written itself.
pub(crate) fn look_at_plan(work: &WorkRef, known: &Plan, ours: &Ours) -> PlanChange {
    let reading = work::load(work).map_err(|e| e.to_string()).and_then(|files| {
        let mut reading = ralphloop_spec::read(&files).map_err(|e| e.to_string())?;
        // What only a commit tells was known before, and no file says otherwise.
        let told = ralphloop_spec::told_by_commits(&files, &reading.plan);
        let done = |id: &StoryId| known.story(id).is_some_and(|story| story.state == WorkState::Done);
        let stories = reading.plan.stories.iter_mut();
        stories.filter(|story| told.contains(&story.id) && done(&story.id)).for_each(|s| s.state = WorkState::Done);
        Ok(reading)
    });
    match reading {
        Ok(reading) if ours.is_all_that_changed(&reading.plan, known) => PlanChange::Same,
        Ok(reading) => PlanChange::Changed { plan: Box::new(reading.plan) },
        Err(message) => PlanChange::Unreadable { message },
    }
}

fn reconcile(parts: &Parts, attempt: &AttemptId, landed: bool) -> Result<(SpecState, Reconciled), FileError> {
    let kept = SpecState::kept(&parts.shared.folder.spec_before(attempt));
    let before = match parts.spec {
        SpecFile::Own => kept?,
        // Whatever differs there is other lanes' doing, or a person's.
        SpecFile::Shared => SpecState::now(&parts.work)?.or_as_in(kept),
    };
    let reconciled = before.reconciled(&parts.work, &attempt.story, landed)?;
    Ok((before, reconciled))
}

/// Takes the attempt's checkpoint; `untouched` says that nothing has run in the tree since it was last looked at.
pub(super) async fn checkpoint(parts: &Parts, attempt: AttemptId, untouched: bool) {
    let fact = match take(parts, &attempt, untouched).await {
        Ok(notes) => Fact::CheckpointTaken { attempt, notes },
        Err(why) => Fact::CheckpointFailed { attempt, why },
    };
    parts.shared.say(fact);
}

async fn take(parts: &Parts, attempt: &AttemptId, untouched: bool) -> Result<Vec<String>, String> {
    files::require_space(parts.shared.folder.path(), files::LEAST_ROOM).map_err(|e| e.to_string())?;
    let name = parts.shared.folder.checkpoint_name(attempt);
    // The disk is waited for while the tree is looked at.
    let checkpoint = async {
        if untouched {
            parts.repository.checkpoint_as_looked_at(&name).await
        } else {
            parts.repository.checkpoint(&name).await
        }
    };
    let (kept, checkpoint) = tokio::join!(keep_spec(parts, attempt), checkpoint);
    kept?;
    Ok(checkpoint.map_err(|e| e.to_string())?.notes)
}

/// Keeps the spec's files as they are at the attempt's checkpoint.
pub(super) async fn keep_spec(parts: &Parts, attempt: &AttemptId) -> Result<(), String> {
    let state = SpecState::now(&parts.work).map_err(|e| e.to_string())?;
    let path = parts.shared.folder.spec_before(attempt);
    let kept = tokio::task::spawn_blocking(move || {
        if let Some(folder) = path.parent() {
            files::create_private_dir(folder)?;
        }
        state.keep(&path)
    });
    kept.await.map_err(|e| e.to_string())?.map_err(|e| e.to_string())
}

pub(super) async fn load(parts: &Parts, attempt: &AttemptId) -> Result<Checkpoint, String> {
    parts.repository.load(&parts.shared.folder.checkpoint_name(attempt)).await.map_err(|e| e.to_string())
}

pub(super) async fn inspect(parts: &Parts, attempt: AttemptId, call: CallNumber, resolves: &[String]) {
    if let Some(fact) = trespass(parts, &attempt).await {
        return parts.shared.say(fact);
    }
    let fact = match look(parts, &attempt, resolves).await {
        Ok(report) => {
            parts.tree_is(Some(report.tree.clone()));
            Fact::TreeInspected { attempt, call, report }
        }
        Err(why) => Fact::RepositoryBroken { attempt, why },
    };
    parts.shared.say(fact);
}

/// The spec's files at the attempt's checkpoint, relative to the top of the lane; those outside of it are left out. What
/// the attempt has added since is work like any other.
pub(super) fn spec_in_tree(parts: &Parts, attempt: &AttemptId) -> Result<Vec<PathBuf>, String> {
    let kept = SpecState::kept(&parts.shared.folder.spec_before(attempt));
    Ok(kept.map_err(|e| e.to_string())?.paths_below(&parts.repository.places().top))
}

/// The spec's files in the lane as they will be written when the attempt lands.
pub(super) fn spec_once_landed(
    parts: &Parts,
    attempt: &AttemptId,
    marking: Marking,
) -> Result<Vec<(PathBuf, Vec<u8>)>, String> {
    let (before, reconciled) = reconcile(parts, attempt, marking == Marking::Done).map_err(|e| e.to_string())?;
    Ok(reconciled.write_back(&before, &parts.repository.places().top))
}

/// What somebody moved outside the worktrees meanwhile.
pub(super) async fn trespass(parts: &Parts, attempt: &AttemptId) -> Option<Fact> {
    if parts.place == Place::Checkout {
        return None;
    }
    let attempt = attempt.clone();
    match parts.shared.target.trespass(&parts.shared.home).await {
        Ok(None) => None,
        Ok(Some(why)) => Some(Fact::Trespassed { attempt, why }),
        Err(error) => Some(Fact::RepositoryBroken { attempt, why: error.to_string() }),
    }
}

/// What the attempt has done; `resolves` are the files in which it was to resolve conflicts, if it was.
pub(super) async fn look(parts: &Parts, attempt: &AttemptId, resolves: &[String]) -> Result<TreeReport, String> {
    let checkpoint = load(parts, attempt).await?;
    let inspection = parts.repository.inspect(&checkpoint).await.map_err(|e| e.to_string())?;
    let mut notes = match inspection.frame {
        Frame::Intact => Vec::new(),
        Frame::Repairable(repairs) => repairs.iter().map(ToString::to_string).collect(),
        Frame::Broken { why } => return Err(why),
    };
    let (_, reconciled) = reconcile(parts, attempt, false).map_err(|e| e.to_string())?;
    let spec = reconciled.paths_below(&parts.repository.places().top);
    notes.extend(reconciled.notes);
    let (unresolved, strayed) = if resolves.is_empty() {
        (Vec::new(), Vec::new())
    } else {
        resolution(parts, attempt, resolves, &spec).await?
    };
    let changed: Vec<&Change> = inspection.changes.iter().filter(|c| is_work(c, &spec)).collect();
    Ok(TreeReport {
        tree: inspection.tree,
        files_changed: u32::try_from(changed.len()).unwrap_or(u32::MAX),
        shown: changed.iter().take(SHOWN_FILES).map(|change| change.path.display().to_string()).collect(),
        had_open_boxes: reconciled.own_boxes.had_open,
        all_boxes_ticked: reconciled.own_boxes.all_ticked,
        notes,
        unresolved,
        strayed,
    })
}

/// The files in which conflicts are still marked, and those that a resolver changed besides.
async fn resolution(
    parts: &Parts,
    attempt: &AttemptId,
    resolves: &[String],
    spec: &[PathBuf],
) -> Result<(Vec<String>, Vec<String>), String> {
    let top = &parts.repository.places().top;
    let is_marked = |file: &&String| std::fs::read(top.join(file)).is_ok_and(|bytes| has_conflict_marks(&bytes));
    let unresolved = resolves.iter().filter(is_marked).cloned().collect();
    let Ok(merged) = std::fs::read_to_string(parts.shared.folder.merged_tree(attempt)) else {
        return Ok((unresolved, Vec::new()));
    };
    let changed = parts.repository.changed_since(merged.trim()).await.map_err(|e| e.to_string())?;
    let strayed = changed
        .into_iter()
        .filter(|path| !spec.contains(path))
        .map(|path| path.display().to_string())
        .filter(|path| !resolves.contains(path))
        .collect();
    Ok((unresolved, strayed))
}

/// Whether git's marks of a conflict stand in a file.
fn has_conflict_marks(bytes: &[u8]) -> bool {
    let begins = |mark: &[u8]| bytes.split(|byte| *byte == b'\n').any(|line| line.starts_with(mark));
    begins(b"<<<<<<< ") && begins(b">>>>>>> ")
}

/// What is to land.
pub(super) struct Proven {
    /// The tree on which its checks passed.
    pub(super) tree: Option<TreeId>,
    /// Nothing has run in the lane since its tree was last looked at.
    pub(super) untouched: bool,
}

/// Makes the story's commit. `cancel` leaves it a moment to come to its
/// end, since it is proven; a hook that hangs is ended then.
pub(super) async fn land(
    parts: &Parts,
    (attempt, call): (AttemptId, CallNumber),
    message: (Message, Marking),
    proven: Proven,
    cancel: CancellationToken,
) {
    let stop = CancellationToken::new();
    let landing = try_to_land(parts, &attempt, message, proven, stop.clone());
    let fact = match with_grace(parts, landing, &stop, cancel).await {
        Ok((commit, notes)) => Fact::Landed { attempt, commit, notes },
        Err(refusal) => refusal.into_fact(parts, attempt, call),
    };
    parts.shared.say(fact);
}

/// Lets a landing come to its end, and makes it `stop` a moment after `cancel`.
pub(super) async fn with_grace<T>(
    parts: &Parts,
    landing: impl Future<Output = T>,
    stop: &CancellationToken,
    cancel: CancellationToken,
) -> T {
    let stopper = async {
        cancel.cancelled().await;
        drop(tokio::time::timeout(LANDING_GRACE, parts.shared.hurry.cancelled()).await);
        stop.cancel();
        std::future::pending().await
    };
    tokio::select! {
        landed = landing => landed,
        never = stopper => never,
    }
}

/// Why there is no commit.
pub(super) enum Refusal {
    /// The repository refused it; the agent may mend that.
    Refused { by: String, output: String },
    /// The user's checkout holds changes that it would overwrite.
    Blocked { why: String },
    /// Somebody else moved the branch.
    Trespassed { why: String },
    /// The environment is wrong.
    Failed { why: String },
}

impl Refusal {
    pub(super) fn failed(error: impl std::fmt::Display) -> Self {
        Self::Failed { why: error.to_string() }
    }

    pub(super) fn into_fact(self, parts: &Parts, attempt: AttemptId, call: CallNumber) -> Fact {
        match self {
            Self::Blocked { why } => Fact::LandingBlocked { attempt, why },
            Self::Trespassed { why } => Fact::Trespassed { attempt, why },
            Self::Refused { by, output } => {
                let output = parts.shared.redact_text(&output);
                Fact::LandingRefused { attempt, call, by, output }
            }
            Self::Failed { why } => Fact::LandingFailed { attempt, why },
        }
    }
}

impl From<LandError> for Refusal {
    fn from(error: LandError) -> Self {
        match error {
            LandError::HookRefused { output } => Self::Refused { by: "a hook refused the commit".to_owned(), output },
            LandError::Objected { objections } => Self::Refused {
                by: "the commit was stopped, since it would hold what no commit should".to_owned(),
                output: format!(
                    "Take it out: read a secret from the environment, build what can be built. If it is meant to be there, \
                     a person has to name the file in `commit_anyway`.\n{}",
                    objections.join("\n")
                ),
            },
            LandError::TimedOut { .. } | LandError::Suspicious { .. } => {
                Self::Refused { by: error.to_string(), output: String::new() }
            }
            other => Self::failed(other),
        }
    }
}

async fn try_to_land(
    parts: &Parts,
    attempt: &AttemptId,
    (message, marking): (Message, Marking),
    proven: Proven,
    stop: CancellationToken,
) -> Result<(CommitId, Vec<String>), Refusal> {
    let found = parts.repository.find_checkpoint(&parts.shared.folder.checkpoint_name(attempt)).await;
    let found = found.map_err(Refusal::failed)?;
    let shared = &parts.shared;
    if let Some(Fact::Trespassed { why, .. }) = trespass(parts, attempt).await {
        return Err(Refusal::Trespassed { why });
    }
    let tip = shared.home.standing(&shared.target.branch).map_err(Refusal::failed)?.tip;
    // Where the branch stands as it stood at the checkpoint, nothing has landed since.
    if found.as_ref().is_none_or(|checkpoint| checkpoint.head != tip) {
        let known_as = StoryId(trailer_id(&attempt.story));
        let landed = shared.home.find_landed(&shared.target.branch, &shared.base, &message.run, &known_as).await;
        // One that a person sent back is no landing any more.
        let sent_back = |landed: &LandedStory| landed.unsigned && landed.attempt != attempt.number.to_string();
        if let Some(landed) = landed.map_err(Refusal::failed)?.filter(|landed| !sent_back(landed)) {
            let commit = landed.commit;
            settle_spec(parts, attempt, marking).map_err(Refusal::failed)?;
            return Ok((commit, Vec::new()));
        }
    }
    let Some(checkpoint) = found else {
        return Err(Refusal::failed(format!("there is no checkpoint of {attempt}")));
    };
    let (before, reconciled) = reconcile(parts, attempt, marking == Marking::Done).map_err(Refusal::failed)?;
    let kept_under = git::attempt_ref(&shared.folder.id, attempt);
    let write_back = reconciled.write_back(&before, &parts.repository.places().top);
    let landing = Landing {
        allow_empty: true,
        as_looked_at: proven.untouched,
        ..landing_of(parts, message, &kept_under, write_back, stop)
    };
    let landed = parts.repository.land(&checkpoint, &landing).await?;
    if parts.place == Place::Worktrees {
        shared.announced.landing(&attempt.story);
        let published = publish(parts, &checkpoint, &landed, &kept_under).await;
        published.inspect_err(|_| shared.announced.withdraw(&attempt.story))?;
    }
    // What lies outside of the working tree was not written by the landing. Other lanes may have marked their own meanwhile.
    match parts.spec {
        SpecFile::Own => reconciled.write_unless_touched(),
        SpecFile::Shared => settle_spec(parts, attempt, marking),
    }
    .map_err(Refusal::failed)?;
    if let Some(proven) = proven.tree
        && landed.changed_by_hooks.is_empty()
        && landed.left_dirty.is_empty()
        && landed.held_back.is_empty()
    {
        carry_over_results(parts, &proven, landed.written.as_deref()).await;
    }
    forget(&parts.repository, &parts.shared.folder, attempt, &checkpoint).await;
    Ok((landed.commit.clone(), reconciled.notes.into_iter().chain(landing_notes(landed)).collect()))
}

/// What a run commits, which must be something.
pub(super) fn landing_of(
    parts: &Parts,
    message: Message,
    kept_under: &str,
    write_back: Vec<(PathBuf, Vec<u8>)>,
    stop: CancellationToken,
) -> Landing {
    let shared = &parts.shared;
    Landing {
        message: message.with_head(&shared.settings, &shared.folder),
        kept_under: kept_under.to_owned(),
        write_back,
        hold_back: HoldBack::default(),
        guard: Some(Guard {
            redactor: shared.redactor.clone(),
            exempt: shared.settings.commit_anyway.clone(),
            larger_than: HoldBack::default().larger_than,
        }),
        seal: shared.settings.seal.clone(),
        walls: parts.walls(),
        allow_empty: false,
        as_looked_at: false,
        stop,
    }
}

/// Moves the branch, and the user's checkout with it, to the commit that was made in the lane.
pub(super) async fn publish(
    parts: &Parts,
    checkpoint: &Checkpoint,
    landed: &Landed,
    kept: &str,
) -> Result<(), Refusal> {
    let shared = &parts.shared;
    let Some(base) = &checkpoint.head else { return Err(Refusal::failed("the branch has no commit")) };
    let turn = shared.git_turn.lock().await;
    let advanced = async {
        let submodules = parts.repository.moved_submodules(base, &landed.commit).await?;
        shared.home.bring_submodules(&parts.repository, &submodules).await?;
        shared.target.advance(&shared.home, &shared.folder, (base, &landed.commit), &submodules).await
    };
    let advanced = advanced.await;
    drop(turn);
    match advanced {
        Ok(()) => {}
        Err(error @ (AdvanceError::Blocked { .. } | AdvanceError::NoSubmodule { .. })) => {
            return Err(Refusal::Blocked { why: error.to_string() });
        }
        Err(error @ AdvanceError::Moved { .. }) => {
            let moved = shared.target.trespass(&shared.home).await.ok().flatten();
            return Err(Refusal::Trespassed { why: moved.unwrap_or_else(|| error.to_string()) });
        }
        Err(error) => return Err(Refusal::failed(error)),
    }
    let written = landed.committed.iter().chain(&landed.changed_by_hooks).cloned().collect();
    let let_go = async {
        if landed.kept.is_none() {
            // What was kept before a merge is in the commit now.
            drop(parts.repository.let_go(kept).await);
        }
    };
    let (durable, ()) = tokio::join!(shared.home.make_durable(written), let_go);
    durable.map_err(Refusal::failed)
}

/// The landed tree differs from the proven one only by the marks that the tool itself has set in the spec, so what gates
/// said of the one holds for the other, and the next story's base is known.
async fn carry_over_results(parts: &Parts, proven: &TreeId, written: Option<&[PathBuf]>) {
    let landed = match written {
        Some(written) => parts.repository.tree_id_after(written).await,
        None => parts.repository.tree_id().await,
    };
    if let Ok(landed) = landed {
        let mut cache = parts.shared.cache.lock().unwrap_or_else(PoisonError::into_inner);
        // A cache that cannot be written only costs time.
        drop(cache.carry_over(proven, &landed));
        drop(cache);
        parts.tree_is(Some(landed));
    }
}

/// Marks the story in a spec that no commit holds. One that is marked already stays as it is.
fn settle_spec(parts: &Parts, attempt: &AttemptId, marking: Marking) -> Result<(), FileError> {
    match marking {
        Marking::Done => reconcile(parts, attempt, true)?.1.write(),
        Marking::LeftToAPerson => Ok(()),
    }
}

/// Drops what is no longer needed. What cannot be dropped is only in the way of disk space, and `clean` lists it.
pub(super) async fn forget(repository: &Repository, folder: &RunFolder, attempt: &AttemptId, checkpoint: &Checkpoint) {
    drop(repository.drop_checkpoint(checkpoint).await);
    drop(std::fs::remove_file(folder.spec_before(attempt)));
}

pub(super) async fn settle(parts: &Parts, attempt: AttemptId, marking: Marking) {
    let fact = match try_to_settle(parts, &attempt, marking).await {
        Ok(()) => Fact::Settled { attempt },
        Err(why) => Fact::RevertFailed { attempt, why },
    };
    parts.shared.say(fact);
}

async fn try_to_settle(parts: &Parts, attempt: &AttemptId, marking: Marking) -> Result<(), String> {
    if parts.shared.folder.spec_before(attempt).exists() {
        settle_spec(parts, attempt, marking).map_err(|e| e.to_string())?;
    }
    if let Ok(checkpoint) = load(parts, attempt).await {
        forget(&parts.repository, &parts.shared.folder, attempt, &checkpoint).await;
    }
    Ok(())
}

pub(super) async fn revert(parts: &Parts, attempt: AttemptId, reason: &str) {
    let reason = parts.shared.redact_text(reason);
    let fact = match put_back(&parts.repository, &parts.shared.folder, parts.spec, &attempt, &reason).await {
        Ok((kept, notes)) => Fact::Reverted { attempt, kept, notes },
        Err(why) => Fact::RevertFailed { attempt, why },
    };
    parts.shared.say(fact);
}

/// Keeps the attempt's work under a ref, tells which, and puts the tree and the spec back to its checkpoint; without one
/// there is nothing to put back.
pub(crate) async fn put_back(
    repository: &Repository,
    folder: &RunFolder,
    spec: SpecFile,
    attempt: &AttemptId,
    reason: &str,
) -> Result<(Option<String>, Vec<String>), String> {
    let name = folder.checkpoint_name(attempt);
    let Some(checkpoint) = repository.find_checkpoint(&name).await.map_err(|e| e.to_string())? else {
        return Ok((None, Vec::new()));
    };
    let message = format!("attempt {attempt} of run {}: {reason}", folder.id);
    let reference = git::attempt_ref(&folder.id, attempt);
    let is_kept = repository.keep_changes(&checkpoint, &reference, &message).await.map_err(|e| e.to_string())?;
    let report = repository.revert(&checkpoint).await.map_err(|e| e.to_string())?;
    let spec_before = folder.spec_before(attempt);
    // Both are written at once. Where only the checkpoint was, no agent has been called yet.
    if spec == SpecFile::Own && spec_before.exists() {
        // A spec behind a link that leads out of the working tree is in no checkpoint.
        let restored = SpecState::kept(&spec_before).and_then(|before| {
            if repository.is_worktree_of_ours() {
                // What lies in it is tracked, and came back with the checkpoint: that is of a newer commit, if a merge was
                // cut off before it was noted how the spec reads there.
                before.restore_outside(&repository.places().top)
            } else {
                before.restore()
            }
        });
        restored.map_err(|e| e.to_string())?;
    }
    forget(repository, folder, attempt, &checkpoint).await;
    Ok((is_kept.then_some(reference), revert_notes(&report)))
}

/// Whether a changed path is work: the spec's own files are none, nor is what git ignores.
fn is_work(change: &Change, spec: &[PathBuf]) -> bool {
    !spec.contains(&change.path) && change.standing != Standing::Ignored
}

fn shown(paths: &[PathBuf]) -> String {
    paths.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", ")
}

fn landing_notes(landed: Landed) -> Vec<String> {
    let mut notes = landed.notes;
    for held in &landed.held_back {
        notes.push(format!("{} was not committed: {}", held.path.display(), held.why));
    }
    if let Some(kept) = &landed.kept {
        notes.push(format!("what was not committed is kept at {}", kept.reference));
    }
    if !landed.changed_by_hooks.is_empty() {
        notes.push(format!("changed by a hook: {}", shown(&landed.changed_by_hooks)));
    }
    if !landed.left_dirty.is_empty() {
        notes.push(format!("a hook left these changed after the commit: {}", shown(&landed.left_dirty)));
    }
    notes
}

fn revert_notes(report: &RevertReport) -> Vec<String> {
    let mut notes: Vec<String> = report
        .parked
        .iter()
        .map(|(from, to)| format!("{} was too large to be kept in git and is now at {}", from.display(), to.display()))
        .collect();
    if !report.left.is_empty() {
        notes.push(format!("left as they are, since their content was not kept: {}", shown(&report.left)));
    }
    if !report.unfit.is_empty() {
        let unfit = shown(&report.unfit);
        notes.push(format!(
            "the system does not let us give these their owner, access list or attributes back: {unfit}"
        ));
    }
    notes
}
