//! What views are told while a run goes on. Telling them is never awaited: state events are kept for a slow view, the
//! agent's talk is dropped when it cannot follow.

use ralphloop_agent::event::AgentEvent;
use ralphloop_core::event::Event;
use ralphloop_core::ids::{AttemptId, CallNumber};
use tokio::sync::mpsc;

/// The agent's talk that waits for a view beyond this is dropped.
const TALK: usize = 1024;

/// Something that the agent of an attempt did.
#[derive(Debug)]
pub struct TalkNotice {
    /// The attempt.
    pub attempt: AttemptId,
    /// Which call.
    pub call: CallNumber,
    /// What it did.
    pub event: AgentEvent,
}

/// The sending side.
#[derive(Debug, Clone)]
pub struct Notices {
    state: Vec<mpsc::UnboundedSender<Event>>,
    talk: mpsc::Sender<TalkNotice>,
    notes: mpsc::UnboundedSender<String>,
}

/// The side of a view.
#[derive(Debug)]
pub struct Watch {
    /// Every event from the first that comes after the view's copy of the run, in order.
    pub state: mpsc::UnboundedReceiver<Event>,
    /// What the agent did, as far as the view can follow.
    pub talk: mpsc::Receiver<TalkNotice>,
    /// What went wrong beside the run and changes nothing about it, in words for people.
    pub notes: mpsc::UnboundedReceiver<String>,
}

/// A pair of both sides.
pub fn channel() -> (Notices, Watch) {
    let (state, state_out) = mpsc::unbounded_channel();
    let (talk, talk_out) = mpsc::channel(TALK);
    let (notes, notes_out) = mpsc::unbounded_channel();
    let notices = Notices { state: vec![state], talk, notes };
    (notices, Watch { state: state_out, talk: talk_out, notes: notes_out })
}

impl Notices {
    /// Every event from now on, for one more that watches.
    pub(crate) fn another(&mut self) -> mpsc::UnboundedReceiver<Event> {
        let (state, state_out) = mpsc::unbounded_channel();
        self.state.push(state);
        state_out
    }

    /// Says something that changes nothing about the run.
    pub(crate) fn note(&self, text: String) {
        // If nobody listens, nobody wants to know.
        drop(self.notes.send(text));
    }

    /// Where [`Watch::notes`] come from.
    pub(crate) fn notes(&self) -> mpsc::UnboundedSender<String> {
        self.notes.clone()
    }

    pub(crate) fn event(&self, event: &Event) {
        for state in &self.state {
            // A view that went away needs nothing.
            drop(state.send(event.clone()));
        }
    }

    /// `event` is only asked for if a view is there and can follow.
    pub(crate) fn talk(&self, attempt: &AttemptId, call: CallNumber, event: impl FnOnce() -> AgentEvent) {
        if let Ok(place) = self.talk.try_reserve() {
            place.send(TalkNotice { attempt: attempt.clone(), call, event: event() });
        }
    }
}
