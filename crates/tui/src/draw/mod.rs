//! The model as a frame. Nothing is decided here.

mod ending;
pub(crate) mod help;
pub(crate) mod layout;
pub(crate) mod words;

use ralphloop_core::run::{Run, StoryState};
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::facts::{self, Watched};
use crate::keys::Action;
use crate::model::{Model, Row, Tab, Tone};
use crate::port::EntryKind;
use crate::tabs;
use crate::text;
use crate::theme::Theme;
use layout::Areas;

/// Writes one line, cut to its area.
pub(crate) fn put(buffer: &mut Buffer, area: Rect, row: u16, said: &str, style: Style) {
    if row < area.height && area.width > 0 {
        let shown = text::cut(said, usize::from(area.width));
        buffer.set_stringn(area.x, area.y + row, shown, usize::from(area.width), style);
    }
}

/// Writes pieces one after the other, as far as there is room.
pub(crate) fn put_pieces(buffer: &mut Buffer, area: Rect, row: u16, pieces: &[(String, Style)]) {
    if row >= area.height {
        return;
    }
    let mut x = area.x;
    for (said, style) in pieces {
        let room = area.right().saturating_sub(x);
        if room == 0 {
            break;
        }
        let shown = text::cut(said, usize::from(room));
        (x, _) = buffer.set_stringn(x, area.y + row, shown, usize::from(room), *style);
    }
}

impl Theme {
    pub(crate) fn tone(self, tone: Tone) -> Style {
        match tone {
            Tone::Plain => Style::new(),
            Tone::Head => Self::head(),
            Tone::Dim => self.dim(),
            Tone::Good => self.good(),
            Tone::Bad => self.bad(),
            Tone::Warn => self.warn(),
            Tone::Active => self.active(),
        }
    }
}

impl Model {
    /// Draws what is seen. [`Model::settle`] comes before it.
    pub fn draw(&self, frame: &mut Frame<'_>) {
        let size = frame.area();
        let areas = Areas::of((size.width, size.height));
        let buffer = frame.buffer_mut();
        let Some(watched) = &self.run.watched else {
            put(buffer, size, 0, "ralphloop: reading the run …", self.options.theme.dim());
            return;
        };
        self.header(buffer, areas.header, watched);
        self.stories(buffer, areas.stories, watched);
        if areas.stories.width > 0 && areas.stories.right() < areas.pane.x {
            let line = Rect { x: areas.stories.right(), width: 1, ..areas.stories };
            for row in 0..line.height {
                put(buffer, line, row, "│", self.options.theme.dim());
            }
        }
        self.tabs(buffer, areas.tabs);
        self.pane(buffer, areas.pane, watched);
        self.status(buffer, areas.status, watched);
        self.hints(buffer, areas.keys, watched);
        self.ending(buffer, size, watched);
        if let Some(from) = self.help {
            help::draw(buffer, size, &self.options.keys, self.options.theme, from);
        }
        if let Some(input) = &self.input {
            let column = text::width(input.label()) + text::width(&input.text);
            let column = u16::try_from(column).unwrap_or(u16::MAX).min(areas.status.width.saturating_sub(1));
            if areas.status.height > 0 {
                frame.set_cursor_position((column, areas.status.y));
            }
        }
    }

    fn header(&self, buffer: &mut Buffer, area: Rect, watched: &Watched) {
        let theme = self.options.theme;
        let run = &watched.run;
        let (word, tone) = state(watched, self.run.stopping.since.is_some());
        let name = run.plan().work.to_string();
        let title = run.plan().title.as_deref().unwrap_or("");
        let first = [
            (format!(" {word} "), theme.tone(tone).patch(Theme::selected())),
            (format!(" {}", text::one_line(&name)), Theme::head()),
            (format!("  {}", text::one_line(title)), Style::new()),
            (format!("  run {}", run.id()), theme.dim()),
        ];
        put_pieces(buffer, area, 0, &first);
        put_pieces(buffer, area, 1, &self.progress(watched));
        if area.height > 2 {
            self.doing(buffer, area, watched);
        }
    }

