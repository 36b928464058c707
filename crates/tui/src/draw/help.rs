//! The help: every key, made from the table.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::popup;
use crate::keys::{Keymap, TABLE};
use crate::text;
use crate::theme::Theme;

pub(crate) fn draw(buffer: &mut Buffer, size: Rect, keys: &Keymap, theme: Theme, from: usize) {
    let room = usize::from(size.width.saturating_sub(6)).min(96);
    let mut lines = Vec::new();
    for (action, _, _, what) in TABLE {
        let names = keys.keys(*action).iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        let mut rows = Vec::new();
        text::wrap(what, room.saturating_sub(16).max(10), &mut rows);
        for (at, row) in rows.iter().enumerate() {
            let names = if at == 0 { names.as_str() } else { "" };
            lines.push((format!("{names:14}  {row}"), Style::new()));
        }
    }
    let fit = usize::from(size.height).saturating_sub(4).max(1);
    let from = from.min(lines.len().saturating_sub(fit));
    let more = from + fit < lines.len();
    let mut shown: Vec<(String, Style)> = lines.into_iter().skip(from).take(fit).collect();
    let said = if more { "down: more · any other key closes this" } else { "any key closes this" };
    shown.push((said.to_owned(), theme.dim()));
    popup(buffer, size, &shown);
}
