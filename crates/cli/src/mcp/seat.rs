//! The place of a session in the run that it drives: what it has to do next, and what happened since it last looked.

use std::collections::{BTreeMap, VecDeque};

use ralphloop_core::event::Event;
use ralphloop_core::run::Run;
use ralphloop_engine::inside::{Inside, Offer};
use ralphloop_engine::notice;
use ralphloop_engine::runs::RunFolder;
use ralphloop_engine::start::Ready;
use tokio::sync::{mpsc, watch};

use crate::error::CliError;
use crate::exit::Exit;
use crate::output;
use crate::verbs::run::ended;
use crate::view::{lines, summary};

/// Lines of what happened that are kept for a session that does not look; older ones stand in `log`.
const NEWS: usize = 200;

/// What a session sees of its run.
#[derive(Debug, Default)]
pub(super) struct Sight {
    /// The run, and where it is kept, once it has begun.
    pub(super) run: Option<(RunFolder, Run)>,
    /// Calls that nobody has taken yet.
    pub(super) waiting: VecDeque<Offer>,
    /// Calls that were taken and are not answered, by the attempt as it is written.
    pub(super) taken: BTreeMap<String, Offer>,
    news: VecDeque<String>,
    /// The summary, once the run is over.
    pub(super) summary: Option<String>,
}

impl Sight {
    /// What happened since this was last asked.
    pub(super) fn take_news(&mut self) -> Vec<String> {
        self.news.drain(..).collect()
    }

    /// Forgets calls that nobody waits for any more.
    pub(super) fn drop_withdrawn(&mut self) {
        self.waiting.retain(|offer| !offer.is_withdrawn());
        self.taken.retain(|_, offer| !offer.is_withdrawn());
    }

    /// Takes in an event of the run.
    fn take_in(&mut self, event: &Event) {
        let Some((_, run)) = &mut self.run else { return };
        drop(run.step(event));
        let lines = lines::of(event, run);
        self.tell(lines);
    }

    fn tell(&mut self, lines: impl IntoIterator<Item = String>) {
        self.news.extend(lines);
        let surplus = self.news.len().saturating_sub(NEWS);
        self.news.drain(..surplus);
    }
}

/// The side of the run.
#[derive(Debug)]
pub(crate) struct Seat {
    inside: Inside,
    offers: mpsc::UnboundedReceiver<Offer>,
    sight: watch::Sender<Sight>,
}

impl Seat {
    /// For a session that calls itself `name` and sees through `sight`.
    pub(super) fn new(name: String, sight: watch::Sender<Sight>) -> Self {
        let (offers, offered) = mpsc::unbounded_channel();
        Self { inside: Inside { name, offers }, offers: offered, sight }
    }

    /// What the engine is to know of the session.
    pub(crate) fn inside(&self) -> Inside {
        self.inside.clone()
    }

    /// Says how it ended.
    pub(crate) fn sum_up(&self, text: String) {
        self.sight.send_modify(|sight| sight.summary = Some(text));
    }

    /// Drives the run to its end; `offer` is what closing the work would do.
    pub(crate) async fn drive(self, mut ready: Ready, offer: Option<&str>) -> Result<Exit, CliError> {
        let Self { inside, mut offers, sight } = self;
        // The run alone holds it from now on: once the run is over, no call can come.
        drop(inside);
        let watch = std::mem::replace(&mut ready.watch, notice::channel().1);
        let (mut events, mut notes) = (watch.state, watch.notes);
        let (folder, run) = (ready.folder().clone(), ready.run.clone());
        sight.send_modify(|sight| {
            sight.tell(ready.warnings.iter().map(|warning| format!("warning: {}", output::one_line(warning))));
            sight.tell(lines::of(&ready.first, &run));
            sight.run = Some((folder, run));
        });
        let told = async {
            loop {
                tokio::select! {
                    biased;
                    Some(event) = events.recv() => sight.send_modify(|sight| sight.take_in(&event)),
                    Some(offer) = offers.recv() => sight.send_modify(|sight| sight.waiting.push_back(offer)),
                    Some(note) = notes.recv() => sight.send_modify(|sight| sight.tell([output::one_line(&note)])),
                    else => break,
                }
            }
        };
        let ((run, result), ()) = tokio::join!(ready.drive(), told);
        sight.send_modify(|sight| {
            sight.drop_withdrawn();
            sight.summary = Some(output::plain(&summary::text(&run, offer)));
        });
        ended(result)
    }
}
