//! All that is seen, and what follows from what comes in.

pub(crate) mod ending;
mod input;
mod lines;
mod run;
mod stopping;
mod talk;

use ralphloop_core::units::Timestamp;

pub(crate) use ending::{Ending, Step};
pub(crate) use input::Input;
pub(crate) use lines::{Page, Shown, Tone};
pub(crate) use run::{RunScreen, Tab};
pub(crate) use talk::Row;

use crate::app::{Input as TerminalInput, OfLoop, Screen};
use crate::keys::{Action, Keymap};
use crate::port::{Leave, Msg, Request};
use crate::theme::Theme;

/// What the screen is for, and how it looks.
#[derive(Debug, Clone)]
pub struct Options {
    /// The keys.
    pub keys: Keymap,
    /// The colours.
    pub theme: Theme,
    /// The run was started with this screen: leaving stops it, unless it is detached.
    pub own: bool,
    /// The offset of the user's time zone from UTC, in seconds.
    pub utc_offset: i32,
}

/// Everything that is seen.
#[derive(Debug)]
pub struct Model {
    pub(crate) options: Options,
    pub(crate) now: Timestamp,
    pub(crate) size: (u16, u16),
    pub(crate) run: RunScreen,
    pub(crate) help: Option<usize>,
    pub(crate) input: Option<Input>,
    /// The last answer to a request, and until when it is shown.
    pub(crate) said: Option<(String, Timestamp)>,
}

/// How long an answer is shown.
const SAID_FOR: std::time::Duration = std::time::Duration::from_secs(6);

impl Model {
    /// The screen of a run of which nothing is known yet.
    pub fn of_run(options: Options, size: (u16, u16), now: Timestamp) -> Self {
        Self { options, now, size, run: RunScreen::default(), help: None, input: None, said: None }
    }

    /// Takes a message in, and answers with what is to be done about it.
    pub fn update(&mut self, msg: Msg) -> Vec<Request> {
        let mut requests = Vec::new();
        self.take_in(msg, &mut requests);
        requests
    }

    /// Makes ready what the next frame shows. To be called once before each frame.
    pub fn settle(&mut self) -> Vec<Request> {
        let mut requests = Vec::new();
        self.settle_run(&mut requests);
        requests
    }

    fn take_in(&mut self, msg: Msg, requests: &mut Vec<Request>) {
        match msg {
            Msg::Tick(now) => {
                self.now = now;
                if self.said.as_ref().is_some_and(|(_, until)| *until <= now) {
                    self.said = None;
                }
                self.stopping_tick();
            }
            Msg::Resize(columns, rows) => self.size = (columns, rows),
            Msg::Said(text) | Msg::Note(text) => self.say(text),
            Msg::Key(press) => self.key(press, requests),
            Msg::Paste(text) => {
                if let Some(input) = &mut self.input {
                    input.paste(&text);
                }
            }
            Msg::Mouse(mouse) => self.mouse(mouse),
            Msg::Signal(cause) => self.signal(cause, requests),
            Msg::Event(event) => self.event(&event, requests),
            Msg::Alive(alive) => self.alive(alive, requests),
            Msg::Extent { call, entries, reading } => self.run.talk.extent(&call, entries, reading),
            Msg::Entries { call, chunk, entries } => self.run.talk.entries(&call, chunk, entries),
            Msg::Found { call, entry } => {
                if let Some(text) = self.run.talk.found(&call, entry) {
                    self.say(text);
                }
            }
            Msg::Sheet { id, version, made } => {
                if let Some(sheet) = self.run.sheet_of(&id) {
                    sheet.made(version, made);
                }
            }
            Msg::SheetLines { id, version, chunk, lines } => {
                if let Some(sheet) = self.run.sheet_of(&id) {
                    sheet.lines(version, chunk, lines);
                }
            }
            Msg::Offers(offers) => {
                if let Some(ending) = &mut self.run.ending {
                    ending.offers = Some(offers);
                }
            }
            Msg::Done { gesture, said } => self.done(gesture, said, requests),
        }
    }

    pub(crate) fn say(&mut self, text: impl Into<String>) {
        self.said = Some((text.into(), self.now.after(SAID_FOR)));
    }

    fn key(&mut self, press: crate::keys::Press, requests: &mut Vec<Request>) {
        let action = self.options.keys.action(press);
        // Whatever is open: the program can always be left.
        if press.ctrl && action == Some(Action::Quit) {
            return self.quit(true, requests);
        }
        if let Some(input) = &mut self.input {
            match input.key(press, action) {
                input::Typed::More => {}
                input::Typed::Given => {
                    if let Some(input) = self.input.take() {
                        self.given(&input, requests);
                    }
                }
                input::Typed::Dropped => self.input = None,
            }
            return;
        }
        let Some(action) = action else { return };
        match action {
            Action::Redraw => {}
            Action::Suspend => requests.push(Request::Suspend),
            Action::Help => self.help = if self.help.is_some() { None } else { Some(0) },
            _ if self.help.is_some() => self.help_key(action),
            Action::Quit => self.quit(false, requests),
            action if self.run.ending.is_some() => self.ending_key(action, requests),
            action => self.run_key(action, requests),
        }
    }

    fn help_key(&mut self, action: Action) {
        let Some(at) = &mut self.help else { return };
        match action {
            Action::Up => *at = at.saturating_sub(1),
            Action::Down => *at = at.saturating_add(1).min(crate::keys::TABLE.len()),
            Action::PageUp | Action::Top => *at = 0,
            Action::PageDown | Action::Bottom => *at = at.saturating_add(10).min(crate::keys::TABLE.len()),
            _ => self.help = None,
        }
    }
}

impl Screen for Model {
    type Msg = Msg;
    type Request = Request;
    type Left = Leave;

    fn update(&mut self, msg: Msg) -> Vec<Request> {
        Self::update(self, msg)
    }

    fn settle(&mut self) -> Vec<Request> {
        Self::settle(self)
    }

    fn draw(&self, frame: &mut ratatui::Frame<'_>) {
        Self::draw(self, frame);
    }

    fn of_loop(request: Request) -> Result<OfLoop<Leave>, Request> {
        match request {
            Request::Leave(leave) => Ok(OfLoop::Leave(leave)),
            Request::Suspend => Ok(OfLoop::Suspend),
            Request::Copy(text) => Ok(OfLoop::Copy(text)),
            other => Err(other),
        }
    }
}

impl From<TerminalInput> for Msg {
    fn from(input: TerminalInput) -> Self {
        match input {
            TerminalInput::Tick(now) => Self::Tick(now),
            TerminalInput::Resize(columns, rows) => Self::Resize(columns, rows),
            TerminalInput::Key(press) => Self::Key(press),
            TerminalInput::Paste(text) => Self::Paste(text),
            TerminalInput::Mouse(mouse) => Self::Mouse(mouse),
            TerminalInput::Signal(cause) => Self::Signal(cause),
        }
    }
}
