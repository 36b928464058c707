//! A session that drives a run: it starts one, is handed calls, answers them, and is told what came of it.

use std::sync::Arc;
use std::time::Duration;

use ralphloop_core::run::{Attempt, Phase, Run};
use ralphloop_engine::control::{self, Request};
use ralphloop_engine::inside::Offer;
use ralphloop_engine::runs::RunFolder;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::seat::{Seat, Sight};
use super::wire::{Call, State, Turn};
use crate::config::{self, Layer};
use crate::error::CliError;
use crate::exit::Exit;
use crate::host::Host;
use crate::verbs::launch::Launch;
use crate::verbs::run::{Eyes, go_under};
use crate::verbs::take_up::Wish;
use crate::view::status::Status;

/// A run that this session drives, or drove.
#[derive(Debug)]
struct Driven {
    sight: watch::Sender<Sight>,
    driving: JoinHandle<Result<Exit, CliError>>,
}

/// What a session is asked to start.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) work: Option<String>,
    pub(super) stories: Vec<String>,
    pub(super) flags: Layer,
    pub(super) fresh: bool,
    /// What the session calls itself.
    pub(super) name: String,
}

/// One session. At most one run at a time.
#[derive(Debug)]
pub(super) struct Session {
    host: Arc<Host>,
    driven: Mutex<Option<Driven>>,
}

impl Session {
    pub(super) fn new(host: Host) -> Self {
        Self { host: Arc::new(host), driven: Mutex::new(None) }
    }

    pub(super) fn host(&self) -> Arc<Host> {
        self.host.clone()
    }

    /// Starts a run, or goes on with the unfinished one of the same work.
    pub(super) async fn start(&self, wanted: Wanted) -> Result<(), CliError> {
        let mut driven = self.driven.lock().await;
        if driven
            .as_ref()
            .is_some_and(|driven| driven.sight.borrow().summary.is_none() && !driven.driving.is_finished())
        {
            return Err(CliError::usage("a run of this session is going on").hint("`next` says what it waits for"));
        }
        let Wanted { work, stories, flags, fresh, name } = wanted;
        let host = self.host.clone();
        let prepared = tokio::task::spawn_blocking(move || {
            Launch::new(work, stories, &flags, &host).prepare_to_run(flags, false, &host)
        });
        let prepared = prepared.await.map_err(|error| CliError::environment("the start broke off").cause(&error))??;
        let sight = watch::Sender::new(Sight::default());
        let mut begun = sight.subscribe();
        let seat = Seat::new(name, sight.clone());
        let wish = if fresh { Wish::Fresh } else { Wish::Resume };
        let mut driving = tokio::spawn(go_under(prepared, wish, false, Eyes::Inside(Box::new(seat)), None));
        let refused = tokio::select! {
            biased;
            seen = begun.wait_for(|sight| sight.run.is_some() || sight.summary.is_some()) => seen.is_err(),
            ended = &mut driving => return match ended {
                Ok(ended) => ended.map(|_| ()),
                Err(error) => Err(CliError::environment("the start broke off").cause(&error)),
            },
        };
        if refused {
            driving.await.map_err(|error| CliError::environment("the start broke off").cause(&error))??;
        } else {
            *driven = Some(Driven { sight, driving });
        }
        Ok(())
    }

    async fn sight(&self) -> Result<watch::Sender<Sight>, CliError> {
        let driven = self.driven.lock().await;
        driven.as_ref().map(|driven| driven.sight.clone()).ok_or_else(|| {
            CliError::usage("this session drives no run")
                .hint("`start_run` begins one, or goes on with one that was left")
        })
    }

    /// What is to be done next. Waits for it no longer than `patience`; `again` names a call that was handed out before.
    pub(super) async fn next(&self, again: Option<&str>, patience: Duration) -> Result<Turn, CliError> {
        let sight = self.sight().await?;
        let deadline = Instant::now() + patience;
        let mut changes = sight.subscribe();
        loop {
            changes.mark_unchanged();
            if let Some(turn) = quietly(&sight, |sight| due(sight, again)) {
                return Ok(turn);
            }
            // An error means that the run is gone, which the next look finds.
            if tokio::time::timeout_at(deadline, changes.changed()).await.is_err() {
                return Ok(quietly(&sight, busy));
            }
        }
    }

    /// Answers the call of an attempt.
    pub(super) async fn answer(&self, attempt: &str, words: String) -> Result<(), CliError> {
        let sight = self.sight().await?;
        let (offer, others) = quietly(&sight, |sight| {
            let offer = sight.taken.remove(attempt);
            (offer, sight.taken.keys().cloned().collect::<Vec<_>>())
        });
        let hint = match others.as_slice() {
            [] => "`next` says what is to be done".to_owned(),
            others => format!("what waits for a report: {}", others.join(", ")),
        };
        if offer.is_some_and(|offer| offer.answer(words)) {
            return Ok(());
        }
        Err(CliError::usage(format!("no call of {attempt:?} waits for a report")).hint(hint))
    }

