//! A run's commits made one, on the branch where they are: a new commit of the same tree takes their place, and the old tip
//! stays under a ref of ours. Nothing in any working tree changes.

use ralphloop_agent::redact::Redactor;
use ralphloop_agent::sanitize::one_line;
use ralphloop_core::ids::{CommitId, RunId};
use ralphloop_core::run::Run;

use crate::git::{self, GitError, HeadError, OwnCommit, Replacement};
use crate::lock::{Holder, LockError, LockKey, RunLock};
use crate::start::Place;

/// Columns of a commit's subject.
const SUBJECT: usize = 120;
/// Commits of others that are named; more are counted.
const NAMED: usize = 5;

/// Why a run's commits were not made one. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum SquashError {
    /// There are not two of them.
    #[error("run {run} has {} on {branch}: there is nothing to squash", if *.commits == 0 { "no commit" } else { "one commit" })]
    TooFew {
        /// The run.
        run: String,
        /// The branch.
        branch: String,
        /// How many there are.
        commits: usize,
    },
    /// Somebody else committed between or after them.
    #[error(
        "others committed on {branch} since the run's first commit, and their commits would change: {}; \
         `git rebase -i` can do that by hand",
        .commits.join(", ")
    )]
    OthersCommitted {
        /// The branch.
        branch: String,
        /// Their commits.
        commits: Vec<String>,
    },
    /// The commits are known elsewhere.
    #[error("the run's commits are on {remote} already; making them one would rewrite what others may have")]
    Published {
        /// The branch of the remote that has them.
        remote: String,
    },
    /// A run is at work.
    #[error(transparent)]
    Locked(#[from] LockError),
    /// The branch cannot be looked at.
    #[error(transparent)]
    Head(#[from] HeadError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// What making them one would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Squash {
    /// The branch, without `refs/heads/`.
    pub branch: String,
    /// The commits that become one, oldest first: their names and subjects.
    pub commits: Vec<git::ShownCommit>,
    /// The message of the one.
    pub message: String,
    replacement: Replacement,
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Squashed {
    /// The one commit.
    pub commit: CommitId,
    /// How many it takes the place of.
    pub commits: usize,
    /// The ref that keeps the old tip.
    pub kept: String,
}

/// What making a run's commits one would do. `subject` takes the place of the first line that it would have.
///
/// # Errors
/// It cannot be done, or git failed.
pub async fn plan(place: &Place, run: &Run, subject: Option<&str>) -> Result<Squash, SquashError> {
    let repository = &place.repository;
    let reference = run.branch();
    let branch = reference.strip_prefix("refs/heads/").unwrap_or(reference).to_owned();
    let too_few = |commits| SquashError::TooFew { run: run.id().to_string(), branch: branch.clone(), commits };
    let Some(tip) = repository.standing(reference)?.tip else { return Err(too_few(0)) };
    let work = run.plan().work.to_string();
    let since = repository.commits_since(run.base(), &tip).await?;
    let is_its = |commit: &&OwnCommit| commit.is_of(run.id(), &work);
    let Some(first) = since.iter().position(|commit| commit.run.as_ref() == Some(run.id())) else {
        return Err(too_few(0));
    };
    let after = since.get(first..).unwrap_or_default();
    let others: Vec<&OwnCommit> = after.iter().filter(|commit| !is_its(commit)).collect();
    if !others.is_empty() {
        let mut commits: Vec<String> = others.iter().take(NAMED).map(|commit| commit.shown()).collect();
        if others.len() > NAMED {
            commits.push(format!("and {} more", others.len() - NAMED));
        }
        return Err(SquashError::OthersCommitted { branch, commits });
    }
    if after.len() < 2 {
        return Err(too_few(after.len()));
    }
    if let Some(oldest) = after.first()
        && let Some(remote) = repository.on_remote(&oldest.commit).await?
    {
        return Err(SquashError::Published { remote });
    }
    let commits = after.iter().map(OwnCommit::as_shown).collect();
    let message = message(run, after, subject);
    let parent = after.first().and_then(|commit| commit.parent.clone()).unwrap_or_else(|| run.base().clone());
    let kept = git::squashed_ref(run.id());
    let replacement = Replacement { branch: reference.to_owned(), old: tip, parent, kept };
    Ok(Squash { branch, commits, message, replacement })
}

/// Makes them one. What was planned has to hold still; a branch that moved meanwhile is left alone.
///
/// # Errors
/// A run is at work, the branch moved, or git failed.
pub async fn squash(place: &Place, squash: &Squash) -> Result<Squashed, SquashError> {
    let places = place.repository.places();
    let holder = Holder::this_process(RunId::from("squashing"));
    let _tree = RunLock::acquire(&places.common_dir, LockKey::Worktree(&places.top), &holder)?;
    let _branch = RunLock::acquire(&places.common_dir, LockKey::Branch(&squash.branch), &holder)?;
    let (commit, kept) = place.repository.replace(&squash.replacement, &squash.message).await?;
    Ok(Squashed { commit, commits: squash.commits.len(), kept })
}

/// Subject, body, and the trailers by which the stories are found again as if each had its commit.
fn message(run: &Run, commits: &[OwnCommit], subject: Option<&str>) -> String {
    let redactor = Redactor::new(std::env::vars_os());
    let plan = run.plan();
    let title = plan.title.clone().unwrap_or_else(|| plan.work.id.clone());
    let subject = subject.map_or_else(|| format!("feat: {title}"), str::to_owned);
    let mut text = format!("{}\n\n", one_line(&redactor.redact_text(&subject), SUBJECT));
    for commit in commits {
        text.push_str(&format!("- {}\n", one_line(&commit.subject, SUBJECT)));
    }
    let work = one_line(&plan.work.to_string(), SUBJECT);
    text.push_str(&format!("\n{}: {}\n{}: {work}\n", git::RUN, run.id(), git::WORK));
    for (story, attempt) in commits.iter().flat_map(|commit| &commit.stories) {
        text.push_str(&format!("{}: {story}#{attempt}\n", git::SQUASHED));
    }
    if commits.iter().any(|commit| commit.closes) {
        text.push_str(&format!("{}: yes\n", git::FINISH));
    }
    if commits.iter().any(|commit| commit.unsigned) {
        // Of those that are signed by now, the spec says that they are done.
        text.push_str(&format!("{}: awaited\n", git::SIGN_OFF));
    }
    if let Some(cost) = run.usage().cost {
        text.push_str(&format!("Ralphloop-Cost: {:.4} USD\n", cost.dollars()));
    }
    text
}
