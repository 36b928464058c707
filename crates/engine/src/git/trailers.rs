//! What has landed, by the trailers of the commits on the branch: the record that outlives every journal.
use ralphloop_core::ids::{CommitId, RunId, StoryId};

use super::{GitError, Repository};

/// Names of the trailers that say which attempt a commit is.
const RUN: &str = "Ralphloop-Run";
const STORY: &str = "Ralphloop-Story";
const ATTEMPT: &str = "Ralphloop-Attempt";
const WORK: &str = "Ralphloop-Work";

/// A story's commit on the branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandedStory {
    /// The commit.
    pub commit: CommitId,
    /// Which run landed it.
    pub run: RunId,
    /// Which story it is.
    pub story: StoryId,
    /// Which attempt, as the trailer has it.
    pub attempt: String,
    /// Of which work the story is, as the trailer has it.
    pub work: String,
}

impl Repository {
    /// The commit with which a story landed in a run, on a branch and after `base`.
    pub async fn find_landed(
        &self,
        branch: &str,
        base: &CommitId,
        run: &RunId,
        story: &StoryId,
    ) -> Result<Option<CommitId>, GitError> {
        let landed = self.landed_on(branch, Some(base)).await?;
        Ok(landed.into_iter().rev().find(|one| one.run == *run && one.story == *story).map(|one| one.commit))
    }

    /// All story commits on the current branch after `base`, oldest first; from the beginning without one.
    pub async fn landed_since(&self, base: Option<&CommitId>) -> Result<Vec<LandedStory>, GitError> {
        self.landed_on("HEAD", base).await
    }

    /// The same, on a branch by its full name.
    pub async fn landed_on(&self, branch: &str, base: Option<&CommitId>) -> Result<Vec<LandedStory>, GitError> {
        let value = |name: &str| format!("%x00%(trailers:key={name},valueonly,unfold,separator=%x01)");
        let format = format!("--format=%x02%H{}{}{}{}", value(RUN), value(STORY), value(ATTEMPT), value(WORK));
        let range = base.map_or_else(|| branch.to_owned(), |base| format!("{base}..{branch}"));
        let args = ["log", "--reverse", "--first-parent", "--no-show-signature", &format, "--end-of-options", &range];
        let answer = self.read().args(args).answer().await?;
        if !answer.success() {
            // A branch without commits has none of ours either.
            return if answer.message().contains("unknown revision") && base.is_none() {
                Ok(Vec::new())
            } else {
                Err(answer.into_error())
            };
        }
        let text = String::from_utf8_lossy(&answer.stdout);
        Ok(text.split('\u{2}').filter_map(parse).collect())
    }
}

/// A commit as it is shown to people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownCommit {
    /// Its short name.
    pub name: String,
    /// The first line of its message.
    pub subject: String,
}

impl Repository {
    /// The commits on HEAD that are not in `base` and were made after `since` (seconds since the epoch), oldest first.
    pub async fn committed_after(&self, base: &CommitId, since: i64) -> Result<Vec<ShownCommit>, GitError> {
        let range = format!("{base}..HEAD");
        let args = ["log", "--reverse", "--no-show-signature", "--format=%ct%x00%h%x00%s", "--end-of-options", &range];
        let answer = self.read().args(args).run().await?;
        let text = String::from_utf8_lossy(&answer.stdout);
        let commits = text.lines().filter_map(|line| {
            let mut fields = line.splitn(3, '\0');
            let at: i64 = fields.next()?.parse().ok()?;
            let (name, subject) = (fields.next()?.to_owned(), fields.next()?.to_owned());
            (at > since).then_some(ShownCommit { name, subject })
        });
        Ok(commits.collect())
    }
}

fn parse(commit: &str) -> Option<LandedStory> {
    let mut fields = commit.trim_end_matches('\n').split('\0');
    let commit = fields.next()?.to_owned();
    // A trailer that a hook doubled counts once: the last one is what git's own tools take.
    let mut last =
        || fields.next()?.rsplit('\u{1}').next().map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
    let (run, story) = (last()?, last()?);
    Some(LandedStory {
        commit: CommitId(commit),
        run: RunId(run),
        story: StoryId(story),
        attempt: last().unwrap_or_default(),
        work: last().unwrap_or_default(),
    })
}
