//! The screens before a run, wired: what is here is told, and what was chosen is started by the same code as `run` and
//! `resume`, with the same questions.

use std::sync::mpsc::{Receiver, Sender, channel};

use ralphloop_core::ids::StoryId;
use ralphloop_core::outcome::Outcome;
use ralphloop_engine::runs::RunFolder;
use ralphloop_engine::start::Place;
use ralphloop_tui::app::{self, Session};
use ralphloop_tui::mailbox::{self, Mailbox, mailbox};
use ralphloop_tui::pick::Picker;
use ralphloop_tui::pick::port::{Found, Left, Msg, Question, Request};
use ralphloop_tui::port::Leave;
use tokio::runtime::Runtime;

use super::leash::{Begun, Leashed};
use super::preview::Desk;
use super::{Look, USING, begin, show, show_own, unusable};
use crate::config::Layer;
use crate::error::CliError;
use crate::exit::Exit;
use crate::host::Host;
use crate::output;
use crate::verbs::repository;
use crate::verbs::take_up::{Asker, Wish};
use crate::verbs::{inventory, launch::Prepared};

/// How the screens were called: what holds unless it is changed there.
#[derive(Debug, Clone)]
pub(crate) struct Called {
    /// Settings that were given as flags.
    pub(crate) flags: Layer,
    /// Stories that were named.
    pub(crate) stories: Vec<String>,
    /// What becomes of an unfinished run.
    pub(crate) wish: Wish,
}

/// A run that has begun.
type Started = (Box<Leashed>, Place);

/// How the screens came to their end.
enum Until {
    /// A run has begun.
    Begun(Box<Leashed>, Place),
    /// A run that is over is to be gone on with, to try a story of it again.
    Again(RunFolder, StoryId),
    /// They were left.
    Left(Exit),
}

/// What is started here and looked at from here.
struct Ends {
    found: Mailbox<Msg>,
    requests: Sender<Request>,
    answers: Sender<char>,
    started: Receiver<Started>,
}

/// Shows what is here. If exactly one run is going on in this working tree, that is shown instead.
pub(crate) fn bare(host: &Host) -> Result<Exit, CliError> {
    if let Some(folder) = going_on(host) {
        return super::attach(&folder, host);
    }
    pick(Called { flags: Layer::default(), stories: Vec::new(), wish: Wish::Open }, host)
}

/// The run that is going on in the working tree that the program was called in.
fn going_on(host: &Host) -> Option<RunFolder> {
    let runtime = repository::runtime().ok()?;
    let place = runtime.block_on(repository::open(host)).ok()?;
    let places = place.repository.places();
    let state = ralphloop_engine::runs::StateFolder::of(&places.common_dir);
    let live = |folder: &RunFolder| folder.live_process().is_some() && folder.is_below(&places.top);
    let mut live = state.runs().ok()?.into_iter().filter(live);
    live.next().filter(|_| live.next().is_none())
}

/// Shows the screens before a run until they are left, or until the run that was begun there is left.
pub(crate) fn pick(called: Called, host: &Host) -> Result<Exit, CliError> {
    let look = Look::of(host)?;
    let runtime = repository::runtime()?;
    let (to_screen, found) = mailbox().map_err(|error| unusable(&error))?;
    let (requests, asked) = channel();
    let (answers, answered) = channel();
    let (to_start, started) = channel();
    let clerk = Clerk {
        desk: Desk::new(called.clone(), host.clone()),
        screen: to_screen,
        answers: answered,
        started: to_start,
        called,
        host: host.clone(),
        runtime: runtime.handle().clone(),
    };
    let serving = runtime.spawn_blocking(move || clerk.serve(&asked));
    let mut session = Session::enter(USING).map_err(|error| unusable(&error))?;
    let mut screen = Picker::new(super::options(false, &look), app::size(), app::now());
    let ends = Ends { found, requests, answers, started };
    let began = until_left(&runtime, &mut session, &mut screen, &ends, (host, &look));
    // Whoever waits for an answer has nobody any more.
    drop((ends.requests, ends.answers, ends.found));
    match began? {
        Until::Again(folder, story) => {
            drop(session);
            runtime.block_on(super::ended(serving));
            super::try_again(folder, story, host)
        }
        Until::Begun(leashed, place) => {
            runtime.block_on(super::ended(serving));
            show_own(&runtime, Ok(session), *leashed, (place, &look), host)
        }
        Until::Left(exit) => {
            drop(session);
            runtime.block_on(super::ended(serving));
            Ok(exit)
        }
    }
}

