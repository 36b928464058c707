//! A line that is being typed.

use ratatui::crossterm::event::KeyCode;
use unicode_segmentation::UnicodeSegmentation as _;

use crate::keys::{Action, Press};

/// Longer sentences are cut, in bytes.
const LONGEST: usize = 4000;

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
            KeyCode::Backspace => {
                let last = self.text.grapheme_indices(true).next_back().map_or(0, |(at, _)| at);
                self.text.truncate(last);
            }
            KeyCode::Char('u') if press.ctrl => self.text.clear(),
            KeyCode::Char(c) if !press.ctrl && !press.alt => self.push(c),
            _ if action == Some(Action::Back) => return Typed::Dropped,
            _ => {}
        }
        Typed::More
    }

    pub(super) fn paste(&mut self, text: &str) {
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).for_each(|c| self.push(c));
    }

    fn push(&mut self, c: char) {
        if self.text.len() + c.len_utf8() <= LONGEST {
            self.text.push(c);
        }
    }
}
