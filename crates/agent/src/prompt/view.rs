//! The values that a template can use, each bounded.

use std::borrow::Cow;
use std::collections::BTreeSet;

use ralphloop_core::effect::Failure;
use ralphloop_core::plan::{Delta, Requirement, Scenario, Story, Task, WorkState};
use serde::Serialize;

use super::PromptInput;
use crate::sanitize;

/// Bounds in bytes: the proposal and the design, all requirements, the output of one failure, last words.
const CONTEXT: usize = 24 << 10;
const REQUIREMENTS: usize = 32 << 10;
const REQUIREMENTS_SHORTER: usize = 4 << 10;
const OUTPUT_HEAD: usize = 4 << 10;
const OUTPUT_TAIL: usize = 8 << 10;
const LAST_WORDS: usize = 4 << 10;
/// The story's own text in a prompt that must be shorter.
const STORY_SHORTER: usize = 32 << 10;
/// How many failures are told.
const FAILURES: usize = 12;

#[derive(Debug, Serialize)]
pub(super) struct View<'a> {
    work: String,
    pub(super) story: StoryView<'a>,
    attempt: u32,
    max_attempts: u32,
    shorter: bool,
    previous: Vec<FailureView<'a>>,
    repair: Vec<FailureView<'a>>,
    /// What a reviewer has found; this call mends it.
    findings: &'a [String],
    /// Files in conflict that this call is to resolve.
    conflicts: &'a [String],
    landed_meanwhile: &'a [String],
    last_words: Option<Fenced<'a>>,
    guidance: Vec<&'a str>,
    learnings: Vec<&'a str>,
    checks: Vec<String>,
    context: ContextView<'a>,
    requirements: Vec<RequirementView<'a>>,
    requirements_left_out: usize,
    tool_prompt: &'a str,
    signals: Signals<'a>,
}

#[derive(Debug, Serialize)]
pub(super) struct StoryView<'a> {
    pub(super) id: String,
    title: String,
    description: Cow<'a, str>,
    notes: &'a str,
    /// The file that it stands in, where the work has several.
    file: Option<&'a str>,
    tasks: Vec<TaskView<'a>>,
    criteria: Vec<&'a str>,
}

#[derive(Debug, Serialize)]
struct TaskView<'a> {
    mark: &'static str,
    /// The number that it has in the file, if it has one.
    number: Option<&'a str>,
    text: &'a str,
    optional: bool,
}

#[derive(Debug, Serialize)]
struct FailureView<'a> {
    reason: &'a str,
    output: Cow<'a, str>,
    fence: String,
    at_baseline: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct Fenced<'a> {
    text: Cow<'a, str>,
    fence: String,
}

#[derive(Debug, Serialize)]
struct ContextView<'a> {
    project: Cow<'a, str>,
    proposal: Cow<'a, str>,
    design: Cow<'a, str>,
    constraints: Vec<&'a str>,
}

#[derive(Debug, Serialize)]
struct RequirementView<'a> {
    capability: &'a str,
    title: &'a str,
    delta: Cow<'a, str>,
    text: Cow<'a, str>,
    scenarios: Vec<ScenarioView<'a>>,
}

#[derive(Debug, Serialize)]
struct ScenarioView<'a> {
    name: &'a str,
    steps: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Signals<'a> {
    complete: &'a str,
    failed: &'static str,
    blocked: &'static str,
}

