//! The screen of a run: its stories, and one story seen through tabs.

use ralphloop_core::event::{Event, Fact};
use ralphloop_core::ids::{AttemptId, StoryId};

use super::Model;
use super::ending::Ending;
use super::input::{Input, InputFor};
use super::lines::{self, Shown};
use super::steer::Doubt;
use super::stopping::Stopping;
use super::talk::Talk;
use crate::draw::layout::Areas;
use crate::facts::Watched;
use crate::keys::Action;
use crate::port::{Leave, Mouse, Request, SheetId};
use crate::sheet::Sheet;
use crate::tabs;

/// Rows that a turn of the wheel moves.
const WHEEL: i64 = 3;
/// What an attempt under way changes is looked at again after so long.
const LIVE: std::time::Duration = std::time::Duration::from_secs(3);

/// What is seen of the selected story, or of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Tab {
    /// What its agent says and does.
    #[default]
    Agent,
    /// What the attempt changes.
    Changes,
    /// Its gates and checks.
    Checks,
    /// Its attempts, and why they ended.
    Attempts,
    /// The story and the run.
    Info,
    /// What came of the run.
    Result,
    /// The files that the run changed.
    Files,
}

impl Tab {
    pub(crate) const ALL: &[(Self, &str)] = &[
        (Self::Agent, "Agent"),
        (Self::Changes, "Changes"),
        (Self::Checks, "Checks"),
        (Self::Attempts, "Attempts"),
        (Self::Info, "Info"),
        (Self::Result, "Result"),
        (Self::Files, "Files"),
    ];

    /// Whether it shows the run, and not one of its stories.
    pub(crate) fn is_of_run(self) -> bool {
        matches!(self, Self::Result | Self::Files)
    }
}

/// The screen of a run.
#[derive(Debug, Default)]
pub(crate) struct RunScreen {
    pub(crate) watched: Option<Watched>,
    /// The selected story, by its place in the plan.
    pub(crate) selected: usize,
    /// The user chose a story, so it is not left for one that begins.
    pub(crate) chosen: bool,
    pub(crate) tab: Tab,
    pub(crate) talk: Talk,
    /// The user looks at an older call than the last.
    pub(crate) older: Option<usize>,
    /// The first line that is seen of the other tabs.
    pub(crate) scroll: usize,
    pub(crate) lines: Vec<Shown>,
    /// What an attempt changed.
    pub(crate) changes: Option<Sheet>,
    /// What the run has landed.
    pub(crate) landed: Option<Sheet>,
    /// So many stories had landed when that was asked for.
    pub(crate) landed_as_of: usize,
    pub(crate) stopping: Stopping,
    /// A story that is worked on was to be skipped once.
    pub(super) doubt: Doubt,
    /// Whether a process works on it was told once.
    looked: bool,
    /// The run is over, and what becomes of its commits is asked.
    pub(crate) ending: Option<Ending>,
}

impl RunScreen {
    /// The selected story.
    pub(crate) fn story(&self) -> Option<&StoryId> {
        let (story, _) = self.watched.as_ref()?.run.records().nth(self.selected)?;
        Some(&story.id)
    }

    /// The sheet that the present tab shows.
    pub(crate) fn sheet(&self) -> Option<&Sheet> {
        match self.tab {
            Tab::Changes => self.changes.as_ref(),
            Tab::Files => self.landed.as_ref(),
            _ => None,
        }
    }

    fn sheet_mut(&mut self) -> Option<&mut Sheet> {
        match self.tab {
            Tab::Changes => self.changes.as_mut(),
            Tab::Files => self.landed.as_mut(),
            _ => None,
        }
    }

    pub(super) fn sheet_of(&mut self, id: &SheetId) -> Option<&mut Sheet> {
        [&mut self.changes, &mut self.landed].into_iter().flatten().find(|sheet| sheet.id == *id)
    }

    fn select(&mut self, story: &StoryId) {
        let Some(watched) = &self.watched else { return };
        let at = watched.run.records().position(|(known, _)| known.id == *story);
        if let Some(at) = at {
            self.go_to(at);
        }
    }

