//! Editing a line that is being typed: the cursor is at its end.

use ratatui::crossterm::event::KeyCode;
use unicode_segmentation::UnicodeSegmentation as _;

use crate::keys::Press;

/// Longer texts are cut, in bytes.
const LONGEST: usize = 4000;

/// What a key does to the line; whether it was one that edits.
pub(crate) fn edit(text: &mut String, press: Press) -> bool {
    match press.code {
        KeyCode::Backspace => {
            let last = text.grapheme_indices(true).next_back().map_or(0, |(at, _)| at);
            text.truncate(last);
        }
        KeyCode::Char('u') if press.ctrl => text.clear(),
        KeyCode::Char(c) if !press.ctrl && !press.alt => push(text, c),
        _ => return false,
    }
    true
}

/// Adds what was pasted, on one line.
pub(crate) fn paste(text: &mut String, pasted: &str) {
    pasted.chars().map(|c| if c.is_control() { ' ' } else { c }).for_each(|c| push(text, c));
}

fn push(text: &mut String, c: char) {
    if text.len() + c.len_utf8() <= LONGEST {
        text.push(c);
    }
}