impl<'a> View<'a> {
    pub(super) fn new(input: &PromptInput<'a>) -> Self {
        let PromptInput { plan, story, brief, .. } = *input;
        let shorter = brief.shorter;
        let (requirements, requirements_left_out) = requirements(&plan.context.requirements, story, shorter);
        let context = |text: &'a str| if shorter { Cow::Borrowed("") } else { cut(text.trim(), CONTEXT) };
        let constraints = plan.context.constraints.iter().map(|constraint| constraint.trim()).collect();
        Self {
            work: plan.work.to_string(),
            story: StoryView::new(story, shorter),
            attempt: input.attempt,
            max_attempts: input.max_attempts,
            shorter,
            previous: brief.previous.iter().take(FAILURES).map(FailureView::new).collect(),
            conflicts: &brief.conflicts,
            landed_meanwhile: &brief.landed_meanwhile,
            repair: brief.repair.iter().take(FAILURES).map(FailureView::new).collect(),
            findings: &brief.findings,
            last_words: brief.last_words.as_deref().map(str::trim).filter(|words| !words.is_empty()).map(|words| {
                let text = sanitize::tail(words, LAST_WORDS);
                Fenced { fence: fence_for(&text), text }
            }),
            guidance: brief.guidance.iter().map(|sentence| sentence.trim()).collect(),
            learnings: if shorter { Vec::new() } else { best(&brief.learnings, input.learnings_budget) },
            checks: checks(input),
            context: ContextView {
                project: context(&plan.context.project),
                proposal: context(&plan.context.proposal),
                design: context(&plan.context.design),
                constraints: if shorter { Vec::new() } else { constraints },
            },
            requirements,
            requirements_left_out,
            tool_prompt: plan.context.tool_prompt.trim(),
            signals: Signals {
                complete: input.grammar.completion(),
                failed: "<promise>FAILED: why, in one sentence</promise>",
                blocked: "<promise>BLOCKED: what is missing, in one sentence</promise>",
            },
        }
    }
}

impl<'a> Fenced<'a> {
    /// The head of a text.
    pub(super) fn cut(text: &'a str, limit: usize) -> Self {
        let text = cut(text, limit);
        Self { fence: fence_for(&text), text }
    }
}

impl<'a> StoryView<'a> {
    pub(super) fn new(story: &'a Story, shorter: bool) -> Self {
        let description = story.description.trim();
        Self {
            id: one_line(story.id.as_str()),
            title: one_line(&story.title),
            description: if shorter { cut(description, STORY_SHORTER) } else { Cow::Borrowed(description) },
            notes: story.notes.trim(),
            file: story.file.as_deref(),
            tasks: story.tasks.iter().map(|task| TaskView::new(story, task)).collect(),
            criteria: story.criteria.iter().map(|criterion| criterion.trim()).collect(),
        }
    }
}

impl<'a> TaskView<'a> {
    fn new(story: &Story, task: &'a Task) -> Self {
        let mark = match task.state {
            WorkState::Done => "x",
            WorkState::Skipped => "-",
            WorkState::Todo | WorkState::Doing | WorkState::Blocked | WorkState::Other => " ",
        };
        let made_up = task.id.0.strip_prefix(story.id.as_str()).is_some_and(|rest| rest.starts_with('#'));
        let number = (!made_up).then_some(task.id.0.as_str());
        Self { mark, number, text: task.text.trim(), optional: task.optional }
    }
}

impl<'a> FailureView<'a> {
    fn new(failure: &'a Failure) -> Self {
        let output = head_and_tail(failure.output.trim_end());
        Self { reason: failure.reason.trim(), fence: fence_for(&output), output, at_baseline: failure.at_baseline }
    }
}

impl<'a> RequirementView<'a> {
    fn new(requirement: &'a Requirement) -> Self {
        Self {
            capability: &requirement.capability,
            title: &requirement.title,
            delta: match &requirement.delta {
                Delta::Added => "".into(),
                Delta::Modified => "changed".into(),
                Delta::Removed => "to be removed".into(),
                Delta::Renamed { from } => format!("renamed, before: {from}").into(),
            },
            text: Cow::Borrowed(requirement.text.trim()),
            scenarios: requirement.scenarios.iter().map(ScenarioView::new).collect(),
        }
    }
}

impl<'a> ScenarioView<'a> {
    fn new(scenario: &'a Scenario) -> Self {
        let steps = |word: &'static str, lines: &'a [String]| {
            lines.iter().enumerate().map(move |(at, line)| {
                let word = if at == 0 { word } else { "And" };
                format!("{word} {}", line.trim())
            })
        };
        let other = scenario.other.iter().map(|line| line.trim().to_owned());
        let given = steps("Given", &scenario.given);
        let steps = given.chain(steps("When", &scenario.when)).chain(steps("Then", &scenario.then)).chain(other);
        Self { name: scenario.name.trim(), steps: steps.collect() }
    }
}

/// The story's checks, then the gates.
fn checks(input: &PromptInput<'_>) -> Vec<String> {
    let own = input.story.checks.iter().map(|check| one_line(check.label()));
    let gates = input.gates.iter().map(|gate| {
        let command = one_line(&gate.command);
        if gate.name == gate.command { command } else { format!("{}: {command}", one_line(&gate.name)) }
    });
    own.chain(gates).collect()
}

