//! Stories that have landed although their spec cannot say so: only their commits tell.

use ralphloop_core::ids::{CommitId, StoryId};
use ralphloop_core::plan::{Plan, WorkState};

use super::WorkRef;
use crate::git::{GitError, LandedStory, Repository};
use crate::lane::message::trailer_id;

/// So many stories are named in a message.
const SHOWN: usize = 8;

/// Open stories of `plan` that only a commit could call done, and whose commit is on the branch. Those in `asked_for` are
/// wanted again.
pub(crate) async fn known_from_commits(
    repository: &Repository,
    work: &WorkRef,
    plan: &Plan,
    asked_for: &[StoryId],
) -> Result<Vec<(StoryId, LandedStory)>, GitError> {
    let open = told_by_commits(work, plan);
    if open.iter().all(|story| asked_for.contains(story)) {
        return Ok(Vec::new());
    }
    let name = work.id.to_string();
    let landed: Vec<LandedStory> =
        repository.landed_since(None).await?.into_iter().filter(|one| one.work == name).collect();
    let found = open.into_iter().filter(|story| !asked_for.contains(story)).filter_map(|story| {
        let commit = landed.iter().rev().find(|one| one.story.as_str() == trailer_id(&story))?.clone();
        Some((story, commit))
    });
    Ok(found.collect())
}

/// The open stories whose landing leaves no mark in the spec.
fn told_by_commits(work: &WorkRef, plan: &Plan) -> Vec<StoryId> {
    super::load(work).map(|files| ralphloop_spec::told_by_commits(&files, plan)).unwrap_or_default()
}

/// Open stories of `plan` that a person has to sign, and whose commit is on the branch.
pub(crate) async fn unsigned(
    repository: &Repository,
    work: &WorkRef,
    plan: &Plan,
) -> Result<Vec<(StoryId, CommitId)>, GitError> {
    let wanted = plan.stories.iter().filter(|story| story.needs_sign_off() && story.state != WorkState::Done);
    let open: Vec<StoryId> = wanted.map(|story| story.id.clone()).collect();
    if open.is_empty() {
        return Ok(Vec::new());
    }
    let name = work.id.to_string();
    let landed = repository.landed_since(None).await?;
    let found = open.into_iter().filter_map(|story| {
        let is_it = |one: &&LandedStory| one.unsigned && one.work == name && one.story.as_str() == trailer_id(&story);
        let commit = landed.iter().rev().find(is_it)?.commit.clone();
        Some((story, commit))
    });
    Ok(found.collect())
}

/// Takes these stories for done.
pub(crate) fn take_for_done(plan: &mut Plan, landed: &[(StoryId, LandedStory)]) {
    for story in plan.stories.iter_mut().filter(|story| landed.iter().any(|(id, _)| *id == story.id)) {
        story.state = WorkState::Done;
    }
}

/// What a person should know of them.
pub(crate) fn said(landed: &[(StoryId, LandedStory)]) -> Option<String> {
    let (first, _) = landed.first()?;
    let named = landed.iter().take(SHOWN).map(|(story, one)| {
        let commit = one.commit.as_str();
        format!("{story} ({})", commit.get(..10).unwrap_or(commit))
    });
    let more = landed.len().checked_sub(SHOWN).filter(|more| *more > 0).map(|more| format!(" and {more} more"));
    Some(format!(
        "still open in the spec, but landed already: {}{}; `--story {first}` does one again",
        named.collect::<Vec<_>>().join(", "),
        more.unwrap_or_default()
    ))
}
