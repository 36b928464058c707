//! A line that is being typed.

use ratatui::crossterm::event::KeyCode;

use crate::keys::{Action, Press};
use crate::line;

/// What a line is typed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InputFor {
    Guidance,
    Search,
}

/// A line and its end, where the cursor is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Input {
    pub(crate) purpose: InputFor,
    pub(crate) text: String,
}

/// What a key did to the line.
pub(super) enum Typed {
    More,
    Given,
    Dropped,
}

impl Input {
    pub(super) fn new(purpose: InputFor) -> Self {
        Self { purpose, text: String::new() }
    }

    /// What is asked for.
    pub(crate) fn label(&self) -> &'static str {
        match self.purpose {
            InputFor::Guidance => "Tell the agent with its next prompt: ",
            InputFor::Search => "Search for: ",
        }
    }

    pub(super) fn key(&mut self, press: Press, action: Option<Action>) -> Typed {
        match press.code {
            KeyCode::Enter => return Typed::Given,
            KeyCode::Esc => return Typed::Dropped,
            _ if line::edit(&mut self.text, press) => {}
            _ if action == Some(Action::Back) => return Typed::Dropped,
            _ => {}
        }
        Typed::More
    }

    pub(super) fn paste(&mut self, text: &str) {
        line::paste(&mut self.text, text);
    }
}
