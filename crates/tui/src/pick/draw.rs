//! The screens before a run as a frame. Nothing is decided here.

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::form::{Field, Form};
use super::port::Preview;
use super::preview::{PreviewScreen, Tab};
use super::{Asked, Picker, pages};
use crate::draw::{help, popup, put, put_pieces};
use crate::keys::Action;
use crate::tabs;
use crate::text::{self, one_line};
use crate::theme::Theme;

/// Below this height headers are short.
const TALL: u16 = 12;
/// Texts in boxes are not wider.
const BOX: usize = 84;

/// The parts of these screens. A part without room is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Areas {
    pub(crate) header: Rect,
    /// The filter, or the tabs.
    pub(crate) tabs: Rect,
    pub(crate) body: Rect,
    pub(crate) status: Rect,
    pub(crate) keys: Rect,
}

/// For a terminal of so many columns and rows.
pub(crate) fn areas((columns, rows): (u16, u16)) -> Areas {
    let row = |y: u16, height: u16| Rect::new(0, y, columns, height.min(rows.saturating_sub(y)));
    if rows < 6 {
        // What can be chosen is most important.
        let header = row(0, u16::from(rows > 2));
        return Areas { header, body: row(header.height, rows - header.height), ..Areas::default() };
    }
    let header = row(0, if rows >= TALL { 3 } else { 1 });
    let tabs = row(header.height, 1);
    let top = header.height + 1;
    Areas { header, tabs, body: row(top, rows - 2 - top), status: row(rows - 2, 1), keys: row(rows - 1, 1) }
}

impl Picker {
    pub(super) fn draw_frame(&self, frame: &mut Frame<'_>) {
        let size = frame.area();
        let areas = areas((size.width, size.height));
        let buffer = frame.buffer_mut();
        let theme = self.options.theme;
        match &self.preview {
            Some(screen) => self.preview(buffer, areas, screen),
            None => self.works(buffer, areas),
        }
        self.status(buffer, areas.status);
        self.hints(buffer, areas.keys);
        if let Some(form) = self.preview.as_ref().and_then(|screen| screen.form.as_ref()) {
            let agents = self.preview.as_ref().and_then(|screen| screen.preview.as_ref());
            popup(buffer, size, &form_lines(form, agents, theme, room(size)));
        }
        if let Some(why) = &self.failed {
            let mut lines = vec![("The run was not started".to_owned(), theme.bad()), (String::new(), Style::new())];
            lines.extend(wrapped(why, room(size)).into_iter().map(|line| (line, Style::new())));
            lines.push((String::new(), Style::new()));
            lines.push(("any key closes this".to_owned(), theme.dim()));
            popup(buffer, size, &lines);
        }
        if let Some(asked) = &self.asked {
            popup(buffer, size, &question_lines(asked, theme, size));
        }
        if let Some(from) = self.help {
            help::draw(buffer, size, &self.options.keys, theme, from);
        }
        let cursor = self.list.filtering() && self.preview.is_none() && areas.tabs.height > 0;
        if cursor {
            let column = u16::try_from(FILTER.len() + text::width(&self.list.filter)).unwrap_or(u16::MAX);
            frame.set_cursor_position((column.min(areas.tabs.width.saturating_sub(1)), areas.tabs.y));
        }
    }