fn until_left(
    runtime: &Runtime,
    session: &mut Session,
    screen: &mut Picker,
    ends: &Ends,
    (host, look): (&Host, &Look),
) -> Result<Until, CliError> {
    loop {
        let left = session.show(screen, &ends.found, |request| match request {
            Request::Answer(letter) => drop(ends.answers.send(letter)),
            other => drop(ends.requests.send(other)),
        });
        match left.map_err(|error| unusable(&error))? {
            Left::Away => return Ok(Until::Left(Exit::DONE)),
            Left::Signal(cause) => return Ok(Until::Left(Exit::of(&Outcome::Stopped { cause }))),
            Left::Begun => {
                if let Ok((leashed, place)) = ends.started.try_recv() {
                    return Ok(Until::Begun(leashed, place));
                }
            }
            Left::Look(run) => {
                let folder = repository::find_run(Some(run.as_str()), host)?;
                let place = runtime.block_on(repository::open(host))?;
                let shown = show(runtime, session, &folder, (place, look), host, None);
                if let (Leave::Retry(story), _) = shown.map_err(|error| unusable(&error))? {
                    return Ok(Until::Again(folder, story));
                }
                drop(ends.requests.send(Request::Find));
            }
        }
    }
}

/// Does what the screens ask for, one after the other.
struct Clerk {
    desk: Desk,
    screen: mailbox::Sender<Msg>,
    answers: Receiver<char>,
    started: Sender<Started>,
    called: Called,
    host: Host,
    runtime: tokio::runtime::Handle,
}

impl Clerk {
    fn serve(mut self, asked: &Receiver<Request>) {
        while let Ok(request) = asked.recv() {
            let msgs = match request {
                Request::Find => vec![Msg::Found(Box::new(found(&self.host)))],
                Request::Preview { work, choices } => {
                    let screen = self.screen.clone();
                    self.desk.preview(&work, choices.as_ref(), &mut |msg| drop(screen.send(msg)));
                    Vec::new()
                }
                Request::Prompt(story) => {
                    let text = self.desk.prompt(&story).map_err(|error| error.plain());
                    vec![Msg::Prompt { story, text }]
                }
                Request::Start => vec![self.start()],
                Request::Answer(_) | Request::Copy(_) | Request::Suspend | Request::Leave(_) => Vec::new(),
            };
            if msgs.into_iter().any(|msg| self.screen.send(msg).is_err()) {
                return;
            }
        }
    }

    fn start(&mut self) -> Msg {
        let prepared = self.desk.prepare();
        match prepared.and_then(|prepared| self.begin(prepared)) {
            Ok(None) => Msg::NotBegun("It was left alone, and nothing was changed.".to_owned()),
            Ok(Some((place, Begun::Running(leashed)))) => match self.started.send((leashed, place)) {
                Ok(()) => Msg::Begun,
                // Nobody is there any more: the run ends with its leash.
                Err(_) => Msg::NotBegun(String::new()),
            },
            Ok(Some((_, Begun::Ended { said, .. }))) => Msg::NotBegun(output::plain(&said)),
            Err(error) => Msg::NotBegun(error.plain()),
        }
    }

    fn begin(&mut self, prepared: Prepared) -> Result<Option<(Place, Begun)>, CliError> {
        let mut asker = ByScreen { told: String::new(), screen: &self.screen, answers: &mut self.answers };
        self.runtime.clone().block_on(async {
            let place = repository::open(&self.host).await?;
            let begun = begin(prepared, self.called.wish.clone(), Some(&mut asker), &place, &self.host).await?;
            Ok(begun.map(|begun| (place, begun)))
        })
    }
}

fn found(host: &Host) -> Found {
    let runs = inventory::runs_here(host);
    let works = inventory::works(host, &runs).iter().map(inventory::Row::shown).collect();
    let warnings = repository::state(host).err().map(|error| error.one_line()).into_iter().collect();
    let runs = runs.into_iter().map(|kept| kept.row).collect();
    Found { place: host.cwd.display().to_string(), works, runs, warnings }
}

/// Asks on the screen.
struct ByScreen<'s> {
    told: String,
    screen: &'s mailbox::Sender<Msg>,
    answers: &'s mut Receiver<char>,
}

impl Asker for ByScreen<'_> {
    fn tell(&mut self, text: &str) {
        self.told.push_str(&output::plain(text));
    }

    fn ask(&mut self, question: &str, answers: &[(char, &str)]) -> Result<char, CliError> {
        let nobody = answers.last().map_or('q', |(letter, _)| *letter);
        let answers = answers.iter().map(|(letter, means)| (*letter, (*means).to_owned())).collect();
        let facts = std::mem::take(&mut self.told);
        let asked = Msg::Ask(Question { facts, question: question.to_owned(), answers });
        // A screen that is gone answers as nobody does.
        Ok(self.screen.send(asked).ok().and_then(|()| self.answers.recv().ok()).unwrap_or(nobody))
    }
}
