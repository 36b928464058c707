//! Calls of an agent that is no process of ours: whoever drives the loop from inside their own session is handed the
//! prompt, does the work in the lane, and answers with the words that a process would have ended with. What those words
//! claim is worth no more than any other agent's: the tree is inspected, gates and checks run, and the core decides.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use ralphloop_agent::decoder::ProcessEnd;
use ralphloop_core::ids::{AttemptId, CallNumber};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// The session from which a run is driven.
#[derive(Debug, Clone)]
pub struct Inside {
    /// What the agent is called in events, messages and commits.
    pub name: String,
    /// Where its calls go. A session that is gone answers none: its calls end as stopped.
    pub offers: mpsc::UnboundedSender<Offer>,
}

/// A call that waits to be answered.
#[derive(Debug)]
pub struct Offer {
    /// The attempt that it is for.
    pub attempt: AttemptId,
    /// Which call of the attempt.
    pub call: CallNumber,
    /// What is to be done.
    pub prompt: String,
    /// Where: the project's folder in the lane.
    pub folder: PathBuf,
    /// Variables that belong to the lane.
    pub variables: Vec<(OsString, OsString)>,
    /// How long it may take.
    pub time: Duration,
    answer: oneshot::Sender<String>,
}

impl Offer {
    /// Answers with the last words, a signal line among them; false if the call is no longer waited for.
    pub fn answer(self, words: String) -> bool {
        self.answer.send(words).is_ok()
    }

    /// Nobody waits for the answer any more: the time is up, or the run stops.
    pub fn is_withdrawn(&self) -> bool {
        self.answer.is_closed()
    }
}

/// A call that was handed over.
#[derive(Debug)]
pub(crate) struct Handed {
    time: Duration,
    answered: oneshot::Receiver<String>,
}

impl Inside {
    /// Hands a call over; nothing if the session is gone.
    pub(crate) fn hand_over(
        &self,
        (attempt, call): (&AttemptId, CallNumber),
        prompt: &str,
        folder: PathBuf,
        variables: Vec<(OsString, OsString)>,
        time: Duration,
    ) -> Option<Handed> {
        let (answer, answered) = oneshot::channel();
        let prompt = prompt.to_owned();
        let offer = Offer { attempt: attempt.clone(), call, prompt, folder, variables, time, answer };
        self.offers.send(offer).ok().map(|()| Handed { time, answered })
    }
}

impl Handed {
    /// Waits for the answer, and says how the call ended, in the terms of a process.
    pub(crate) async fn ended(self, cancel: &CancellationToken) -> (String, ProcessEnd) {
        tokio::select! {
            answer = self.answered => match answer {
                Ok(words) => (words, ProcessEnd::Exited { code: 0 }),
                Err(_) => (String::new(), ProcessEnd::Stopped),
            },
            () = cancel.cancelled() => (String::new(), ProcessEnd::Stopped),
            () = tokio::time::sleep(self.time) => (String::new(), ProcessEnd::TimedOut { after: self.time }),
        }
    }
}