    fn progress(&self, watched: &Watched) -> Vec<(String, Style)> {
        let theme = self.options.theme;
        let run = &watched.run;
        let total = run.records().count();
        let passed = watched.count(StoryState::passed);
        let failed = watched.count(|state| matches!(state, StoryState::Failed));
        let blocked = watched.count(|state| matches!(state, StoryState::Blocked));
        let cells = 12;
        let full = (passed * cells).checked_div(total).unwrap_or(0);
        let mut pieces = vec![
            (format!(" {}", "█".repeat(full)), theme.good()),
            ("░".repeat(cells - full), theme.dim()),
            (format!(" {passed} of {total} passed"), Style::new()),
        ];
        if failed > 0 {
            pieces.push((format!(", {failed} failed"), theme.bad()));
        }
        if blocked > 0 {
            pieces.push((format!(", {blocked} blocked"), theme.warn()));
        }
        let idle = if watched.over() { std::time::Duration::ZERO } else { self.now.since(run.last_at()) };
        pieces.push((format!(" · {}", words::span(run.active_time() + idle)), Style::new()));
        pieces.push((format!(" · {}", words::usage(&run.usage())), Style::new()));
        if let Some(budget) = run.policy().budget.cost {
            pieces.push((format!(" of {budget}"), theme.warn()));
        }
        pieces
    }

    /// What happens just now, or what is waited for.
    fn doing(&self, buffer: &mut Buffer, area: Rect, watched: &Watched) {
        let theme = self.options.theme;
        let run = &watched.run;
        if let Some((until, reason)) = watched.waits() {
            let left = words::span(until.since(self.now));
            let at = words::clock(until, self.options.utc_offset);
            let said = format!(" waits until {at} (for another {left}): {}", text::one_line(reason));
            return put(buffer, area, 2, &said, theme.warn());
        }
        if let Some(outcome) = watched.outcome() {
            return put(buffer, area, 2, &format!(" {}", text::one_line(&outcome.to_string())), Theme::head());
        }
        if watched.gone {
            let said = " the process of the run is gone: `ralphloop resume` goes on with it";
            return put(buffer, area, 2, said, theme.bad());
        }
        let doing: Vec<String> = watched
            .attempts()
            .map(|attempt| format!("{}: {}", attempt_name(attempt, run), facts::doing(attempt, run)))
            .collect();
        let said = if doing.is_empty() { "between stories".to_owned() } else { doing.join(" · ") };
        put(buffer, area, 2, &format!(" {}", text::one_line(&said)), theme.active());
    }

    fn stories(&self, buffer: &mut Buffer, area: Rect, watched: &Watched) {
        let theme = self.options.theme;
        let rows = usize::from(area.height);
        let count = watched.run.records().count();
        let first = layout::first_story(self.run.selected, rows, count);
        for (row, (at, (story, record))) in watched.run.records().enumerate().skip(first).take(rows).enumerate() {
            let (tone, mark, _) = words::story(&record.state);
            let attempt = watched.attempt_of(&story.id).map(|attempt| attempt.id.number).filter(|number| *number > 1);
            let attempt = attempt.map_or_else(String::new, |number| format!(" (attempt {number})"));
            let said =
                format!("{mark} {}{attempt}  {}", text::one_line(story.id.as_str()), text::one_line(&story.title));
            let mut style = theme.tone(tone);
            if at == self.run.selected {
                style = style.patch(Theme::selected());
            }
            put(buffer, area, u16::try_from(row).unwrap_or(u16::MAX), &said, style);
        }
    }

    fn tabs(&self, buffer: &mut Buffer, area: Rect) {
        let theme = self.options.theme;
        let mut pieces = tabs::pieces(Tab::ALL, self.run.tab, theme);
        let (calls, at) = self.run.calls();
        if let Some(call) = calls.get(at).filter(|_| !self.run.tab.is_of_run()) {
            let name = self.run.watched.as_ref().and_then(|watched| watched.name_of(call));
            let repair = name.map_or_else(String::new, |name| format!(", {}", text::one_line(name)));
            let place =
                if calls.len() > 1 { format!(" ({} of {}, [ and ])", at + 1, calls.len()) } else { String::new() };
            pieces.push((format!("  attempt {}{repair}{place}", call.attempt.number), Style::new()));
        }
        put_pieces(buffer, area, 0, &pieces);
    }

    /// Which of the changed files is seen.
    fn file_place(&self) -> Option<String> {
        let sheet = self.run.sheet().filter(|sheet| !sheet.marks.is_empty())?;
        let keys = &self.options.keys;
        let (older, newer) = (keys.name(Action::Older), keys.name(Action::Newer));
        let at = sheet.marks.iter().take_while(|mark| mark.line <= sheet.top).count();
        let of = sheet.marks.len();
        Some(match at.checked_sub(1).and_then(|at| sheet.marks.get(at)) {
            Some(mark) => format!("file {at} of {of}, {older} and {newer} for others: {}", text::one_line(&mark.path)),
            None => format!(
                "{of} changed, {newer} for the first",
                of = words::count(u32::try_from(of).unwrap_or(u32::MAX), "file", "files")
            ),
        })
    }