    fn go_to(&mut self, at: usize) {
        if at != self.selected {
            self.selected = at;
            self.older = None;
            self.scroll = 0;
        }
    }

    fn move_by(&mut self, by: isize) {
        let count = self.watched.as_ref().map_or(0, |watched| watched.run.records().count());
        if count > 0 {
            self.chosen = true;
            self.go_to((self.selected + count).saturating_add_signed(by) % count);
        }
    }

    /// The calls of the selected story, and which of them is looked at.
    pub(crate) fn calls(&self) -> (Vec<crate::port::CallId>, usize) {
        let (Some(watched), Some(story)) = (&self.watched, self.story()) else { return (Vec::new(), 0) };
        let calls = watched.calls_of(story);
        let last = calls.len().saturating_sub(1);
        let at = self.older.map_or(last, |at| at.min(last));
        (calls, at)
    }

    /// The attempt of the selected story that is looked at.
    pub(crate) fn attempt(&self) -> Option<AttemptId> {
        let (calls, at) = self.calls();
        let of_call = calls.get(at).map(|call| call.attempt.clone());
        of_call.or_else(|| self.watched.as_ref()?.tries_of(self.story()?).next_back().map(|(id, _)| id.clone()))
    }
}

impl Model {
    pub(super) fn event(&mut self, event: &Event, requests: &mut Vec<Request>) {
        let run = &mut self.run;
        match &mut run.watched {
            None => run.watched = Watched::start(event),
            Some(watched) => watched.step(event),
        }
        match &event.fact {
            Fact::AttemptStarted { attempt, .. } if !run.chosen => run.select(&attempt.story),
            Fact::RunEnded { .. } => self.run_over(requests),
            Fact::Restarted { .. } => run.ending = None,
            _ => {}
        }
        self.tell_of_wish(event);
    }

    pub(super) fn alive(&mut self, alive: bool, requests: &mut Vec<Request>) {
        let Some(watched) = &mut self.run.watched else { return };
        watched.gone = !alive && watched.outcome().is_none();
        // Who looks back at a run wants to know first what came of it.
        if !std::mem::replace(&mut self.run.looked, true) && !alive && !self.options.own {
            self.run.tab = Tab::Result;
        }
        if self.run.watched.as_ref().is_some_and(|watched| watched.gone) {
            self.run_over(requests);
        }
    }

    fn run_over(&mut self, requests: &mut Vec<Request>) {
        if self.options.own && self.run.stopping.leave {
            requests.push(Request::Leave(Leave::Done));
        } else if self.options.own && self.run.ending.is_none() {
            self.open_ending(requests);
        }
    }

    pub(super) fn given(&mut self, input: &Input, requests: &mut Vec<Request>) {
        let text = input.text.trim().to_owned();
        match input.purpose {
            InputFor::Guidance if !text.is_empty() => requests.push(Request::Guide(text)),
            InputFor::Search if !text.is_empty() => {
                self.run.talk.needle = text;
                self.run.talk.hit = None;
                self.run.tab = Tab::Agent;
                self.run.talk.find(false, requests);
            }
            InputFor::Guidance | InputFor::Search => {}
        }
    }

