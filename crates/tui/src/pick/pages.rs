//! The tabs of the preview as lines.

use ralphloop_core::plan::{Check, Delta, Plan, Requirement, Scenario, Story, StoryKind, Task, WorkState};

use super::port::{Count, Preview};
use super::preview::{PreviewScreen, Tab};
use crate::model::{Page, Shown, Tone};
use crate::text::one_line;

/// The lines of the present tab.
pub(crate) fn of(screen: &PreviewScreen, width: usize) -> Vec<Shown> {
    let mut page = Page::new(width);
    let Some(preview) = &screen.preview else {
        match &screen.refused {
            Some(why) => page.say(Tone::Bad, why),
            None => page.say(Tone::Dim, "Reading …"),
        }
        return page.lines;
    };
    if let Some(why) = &screen.refused {
        page.say(Tone::Bad, why);
    }
    problems(preview, &mut page);
    let Some(plan) = &preview.plan else { return page.lines };
    match screen.tab {
        Tab::Tasks => tasks(plan, &mut page),
        Tab::Scenarios => scenarios(plan, &mut page),
        Tab::Design => design(plan, &mut page),
        Tab::Order => order(preview, plan, &mut page),
        Tab::Gates => gates(preview, plan, &mut page),
        Tab::Prompt => prompt(screen, &mut page),
    }
    page.lines
}

/// What is wrong comes first, whatever is looked at.
fn problems(preview: &Preview, page: &mut Page) {
    for problem in &preview.problems {
        let (tone, word) = if problem.error { (Tone::Bad, "error") } else { (Tone::Warn, "warning") };
        let place = if problem.place.is_empty() { String::new() } else { format!("{}: ", one_line(&problem.place)) };
        page.say(tone, format!("{word}: {place}{}", problem.message.trim()));
        if !problem.help.is_empty() {
            page.below(Tone::Plain, &problem.help);
        }
    }
    for warning in &preview.warnings {
        page.say(Tone::Warn, format!("warning: {warning}"));
    }
    page.gap();
}

/// How many tasks, stories and scenarios there are, and how many are done.
pub(crate) fn counts(plan: &Plan) -> String {
    let stories = stories(plan);
    let mut tasks = Count { done: 0, total: 0 };
    for task in plan.stories.iter().filter(|story| story.kind == StoryKind::Story).flat_map(|story| &story.tasks) {
        tasks.total += 1;
        tasks.done += usize::from(task.state == WorkState::Done);
    }
    let scenarios: usize = plan.context.requirements.iter().map(|one| one.scenarios.len()).sum();
    let of = |count: Count, one: &str, many: &str| {
        format!("{} of {} {} done", count.done, count.total, if count.total == 1 { one } else { many })
    };
    let mut text = of(stories, "story", "stories");
    if tasks.total > 0 {
        text.push_str(&format!(", {}", of(tasks, "task", "tasks")));
    }
    if scenarios > 0 {
        text.push_str(&format!(", {scenarios} {}", if scenarios == 1 { "scenario" } else { "scenarios" }));
    }
    text
}

fn stories(plan: &Plan) -> Count {
    let all = || plan.stories.iter().filter(|story| story.kind == StoryKind::Story);
    Count { done: all().filter(|story| story.state == WorkState::Done).count(), total: all().count() }
}

fn mark(state: WorkState) -> (Tone, char) {
    match state {
        WorkState::Done => (Tone::Good, 'x'),
        WorkState::Doing => (Tone::Active, '/'),
        WorkState::Blocked => (Tone::Bad, '!'),
        WorkState::Skipped => (Tone::Dim, '-'),
        WorkState::Other => (Tone::Warn, '?'),
        WorkState::Todo => (Tone::Plain, ' '),
    }
}

fn tasks(plan: &Plan, page: &mut Page) {
    if plan.stories.is_empty() {
        page.say(Tone::Dim, "There is no story in it.");
    }
    for story in &plan.stories {
        page.gap();
        let (tone, mark) = mark(story.state);
        let heading = format!("[{mark}] {}  {}", one_line(story.id.as_str()), one_line(&story.title));
        page.say(if tone == Tone::Plain { Tone::Head } else { tone }, heading);
        let notes = notes(story);
        if !notes.is_empty() {
            page.below(Tone::Dim, &notes.join(", "));
        }
        if !story.description.trim().is_empty() {
            page.below(Tone::Plain, story.description.trim());
        }
        for task in &story.tasks {
            task_lines(task, page);
        }
        let as_tasks = |criterion: &&String| !story.tasks.iter().any(|task| task.text == **criterion);
        for criterion in story.criteria.iter().filter(as_tasks) {
            page.below(Tone::Plain, &format!("must hold: {}", one_line(criterion)));
        }
        for check in &story.checks {
            page.below(Tone::Active, &format!("check: {}", check_text(check)));
        }
    }
}