    fn pane(&self, buffer: &mut Buffer, area: Rect, watched: &Watched) {
        if self.run.tab == Tab::Agent {
            return self.talk(buffer, area, watched);
        }
        let theme = self.options.theme;
        if let Some(sheet) = self.run.sheet().filter(|sheet| sheet.count() > 0) {
            for (row, (tone, line)) in sheet.seen(usize::from(area.width)).into_iter().enumerate() {
                put(buffer, area, u16::try_from(row).unwrap_or(u16::MAX), &line, theme.tone(tone));
            }
            return;
        }
        let shown = self.run.lines.iter().skip(self.run.scroll).take(usize::from(area.height));
        for (row, line) in shown.enumerate() {
            put(buffer, area, u16::try_from(row).unwrap_or(u16::MAX), &line.text, theme.tone(line.tone));
        }
    }

    fn talk(&self, buffer: &mut Buffer, area: Rect, watched: &Watched) {
        let theme = self.options.theme;
        let talk = &self.run.talk;
        if talk.rows.is_empty() {
            let running = self.run.story().is_some_and(|story| watched.attempt_of(story).is_some());
            let said = match (running, &talk.call) {
                (true, _) => "The agent has not said anything yet.",
                (false, Some(_)) => "The agent said nothing.",
                (false, None) => "Nothing was tried yet.",
            };
            return put(buffer, area, 0, said, theme.dim());
        }
        let marked = talk.marked();
        let hit = talk.hit;
        for (at, row) in talk.rows.iter().enumerate() {
            let at = u16::try_from(at).unwrap_or(u16::MAX);
            let (mark, style) = row_style(row, theme);
            let mark = if marked == Some(row.entry) && row.row == 0 && !talk.following() {
                mark.patch(Theme::selected())
            } else {
                mark
            };
            let style = if hit == Some(row.entry) { style.patch(Theme::selected()) } else { style };
            put_pieces(buffer, area, at, &[(format!("{:2}", row.mark), mark), (row.text.clone(), style)]);
        }
        let (first, all) = talk.position();
        if !talk.following() && all > 0 && area.height > 1 && area.width > 30 {
            let percent = first * 100 / all;
            let said = format!(" {percent} % · end: follow ");
            let x = area.right().saturating_sub(u16::try_from(text::width(&said)).unwrap_or(0));
            let corner = Rect { x, width: area.right() - x, y: area.bottom() - 1, height: 1 };
            put(buffer, corner, 0, &said, theme.active().patch(Theme::selected()));
        }
    }

    fn status(&self, buffer: &mut Buffer, area: Rect, watched: &Watched) {
        let theme = self.options.theme;
        if let Some(input) = &self.input {
            let pieces = [(input.label().to_owned(), theme.key()), (input.text.clone(), Style::new())];
            put_pieces(buffer, area, 0, &pieces);
        } else if let Some((said, _)) = &self.said {
            put(buffer, area, 0, &text::one_line(said), theme.warn());
        } else if let Some(stopping) = self.stopping_text() {
            put(buffer, area, 0, &text::one_line(&stopping), theme.warn());
        } else if let Some(sentence) = watched.run.guidance().last().filter(|_| !watched.over()) {
            let said = format!("The next prompt will carry: {}", text::one_line(sentence));
            put(buffer, area, 0, &said, theme.warn());
        } else if let Some(place) = self.file_place() {
            put(buffer, area, 0, &place, theme.dim());
        } else if self.run.talk.reading && self.run.tab == Tab::Agent {
            put(buffer, area, 0, "reading the transcript …", theme.dim());
        }
    }

