//! The box that opens when a run is over.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::popup;
use crate::facts::Watched;
use crate::model::ending::{ALWAYS, name};
use crate::model::{Ending, Model, Step};
use crate::port::Offer;
use crate::text::{self, one_line};
use crate::theme::Theme;

/// Texts in the box are not wider.
const WIDEST: usize = 92;

impl Model {
    pub(super) fn ending(&self, buffer: &mut Buffer, size: Rect, watched: &Watched) {
        let Some(ending) = &self.run.ending else { return };
        let theme = self.options.theme;
        let width = usize::from(size.width.saturating_sub(6)).clamp(1, WIDEST);
        let mut lines = Lines { width, lines: Vec::new() };
        match &ending.step {
            Step::Choose(marked) => choices(ending, *marked, watched, theme, &mut lines),
            Step::Confirm(gesture) => {
                lines.say(&name(gesture).0, Theme::head());
                lines.gap();
                if let Some(Offer { what: Ok(what), command, .. }) = ending.offer(gesture) {
                    lines.say(what, Style::new());
                    lines.gap();
                    lines.say(&format!("The same from a shell: {command}"), theme.dim());
                }
                lines.last("enter: do it · esc: do not", theme, size);
            }
            Step::Doing(gesture) => {
                lines.say(&name(gesture).0, Theme::head());
                lines.gap();
                lines.say("It is being done …", theme.active());
            }
            Step::Done(gesture, said) => {
                lines.say(&name(gesture).0, Theme::head());
                lines.gap();
                match said {
                    Ok(said) => lines.say(said, theme.good()),
                    Err(why) => lines.say(why, theme.bad()),
                }
                lines.last("enter: back", theme, size);
            }
        }
        popup(buffer, size, &lines.lines);
    }
}

fn choices(ending: &Ending, marked: usize, watched: &Watched, theme: Theme, lines: &mut Lines) {
    let why = watched.outcome().map_or_else(|| "its process is gone".to_owned(), ToString::to_string);
    lines.say(&format!("The run has ended: {}", one_line(&why)), Theme::head());
    lines.gap();
    let mut at = 0;
    let mut choice = |lines: &mut Lines, title: &str, what: &str, style: Style| {
        let (mark, style) = if at == marked { ('▸', style.patch(Theme::selected())) } else { (' ', style) };
        lines.cut(&format!("{mark} {title}: {what}"), style);
        at += 1;
    };
    for (title, what) in ALWAYS {
        choice(lines, title, what, Style::new());
    }
    for offer in ending.offers.iter().flatten() {
        let (title, what) = name(&offer.gesture);
        match &offer.what {
            Ok(_) => choice(lines, &title, what, Style::new()),
            Err(why) => choice(lines, &title, &format!("not possible: {}", one_line(why)), theme.dim()),
        }
    }
    if ending.offers.is_none() {
        lines.say("  looking what else can be done …", theme.dim());
    }
    lines.gap();
    lines.say("enter: choose · esc: look around, E opens this again", theme.dim());
}

/// The lines of the box.
struct Lines {
    width: usize,
    lines: Vec<(String, Style)>,
}

impl Lines {
    fn say(&mut self, said: &str, style: Style) {
        let mut rows = Vec::new();
        text::wrap(said, self.width, &mut rows);
        self.lines.extend(rows.into_iter().map(|row| (row, style)));
    }

    fn cut(&mut self, said: &str, style: Style) {
        self.lines.push((text::cut(said, self.width).into_owned(), style));
    }

    fn gap(&mut self) {
        self.lines.push((String::new(), Style::new()));
    }

    /// The hint, which is seen however long the rest is.
    fn last(&mut self, said: &str, theme: Theme, size: Rect) {
        let fit = usize::from(size.height).saturating_sub(4).max(1);
        if self.lines.len() > fit {
            self.lines.truncate(fit.saturating_sub(1));
            self.lines.push(("…".to_owned(), theme.dim()));
        }
        self.gap();
        self.cut(said, theme.dim());
    }
}
