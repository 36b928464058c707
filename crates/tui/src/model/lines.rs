//! The tabs that are lists of lines: changes, checks, attempts, information, the result.

use ralphloop_core::event::CheckStage;
use ralphloop_core::evidence::CheckResult;
use ralphloop_core::ids::AttemptId;
use ralphloop_core::plan::WorkState;
use ralphloop_core::run::StoryState;

use super::{Model, Tab};
use crate::draw::words;
use crate::facts::{Called, Checked, Try, TryEnd, Watched};
use crate::port::{CallId, SheetId};
use crate::sheet::Sheet;
use crate::text;

/// How a line is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Head,
    Dim,
    Good,
    Bad,
    Warn,
    Active,
}

/// A line of a tab, as wide as the tab at most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) tone: Tone,
    pub(crate) text: String,
}

/// Collects lines.
pub(crate) struct Page {
    pub(crate) width: usize,
    pub(crate) lines: Vec<Shown>,
}

impl Page {
    /// A page of so many columns.
    pub(crate) fn new(width: usize) -> Self {
        Self { width: width.max(1), lines: Vec::new() }
    }

    /// Text of ours and of others, wrapped.
    pub(crate) fn say(&mut self, tone: Tone, said: impl AsRef<str>) {
        let mut rows = Vec::new();
        text::wrap(said.as_ref(), self.width, &mut rows);
        self.lines.extend(rows.into_iter().map(|text| Shown { tone, text }));
    }

    /// Text below something, set in.
    pub(crate) fn below(&mut self, tone: Tone, said: &str) {
        let mut rows = Vec::new();
        text::wrap(said.trim_end(), self.width.saturating_sub(4).max(1), &mut rows);
        self.lines.extend(rows.into_iter().map(|row| Shown { tone, text: format!("    {row}") }));
    }

    pub(crate) fn gap(&mut self) {
        if self.lines.last().is_some_and(|line| !line.text.is_empty()) {
            self.lines.push(Shown { tone: Tone::Plain, text: String::new() });
        }
    }
}

/// The lines of the present tab.
pub(crate) fn of(model: &Model, width: usize) -> Vec<Shown> {
    let mut page = Page::new(width);
    let Some(watched) = &model.run.watched else { return page.lines };
    match model.run.tab {
        Tab::Agent => {}
        Tab::Changes | Tab::Files => sheet(model.run.sheet(), &mut page),
        Tab::Checks => checks(model, watched, &mut page),
        Tab::Attempts => attempts(model, watched, &mut page),
        Tab::Info => info(model, watched, &mut page),
        Tab::Result => result(model, watched, &mut page),
    }
    page.lines
}

/// What stands in the place of a sheet that has no lines.
fn sheet(sheet: Option<&Sheet>, page: &mut Page) {
    let landed = sheet.is_some_and(|sheet| sheet.id == SheetId::Landed);
    match sheet.map(|sheet| &sheet.extent) {
        None => page.say(Tone::Dim, "Nothing was tried yet."),
        Some(None) if landed => page.say(Tone::Dim, "Comparing what has landed with what was before …"),
        Some(None) => page.say(Tone::Dim, "Comparing the attempt with its checkpoint …"),
        Some(Some(Err(why))) => page.say(Tone::Warn, why),
        Some(Some(Ok(0))) if landed => page.say(Tone::Dim, "The run has changed no file on its branch."),
        Some(Some(Ok(0))) => page.say(Tone::Dim, "No file is changed."),
        Some(Some(Ok(_))) => {}
    }
}

fn checks(model: &Model, watched: &Watched, page: &mut Page) {
    let Some((id, one)) = model.run.attempt().and_then(|id| watched.tries.get(&id).map(|one| (id, one))) else {
        page.say(Tone::Dim, "Nothing was tried yet, so nothing was checked.");
        return;
    };
    page.say(Tone::Head, format!("Attempt {}", id.number));
    if one.checks.is_empty() {
        page.say(Tone::Dim, "No gate or check has run yet.");
    }
    for check in &one.checks {
        check_lines(&id, check, watched, model, page);
    }
}