    pub(super) fn run_key(&mut self, action: Action, requests: &mut Vec<Request>) {
        let over = self.run.watched.as_ref().is_none_or(Watched::over);
        match action {
            Action::Detach if self.options.own && !over => requests.push(Request::Leave(Leave::Detach)),
            Action::Detach => requests.push(Request::Leave(Leave::Done)),
            Action::Stop | Action::Pause | Action::Guide if over => {
                self.say("the run is over; `ralphloop resume` goes on with what is left");
            }
            Action::Stop => {
                self.stop(ralphloop_core::event::StopCause::Request, false, requests);
            }
            Action::Pause => requests.push(Request::Pause),
            Action::Skip => self.skip(over, requests),
            Action::Retry => self.retry(over, requests),
            Action::Guide => self.input = Some(Input::new(InputFor::Guidance)),
            Action::Previous => self.run.move_by(-1),
            Action::Next => self.run.move_by(1),
            Action::Follow => self.follow(),
            Action::NextTab => self.turn_to(tabs::beside(Tab::ALL, self.run.tab, 1)),
            Action::PreviousTab => self.turn_to(tabs::beside(Tab::ALL, self.run.tab, -1)),
            Action::Older | Action::Newer if self.run.tab.is_of_run() => {
                if let Some(sheet) = self.run.sheet_mut() {
                    sheet.file(action == Action::Newer);
                }
            }
            Action::Older | Action::Newer => self.other_call(action == Action::Older),
            Action::Ending if over => self.open_ending(requests),
            Action::Ending => self.say("the run is going on; its commits stay as they are until it has ended"),
            Action::Search => self.input = Some(Input::new(InputFor::Search)),
            Action::FindNext => self.run.talk.find(false, requests),
            Action::FindPrevious => self.run.talk.find(true, requests),
            Action::Copy => self.copy(requests),
            Action::Export => match self.run.talk.call.clone() {
                Some(call) => requests.push(Request::Export(call)),
                None => self.say("there is no transcript of this story yet"),
            },
            Action::ExpandAll => self.run.talk.toggle_all(),
            Action::Accept if self.run.tab == Tab::Agent => {
                if let Some(entry) = self.run.talk.marked() {
                    self.run.talk.toggle(entry);
                }
            }
            Action::Up => self.scroll(-1),
            Action::Down => self.scroll(1),
            Action::PageUp => self.scroll(-self.run.talk.page()),
            Action::PageDown => self.scroll(self.run.talk.page()),
            Action::Top => {
                self.run.talk.top();
                self.run.scroll = 0;
                if let Some(sheet) = self.run.sheet_mut() {
                    sheet.scroll(i64::MIN + 1);
                }
            }
            Action::Bottom => {
                self.run.talk.bottom();
                self.run.scroll = usize::MAX;
                if let Some(sheet) = self.run.sheet_mut() {
                    sheet.scroll(i64::MAX);
                }
            }
            // Keys of the program and of the screens before a run.
            Action::Quit
            | Action::Accept
            | Action::Help
            | Action::Back
            | Action::Redraw
            | Action::Suspend
            | Action::Start
            | Action::Change => {}
        }
    }

    pub(super) fn turn_to(&mut self, tab: Tab) {
        self.run.tab = tab;
        self.run.scroll = 0;
    }

    fn follow(&mut self) {
        self.run.chosen = false;
        self.run.talk.bottom();
        let running = self.run.watched.as_ref().and_then(|watched| {
            watched.attempts().max_by_key(|attempt| watched.tries.get(&attempt.id).map(|one| one.began))
        });
        if let Some(story) = running.map(|attempt| attempt.id.story.clone()) {
            self.run.select(&story);
        }
    }

    fn other_call(&mut self, older: bool) {
        let (calls, at) = self.run.calls();
        let wanted = if older { at.saturating_sub(1) } else { at + 1 };
        // The last is looked at by following it: then a new one is not missed.
        self.run.older = (wanted + 1 < calls.len()).then_some(wanted);
        self.run.scroll = 0;
    }

    fn copy(&mut self, requests: &mut Vec<Request>) {
        let text = if self.run.tab == Tab::Agent {
            self.run.talk.marked_text()
        } else if let Some(sheet) = self.run.sheet() {
            Some(sheet.held()).filter(|text| !text.is_empty())
        } else {
            let lines: Vec<&str> = self.run.lines.iter().map(|line| line.text.as_str()).collect();
            Some(lines.join("\n")).filter(|text| !text.is_empty())
        };
        match text {
            Some(text) => {
                self.say(format!("copied {} characters", text.chars().count()));
                requests.push(Request::Hold(text.clone()));
                requests.push(Request::Copy(text));
            }
            None => self.say("there is nothing to copy"),
        }
    }