    fn works(&self, buffer: &mut Buffer, areas: Areas) {
        let theme = self.options.theme;
        let list = &self.list;
        let place = list.found.as_ref().map_or("", |found| found.place.as_str());
        let title = [
            (" ralphloop ".to_owned(), Theme::head().patch(Theme::selected())),
            (format!(" {}", one_line(place)), Style::new()),
        ];
        put_pieces(buffer, areas.header, 0, &title);
        let said = match &list.found {
            None => " Looking for work …".to_owned(),
            Some(found) => format!(
                " {} of work, {}",
                counted(found.works.len(), "piece", "pieces"),
                counted(found.runs.len(), "run", "runs")
            ),
        };
        put(buffer, areas.header, 1, &said, theme.dim());
        if list.filtering() {
            let pieces = [(FILTER.to_owned(), theme.key()), (text::harmless(&list.filter).into_owned(), Style::new())];
            put_pieces(buffer, areas.tabs, 0, &pieces);
        } else {
            put(buffer, areas.tabs, 0, " What is to be run? Type to filter.", Style::new());
        }
        let shown = list.lines.iter().enumerate().skip(list.scroll).take(usize::from(areas.body.height));
        for (row, (_, line)) in shown.enumerate() {
            let marked = line.item == Some(list.marked);
            let row = u16::try_from(row).unwrap_or(u16::MAX);
            let mut pieces: Vec<(String, Style)> = Vec::new();
            for (at, (said, tone)) in line.pieces.iter().enumerate() {
                let style = theme.tone(*tone);
                // The mark stands before the name, so that it is seen without colours too.
                let said = if marked && at == 0 { said.replacen("  ", "▸ ", 1) } else { said.clone() };
                pieces.push((said, if marked { style.patch(Theme::selected()) } else { style }));
            }
            put_pieces(buffer, areas.body, row, &pieces);
        }
        let Some(found) = &list.found else { return };
        if list.lines.is_empty() {
            let said = if list.filtering() {
                "Nothing that is here fits the filter."
            } else {
                "There is no work here yet. It could be a change in openspec/changes/NAME/, a prd.json, or a PRD.md with boxes."
            };
            let mut rows = Vec::new();
            text::wrap(said, usize::from(areas.body.width).saturating_sub(1).max(1), &mut rows);
            if !list.filtering() {
                rows.push("`ralphloop new prd` writes a starter; `ralphloop demo` shows the loop at work.".to_owned());
            }
            rows.extend(found.warnings.iter().map(|warning| format!("warning: {}", one_line(warning))));
            for (row, said) in rows.iter().enumerate() {
                put(buffer, areas.body, u16::try_from(row).unwrap_or(u16::MAX), &format!(" {said}"), theme.dim());
            }
        }
    }

    fn preview(&self, buffer: &mut Buffer, areas: Areas, screen: &PreviewScreen) {
        let theme = self.options.theme;
        let preview = screen.preview.as_ref();
        let title = preview.and_then(|p| p.plan.as_ref()).and_then(|plan| plan.title.as_deref()).unwrap_or("");
        let first = [
            (format!(" {} ", one_line(&screen.work.to_string())), Theme::head().patch(Theme::selected())),
            (format!("  {}", one_line(title)), Style::new()),
            (preview.map_or_else(String::new, |preview| format!("  {}", one_line(&preview.file))), theme.dim()),
        ];
        put_pieces(buffer, areas.header, 0, &first);
        if let Some(preview) = preview {
            put_pieces(buffer, areas.header, 1, &told(preview, theme));
            put_pieces(buffer, areas.header, 2, &with(preview, &self.options.keys.name(Action::Change), theme));
        }
        let mut pieces = tabs::pieces(Tab::ALL, screen.tab, theme);
        if screen.tab == Tab::Prompt
            && let Some(story) = screen.prompted()
        {
            let keys = &self.options.keys;
            let place = format!("  of {}", one_line(story.as_str()));
            pieces.push((place, Style::new()));
            let (older, newer) = (keys.name(Action::Older), keys.name(Action::Newer));
            pieces.push((format!("  ({older} and {newer} for others)"), theme.dim()));
        }
        put_pieces(buffer, areas.tabs, 0, &pieces);
        let shown = screen.lines.iter().skip(screen.scroll()).take(usize::from(areas.body.height));
        for (row, line) in shown.enumerate() {
            put(buffer, areas.body, u16::try_from(row).unwrap_or(u16::MAX), &line.text, theme.tone(line.tone));
        }
        let (height, count) = (usize::from(areas.body.height), screen.lines.len());
        if count > height && areas.body.width > 30 && height > 1 {
            let last = (screen.scroll() + height).min(count);
            let said = format!(" {last} of {count} lines ");
            let width = u16::try_from(text::width(&said)).unwrap_or(0).min(areas.body.width);
            let corner = Rect::new(areas.body.right() - width, areas.body.bottom() - 1, width, 1);
            put(buffer, corner, 0, &said, theme.active().patch(Theme::selected()));
        }
    }

