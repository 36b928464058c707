//! The ways to end: stop and leave, leave at once, detach; and what the screen says meanwhile.

use std::time::Duration;

use ralphloop_core::event::StopCause;
use ralphloop_core::units::Timestamp;

use super::Model;
use crate::port::{Leave, Request};

/// Presses within this time count together.
pub(crate) const TOGETHER: Duration = Duration::from_secs(3);
/// After so long without an end the screen says how to leave at once.
const PATIENCE: Duration = Duration::from_secs(5);
/// So many presses leave at once.
const FORCE: u32 = 3;

/// A stop that was asked for here.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stopping {
    /// When it was asked for.
    pub(crate) since: Option<Timestamp>,
    /// The screen closes once the run has ended.
    pub(crate) leave: bool,
    /// The presses that count together.
    presses: u32,
    last_press: Option<Timestamp>,
    /// It takes long: say how to leave at once.
    pub(crate) slow: bool,
}

impl Model {
    /// One press of the key that quits, or Ctrl-C.
    pub(super) fn quit(&mut self, ctrl_c: bool, requests: &mut Vec<Request>) {
        let over = self.run.watched.as_ref().is_some_and(crate::facts::Watched::over);
        if !self.options.own || over {
            requests.push(Request::Leave(Leave::Done));
            return;
        }
        let now = self.now;
        let stopping = &mut self.run.stopping;
        let together = stopping.last_press.is_some_and(|last| now.since(last) <= TOGETHER);
        stopping.presses = if together { stopping.presses + 1 } else { 1 };
        // The time counts from the first of the presses.
        if !together {
            stopping.last_press = Some(now);
        }
        match stopping.presses {
            1 => {
                let cause = if ctrl_c { StopCause::Int } else { StopCause::Request };
                self.stop(cause, true, requests);
            }
            2 => {
                self.say("once more within 3 s leaves at once: the agent is killed and the tree is not put back");
                requests.push(Request::Hurry);
            }
            FORCE.. => requests.push(Request::Leave(Leave::Force)),
            0 => {}
        }
    }

    /// Asks the run to stop.
    pub(super) fn stop(&mut self, cause: StopCause, leave: bool, requests: &mut Vec<Request>) {
        let now = self.now;
        let stopping = &mut self.run.stopping;
        stopping.leave |= leave;
        if stopping.since.is_none() {
            stopping.since = Some(now);
            requests.push(Request::Stop(cause));
        }
    }

    /// A signal ends the program; the run has had it too if it is ours.
    pub(super) fn signal(&mut self, cause: StopCause, requests: &mut Vec<Request>) {
        if self.options.own && !self.run.watched.as_ref().is_some_and(crate::facts::Watched::over) {
            self.stop(cause, true, requests);
        } else {
            requests.push(Request::Leave(Leave::Done));
        }
    }

    pub(super) fn stopping_tick(&mut self) {
        let now = self.now;
        let stopping = &mut self.run.stopping;
        stopping.slow = stopping.since.is_some_and(|since| now.since(since) >= PATIENCE);
    }

    /// What is said about a stop under way.
    pub(crate) fn stopping_text(&self) -> Option<String> {
        let watched = self.run.watched.as_ref()?;
        if watched.over() || !(self.run.stopping.since.is_some() || watched.run.stopping()) {
            return None;
        }
        let waits_for = watched
            .attempts()
            .map(|attempt| format!("{}: {}", attempt.id, crate::facts::doing(attempt, &watched.run)))
            .collect::<Vec<_>>();
        let what = if waits_for.is_empty() { "the run ends".to_owned() } else { waits_for.join("; ") };
        let Some(since) = self.run.stopping.since else {
            return Some(format!("Ends after the present attempt ({what})"));
        };
        let seconds = self.now.since(since).as_secs();
        let quit = self.options.keys.name(crate::keys::Action::Quit);
        Some(match (self.run.stopping.slow, self.options.own) {
            (true, true) => {
                format!("Still stopping after {seconds} s; to leave at once: {quit} three times within 3 s ({what})")
            }
            _ => format!("Stopping: the agent was asked to end; what has landed stays ({what})"),
        })
    }
}