fn task_lines(task: &Task, page: &mut Page) {
    let (tone, mark) = mark(task.state);
    let depth = if task.parent.is_some() { "  " } else { "" };
    let optional = if task.optional { " (optional)" } else { "" };
    // The first line tells which, the text stands beside it.
    page.below(tone, &format!("{depth}[{mark}] {}  {}{optional}", one_line(task.id.as_str()), one_line(&task.text)));
}

fn check_text(check: &Check) -> String {
    let command = match check {
        Check::Shell { command, .. } => format!("`{}`", one_line(command)),
        Check::FileExists { path, .. } => format!("the file {} exists", one_line(path)),
        Check::Url { url, method, expect_status, .. } => {
            format!("{} {} answers {expect_status}", one_line(method), one_line(url))
        }
    };
    let name = match check {
        Check::Shell { name, .. } | Check::FileExists { name, .. } | Check::Url { name, .. } => name,
    };
    name.as_ref().map_or(command.clone(), |name| format!("{}: {command}", one_line(name)))
}

fn notes(story: &Story) -> Vec<String> {
    let mut notes = Vec::new();
    if story.kind == StoryKind::Epic {
        notes.push("groups others".to_owned());
    }
    if story.optional {
        notes.push("optional".to_owned());
    }
    if let Some(priority) = story.priority {
        notes.push(format!("priority {}", priority.0));
    }
    if !story.deps.is_empty() {
        notes.push(format!("after {}", ids(story.deps.iter().map(ralphloop_core::ids::StoryId::as_str))));
    }
    match (&story.file, story.line) {
        (Some(file), Some(line)) if line > 1 => notes.push(format!("{} line {line}", one_line(file))),
        (Some(file), _) => notes.push(one_line(file)),
        (None, Some(line)) => notes.push(format!("line {line}")),
        (None, None) => {}
    }
    notes
}

fn ids<'a>(ids: impl Iterator<Item = &'a str>) -> String {
    ids.map(one_line).collect::<Vec<_>>().join(", ")
}

fn scenarios(plan: &Plan, page: &mut Page) {
    let mut requirements: Vec<&Requirement> = plan.context.requirements.iter().collect();
    if requirements.is_empty() {
        page.say(Tone::Dim, "This work has no scenarios; what must hold stands with its stories.");
    }
    // By capability, and inside of one in the order of the file.
    requirements.sort_by(|a, b| a.capability.cmp(&b.capability));
    let mut capability = None;
    for requirement in requirements {
        if capability != Some(&requirement.capability) {
            page.gap();
            page.say(Tone::Head, one_line(&requirement.capability));
            capability = Some(&requirement.capability);
        }
        let delta = match &requirement.delta {
            Delta::Added => (Tone::Good, "added".to_owned()),
            Delta::Modified => (Tone::Warn, "modified".to_owned()),
            Delta::Removed => (Tone::Bad, "removed".to_owned()),
            Delta::Renamed { from } => (Tone::Warn, format!("renamed from {}", one_line(from))),
        };
        page.say(delta.0, format!("  {} ({})", one_line(&requirement.title), delta.1));
        if !requirement.text.trim().is_empty() {
            page.below(Tone::Plain, requirement.text.trim());
        }
        for scenario in &requirement.scenarios {
            scenario_lines(scenario, page);
        }
    }
}

fn scenario_lines(scenario: &Scenario, page: &mut Page) {
    page.below(Tone::Active, &one_line(&scenario.name));
    for (word, steps) in [("given", &scenario.given), ("when", &scenario.when), ("then", &scenario.then)] {
        for step in steps {
            page.below(Tone::Plain, &format!("  {word:5} {}", one_line(step)));
        }
    }
    for other in &scenario.other {
        page.below(Tone::Plain, &format!("  {}", one_line(other)));
    }
}