    fn status(&self, buffer: &mut Buffer, area: Rect) {
        let theme = self.options.theme;
        if let Some((said, _)) = &self.said {
            put(buffer, area, 0, &format!(" {}", one_line(said)), theme.warn());
        } else if self.starting {
            put(buffer, area, 0, " Starting the run: looking at the repository …", theme.active());
        } else if let Some(warning) = self.list.found.as_ref().and_then(|found| found.warnings.first()) {
            put(buffer, area, 0, &format!(" {}", one_line(warning)), theme.warn());
        }
    }

    fn hints(&self, buffer: &mut Buffer, area: Rect) {
        let theme = self.options.theme;
        let keys = &self.options.keys;
        let fixed = |key: &str, what: &str| (key.to_owned(), what.to_owned());
        let of = |action: Action, what: &str| (keys.name(action), what.to_owned());
        let hints = match &self.preview {
            Some(screen) if screen.form.is_some() => vec![
                fixed("enter", "take these"),
                fixed("esc", "leave as it was"),
                fixed("↑ ↓", "field"),
                fixed("← →", "turn"),
            ],
            Some(_) => vec![
                of(Action::Start, "start"),
                of(Action::Change, "change agent, model, jobs, attempts"),
                of(Action::NextTab, "tab"),
                of(Action::Back, "back"),
                of(Action::Copy, "copy"),
                of(Action::Quit, "leave"),
                of(Action::Help, "all keys"),
            ],
            None if self.list.filtering() => {
                vec![
                    fixed("enter", "open"),
                    fixed("esc", "no filter"),
                    fixed("↑ ↓", "select"),
                    fixed("ctrl-c", "leave"),
                ]
            }
            None => vec![
                fixed("enter", "open"),
                fixed("↑ ↓", "select"),
                of(Action::Search, "filter"),
                of(Action::Redraw, "look again"),
                of(Action::Quit, "leave"),
                of(Action::Help, "all keys"),
            ],
        };
        let mut pieces = Vec::new();
        for (key, what) in hints {
            pieces.push((format!(" {key}"), theme.key()));
            pieces.push((format!(" {what} "), theme.dim()));
        }
        put_pieces(buffer, area, 0, &pieces);
    }
}

const FILTER: &str = " Filter: ";

/// Columns that a box has for its text.
fn room(size: Rect) -> usize {
    usize::from(size.width.saturating_sub(6)).clamp(1, BOX)
}

fn wrapped(said: &str, width: usize) -> Vec<String> {
    let mut rows = Vec::new();
    text::wrap(said, width, &mut rows);
    rows
}

fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// How much there is, what is wrong, and what run is unfinished.
fn told(preview: &Preview, theme: Theme) -> Vec<(String, Style)> {
    let mut pieces = Vec::new();
    match &preview.plan {
        Some(plan) => pieces.push((format!(" {}", pages::counts(plan)), Style::new())),
        None => pieces.push((" cannot be read".to_owned(), theme.bad())),
    }
    let errors = preview.problems.iter().filter(|problem| problem.error).count();
    let warnings = preview.problems.len() - errors;
    if errors > 0 {
        pieces.push((format!(" · {}", counted(errors, "error", "errors")), theme.bad()));
    }
    if warnings > 0 {
        pieces.push((format!(" · {}", counted(warnings, "warning", "warnings")), theme.warn()));
    }
    if let Some(run) = &preview.unfinished {
        let count = run.stories.map_or_else(String::new, |count| format!(", {} of {} passed", count.done, count.total));
        pieces.push((format!(" · run of {} is {}{count}", run.began, run.state), theme.warn()));
    }
    pieces
}

