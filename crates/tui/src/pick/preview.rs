//! What a run of one piece of work would be, seen through tabs.

use std::collections::BTreeMap;

use ralphloop_core::ids::StoryId;
use ralphloop_core::plan::{StoryKind, WorkId};

use super::form::{Done, Form};
use super::port::{Preview, Request};
use super::{Picker, draw, pages};
use crate::keys::{Action, Press};
use crate::model::Shown;
use crate::port::Mouse;
use crate::tabs;

/// Rows that a turn of the wheel moves.
const WHEEL: isize = 3;

/// What is seen of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum Tab {
    /// Stories and their tasks.
    #[default]
    Tasks,
    /// What must hold, by capability.
    Scenarios,
    /// Why, what and how.
    Design,
    /// In which order the stories are taken, and what they wait for.
    Order,
    /// What a story must pass.
    Gates,
    /// What a story's agent is told.
    Prompt,
}

impl Tab {
    pub(crate) const ALL: &[(Self, &str)] = &[
        (Self::Tasks, "Tasks"),
        (Self::Scenarios, "Scenarios"),
        (Self::Design, "Design"),
        (Self::Order, "Order"),
        (Self::Gates, "Gates"),
        (Self::Prompt, "Prompt"),
    ];
}

/// One piece of work, looked at.
#[derive(Debug)]
pub(crate) struct PreviewScreen {
    pub(crate) work: WorkId,
    /// `None` while it is read.
    pub(crate) preview: Option<Preview>,
    /// Why it cannot be shown at all.
    pub(crate) refused: Option<String>,
    pub(crate) tab: Tab,
    /// The first line that is seen of each tab.
    scrolls: BTreeMap<Tab, usize>,
    pub(crate) lines: Vec<Shown>,
    height: usize,
    /// The story whose prompt is seen, by its place in the plan.
    pub(crate) story: usize,
    /// Prompts by story; none while it is asked for.
    pub(crate) prompts: BTreeMap<StoryId, Option<Result<String, String>>>,
    pub(crate) form: Option<Form>,
}

impl PreviewScreen {
    pub(super) fn new(work: WorkId) -> Self {
        Self {
            work,
            preview: None,
            refused: None,
            tab: Tab::default(),
            scrolls: BTreeMap::new(),
            lines: Vec::new(),
            height: 0,
            story: 0,
            prompts: BTreeMap::new(),
            form: None,
        }
    }

    pub(super) fn came(&mut self, preview: Preview) {
        if self.preview.as_ref().is_some_and(|before| before.choices != preview.choices) {
            // What an agent is told may depend on them.
            self.prompts.clear();
        }
        if self.preview.is_none()
            && let Some(first) = preview.stages.first().and_then(|stage| stage.first())
        {
            self.story = preview.plan.iter().flat_map(|plan| &plan.stories).position(|s| s.id == *first).unwrap_or(0);
        }
        self.refused = None;
        self.preview = Some(preview);
        if self.form.as_ref().is_some_and(|form| form.waits) {
            self.form = None;
        }
    }

    pub(super) fn refused(&mut self, why: String) {
        match &mut self.form {
            Some(form) => (form.waits, form.refused) = (false, Some(why)),
            None => self.refused = Some(why),
        }
    }

    pub(crate) fn scroll(&self) -> usize {
        self.scrolls.get(&self.tab).copied().unwrap_or(0)
    }

    fn scroll_by(&mut self, by: isize) {
        let last = self.lines.len().saturating_sub(self.height);
        let at = self.scroll().min(last).saturating_add_signed(by).min(last);
        self.scrolls.insert(self.tab, at);
    }

    /// Another story's prompt.
    fn other_story(&mut self, forward: bool) {
        let Some(plan) = self.preview.as_ref().and_then(|preview| preview.plan.as_ref()) else { return };
        let count = plan.stories.len();
        for by in 1..=count {
            let at = if forward { self.story + by } else { self.story + count - by } % count.max(1);
            if plan.stories.get(at).is_some_and(|story| story.kind == StoryKind::Story) {
                self.story = at;
                break;
            }
        }
        self.scrolls.insert(Tab::Prompt, 0);
    }

    /// The story whose prompt is seen.
    pub(crate) fn prompted(&self) -> Option<&StoryId> {
        Some(&self.preview.as_ref()?.plan.as_ref()?.stories.get(self.story)?.id)
    }

