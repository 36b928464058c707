//! What can be done about a run that is over, for the screen: by the same code as `sign`, `squash`, `pr` and
//! `run --finish`.

use std::path::Path;
use std::time::Duration;

use ralphloop_core::ids::{CommitId, StoryId};
use ralphloop_core::outcome::Outcome;
use ralphloop_core::plan::{Story, WorkState};
use ralphloop_core::run::{Activity, Run, StoryRecord, StoryState};
use ralphloop_engine::finish::{self, FinishError};
use ralphloop_engine::lock::LockError;
use ralphloop_engine::own_commit::OwnCommitError;
use ralphloop_engine::pull_request::{self, PullRequestError};
use ralphloop_engine::sign_off::{self, SignError};
use ralphloop_engine::squash::{self, SquashError};
use ralphloop_engine::start::{Place, WorkReading};
use ralphloop_engine::work::{self, WorkRef};
use ralphloop_tui::port::{Gesture, Offer};

use crate::config::Settings;
use crate::output::one_line;
use crate::verbs::closing;
use crate::verbs::sign::signed_text;
use crate::view::short;

/// A run's process holds its locks a moment longer than its last event is there.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often they are tried again.
const AGAIN: Duration = Duration::from_millis(100);

/// What there is to do now.
pub(super) async fn offers(run: &Run, place: &Place, cwd: &Path) -> Vec<Offer> {
    let mut offers = Vec::new();
    let mut offer = |gesture, what, command| offers.push(Offer { gesture, what, command });
    for (story, commit) in to_sign(run, cwd) {
        let what = format!(
            "{}: {}\nLook at it: {}\n`git show {}` shows what landed. Signing says that you have looked and that it is done; \
             its mark is a commit of its own. If it is not, `ralphloop retry {}` has it done again.",
            one_line(story.id.as_str()),
            one_line(&story.title),
            one_line(&story.sign_off.join("; ")),
            short(commit.as_str()),
            one_line(story.id.as_str()),
        );
        let command = format!("ralphloop sign {}", one_line(story.id.as_str()));
        offer(Gesture::Sign(story.id.clone()), Ok(what), command);
    }
    match squash::plan(place, run, None).await {
        Err(SquashError::TooFew { .. }) => {}
        planned => {
            let what = planned.map(|squash| closing::squash_text(&squash)).map_err(|error| error.to_string());
            offer(Gesture::Squash, what, format!("ralphloop squash {}", run.id()));
        }
    }
    match pull_request::plan(place, run).await {
        Err(PullRequestError::NoCommits { .. }) => {}
        planned => {
            let what = planned.map(|planned| closing::pull_request_text(&planned)).map_err(|error| error.to_string());
            offer(Gesture::PullRequest, what, format!("ralphloop pr {}", run.id()));
        }
    }
    if let Some((work, does)) = to_close(run, cwd) {
        let id = one_line(&work.id.to_string());
        let what = format!("{id} is done. Closing it {does}; what that changes in the tree is a commit of its own.");
        offer(Gesture::Close, Ok(what), format!("ralphloop run {id} --finish"));
    }
    offers
}

/// The stories of a run that have landed and that nobody has signed yet, with their commits.
fn to_sign<'r>(run: &'r Run, cwd: &Path) -> Vec<(&'r Story, &'r CommitId)> {
    let waits = |(story, record): (&'r Story, &'r StoryRecord)| match &record.state {
        StoryState::AwaitsSignOff { commit, .. } => Some((story, commit)),
        _ => None,
    };
    let mut waiting: Vec<_> = run.records().filter_map(waits).collect();
    if waiting.is_empty() {
        return waiting;
    }
    // What was signed since, only the spec says.
    let work = work::resolve(Some(&run.plan().work.to_string()), cwd);
    let now = work.ok().and_then(|work| WorkReading::of(&work).ok());
    let is_done =
        |id: &StoryId| now.as_ref().and_then(|now| now.plan().story(id)).is_some_and(|s| s.state == WorkState::Done);
    waiting.retain(|(story, _)| !is_done(&story.id));
    waiting
}

/// The work of a run, if all of it has passed and it can be closed, and what closing it does.
pub(super) fn to_close(run: &Run, cwd: &Path) -> Option<(WorkRef, &'static str)> {
    let done = matches!(run.activity(), Activity::Ended(Outcome::Complete | Outcome::NothingToDo { .. }));
    if !done || !run.records().all(|(_, record)| record.state.passed()) {
        return None;
    }
    let work = work::resolve(Some(&run.plan().work.to_string()), cwd).ok()?;
    let does = finish::offer(&work)?;
    Some((work, does))
}

/// Does it; what was done, in words.
pub(super) async fn carry_out(gesture: &Gesture, run: &Run, place: &Place, cwd: &Path) -> Result<String, String> {
    let tries = async {
        let mut looks = tokio::time::interval(AGAIN);
        loop {
            looks.tick().await;
            match once(gesture, run, place, cwd).await {
                Err(Failed::Locked(_)) => {}
                other => return other,
            }
        }
    };
    let done = match tokio::time::timeout(PATIENCE, tries).await {
        Ok(done) => done,
        Err(_) => once(gesture, run, place, cwd).await,
    };
    done.map_err(|failed| match failed {
        Failed::Locked(why) | Failed::Other(why) => why,
    })
}

enum Failed {
    Locked(String),
    Other(String),
}

async fn once(gesture: &Gesture, run: &Run, place: &Place, cwd: &Path) -> Result<String, Failed> {
    let other = |error: &dyn std::error::Error| Failed::Other(error.to_string());
    match gesture {
        Gesture::Sign(story) => {
            let work = work::resolve(Some(&run.plan().work.to_string()), cwd).map_err(|error| other(&error))?;
            match sign_off::sign(place, &work, story).await {
                Ok(signed) => Ok(signed_text(&one_line(story.as_str()), &signed)),
                Err(SignError::Commit(OwnCommitError::Locked(error @ LockError::Held { .. }))) => {
                    Err(Failed::Locked(error.to_string()))
                }
                Err(error) => Err(other(&error)),
            }
        }
        Gesture::Squash => {
            let planned = squash::plan(place, run, None).await.map_err(|error| other(&error))?;
            match squash::squash(place, &planned).await {
                Ok(squashed) => Ok(closing::squashed_text(&squashed)),
                Err(SquashError::Locked(error @ LockError::Held { .. })) => Err(Failed::Locked(error.to_string())),
                Err(error) => Err(other(&error)),
            }
        }
        Gesture::PullRequest => {
            let planned = pull_request::plan(place, run).await.map_err(|error| other(&error))?;
            pull_request::open(place, &planned).await.map_err(|error| other(&error))
        }
        Gesture::Close => {
            let Some((work, _)) = to_close(run, cwd) else {
                return Err(Failed::Other("the work is closed already, or not all of it is done".to_owned()));
            };
            match finish::finish(place, &work, Settings::default().command_timeout).await {
                Ok(finished) => Ok(closing::finished_text(&finished)),
                Err(FinishError::Commit(OwnCommitError::Locked(error @ LockError::Held { .. }))) => {
                    Err(Failed::Locked(error.to_string()))
                }
                Err(error) => Err(other(&error)),
            }
        }
    }
}