fn check_lines(attempt: &AttemptId, check: &Checked, watched: &Watched, model: &Model, page: &mut Page) {
    let stage = match check.stage {
        CheckStage::Baseline => "before the attempt: ".to_owned(),
        CheckStage::Call(call) => {
            let name = watched.name_of(&CallId { attempt: attempt.clone(), call });
            name.filter(|name| name.starts_with("repair")).map_or_else(String::new, |name| format!("after {name}: "))
        }
        CheckStage::Merged(number) => format!("merged ({number}): "),
    };
    let label = text::one_line(&check.label);
    let took = words::span(check.took);
    let cached = if check.cached { ", known from the same tree" } else { "" };
    match &check.result {
        None => {
            let since = words::span(model.now.since(check.began));
            page.say(Tone::Active, format!("… {stage}{label} (running for {since})"));
        }
        Some(CheckResult::Passed) => page.say(Tone::Good, format!("✓ {stage}{label} ({took}{cached})")),
        Some(CheckResult::Failed { why, output }) => {
            let before = check.stage != CheckStage::Baseline && watched.was_red(&check.label);
            let before = if before { ", red before the story too" } else { "" };
            page.say(Tone::Bad, format!("✗ {stage}{label}: {} ({took}{cached}{before})", text::one_line(why)));
            page.below(Tone::Plain, output);
        }
        Some(CheckResult::CouldNotRun { why }) => {
            page.say(Tone::Bad, format!("✗ {stage}{label} could not run: {}", text::one_line(why)));
        }
        Some(CheckResult::NoRoom { why }) => {
            page.say(Tone::Bad, format!("✗ {stage}{label} failed for want of room: {}", text::one_line(why)));
        }
        Some(CheckResult::Stopped) => page.say(Tone::Warn, format!("- {stage}{label}: ended, since the run stops")),
    }
}

fn attempts(model: &Model, watched: &Watched, page: &mut Page) {
    let Some(story) = model.run.story() else { return };
    let mut any = false;
    for (id, one) in watched.tries_of(story) {
        any = true;
        page.gap();
        let span = words::span(one.ended.unwrap_or(model.now).since(one.began));
        page.say(Tone::Head, format!("Attempt {} ({span})", id.number));
        for call in &one.calls {
            call_lines(call, model, page);
        }
        if let Some(files) = one.files_changed {
            page.say(Tone::Plain, format!("{} changed", words::count(files, "file", "files")));
        }
        try_end(one, page);
        for note in &one.notes {
            page.say(Tone::Dim, format!("note: {}", note.trim_end()));
        }
    }
    if !any {
        page.say(Tone::Dim, "Nothing was tried yet.");
    }
    if let Some(record) = watched.run.record(story) {
        let left = (watched.run.policy().max_retries + 1).saturating_sub(record.charged);
        page.gap();
        page.say(Tone::Dim, format!("{} left", words::count(left, "attempt", "attempts")));
    }
}

fn call_lines(call: &Called, model: &Model, page: &mut Page) {
    let which = text::one_line(&call.which);
    match &call.report {
        None => {
            let since = words::span(model.now.since(call.began));
            page.say(Tone::Active, format!("{which}: works for {since}"));
        }
        Some(report) => {
            let cost = report.usage.money_in_words().map_or_else(String::new, |cost| format!(", {cost}"));
            let end = text::one_line(&report.end.in_words(&report.claim));
            page.say(Tone::Plain, format!("{which}: {end} ({}{cost})", words::span(report.took)));
        }
    }
}

fn try_end(one: &Try, page: &mut Page) {
    match &one.end {
        None => {}
        Some(TryEnd::Landed { commit }) => {
            page.say(Tone::Good, format!("✓ landed as {}", commit.get(..10).unwrap_or(commit)));
        }
        Some(TryEnd::Added { task }) => {
            page.say(Tone::Active, format!("the fix task {} was added to the spec", text::one_line(task)));
        }
        Some(TryEnd::Reverted { kept, why }) => {
            let why = if why.is_empty() { String::new() } else { format!(": {}", text::one_line(why)) };
            page.say(Tone::Bad, format!("✗ put back{why}"));
            if let Some(kept) = kept {
                page.say(Tone::Dim, format!("its work is kept under {kept}"));
            }
        }
        Some(TryEnd::Broken { why }) => page.say(Tone::Bad, format!("✗ {why}")),
    }
}