    pub(super) fn settle(&mut self, width: usize, height: usize, requests: &mut Vec<Request>) {
        self.height = height;
        if self.tab == Tab::Prompt
            && let Some(story) = self.prompted().cloned()
            && !self.prompts.contains_key(&story)
        {
            self.prompts.insert(story.clone(), None);
            requests.push(Request::Prompt(story));
        }
        self.lines = pages::of(self, width);
        self.scroll_by(0);
    }

    pub(super) fn mouse(&mut self, mouse: Mouse, size: (u16, u16)) {
        if self.form.is_some() {
            return;
        }
        let areas = draw::areas(size);
        match mouse {
            Mouse::Wheel { by, .. } => self.scroll_by(isize::try_from(by).unwrap_or(0) * WHEEL),
            Mouse::Click { x, y } if areas.tabs.contains((x, y).into()) => {
                if let Some(tab) = tabs::at(Tab::ALL, x - areas.tabs.x) {
                    self.tab = tab;
                }
            }
            Mouse::Click { .. } => {}
        }
    }

    /// Why a run cannot be started, if it cannot.
    fn unfit(&self) -> Option<String> {
        let Some(preview) = &self.preview else {
            return Some(self.refused.clone().unwrap_or_else(|| "the work is still being read".to_owned()));
        };
        if preview.plan.is_none() {
            return Some("the work cannot be read; what is wrong stands above".to_owned());
        }
        None
    }
}

impl Picker {
    pub(super) fn preview_key(
        &mut self,
        mut screen: PreviewScreen,
        press: Press,
        action: Option<Action>,
        requests: &mut Vec<Request>,
    ) {
        if let Some(form) = &mut screen.form {
            let agents = screen.preview.as_ref().map_or(&[][..], |preview| &preview.agents);
            match form.key(press, agents) {
                Done::More => {}
                Done::Given => {
                    let choices = Some(form.choices.clone());
                    requests.push(Request::Preview { work: screen.work.clone(), choices });
                }
                Done::Dropped => screen.form = None,
            }
            self.preview = Some(screen);
            return;
        }
        let page = isize::try_from(screen.height.saturating_sub(1).max(1)).unwrap_or(1);
        match action {
            Some(Action::Back) => {
                // Back in the list, with the same row.
                requests.push(Request::Find);
                return;
            }
            Some(Action::Quit) => Self::leave(requests),
            Some(Action::Help) => self.help = Some(0),
            Some(Action::Start) => {
                if let Some(why) = screen.unfit() {
                    self.say(why);
                } else {
                    self.starting = true;
                    requests.push(Request::Start);
                }
            }
            Some(Action::Change) => match &screen.preview {
                Some(preview) => screen.form = Some(Form::new(preview.choices.clone())),
                None => self.say("the work is still being read"),
            },
            Some(Action::NextTab) => screen.tab = tabs::beside(Tab::ALL, screen.tab, 1),
            Some(Action::PreviousTab) => screen.tab = tabs::beside(Tab::ALL, screen.tab, -1),
            Some(Action::Up) => screen.scroll_by(-1),
            Some(Action::Down) => screen.scroll_by(1),
            Some(Action::PageUp) => screen.scroll_by(-page),
            Some(Action::PageDown) => screen.scroll_by(page),
            Some(Action::Top) => screen.scroll_by(isize::MIN + 1),
            Some(Action::Bottom) => screen.scroll_by(isize::MAX),
            Some(Action::Previous | Action::Older) if screen.tab == Tab::Prompt => screen.other_story(false),
            Some(Action::Next | Action::Newer) if screen.tab == Tab::Prompt => screen.other_story(true),
            Some(Action::Copy) => {
                let lines: Vec<&str> = screen.lines.iter().map(|line| line.text.as_str()).collect();
                let text = match screen.prompted().and_then(|story| screen.prompts.get(story)) {
                    // The prompt itself, not as it is broken into lines here.
                    Some(Some(Ok(prompt))) if screen.tab == Tab::Prompt => prompt.clone(),
                    _ => lines.join("\n"),
                };
                self.say(format!("copied {} characters", text.chars().count()));
                requests.push(Request::Copy(text));
            }
            Some(Action::Redraw) => {
                self.preview = Some(screen);
                return self.look_again(requests);
            }
            _ => {}
        }
        self.preview = Some(screen);
    }
}
