//! The list of work and runs: grouped by format, filtered by what is typed.

use super::port::{Count, Found, Readiness, RunRow, WorkRow};
use crate::keys::Press;
use crate::line;
use crate::model::Tone;
use crate::text;

/// Runs that are shown at most; `ralphloop runs` has them all.
const RUNS: usize = 30;

/// One thing that can be opened.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Item<'a> {
    Work(&'a WorkRow),
    Run(&'a RunRow),
}

/// A line of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListLine {
    /// Which item, among those that the filter leaves; none for a heading.
    pub(crate) item: Option<usize>,
    pub(crate) pieces: Vec<(String, Tone)>,
}

/// What is here, what of it is seen, and what is selected.
#[derive(Debug, Default)]
pub(crate) struct List {
    /// `None` while it is looked for.
    pub(crate) found: Option<Found>,
    pub(crate) filter: String,
    /// The filter was begun, so that every letter belongs to it.
    typing: bool,
    /// The selected item, among those that the filter leaves.
    pub(crate) marked: usize,
    pub(crate) scroll: usize,
    pub(crate) lines: Vec<ListLine>,
    height: usize,
}

impl List {
    /// What was found takes the place of what was known; the selection stays where it was as far as that is there.
    pub(super) fn found(&mut self, found: Found) {
        let before = self.selected().map(name);
        self.found = Some(found);
        let at = before.and_then(|before| self.items().iter().position(|item| name(*item) == before));
        self.marked = at.unwrap_or_else(|| self.marked.min(self.items().len().saturating_sub(1)));
    }

    /// What the filter leaves, in order.
    pub(crate) fn items(&self) -> Vec<Item<'_>> {
        let Some(found) = &self.found else { return Vec::new() };
        let all = found.works.iter().map(Item::Work);
        let runs = found.runs.iter().take(RUNS).map(Item::Run);
        let words: Vec<String> = self.filter.split_whitespace().map(str::to_lowercase).collect();
        all.chain(runs).filter(|item| fits(*item, &words)).collect()
    }

    pub(super) fn selected(&self) -> Option<Item<'_>> {
        self.items().get(self.marked).copied()
    }

    pub(super) fn filtering(&self) -> bool {
        self.typing || !self.filter.is_empty()
    }

    pub(super) fn begin_filter(&mut self) {
        self.typing = true;
    }

    pub(super) fn clear_filter(&mut self) {
        let before = self.selected().map(name);
        self.filter.clear();
        self.typing = false;
        let at = before.and_then(|before| self.items().iter().position(|item| name(*item) == before));
        self.marked = at.unwrap_or(0);
    }

    pub(super) fn type_key(&mut self, press: Press) {
        if line::edit(&mut self.filter, press) {
            self.marked = 0;
            self.typing |= !self.filter.is_empty();
        }
    }

    pub(super) fn paste(&mut self, text: &str) {
        line::paste(&mut self.filter, text);
        self.marked = 0;
    }

    pub(super) fn move_by(&mut self, by: isize) {
        let count = self.items().len();
        if count > 0 {
            let by = by.rem_euclid(isize::try_from(count).unwrap_or(isize::MAX));
            self.marked = self.marked.saturating_add_signed(by) % count;
        }
    }

    /// A page up or down; it ends at the ends.
    pub(super) fn page(&mut self, pages: isize) {
        let by = isize::try_from(self.height.saturating_sub(1).max(1)).unwrap_or(1) * pages;
        self.marked = self.marked.saturating_add_signed(by).min(self.items().len().saturating_sub(1));
    }

    pub(super) fn mark_end(&mut self, last: bool) {
        self.marked = if last { self.items().len().saturating_sub(1) } else { 0 };
    }

    /// A click on a row of the list; whether it was on what is selected already.
    pub(super) fn click(&mut self, row: usize) -> bool {
        let Some(item) = self.lines.get(self.scroll + row).and_then(|line| line.item) else { return false };
        let again = item == self.marked;
        self.marked = item;
        again
    }

    /// Makes ready what is seen in so many columns and rows.
    pub(super) fn settle(&mut self, width: usize, height: usize) {
        self.height = height;
        let items = self.items();
        let names = items.iter().filter_map(|item| if let Item::Work(row) = item { Some(row) } else { None });
        let widest = names.map(|row| text::width(&text::one_line(&row.id.id))).max().unwrap_or(0);
        let columns = Columns { name: widest.min((width * 2 / 5).max(12)), width };
        let mut lines = Vec::new();
        let mut group = None;
        for (at, item) in items.into_iter().enumerate() {
            let heading = heading(item);
            if group.as_ref() != Some(&heading) {
                if group.is_some() && height > 8 {
                    lines.push(ListLine { item: None, pieces: Vec::new() });
                }
                lines.push(ListLine { item: None, pieces: vec![(heading.clone(), Tone::Head)] });
                group = Some(heading);
            }
            let pieces = match item {
                Item::Work(row) => columns.work(row),
                Item::Run(run) => columns.run(run),
            };
            lines.push(ListLine { item: Some(at), pieces });
        }
        self.lines = lines;
        let at = self.lines.iter().position(|line| line.item == Some(self.marked)).unwrap_or(0);
        // The heading above the first item is seen with it.
        let top = if self.marked == 0 { 0 } else { at };
        if top < self.scroll {
            self.scroll = top;
        } else if height > 0 && at >= self.scroll + height {
            self.scroll = at + 1 - height;
        }
        self.scroll = self.scroll.min(self.lines.len().saturating_sub(height));
    }
}

