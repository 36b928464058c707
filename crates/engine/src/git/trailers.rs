//! What has landed, by the trailers of the commits on the branch: the record that outlives every journal.
use ralphloop_core::ids::{CommitId, RunId, StoryId};

use super::{Answer, Command, GitError, Repository};

/// Names of the trailers that say which attempt a commit is.
pub(crate) const RUN: &str = "Ralphloop-Run";
const STORY: &str = "Ralphloop-Story";
const ATTEMPT: &str = "Ralphloop-Attempt";
/// Of which work it is.
pub(crate) const WORK: &str = "Ralphloop-Work";
/// Of a commit that took the place of several: `STORY#ATTEMPT`, once for each.
pub(crate) const SQUASHED: &str = "Ralphloop-Squashed";
/// Of the commit of a story that a person has to sign.
pub(crate) const SIGN_OFF: &str = "Ralphloop-Sign-Off";
/// Of the commit that adds a task which mends another: which.
pub(crate) const FIX_TASK: &str = "Ralphloop-Fix-Task";
/// Of the commit with which a person signs a story: which.
pub(crate) const SIGNED: &str = "Ralphloop-Signed";
/// Of the commit that closes a work.
pub(crate) const FINISH: &str = "Ralphloop-Finish";

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
    /// When it landed, a person still had to sign it.
    pub unsigned: bool,
}

impl Repository {
    /// The commit with which a story landed in a run, on a branch and after `base`.
    pub async fn find_landed(
        &self,
        branch: &str,
        base: &CommitId,
        run: &RunId,
        story: &StoryId,
    ) -> Result<Option<LandedStory>, GitError> {
        let landed = self.landed_on(branch, Some(base)).await?;
        Ok(landed.into_iter().rev().find(|one| one.run == *run && one.story == *story))
    }

    /// All story commits on the current branch after `base`, oldest first; from the beginning without one.
    pub async fn landed_since(&self, base: Option<&CommitId>) -> Result<Vec<LandedStory>, GitError> {
        self.landed_on("HEAD", base).await
    }

    /// The same, on a branch by its full name.
    pub async fn landed_on(&self, branch: &str, base: Option<&CommitId>) -> Result<Vec<LandedStory>, GitError> {
        let range = base.map_or_else(|| branch.to_owned(), |base| format!("{base}..{branch}"));
        let answer = self.listing(&range).answer().await?;
        if !answer.success() {
            // A branch without commits has none of ours either.
            return if answer.message().contains("unknown revision") && base.is_none() {
                Ok(Vec::new())
            } else {
                Err(answer.into_error())
            };
        }
        Ok(commits_of(&answer).into_iter().flat_map(OwnCommit::landed).collect())
    }

    /// The commits of `tip` that are not in `base`, oldest first, along first parents.
    pub(crate) async fn commits_since(&self, base: &CommitId, tip: &CommitId) -> Result<Vec<OwnCommit>, GitError> {
        Ok(commits_of(&self.listing(&format!("{base}..{tip}")).run().await?))
    }

    fn listing(&self, range: &str) -> Command<'_> {
        let value = |name: &str| format!("%x00%(trailers:key={name},valueonly,unfold,separator=%x01)");
        let names = [RUN, STORY, ATTEMPT, WORK, SQUASHED, FINISH, SIGNED, SIGN_OFF];
        let format = format!("--format=%x02%H%x00%P{}%x00%s", names.map(value).concat());
        self.read().args([
            "log",
            "--reverse",
            "--first-parent",
            "--no-show-signature",
            &format,
            "--end-of-options",
            range,
        ])
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

/// The commits that [`Repository::listing`] asked for.
fn commits_of(answer: &Answer) -> Vec<OwnCommit> {
    let text = String::from_utf8_lossy(&answer.stdout);
    text.split('\u{2}').skip(1).map(parse).collect()
}

fn parse(commit: &str) -> OwnCommit {
    let mut fields = commit.trim_end_matches('\n').split('\0');
    let mut next = || fields.next();
    let (commit, parents) = (next().unwrap_or_default(), next().unwrap_or_default());
    let (run, story, attempt, work) = (last(next()), last(next()), last(next()), last(next()));
    let (squashed, closes) = (tried(next()), last(next()).is_some());
    let (signs, unsigned, subject) = (last(next()).is_some(), last(next()).is_some(), next());
    let stories = match story {
        Some(story) => vec![(story, attempt.unwrap_or_default())],
        None => squashed,
    };
    OwnCommit {
        commit: CommitId(commit.to_owned()),
        parent: parents.split(' ').next().filter(|id| !id.is_empty()).map(|id| CommitId(id.to_owned())),
        subject: subject.unwrap_or_default().to_owned(),
        run: run.map(|run| RunId(run.to_owned())),
        stories: stories.into_iter().map(|(story, attempt)| (story.to_owned(), attempt.to_owned())).collect(),
        closes: closes || signs,
        unsigned,
        work: work.unwrap_or_default().to_owned(),
    }
}

/// A trailer that a hook doubled counts once: the last one is what git's own tools take.
fn last(values: Option<&str>) -> Option<&str> {
    values?.rsplit('\u{1}').next().map(str::trim).filter(|value| !value.is_empty())
}

/// `STORY#ATTEMPT`, several; an id may hold a `#` itself.
fn tried(values: Option<&str>) -> Vec<(&str, &str)> {
    values.unwrap_or_default().split('\u{1}').filter_map(|value| value.trim().rsplit_once('#')).collect()
}

/// A commit on the branch of a run, and what its trailers say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnCommit {
    pub(crate) commit: CommitId,
    /// Its first parent.
    pub(crate) parent: Option<CommitId>,
    pub(crate) subject: String,
    /// The run that made it.
    pub(crate) run: Option<RunId>,
    /// The stories in it, with their attempts.
    pub(crate) stories: Vec<(String, String)>,
    /// It closes a work, or signs a story of it.
    pub(crate) closes: bool,
    /// A person had to sign its story.
    pub(crate) unsigned: bool,
    work: String,
}

impl OwnCommit {
    /// The stories that landed with it: its own, or those whose commits it took the place of.
    fn landed(self) -> Vec<LandedStory> {
        let Some(run) = self.run else { return Vec::new() };
        let landed = |(story, attempt): (String, String)| LandedStory {
            commit: self.commit.clone(),
            run: run.clone(),
            story: StoryId(story),
            attempt,
            work: self.work.clone(),
            unsigned: self.unsigned,
        };
        self.stories.into_iter().map(landed).collect()
    }

    /// A run made it, or the closing of its work, or a person's signature below one of its stories.
    pub(crate) fn is_of(&self, run: &RunId, work: &str) -> bool {
        self.run.as_ref() == Some(run) || (self.closes && self.work == work)
    }

    pub(crate) fn as_shown(&self) -> ShownCommit {
        let name = self.commit.as_str();
        ShownCommit { name: name.get(..10).unwrap_or(name).to_owned(), subject: self.subject.clone() }
    }

    /// For people.
    pub(crate) fn shown(&self) -> String {
        let shown = self.as_shown();
        format!("{} {}", shown.name, shown.subject)
    }
}
