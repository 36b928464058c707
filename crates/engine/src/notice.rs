//! What views are told while a run goes on. Telling them is never awaited: state events are kept for a slow view, the
//! agent's talk is dropped when it cannot follow.

use std::sync::{Arc, OnceLock};

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

/// Which talk a view hears.
type Hears = fn(&AgentEvent) -> bool;

/// The sending side.
#[derive(Debug, Clone)]
pub struct Notices {
    state: Vec<mpsc::UnboundedSender<Event>>,
    talk: mpsc::Sender<TalkNotice>,
    hears: Arc<OnceLock<Hears>>,
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
    hears: Arc<OnceLock<Hears>>,
}

impl Watch {
    /// Of the agent's talk, only what `wanted` says is told. What nobody hears costs nothing, and takes no place of what
    /// somebody does. The first word counts.
    pub fn hear_only(&self, wanted: fn(&AgentEvent) -> bool) {
        self.hears.get_or_init(|| wanted);
    }
}

/// A pair of both sides.
pub fn channel() -> (Notices, Watch) {
    let (state, state_out) = mpsc::unbounded_channel();
    let (talk, talk_out) = mpsc::channel(TALK);
    let (notes, notes_out) = mpsc::unbounded_channel();
    let hears = Arc::default();
    let notices = Notices { state: vec![state], talk, hears: Arc::clone(&hears), notes };
    (notices, Watch { state: state_out, talk: talk_out, notes: notes_out, hears })
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

    /// Tells of `event`, `made_fit` to be seen, if a view is there, hears it and can follow.
    pub(crate) fn talk(
        &self,
        attempt: &AttemptId,
        call: CallNumber,
        event: AgentEvent,
        made_fit: impl FnOnce(AgentEvent) -> AgentEvent,
    ) {
        if self.hears.get().is_none_or(|hears| hears(&event))
            && let Ok(place) = self.talk.try_reserve()
        {
            place.send(TalkNotice { attempt: attempt.clone(), call, event: made_fit(event) });
        }
    }
}
