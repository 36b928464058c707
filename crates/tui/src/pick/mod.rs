//! The screens before a run: the work that is here, and what a run of it would be. A pure model, as that of a run.

mod draw;
mod form;
mod list;
mod pages;
pub mod port;
mod preview;

use ralphloop_core::plan::WorkId;
use ralphloop_core::units::Timestamp;
use ratatui::crossterm::event::KeyCode;

use crate::app::{Input, OfLoop, Screen};
use crate::keys::{Action, Press};
use crate::model::Options;
use crate::port::Mouse;
use list::List;
use port::{Left, Msg, Question, Request};
use preview::PreviewScreen;

/// How long an answer is shown.
const SAID_FOR: std::time::Duration = std::time::Duration::from_secs(6);

/// What was asked before the run begins, and what is marked of the answers.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) question: Question,
    pub(crate) marked: usize,
}

/// Everything that is seen before a run.
#[derive(Debug)]
pub struct Picker {
    pub(crate) options: Options,
    pub(crate) now: Timestamp,
    pub(crate) size: (u16, u16),
    pub(crate) list: List,
    pub(crate) preview: Option<PreviewScreen>,
    pub(crate) asked: Option<Asked>,
    /// A run is being started.
    pub(crate) starting: bool,
    /// Why no run was begun; shown until a key is pressed.
    pub(crate) failed: Option<String>,
    pub(crate) help: Option<usize>,
    pub(crate) said: Option<(String, Timestamp)>,
    /// The next screen is asked for once.
    begun: bool,
}

impl Picker {
    /// All work that is here, to choose from.
    pub fn new(options: Options, size: (u16, u16), now: Timestamp) -> Self {
        Self {
            options,
            now,
            size,
            list: List::default(),
            preview: None,
            asked: None,
            starting: false,
            failed: None,
            help: None,
            said: None,
            begun: false,
        }
    }

    pub(crate) fn say(&mut self, text: impl Into<String>) {
        self.said = Some((text.into(), self.now.after(SAID_FOR)));
    }

    fn told(&mut self, msg: Msg, requests: &mut Vec<Request>) {
        match msg {
            Msg::Input(input) => self.input(input, requests),
            Msg::Found(found) => self.list.found(*found),
            Msg::Preview(preview) => {
                if let Some(screen) = self.preview.as_mut().filter(|screen| screen.work == preview.work) {
                    screen.came(*preview);
                }
            }
            Msg::Refused(why) => match &mut self.preview {
                Some(screen) => screen.refused(why),
                None => self.say(why),
            },
            Msg::Prompt { story, text } => {
                if let Some(screen) = &mut self.preview {
                    screen.prompts.insert(story, Some(text));
                }
            }
            Msg::Ask(question) => self.asked = Some(Asked { question, marked: 0 }),
            Msg::NotBegun(why) => {
                self.starting = false;
                self.asked = None;
                self.failed = Some(why);
                // What was answered may have changed what is here.
                self.look_again(requests);
            }
            Msg::Begun => requests.push(Request::Leave(Left::Begun)),
        }
    }

    fn input(&mut self, input: Input, requests: &mut Vec<Request>) {
        match input {
            Input::Tick(now) => {
                self.now = now;
                if self.said.as_ref().is_some_and(|(_, until)| *until <= now) {
                    self.said = None;
                }
            }
            Input::Resize(columns, rows) => self.size = (columns, rows),
            Input::Key(press) => self.key(press, requests),
            Input::Paste(text) => self.paste(&text),
            Input::Mouse(mouse) => self.mouse(mouse, requests),
            Input::Signal(cause) => requests.push(Request::Leave(Left::Signal(cause))),
        }
    }

    fn paste(&mut self, text: &str) {
        match &mut self.preview {
            Some(screen) => {
                if let Some(form) = &mut screen.form {
                    form.paste(text);
                }
            }
            None => self.list.paste(text),
        }
    }

    fn key(&mut self, press: Press, requests: &mut Vec<Request>) {
        let action = self.options.keys.action(press);
        // Whatever is open: the program can always be left.
        if press.ctrl && action == Some(Action::Quit) {
            return Self::leave(requests);
        }
        if press.ctrl && action == Some(Action::Suspend) {
            return requests.push(Request::Suspend);
        }
        if self.asked.is_some() {
            return self.answer_key(press, action, requests);
        }
        if self.failed.take().is_some() {
            return;
        }
        if self.starting {
            return self.say("the run is being started");
        }
        if let Some(at) = &mut self.help {
            match action {
                Some(Action::Up) => *at = at.saturating_sub(1),
                Some(Action::Down) => *at = at.saturating_add(1),
                Some(Action::PageUp) => *at = at.saturating_sub(10),
                Some(Action::PageDown) => *at = at.saturating_add(10),
                _ => self.help = None,
            }
            return;
        }
        match self.preview.take() {
            Some(screen) => self.preview_key(screen, press, action, requests),
            None => self.list_key(press, action, requests),
        }
    }

