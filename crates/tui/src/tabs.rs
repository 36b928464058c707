//! A row of tabs, as a list of what each shows and its name.

use ratatui::style::Style;

use crate::text;
use crate::theme::Theme;

/// The tab so many places after this one, or before it; the row is a ring.
pub(crate) fn beside<T: Copy + PartialEq>(all: &[(T, &str)], tab: T, by: isize) -> T {
    let at = all.iter().position(|(known, _)| *known == tab).unwrap_or(0);
    let count = all.len().max(1);
    all.get((at + count).saturating_add_signed(by) % count).map_or(tab, |(tab, _)| *tab)
}

/// The tab at a column of the row.
pub(crate) fn at<T: Copy>(all: &[(T, &str)], column: u16) -> Option<T> {
    let mut left = 0;
    for (tab, name) in all {
        let right = left + text::width(name) + 2;
        if (left..right).contains(&usize::from(column)) {
            return Some(*tab);
        }
        left = right;
    }
    None
}

/// The row, to be drawn.
pub(crate) fn pieces<T: Copy + PartialEq>(all: &[(T, &str)], tab: T, theme: Theme) -> Vec<(String, Style)> {
    let style = |known: T| if known == tab { Theme::head().patch(Theme::selected()) } else { theme.dim() };
    all.iter().map(|(known, name)| (format!(" {name} "), style(*known))).collect()
}