fn name(item: Item<'_>) -> String {
    match item {
        Item::Work(row) => row.id.to_string(),
        Item::Run(run) => run.id.to_string(),
    }
}

fn fits(item: Item<'_>, words: &[String]) -> bool {
    if words.is_empty() {
        return true;
    }
    let told = match item {
        Item::Work(row) => {
            let run = row.run.as_ref().map_or("", |run| run.state.as_str());
            format!("{} {} {} {run}", row.id, row.title.as_deref().unwrap_or(""), readiness(&row.readiness).1)
        }
        Item::Run(run) => format!("run {} {} {} {}", run.id, run.work, run.state, run.reason),
    };
    let told = told.to_lowercase();
    words.iter().all(|word| told.contains(word))
}

fn heading(item: Item<'_>) -> String {
    match item {
        Item::Work(row) if row.readiness == Readiness::Archived => "put aside as finished".to_owned(),
        Item::Work(row) => row.id.scheme.as_str().to_owned(),
        Item::Run(_) => "runs, newest first".to_owned(),
    }
}

/// The tone and the word of a state.
fn readiness(readiness: &Readiness) -> (Tone, String) {
    match readiness {
        Readiness::Ready => (Tone::Good, "ready".to_owned()),
        Readiness::Complete => (Tone::Dim, "complete".to_owned()),
        Readiness::NotReady(why) => (Tone::Warn, format!("not ready: {}", text::one_line(why))),
        Readiness::Unreadable(why) => (Tone::Bad, format!("unreadable: {}", text::one_line(why))),
        Readiness::Archived => (Tone::Dim, "archived".to_owned()),
    }
}

/// How a state of a run is meant.
pub(super) fn run_tone(state: &str) -> Tone {
    match state {
        "complete" => Tone::Good,
        "failed" | "interrupted" | "damaged" => Tone::Bad,
        "running" => Tone::Active,
        _ => Tone::Warn,
    }
}

fn fraction(count: Option<Count>) -> String {
    count.map_or_else(|| "–".to_owned(), |count| format!("{}/{}", count.done, count.total))
}

/// How wide things are.
struct Columns {
    name: usize,
    width: usize,
}

impl Columns {
    fn work(&self, row: &WorkRow) -> Vec<(String, Tone)> {
        let (tone, state) = readiness(&row.readiness);
        let mut pieces = vec![
            (format!("  {}", padded(&text::one_line(&row.id.id), self.name)), Tone::Plain),
            (format!(" {:>7}", fraction(row.stories)), Tone::Plain),
        ];
        // Tasks that are stories themselves need no second number.
        if self.width >= 70 {
            let tasks = row.tasks.filter(|tasks| tasks.total > 0);
            pieces
                .push((tasks.map_or_else(|| " ".repeat(15), |_| format!(" {:>8} tasks", fraction(tasks))), Tone::Dim));
        }
        if let Some(run) = &row.run {
            let count = run.stories.map_or_else(String::new, |count| format!(", {}/{}", count.done, count.total));
            let said = if run.live { format!("{} now{count}", run.state) } else { format!("run {}{count}", run.state) };
            pieces.push((format!("  {said}"), run_tone(&run.state)));
        } else {
            pieces.push((format!("  {state}"), tone));
        }
        let (errors, warnings) = row.problems;
        if errors > 0 && !matches!(row.readiness, Readiness::Unreadable(_)) {
            pieces.push((format!("  {errors} {}", if errors == 1 { "error" } else { "errors" }), Tone::Bad));
        }
        if warnings > 0 {
            pieces.push((format!("  {warnings} {}", if warnings == 1 { "warning" } else { "warnings" }), Tone::Warn));
        }
        if let Some(title) = &row.title {
            pieces.push((format!("  {}", text::one_line(title)), Tone::Plain));
        }
        pieces
    }

    fn run(&self, run: &RunRow) -> Vec<(String, Tone)> {
        let mut pieces = vec![
            (format!("  {}", padded(&run.began, 17)), Tone::Plain),
            (format!(" {:>7}", fraction(run.stories)), Tone::Plain),
            (format!("  {}", padded(&run.state, 11)), run_tone(&run.state)),
            (format!("  {}", text::one_line(&run.work)), Tone::Plain),
        ];
        if self.width >= 70 {
            pieces.push((format!("  {}", text::one_line(&run.reason)), Tone::Dim));
        }
        pieces
    }
}

/// Cut or filled to so many cells.
fn padded(said: &str, cells: usize) -> String {
    let cut = text::cut(said, cells);
    let missing = cells.saturating_sub(text::width(&cut));
    format!("{cut}{}", " ".repeat(missing))
}