    fn list_key(&mut self, press: Press, action: Option<Action>, requests: &mut Vec<Request>) {
        let typed = matches!(press.code, KeyCode::Char(_)) && !press.ctrl && !press.alt;
        if typed || press.code == KeyCode::Backspace {
            // A letter begins the filter; what these letters do otherwise they do only before it.
            match action {
                Some(Action::Quit) if !self.list.filtering() => return Self::leave(requests),
                Some(Action::Help) if !self.list.filtering() => return self.help = Some(0),
                Some(Action::Search) if !self.list.filtering() => return self.list.begin_filter(),
                _ => return self.list.type_key(press),
            }
        }
        match (press.code, action) {
            (KeyCode::Enter, _) | (_, Some(Action::Accept)) => self.open(requests),
            (KeyCode::Up, _) | (_, Some(Action::Up | Action::Previous)) => self.list.move_by(-1),
            (KeyCode::Down, _) | (_, Some(Action::Down | Action::Next)) => self.list.move_by(1),
            (_, Some(Action::PageUp)) => self.list.page(-1),
            (_, Some(Action::PageDown)) => self.list.page(1),
            (_, Some(Action::Top)) => self.list.mark_end(false),
            (_, Some(Action::Bottom)) => self.list.mark_end(true),
            (_, Some(Action::Redraw)) => requests.push(Request::Find),
            (_, Some(Action::Back)) if self.list.filtering() => self.list.clear_filter(),
            (_, Some(Action::Back)) => self.say(format!("{} leaves", self.options.keys.name(Action::Quit))),
            _ => {}
        }
    }

    /// Opens what is selected.
    fn open(&mut self, requests: &mut Vec<Request>) {
        match self.list.selected() {
            None => {}
            Some(list::Item::Run(run)) => requests.push(Request::Leave(Left::Look(run.id.clone()))),
            Some(list::Item::Work(row)) => match &row.run {
                Some(run) if run.live => requests.push(Request::Leave(Left::Look(run.id.clone()))),
                _ => {
                    let work = row.id.clone();
                    self.open_work(work, requests);
                }
            },
        }
    }

    fn open_work(&mut self, work: WorkId, requests: &mut Vec<Request>) {
        self.preview = Some(PreviewScreen::new(work.clone()));
        requests.push(Request::Preview { work, choices: None });
    }

    /// What is here is looked for anew, and what is open read anew.
    fn look_again(&mut self, requests: &mut Vec<Request>) {
        requests.push(Request::Find);
        if let Some(screen) = &mut self.preview {
            screen.prompts.clear();
            let choices = screen.preview.as_ref().map(|preview| preview.choices.clone());
            requests.push(Request::Preview { work: screen.work.clone(), choices });
        }
    }

    fn answer_key(&mut self, press: Press, action: Option<Action>, requests: &mut Vec<Request>) {
        let Some(asked) = &mut self.asked else { return };
        let answers = &asked.question.answers;
        let count = answers.len().max(1);
        let given = match (press.code, action) {
            (KeyCode::Enter, _) => answers.get(asked.marked).map(|(letter, _)| *letter),
            (KeyCode::Esc, _) => answers.last().map(|(letter, _)| *letter),
            (KeyCode::Char(c), _) if answers.iter().any(|(letter, _)| *letter == c) => Some(c),
            (KeyCode::Up, _) | (_, Some(Action::Up)) => {
                asked.marked = (asked.marked + count - 1) % count;
                None
            }
            (KeyCode::Down, _) | (_, Some(Action::Down)) => {
                asked.marked = (asked.marked + 1) % count;
                None
            }
            _ => None,
        };
        if let Some(letter) = given {
            self.asked = None;
            requests.push(Request::Answer(letter));
        }
    }

    fn leave(requests: &mut Vec<Request>) {
        requests.push(Request::Leave(Left::Away));
    }

    fn mouse(&mut self, mouse: Mouse, requests: &mut Vec<Request>) {
        if self.asked.is_some() || self.failed.is_some() || self.help.is_some() || self.starting {
            return;
        }
        if let Some(screen) = &mut self.preview {
            return screen.mouse(mouse, self.size);
        }
        match mouse {
            Mouse::Wheel { by, .. } => self.list.move_by(isize::try_from(by).unwrap_or(0)),
            Mouse::Click { y, .. } => {
                let area = draw::areas(self.size).body;
                let row = usize::from(y.saturating_sub(area.y));
                if (area.top()..area.bottom()).contains(&y) && self.list.click(row) {
                    self.open(requests);
                }
            }
        }
    }
}

impl Screen for Picker {
    type Msg = Msg;
    type Request = Request;
    type Left = Left;

    fn update(&mut self, msg: Msg) -> Vec<Request> {
        let mut requests = Vec::new();
        self.told(msg, &mut requests);
        requests
    }

    fn settle(&mut self) -> Vec<Request> {
        let mut requests = Vec::new();
        if !self.begun {
            self.begun = true;
            requests.push(Request::Find);
        }
        let body = draw::areas(self.size).body;
        let (width, height) = (usize::from(body.width), usize::from(body.height));
        match &mut self.preview {
            Some(screen) => screen.settle(width, height, &mut requests),
            None => self.list.settle(width, height),
        }
        requests
    }

    fn draw(&self, frame: &mut ratatui::Frame<'_>) {
        self.draw_frame(frame);
    }

    fn of_loop(request: Request) -> Result<OfLoop<Left>, Request> {
        match request {
            Request::Leave(left) => Ok(OfLoop::Leave(left)),
            Request::Suspend => Ok(OfLoop::Suspend),
            Request::Copy(text) => Ok(OfLoop::Copy(text)),
            other => Err(other),
        }
    }
}
