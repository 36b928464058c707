//! A pull request for what a run has landed: the branch is pushed, and `gh` opens it. What will be called is known before
//! anything is.

use std::time::Duration;

use ralphloop_agent::redact::Redactor;
use ralphloop_agent::sanitize::one_line;
use ralphloop_core::run::{Run, StoryState};

use crate::gates::{find::on_path, output};
use crate::git::{GitError, HeadError};
use crate::process::{Call, Exit, Output, Ownership, SpawnError};
use crate::start::Place;

/// A push may carry much.
const PUSH_TIMEOUT: Duration = Duration::from_mins(10);
/// Asking GitHub.
const GH_TIMEOUT: Duration = Duration::from_mins(2);
/// Columns of a title.
const TITLE: usize = 120;
/// How many characters of what a program said are shown.
const MAX_SHOWN: usize = 1000;
/// Branches that are the main one where the remote does not say which is.
const MAIN: &[&str] = &["main", "master", "trunk"];

/// Why no pull request was opened.
#[derive(Debug, thiserror::Error)]
pub enum PullRequestError {
    /// `gh` is not there.
    #[error("`gh` is not installed, which opens pull requests: https://cli.github.com")]
    NoGh,
    /// Nowhere to push to.
    #[error("the repository has no remote to push to: `git remote add origin ADDRESS` names one")]
    NoRemote,
    /// Nothing has landed.
    #[error("run {run} has no commit on {branch} that a pull request could be about")]
    NoCommits {
        /// The run.
        run: String,
        /// The branch.
        branch: String,
    },
    /// A program said no.
    #[error("`{command}` failed: {said}")]
    Failed {
        /// The call.
        command: String,
        /// Its words.
        said: String,
    },
    /// A program could not be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The branch cannot be looked at.
    #[error(transparent)]
    Head(#[from] HeadError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// What opening a pull request would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequest {
    /// The call that pushes.
    pub push: Vec<String>,
    /// The call that opens it, with the text on its standard input.
    pub create: Vec<String>,
    /// That text.
    pub body: String,
}

impl PullRequest {
    /// Both calls as they would be typed.
    pub fn commands(&self) -> [String; 2] {
        [&self.push, &self.create].map(shell_words::join)
    }
}

/// What opening a pull request for a run would do. Looks only, and asks no server.
///
/// # Errors
/// It cannot be done.
pub async fn plan(place: &Place, run: &Run) -> Result<PullRequest, PullRequestError> {
    let repository = &place.repository;
    let branch = run.branch().strip_prefix("refs/heads/").unwrap_or(run.branch());
    let none = || PullRequestError::NoCommits { run: run.id().to_string(), branch: branch.to_owned() };
    let tip = repository.standing(run.branch())?.tip.ok_or_else(none)?;
    let commits = repository.commits_since(run.base(), &tip).await?;
    if !commits.iter().any(|commit| commit.run.as_ref() == Some(run.id())) {
        return Err(none());
    }
    let remote = repository.push_remote(branch).await?.ok_or(PullRequestError::NoRemote)?;
    if !on_path("gh") {
        return Err(PullRequestError::NoGh);
    }
    let base = repository.main_branch_of(&remote).await?;
    let is_main = base.as_deref().map_or(MAIN.contains(&branch), |base| base == branch);
    // The main branch cannot be asked to take itself.
    let head = if is_main { format!("ralphloop/{}", run.id()) } else { branch.to_owned() };
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let push = words(&["git", "push", &remote, &format!("refs/heads/{branch}:refs/heads/{head}")]);
    let redactor = Redactor::new(std::env::vars_os());
    let plan = run.plan();
    let title = plan.title.clone().unwrap_or_else(|| plan.work.id.clone());
    let title = one_line(&redactor.redact_text(&title), TITLE);
    let mut create = words(&["gh", "pr", "create", "--head", &head, "--title", &title, "--body-file", "-"]);
    if let Some(base) = &base {
        create.extend(words(&["--base", base]));
    }
    Ok(PullRequest { push, create, body: redactor.redact_text(&body(run)) })
}

/// Pushes and opens it; its address, as `gh` says it.
///
/// # Errors
/// One of the two calls failed; a push that was made stays.
pub async fn open(place: &Place, what: &PullRequest) -> Result<String, PullRequestError> {
    call(place, &what.push, None, PUSH_TIMEOUT).await?;
    let created = call(place, &what.create, Some(&what.body), GH_TIMEOUT).await?;
    let said = created.stdout.text();
    Ok(said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().trim().to_owned())
}

async fn call(
    place: &Place,
    words: &[String],
    stdin: Option<&str>,
    timeout: Duration,
) -> Result<Output, PullRequestError> {
    let [program, arguments @ ..] = words else { return Err(PullRequestError::NoGh) };
    let mut call = Call::new(program, &place.repository.places().top)
        .args(arguments)
        .ownership(Ownership::Supervised)
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GH_PROMPT_DISABLED", "1")
        .env("GH_NO_UPDATE_NOTIFIER", "1")
        .env("NO_COLOR", "1")
        .timeout(timeout);
    if let Some(text) = stdin {
        call = call.stdin_bytes(text);
    }
    let output = place.spawner.run(call).await?;
    if let Exit::Code(0) = output.exit {
        return Ok(output);
    }
    let said = output.stderr.text();
    let said = if said.trim().is_empty() { output.stdout.text() } else { said };
    let said: String = output::clean(said.as_bytes()).trim().chars().take(MAX_SHOWN).collect();
    Err(PullRequestError::Failed { command: shell_words::join(words), said: format!("it {}: {said}", output.exit) })
}

/// What the pull request says: the stories, those that did not pass with why.
fn body(run: &Run) -> String {
    let mut text = format!("Work: `{}`\n\n", one_line(&run.plan().work.to_string(), TITLE));
    for (story, record) in run.records() {
        let name = format!("{} {}", one_line(story.id.as_str(), TITLE), one_line(&story.title, TITLE));
        match &record.state {
            StoryState::DoneBefore => {}
            state if state.passed() => text.push_str(&format!("- [x] {name}\n")),
            _ => {
                let why = record.reason.as_deref().map_or_else(String::new, |why| format!(": {}", one_line(why, 300)));
                text.push_str(&format!("- [ ] {name}{why}\n"));
            }
        }
    }
    text.push_str(&format!("\nEvery commit names its story, attempt and checks. Run {}.\n", run.id()));
    text
}