    fn scroll(&mut self, by: i64) {
        if self.run.tab == Tab::Agent {
            self.run.talk.scroll(by);
        } else if let Some(sheet) = self.run.sheet_mut() {
            sheet.scroll(by);
        } else {
            let by = isize::try_from(by).unwrap_or(0);
            self.run.scroll = self.run.scroll.min(self.run.lines.len()).saturating_add_signed(by);
        }
    }

    pub(super) fn mouse(&mut self, mouse: Mouse) {
        let areas = Areas::of(self.size);
        match mouse {
            Mouse::Wheel { x, y, by } if areas.stories.contains((x, y).into()) => {
                self.run.move_by(isize::try_from(by.signum()).unwrap_or(0));
            }
            Mouse::Wheel { by, .. } => self.scroll(i64::from(by) * WHEEL),
            Mouse::Click { x, y } if areas.tabs.contains((x, y).into()) => {
                if let Some(tab) = tabs::at(Tab::ALL, x - areas.tabs.x) {
                    self.turn_to(tab);
                }
            }
            Mouse::Click { x, y } if areas.stories.contains((x, y).into()) => {
                let rows = usize::from(areas.stories.height);
                let count = self.run.watched.as_ref().map_or(0, |watched| watched.run.records().count());
                let at =
                    crate::draw::layout::first_story(self.run.selected, rows, count) + usize::from(y - areas.stories.y);
                if at < count {
                    self.run.chosen = true;
                    self.run.go_to(at);
                }
            }
            Mouse::Click { x, y } if self.run.tab == Tab::Agent && areas.pane.contains((x, y).into()) => {
                self.run.talk.click(usize::from(y - areas.pane.y));
            }
            Mouse::Click { .. } => {}
        }
    }

    /// Makes ready what is seen: the window of the transcript, or the lines of another tab.
    pub(super) fn settle_run(&mut self, requests: &mut Vec<Request>) {
        let pane = Areas::of(self.size).pane;
        let (width, height) = (usize::from(pane.width), usize::from(pane.height));
        if self.run.tab == Tab::Agent {
            let (mut calls, at) = self.run.calls();
            if calls.is_empty() {
                self.run.talk.clear();
            } else {
                self.run.talk.show(calls.swap_remove(at), requests);
            }
            self.run.talk.settle(width, height, requests);
            return;
        }
        match self.run.tab {
            Tab::Changes => self.ask_for_changes(requests),
            Tab::Files => self.ask_for_files(requests),
            _ => {}
        }
        self.run.lines = lines::of(self, width);
        self.run.scroll = self.run.scroll.min(self.run.lines.len().saturating_sub(height));
        if let Some(sheet) = self.run.sheet_mut() {
            sheet.settle(height, requests);
        }
    }

    fn ask_for_changes(&mut self, requests: &mut Vec<Request>) {
        let Some(attempt) = self.run.attempt() else {
            self.run.changes = None;
            return;
        };
        let under_way = self.run.watched.as_ref().is_some_and(|watched| watched.attempt_of(&attempt.story).is_some());
        let now = self.now;
        let id = SheetId::Attempt(attempt);
        match &mut self.run.changes {
            Some(sheet) if sheet.id == id => {
                let old = now.since(sheet.as_of) >= LIVE;
                if under_way && old && sheet.extent.is_some() {
                    sheet.as_of = now;
                    requests.push(Request::MakeSheet(id));
                }
            }
            changes => {
                *changes = Some(Sheet::new(id.clone(), now));
                requests.push(Request::MakeSheet(id));
            }
        }
    }

    fn ask_for_files(&mut self, requests: &mut Vec<Request>) {
        let Some(watched) = &self.run.watched else { return };
        let landed = watched.count(|state| state.commit().is_some());
        let now = self.now;
        // Made anew when something more has landed.
        if self.run.landed.is_none() || self.run.landed_as_of != landed {
            self.run.landed_as_of = landed;
            match &mut self.run.landed {
                Some(sheet) => sheet.as_of = now,
                none => *none = Some(Sheet::new(SheetId::Landed, now)),
            }
            requests.push(Request::MakeSheet(SheetId::Landed));
        }
    }
}
