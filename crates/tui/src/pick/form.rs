//! What can be changed before a run begins, as fields that are typed or turned.

use ratatui::crossterm::event::KeyCode;

use super::port::{AgentRow, Choices};
use crate::keys::Press;
use crate::line;

/// A field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    Agent,
    Model,
    Jobs,
    Retries,
}

impl Field {
    pub(crate) const ALL: &[Self] = &[Self::Agent, Self::Model, Self::Jobs, Self::Retries];

    /// What it is called, and what can be written.
    pub(crate) fn label(self) -> (&'static str, &'static str) {
        match self {
            Self::Agent => ("Agent", "← → for the next one, or type its name"),
            Self::Model => ("Model", "as the agent calls it; empty for its own default"),
            Self::Jobs => ("Stories at once", "← → or a number; more than one work in worktrees"),
            Self::Retries => ("Attempts after the first", "← → or a number, for each story"),
        }
    }
}

/// The fields while they are being changed.
#[derive(Debug, Clone)]
pub(crate) struct Form {
    pub(crate) choices: Choices,
    pub(crate) marked: usize,
    /// Why the values cannot be used.
    pub(crate) refused: Option<String>,
    /// They are being looked at.
    pub(crate) waits: bool,
    /// The first key in a field takes the place of what it holds.
    fresh: bool,
}

/// What a key did.
pub(super) enum Done {
    More,
    Given,
    Dropped,
}

impl Form {
    pub(super) fn new(choices: Choices) -> Self {
        Self { choices, marked: 0, refused: None, waits: false, fresh: true }
    }

    pub(crate) fn field(&self) -> Field {
        Field::ALL.get(self.marked).copied().unwrap_or(Field::Agent)
    }

    pub(crate) fn text(&self, field: Field) -> &str {
        match field {
            Field::Agent => &self.choices.agent,
            Field::Model => &self.choices.model,
            Field::Jobs => &self.choices.jobs,
            Field::Retries => &self.choices.retries,
        }
    }

    fn text_mut(&mut self) -> &mut String {
        match self.field() {
            Field::Agent => &mut self.choices.agent,
            Field::Model => &mut self.choices.model,
            Field::Jobs => &mut self.choices.jobs,
            Field::Retries => &mut self.choices.retries,
        }
    }

    pub(super) fn paste(&mut self, text: &str) {
        line::paste(self.text_mut(), text);
        self.fresh = false;
    }

    pub(super) fn key(&mut self, press: Press, agents: &[AgentRow]) -> Done {
        if self.waits {
            return if press.code == KeyCode::Esc { Done::Dropped } else { Done::More };
        }
        match press.code {
            KeyCode::Enter => {
                self.waits = true;
                return Done::Given;
            }
            KeyCode::Esc => return Done::Dropped,
            KeyCode::Up | KeyCode::BackTab => self.go(Field::ALL.len() - 1),
            KeyCode::Down | KeyCode::Tab => self.go(1),
            KeyCode::Left => self.turn(-1, agents),
            KeyCode::Right => self.turn(1, agents),
            KeyCode::Char(_) if !press.ctrl && !press.alt => {
                if self.fresh {
                    self.text_mut().clear();
                }
                self.edit(press);
            }
            _ => self.edit(press),
        }
        Done::More
    }

    fn edit(&mut self, press: Press) {
        line::edit(self.text_mut(), press);
        self.fresh = false;
        self.refused = None;
    }

    fn go(&mut self, by: usize) {
        self.marked = (self.marked + by) % Field::ALL.len();
        self.fresh = true;
    }

    fn turn(&mut self, by: i64, agents: &[AgentRow]) {
        self.refused = None;
        match self.field() {
            Field::Agent if !agents.is_empty() => {
                let count = agents.len();
                let at = agents.iter().position(|agent| agent.name == self.choices.agent);
                let next = match (at, by < 0) {
                    (None, _) => 0,
                    (Some(at), true) => (at + count - 1) % count,
                    (Some(at), false) => (at + 1) % count,
                };
                if let Some(agent) = agents.get(next) {
                    self.choices.agent.clone_from(&agent.name);
                    // A model belongs to its agent.
                    self.choices.model.clear();
                }
            }
            Field::Agent | Field::Model => {}
            Field::Jobs => self.count(by, 1),
            Field::Retries => self.count(by, 0),
        }
    }

    fn count(&mut self, by: i64, least: i64) {
        let text = self.text_mut();
        let number = text.trim().parse::<i64>().unwrap_or(least);
        *text = number.saturating_add(by).clamp(least, i64::from(u32::MAX)).to_string();
    }
}
