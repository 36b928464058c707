//! Where things are, from the size of the terminal alone: the model knows it as well as the drawing.

use ratatui::layout::Rect;

/// From this width on the stories stand at the left.
const WIDE: u16 = 90;
/// Below this height the stories have no room of their own.
const TALL: u16 = 12;

/// The parts of the screen of a run. A part without room is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Areas {
    pub(crate) header: Rect,
    pub(crate) stories: Rect,
    pub(crate) tabs: Rect,
    /// What the tab shows.
    pub(crate) pane: Rect,
    /// Answers, warnings, what is typed.
    pub(crate) status: Rect,
    pub(crate) keys: Rect,
}

impl Areas {
    /// For a terminal of so many columns and rows.
    pub(crate) fn of((columns, rows): (u16, u16)) -> Self {
        let row = |y: u16, height: u16| Rect::new(0, y, columns, height.min(rows.saturating_sub(y)));
        if rows < 6 {
            // Nothing but what is most important.
            return Self { header: row(0, rows.min(2)), pane: row(2, rows.saturating_sub(2)), ..Self::default() };
        }
        let header = row(0, if rows >= TALL { 3 } else { 2 });
        let status = row(rows - 2, 1);
        let keys = row(rows - 1, 1);
        let (top, bottom) = (header.height, rows - 2);
        let mut areas = Self { header, status, keys, ..Self::default() };
        let body = row(top, bottom - top);
        if columns >= WIDE {
            let left = (columns / 4).clamp(26, 44);
            areas.stories = Rect { width: left, ..body };
            // A column between them stays free for the line.
            let right = Rect { x: left + 1, width: columns - left - 1, ..body };
            areas.tabs = Rect { height: 1, ..right };
            areas.pane = Rect { y: right.y + 1, height: right.height - 1, ..right };
        } else {
            let stories = if rows >= TALL { (body.height / 4).clamp(1, 6) } else { 1 };
            areas.stories = Rect { height: stories, ..body };
            areas.tabs = Rect { y: body.y + stories, height: 1.min(body.height - stories), ..body };
            let used = stories + areas.tabs.height;
            areas.pane = Rect { y: body.y + used, height: body.height - used, ..body };
        }
        areas
    }
}

/// The first story that is seen in so many rows, so that the selected one is among them.
pub(crate) fn first_story(selected: usize, rows: usize, count: usize) -> usize {
    selected.saturating_sub(rows / 2).min(count.saturating_sub(rows))
}