fn info(model: &Model, watched: &Watched, page: &mut Page) {
    let run = &watched.run;
    if let Some(story) = model.run.story().and_then(|id| run.plan().story(id)) {
        page.say(Tone::Head, format!("{}  {}", text::one_line(story.id.as_str()), text::one_line(&story.title)));
        if let Some(reason) = run.record(&story.id).and_then(|record| record.reason.as_ref()) {
            page.say(Tone::Warn, reason);
        }
        if !story.description.trim().is_empty() {
            page.say(Tone::Plain, story.description.trim());
        }
        for task in &story.tasks {
            let mark = if task.state == WorkState::Done { 'x' } else { ' ' };
            page.say(Tone::Plain, format!("[{mark}] {}", text::one_line(task.id.as_str())));
            page.below(Tone::Plain, &task.text);
        }
        for criterion in &story.criteria {
            page.say(Tone::Plain, format!("- {}", text::one_line(criterion)));
        }
        for check in &story.checks {
            page.say(Tone::Plain, format!("check: {}", text::one_line(check.label())));
        }
        if !story.deps.is_empty() {
            let deps: Vec<&str> = story.deps.iter().map(ralphloop_core::ids::StoryId::as_str).collect();
            page.say(Tone::Dim, format!("after {}", text::one_line(&deps.join(", "))));
        }
        page.gap();
    }
    page.say(Tone::Head, "This run");
    page.say(Tone::Plain, format!("work      {}", text::one_line(&run.plan().work.to_string())));
    page.say(Tone::Plain, format!("run       {}", run.id()));
    page.say(Tone::Plain, format!("agent     {}", text::one_line(run.agent())));
    for agent in run.chain() {
        if let Some(away) = run.away(agent) {
            let agent = text::one_line(agent.as_str());
            page.say(Tone::Warn, format!("{agent} is not called: {}", text::one_line(away.reason())));
        }
    }
    page.say(Tone::Plain, format!("branch    {}", text::one_line(words::branch(run.branch()))));
    let policy = run.policy();
    page.say(Tone::Plain, format!("attempts  {} for each story at most", policy.max_retries.saturating_add(1)));
    page.say(Tone::Plain, format!("repairs   {} in each attempt at most", policy.max_repairs));
    for gate in &policy.gates {
        page.say(Tone::Plain, format!("gate      {}", text::one_line(&gate.command)));
    }
    for sentence in run.guidance() {
        page.say(Tone::Warn, format!("guidance for the next prompt: {}", text::one_line(sentence)));
    }
    for learning in run.learnings().iter() {
        page.say(Tone::Dim, format!("learned: {}", text::one_line(&learning.text)));
    }
}

fn result(model: &Model, watched: &Watched, page: &mut Page) {
    let run = &watched.run;
    match watched.outcome() {
        Some(outcome) => page.say(Tone::Head, format!("The run has ended: {outcome}")),
        None if watched.gone => {
            page.say(Tone::Head, "The process of the run is gone: `ralphloop resume` goes on with it");
        }
        None => page.say(Tone::Dim, "The run is going on; this is how it stands."),
    }
    let usage = words::usage(&run.usage());
    page.say(Tone::Plain, format!("took {}, {usage}", words::span(run.active_time())));
    page.gap();
    for (story, record) in run.records() {
        let (tone, mark, word) = words::story(&record.state);
        let attempts = words::count(record.attempts, "attempt", "attempts");
        let cost = record.usage.money().map_or_else(String::new, |cost| format!(", {cost}"));
        let id = text::one_line(story.id.as_str());
        page.say(tone, format!("{mark} {id}  {}", text::one_line(&story.title)));
        let commit = match &record.state {
            StoryState::Landed { commit, .. } => {
                format!(" as {}", commit.as_str().get(..10).unwrap_or(commit.as_str()))
            }
            _ => String::new(),
        };
        page.below(Tone::Dim, &format!("{word}{commit}, {attempts}, {}{cost}", words::span(record.agent_time)));
        for task in &story.tasks {
            // Landing ticks what a story still has open.
            let mark = if record.state.passed() || task.state == WorkState::Done { 'x' } else { ' ' };
            page.below(
                Tone::Plain,
                &format!("[{mark}] {}  {}", text::one_line(task.id.as_str()), text::one_line(&task.text)),
            );
        }
        if !record.state.passed() {
            if let Some(reason) = &record.reason {
                page.below(Tone::Plain, reason);
            }
            let failed = watched.tries_of(&story.id).next_back();
            for (id, check) in failed.into_iter().flat_map(|(id, one)| one.checks.iter().map(move |check| (id, check)))
            {
                if let Some(CheckResult::Failed { .. }) = check.result {
                    check_lines(id, check, watched, model, page);
                }
            }
        }
    }
}