fn design(plan: &Plan, page: &mut Page) {
    let context = &plan.context;
    let parts = [("Why and what", &context.proposal), ("How", &context.design), ("The project", &context.project)];
    for (heading, text) in parts {
        if !text.trim().is_empty() {
            page.gap();
            page.say(Tone::Head, heading);
            page.say(Tone::Plain, text.trim());
        }
    }
    if !context.constraints.is_empty() {
        page.gap();
        page.say(Tone::Head, "What holds for all of it");
        for constraint in &context.constraints {
            page.say(Tone::Plain, format!("- {}", one_line(constraint)));
        }
    }
    if page.lines.is_empty() {
        page.say(Tone::Dim, "This work has no proposal and no design.");
    }
}

fn order(preview: &Preview, plan: &Plan, page: &mut Page) {
    if preview.stages.is_empty() {
        page.say(Tone::Dim, "Nothing is left to do.");
    }
    for (number, stage) in preview.stages.iter().enumerate() {
        page.gap();
        let together = if stage.len() > 1 { ", which need nothing of each other" } else { "" };
        page.say(Tone::Head, format!("Stage {}{together}", number + 1));
        for story in stage.iter().filter_map(|id| plan.story(id)) {
            page.say(Tone::Plain, format!("  {}  {}", one_line(story.id.as_str()), one_line(&story.title)));
            for dep in &story.deps {
                let (tone, how) = match plan.story(dep).map(|dep| dep.state) {
                    Some(WorkState::Done) => (Tone::Good, "done"),
                    Some(WorkState::Skipped) => (Tone::Warn, "skipped"),
                    Some(WorkState::Blocked) => (Tone::Bad, "blocked"),
                    Some(_) => (Tone::Dim, "open"),
                    None => (Tone::Bad, "unknown"),
                };
                page.below(tone, &format!("  after {} ({how})", one_line(dep.as_str())));
            }
        }
    }
    let staged = |story: &&Story| preview.stages.iter().flatten().any(|id| *id == story.id);
    let left: Vec<&Story> = plan
        .stories
        .iter()
        .filter(|story| story.kind == StoryKind::Story && story.state != WorkState::Done && !staged(story))
        .collect();
    if !left.is_empty() {
        page.gap();
        page.say(Tone::Head, "Not taken");
        for story in left {
            let why = match story.state {
                WorkState::Skipped => "skipped by its spec",
                WorkState::Blocked => "blocked by its spec",
                _ if story.optional => "optional; `--story` takes it",
                _ => "it waits for one that is not taken",
            };
            page.say(Tone::Dim, format!("  {}  {} ({why})", one_line(story.id.as_str()), one_line(&story.title)));
        }
    }
}

fn gates(preview: &Preview, plan: &Plan, page: &mut Page) {
    page.say(Tone::Head, "Gates, which every story must pass, in this order");
    if preview.gates.is_empty() {
        page.say(Tone::Warn, "  none; only the stories' own checks are proof");
    }
    for gate in &preview.gates {
        page.say(Tone::Plain, format!("  {}", one_line(&gate.command)));
        page.below(Tone::Dim, &one_line(&gate.from));
    }
    page.gap();
    page.say(Tone::Head, "Checks of single stories");
    let with: Vec<&Story> = plan.stories.iter().filter(|story| !story.checks.is_empty()).collect();
    if with.is_empty() {
        page.say(Tone::Dim, "  none");
    }
    for story in with {
        page.say(Tone::Plain, format!("  {}  {}", one_line(story.id.as_str()), one_line(&story.title)));
        for check in &story.checks {
            page.below(Tone::Active, &check_text(check));
        }
    }
    let bare = |story: &&Story| story.kind == StoryKind::Story && story.state != WorkState::Done;
    let unproven = plan.stories.iter().filter(bare).filter(|story| story.checks.is_empty()).count();
    if preview.gates.is_empty() && unproven > 0 {
        page.gap();
        let (one, verb) = if unproven == 1 { ("story has", "lands") } else { ("stories have", "land") };
        page.say(
            Tone::Warn,
            format!("{unproven} {one} nothing that could prove them: what they claim {verb} unverified"),
        );
    }
}

fn prompt(screen: &PreviewScreen, page: &mut Page) {
    let Some(story) = screen.prompted() else {
        return page.say(Tone::Dim, "There is no story in it.");
    };
    match screen.prompts.get(story) {
        Some(Some(Ok(text))) => page.say(Tone::Plain, text),
        Some(Some(Err(why))) => page.say(Tone::Bad, why),
        Some(None) | None => page.say(Tone::Dim, "Writing the prompt …"),
    }
}