    /// Asks something of the run.
    pub(super) async fn ask(&self, request: &Request) -> Result<(), CliError> {
        let sight = self.sight().await?;
        let folder = match &*sight.borrow() {
            Sight { run: Some((folder, _)), summary: None, .. } => folder.clone(),
            _ => return Err(CliError::usage("the run of this session is over")),
        };
        control::ask(&folder.id, folder.path(), request).await.map_err(|error| CliError::environment(error.to_string()))
    }

    /// Stops the run. One that is stopped now has taken its calls back when this returns, or `patience` is over.
    pub(super) async fn stop(&self, now: bool, patience: Duration) -> Result<(), CliError> {
        let mut changes = self.sight().await?.subscribe();
        self.ask(&Request::Stop { now }).await?;
        let taken_back = |sight: &Sight| sight.run.as_ref().is_none_or(|(_, run)| !run.attempts().any(in_agent));
        if now {
            // However that goes, `next` says how it stands.
            drop(tokio::time::timeout(patience, changes.wait_for(taken_back)).await);
        }
        Ok(())
    }

    /// How the run of this session stands; nothing if there is none.
    pub(super) async fn status(&self) -> Option<Status> {
        let driven = self.driven.lock().await;
        let sight = driven.as_ref()?.sight.borrow();
        sight.run.as_ref().map(status_of)
    }

    /// Ends the run gently, and waits for its end: the session is over.
    pub(super) async fn close(&self) -> Result<Exit, CliError> {
        // What has ended, or ends already, needs no word.
        drop(self.ask(&Request::Stop { now: true }).await);
        match self.driven.lock().await.take() {
            None => Ok(Exit::DONE),
            Some(driven) => {
                driven.driving.await.map_err(|error| CliError::environment("the run broke off").cause(&error))?
            }
        }
    }
}

fn status_of((folder, run): &(RunFolder, Run)) -> Status {
    Status::of(run, folder.live_process().map(|process| process.pid))
}

/// Changes what a session sees, without telling those who wait for news of the run; withdrawn calls are gone first.
fn quietly<T: Default>(sight: &watch::Sender<Sight>, change: impl FnOnce(&mut Sight) -> T) -> T {
    let mut came = T::default();
    sight.send_if_modified(|sight| {
        sight.drop_withdrawn();
        came = change(sight);
        false
    });
    came
}

/// The attempt is in the hands of the session.
fn in_agent(attempt: &Attempt) -> bool {
    matches!(attempt.phase, Phase::Agent { .. })
}

/// What the session is told at once, if there is something.
fn due(sight: &mut Sight, again: Option<&str>) -> Option<Turn> {
    if let Some(attempt) = again
        && let Some(offer) = sight.taken.get(attempt)
    {
        let call = call_of(offer);
        return Some(Turn { call: Some(call), ..Turn::new(State::Work, sight) });
    }
    if let Some(offer) = sight.waiting.pop_front() {
        let call = call_of(&offer);
        sight.taken.insert(offer.attempt.to_string(), offer);
        return Some(Turn { call: Some(call), ..Turn::new(State::Work, sight) });
    }
    if let Some(summary) = sight.summary.clone() {
        return Some(Turn { summary: Some(summary), ..Turn::new(State::Ended, sight) });
    }
    let only_reports = sight
        .run
        .as_ref()
        .is_some_and(|(_, run)| run.attempts().len() == sight.taken.len() && run.attempts().all(in_agent));
    (only_reports && !sight.taken.is_empty()).then(|| Turn::new(State::Reports, sight))
}

/// What it is told when there is nothing for it to do yet.
fn busy(sight: &mut Sight) -> Turn {
    let status = sight.run.as_ref().map(status_of);
    let (doing, resume_at) = status.map_or((None, None), |status| (status.reason, status.resume_at));
    let state = if resume_at.is_some() { State::Waiting } else { State::Busy };
    Turn { doing, resume_at, ..Turn::new(state, sight) }
}

fn call_of(offer: &Offer) -> Call {
    Call {
        attempt: offer.attempt.to_string(),
        number: offer.call.0 + 1,
        story: offer.attempt.story.to_string(),
        folder: offer.folder.display().to_string(),
        variables: offer
            .variables
            .iter()
            .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
            .collect(),
        seconds: offer.time.as_secs(),
        prompt: offer.prompt.clone(),
    }
}

/// Settings as a session writes them: each name with a text, a number, a truth value, or a list of these.
pub(super) fn flags(settings: &serde_json::Map<String, serde_json::Value>) -> Result<Layer, CliError> {
    let text = |name: &str, value: &serde_json::Value| match value {
        serde_json::Value::String(text) => Ok(text.clone()),
        serde_json::Value::Number(number) => Ok(number.to_string()),
        serde_json::Value::Bool(truth) => Ok(truth.to_string()),
        other => Err(CliError::usage(format!("the setting {name} cannot be {other}"))
            .hint("a text, a number, true, false, or a list of these")),
    };
    let texts = settings.iter().map(|(name, value)| {
        let values = match value {
            serde_json::Value::Array(values) => values.iter().map(|value| text(name, value)).collect(),
            value => text(name, value).map(|text| vec![text]),
        };
        values.map(|values| (name.replace('-', "_"), values))
    });
    config::named(&texts.collect::<Result<Vec<_>, _>>()?)
}