/// With what it would be run.
fn with(preview: &Preview, key: &str, theme: Theme) -> Vec<(String, Style)> {
    let choices = &preview.choices;
    let known = preview.agents.iter().find(|agent| agent.name == choices.agent);
    let missing = known.is_some_and(|agent| !agent.here);
    let label = if preview.command { " agent command " } else { " agent " };
    let mut pieces = vec![
        (label.to_owned(), theme.dim()),
        (one_line(&choices.agent), Theme::head()),
        (if missing { " (not here)".to_owned() } else { String::new() }, theme.bad()),
    ];
    if !preview.command {
        let model = if choices.model.is_empty() { "its default".to_owned() } else { one_line(&choices.model) };
        pieces.push((" · model ".to_owned(), theme.dim()));
        pieces.push((model, Theme::head()));
    }
    pieces.push((" · at once ".to_owned(), theme.dim()));
    pieces.push((one_line(&choices.jobs), Theme::head()));
    pieces.push((" · retries ".to_owned(), theme.dim()));
    pieces.push((one_line(&choices.retries), Theme::head()));
    pieces.push((" · branch ".to_owned(), theme.dim()));
    pieces.push((one_line(&preview.branch), Theme::head()));
    pieces.push((format!("  ({key} changes)"), theme.dim()));
    pieces
}

fn question_lines(asked: &Asked, theme: Theme, size: Rect) -> Vec<(String, Style)> {
    let width = room(size);
    let mut facts = wrapped(&asked.question.facts, width);
    // The answers are seen whatever there is to know: edges, blanks, the question and the hint need six rows.
    let fit = usize::from(size.height).saturating_sub(asked.question.answers.len() + 6).max(1);
    if facts.len() > fit {
        facts.truncate(fit.saturating_sub(1));
        facts.push("…".to_owned());
    }
    let mut lines: Vec<(String, Style)> = facts.into_iter().map(|line| (line, Style::new())).collect();
    lines.push((String::new(), Style::new()));
    lines.extend(wrapped(&asked.question.question, width).into_iter().map(|line| (line, Theme::head())));
    for (at, (letter, means)) in asked.question.answers.iter().enumerate() {
        let style = if at == asked.marked { Theme::selected() } else { Style::new() };
        let mark = if at == asked.marked { '▸' } else { ' ' };
        lines.push((format!("{mark} {letter}  {means}"), style));
    }
    lines.push((String::new(), Style::new()));
    lines.push(("enter: choose · or its letter".to_owned(), theme.dim()));
    lines
}

fn form_lines(form: &Form, preview: Option<&Preview>, theme: Theme, width: usize) -> Vec<(String, Style)> {
    let mut lines = vec![("Run it with".to_owned(), Theme::head()), (String::new(), Style::new())];
    for (at, field) in Field::ALL.iter().enumerate() {
        let (label, _) = field.label();
        let marked = at == form.marked;
        let (mark, style) = if marked { ('▸', Theme::selected()) } else { (' ', Style::new()) };
        let value = one_line(form.text(*field));
        let cursor = if marked { "▏" } else { "" };
        lines.push((format!("{mark} {label:24} {value}{cursor}"), style));
    }
    lines.push((String::new(), Style::new()));
    // Before what fills the box: it is seen in a small terminal too.
    if let Some(why) = &form.refused {
        lines.extend(wrapped(why, width).into_iter().map(|line| (line, theme.bad())));
        lines.push((String::new(), Style::new()));
    }
    if form.waits {
        lines.push(("looking at it …".to_owned(), theme.active()));
    }
    lines.push((form.field().label().1.to_owned(), theme.dim()));
    if form.field() == Field::Agent
        && let Some(preview) = preview
    {
        let (here, missing): (Vec<_>, Vec<_>) = preview.agents.iter().partition(|agent| agent.here);
        let names = |agents: &[&super::port::AgentRow]| {
            let names: Vec<String> = agents.iter().map(|agent| one_line(&agent.name)).collect();
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        };
        lines.extend(wrapped(&format!("here: {}", names(&here)), width).into_iter().map(|l| (l, theme.good())));
        lines.extend(wrapped(&format!("not here: {}", names(&missing)), width).into_iter().map(|l| (l, theme.dim())));
        if let Some(agent) = missing.iter().find(|agent| agent.name == form.choices.agent) {
            let how = format!("{} is not here: {}", one_line(&agent.title), one_line(&agent.install));
            lines.extend(wrapped(&how, width).into_iter().map(|line| (line, theme.warn())));
        }
    }
    for (line, _) in &mut lines {
        *line = text::cut(line, width).into_owned();
    }
    lines.push((String::new(), Style::new()));
    lines.push((text::cut("enter: take these · esc: leave as it was", width).into_owned(), theme.dim()));
    lines
}