/// The requirements in the order of their nearness to the story, as many as fit, and how many do not.
fn requirements<'a>(all: &'a [Requirement], story: &Story, shorter: bool) -> (Vec<RequirementView<'a>>, usize) {
    let text = story_text(story);
    let words = words(&text);
    let mut ranked: Vec<(usize, &Requirement)> =
        all.iter().map(|requirement| (nearness(requirement, story, &text, &words), requirement)).collect();
    ranked.sort_by_key(|(nearness, _)| std::cmp::Reverse(*nearness));
    let mut room = if shorter { REQUIREMENTS_SHORTER } else { REQUIREMENTS };
    let mut chosen = Vec::new();
    for (_, requirement) in ranked {
        let size = size_of(requirement);
        if size > room {
            break;
        }
        room -= size;
        chosen.push(RequirementView::new(requirement));
    }
    let left_out = all.len() - chosen.len();
    (chosen, left_out)
}

fn size_of(requirement: &Requirement) -> usize {
    let lines = |scenario: &Scenario| {
        [&scenario.given, &scenario.when, &scenario.then, &scenario.other]
            .into_iter()
            .flatten()
            .map(|line| line.len() + 12)
            .sum::<usize>()
            + scenario.name.len()
    };
    requirement.capability.len()
        + requirement.title.len()
        + requirement.text.len()
        + requirement.scenarios.iter().map(lines).sum::<usize>()
}

/// How much of a requirement's name the story speaks of. Being named as a whole, or by its id, counts most.
fn nearness(requirement: &Requirement, story: &Story, text: &str, story_words: &BTreeSet<String>) -> usize {
    let named = [&requirement.capability, &requirement.title].iter().any(|name| {
        let name = name.trim().to_lowercase();
        name.len() > 3 && text.contains(&name)
    });
    let referred = story.refs.iter().any(|one| *one == requirement.id || *one == requirement.title);
    let own = words(&format!("{} {}", requirement.capability, requirement.title).to_lowercase());
    usize::from(named || referred) * 1000 + own.intersection(story_words).count()
}

fn story_text(story: &Story) -> String {
    let tasks = story.tasks.iter().map(|task| task.text.as_str());
    let lists = [&story.criteria, &story.tags, &story.refs].into_iter().flatten().map(String::as_str);
    let all: Vec<&str> =
        [story.id.as_str(), &story.title, &story.description].into_iter().chain(tasks).chain(lists).collect();
    all.join("\n").to_lowercase()
}

fn words(lower: &str) -> BTreeSet<String> {
    const COMMON: [&str; 10] = ["the", "and", "for", "with", "that", "this", "from", "shall", "must", "should"];
    lower
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.chars().count() > 2 && !COMMON.contains(word))
        .map(str::to_owned)
        .collect()
}

/// The first learnings within the budget: they come ranked.
fn best(learnings: &[String], mut budget: usize) -> Vec<&str> {
    let mut chosen: Vec<&str> = Vec::new();
    for learning in learnings.iter().map(|learning| learning.trim()).filter(|learning| !learning.is_empty()) {
        if chosen.contains(&learning) {
            continue;
        }
        let Some(rest) = budget.checked_sub(learning.len() + 3) else { break };
        budget = rest;
        chosen.push(learning);
    }
    chosen
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn cut(text: &str, limit: usize) -> Cow<'_, str> {
    if text.len() <= limit {
        return Cow::Borrowed(text);
    }
    let head = &text[..text.floor_char_boundary(limit)];
    Cow::Owned(format!("{head}\n\n[{} bytes left out here]", text.len() - head.len()))
}

fn head_and_tail(text: &str) -> Cow<'_, str> {
    if text.len() <= OUTPUT_HEAD + OUTPUT_TAIL {
        return Cow::Borrowed(text);
    }
    let head = &text[..text.floor_char_boundary(OUTPUT_HEAD)];
    let tail = &text[text.ceil_char_boundary(text.len() - OUTPUT_TAIL)..];
    Cow::Owned(format!("{head}\n[{} bytes left out here]\n{tail}", text.len() - head.len() - tail.len()))
}

/// A code fence that nothing in the text can close.
fn fence_for(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}
