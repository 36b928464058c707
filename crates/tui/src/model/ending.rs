//! What becomes of a run that is over: signatures that its stories wait for, and its commits.

use std::borrow::Cow;

use super::{Model, Tab};
use crate::keys::Action;
use crate::port::{Gesture, Leave, Offer, Request};
use crate::text::one_line;

/// What is looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// The choices; which is marked.
    Choose(usize),
    /// What exactly would be done, before it is.
    Confirm(Gesture),
    /// It is being done.
    Doing(Gesture),
    /// What came of it.
    Done(Gesture, Result<String, String>),
}

/// The box that opens when the run is over.
#[derive(Debug, Clone)]
pub(crate) struct Ending {
    pub(crate) step: Step,
    /// `None` while it is looked for.
    pub(crate) offers: Option<Vec<Offer>>,
}

/// What can always be chosen.
pub(crate) const ALWAYS: &[(&str, &str)] = &[
    ("Keep the commits and leave", "they stay as they are"),
    ("Look at the result", "what passed, what failed and why, what each story cost"),
];

/// What a gesture is called.
pub(crate) fn name(gesture: &Gesture) -> (Cow<'static, str>, &'static str) {
    match gesture {
        Gesture::Sign(story) => {
            (format!("Sign {}", one_line(story.as_str())).into(), "it has landed, and waits for you")
        }
        Gesture::Squash => ("Squash".into(), "make one commit of them, on the run's branch"),
        Gesture::PullRequest => ("Pull request".into(), "push the branch and open one with gh"),
        Gesture::Close => ("Close the work".into(), "as its format has it"),
    }
}

impl Ending {
    fn new() -> Self {
        Self { step: Step::Choose(0), offers: None }
    }

    pub(crate) fn offer(&self, gesture: &Gesture) -> Option<&Offer> {
        self.offers.iter().flatten().find(|offer| offer.gesture == *gesture)
    }

    fn choices(&self) -> usize {
        ALWAYS.len() + self.offers.as_ref().map_or(0, Vec::len)
    }
}

impl Model {
    /// Opens the box.
    pub(super) fn open_ending(&mut self, requests: &mut Vec<Request>) {
        self.run.ending = Some(Ending::new());
        requests.push(Request::Offers);
    }

    pub(super) fn done(&mut self, gesture: Gesture, said: Result<String, String>, requests: &mut Vec<Request>) {
        if let Some(ending) = &mut self.run.ending {
            (ending.step, ending.offers) = (Step::Done(gesture, said), None);
            // What was done may make something else possible, or impossible.
            requests.push(Request::Offers);
        }
    }

    pub(super) fn ending_key(&mut self, action: Action, requests: &mut Vec<Request>) {
        let Some(ending) = &mut self.run.ending else { return };
        let count = ending.choices();
        match (&mut ending.step, action) {
            (Step::Choose(at), Action::Up | Action::Previous) => *at = (*at + count - 1) % count,
            (Step::Choose(at), Action::Down | Action::Next) => *at = (*at + 1) % count,
            (Step::Choose(at), Action::Accept) => match *at {
                0 => requests.push(Request::Leave(Leave::Done)),
                1 => {
                    self.run.ending = None;
                    self.turn_to(Tab::Result);
                }
                at => {
                    let offer = ending.offers.iter().flatten().nth(at - ALWAYS.len());
                    match offer.map(|offer| (offer.gesture.clone(), &offer.what)) {
                        Some((gesture, Ok(_))) => ending.step = Step::Confirm(gesture),
                        Some((_, Err(why))) => {
                            let why = why.clone();
                            self.say(why);
                        }
                        None => {}
                    }
                }
            },
            (Step::Choose(_), Action::Back | Action::NextTab | Action::Ending) => self.run.ending = None,
            (Step::Choose(_), Action::Retry) => self.retry(true, requests),
            (Step::Confirm(gesture), Action::Accept) => {
                let gesture = gesture.clone();
                ending.step = Step::Doing(gesture.clone());
                requests.push(Request::Do(gesture));
            }
            (Step::Confirm(_) | Step::Done(..), Action::Back) | (Step::Done(..), Action::Accept) => {
                ending.step = Step::Choose(0);
            }
            _ => {}
        }
    }
}