    fn hints(&self, buffer: &mut Buffer, area: Rect, watched: &Watched) {
        let theme = self.options.theme;
        let keys = &self.options.keys;
        let own = self.options.own;
        let hints: &[(Action, &str)] = match (watched.over(), own) {
            (true, _) => &[
                (Action::Quit, "leave"),
                (Action::Ending, "squash, pull request"),
                (Action::Next, "story"),
                (Action::NextTab, "tab"),
                (Action::Search, "search"),
                (Action::Copy, "copy"),
                (Action::Export, "export"),
                (Action::Help, "all keys"),
            ],
            (false, true) => &[
                (Action::Quit, "stop and leave"),
                (Action::Detach, "detach"),
                (Action::Pause, "pause"),
                (Action::Guide, "guide"),
                (Action::Next, "story"),
                (Action::NextTab, "tab"),
                (Action::Help, "all keys"),
            ],
            (false, false) => &[
                (Action::Quit, "close"),
                (Action::Stop, "stop the run"),
                (Action::Pause, "pause"),
                (Action::Guide, "guide"),
                (Action::Next, "story"),
                (Action::NextTab, "tab"),
                (Action::Help, "all keys"),
            ],
        };
        let mut pieces = Vec::new();
        for (action, what) in hints {
            pieces.push((format!(" {}", keys.name(*action)), theme.key()));
            pieces.push((format!(" {what} "), theme.dim()));
        }
        put_pieces(buffer, area, 0, &pieces);
    }
}

/// A box in the middle with these lines.
pub(crate) fn popup(buffer: &mut Buffer, size: Rect, lines: &[(String, Style)]) {
    let width = lines.iter().map(|(line, _)| text::width(line)).max().unwrap_or(0);
    let width = u16::try_from(width + 4).unwrap_or(u16::MAX).min(size.width);
    let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX).min(size.height);
    let area = Rect::new((size.width - width) / 2, (size.height - height) / 2, width, height);
    for y in area.top()..area.bottom() {
        for x in area.left()..area.right() {
            if let Some(cell) = buffer.cell_mut((x, y)) {
                cell.reset();
            }
        }
    }
    let edge = usize::from(width.saturating_sub(2));
    put(buffer, area, 0, &format!("┌{}┐", "─".repeat(edge)), Style::new());
    put(buffer, area, height.saturating_sub(1), &format!("└{}┘", "─".repeat(edge)), Style::new());
    for row in 1..height.saturating_sub(1) {
        put(buffer, area, row, "│", Style::new());
        let right = Rect { x: area.right().saturating_sub(1), width: 1, ..area };
        put(buffer, right, row, "│", Style::new());
    }
    let inner = Rect {
        x: area.x + 2.min(width),
        y: area.y + 1.min(height),
        width: width.saturating_sub(4),
        height: height.saturating_sub(2),
    };
    for (row, (line, style)) in lines.iter().enumerate() {
        put(buffer, inner, u16::try_from(row).unwrap_or(u16::MAX), line, *style);
    }
}

fn attempt_name(attempt: &ralphloop_core::run::Attempt, run: &Run) -> String {
    let of = run.policy().max_retries.saturating_add(1);
    format!("{} (attempt {} of {of})", text::one_line(attempt.id.story.as_str()), attempt.id.number)
}

/// How the run stands, in one word.
fn state(watched: &Watched, asked: bool) -> (&'static str, Tone) {
    match watched.outcome().map(ralphloop_core::outcome::Outcome::state) {
        Some("complete") => ("COMPLETE", Tone::Good),
        Some("failed") => ("FAILED", Tone::Bad),
        Some("paused") => ("PAUSED", Tone::Warn),
        Some("stopped") => ("STOPPED", Tone::Warn),
        Some(_) => ("LIMIT REACHED", Tone::Warn),
        None if watched.gone => ("INTERRUPTED", Tone::Bad),
        None if asked || watched.run.stopping() => ("STOPPING", Tone::Warn),
        None if watched.waits().is_some() => ("WAITING", Tone::Warn),
        None => ("RUNNING", Tone::Active),
    }
}

/// The styles of an entry's mark and text.
fn row_style(row: &Row, theme: Theme) -> (Style, Style) {
    match row.kind {
        Some(EntryKind::Agent) => (theme.active(), Style::new()),
        Some(EntryKind::SubAgent) => (theme.active(), theme.dim()),
        Some(EntryKind::Tool) => (theme.warn(), Theme::head()),
        Some(EntryKind::ToolOutput | EntryKind::Thought) | None => (theme.dim(), theme.dim()),
        Some(EntryKind::ToolFailed) => (theme.bad(), theme.bad()),
        Some(EntryKind::Plan) => (theme.active(), Theme::head()),
        Some(EntryKind::Output) => (Style::new(), Style::new()),
        Some(EntryKind::Note) => (theme.warn(), theme.warn()),
    }
}
