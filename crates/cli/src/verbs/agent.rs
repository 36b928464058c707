//! `agent`: what an agent at work may call. Everything is printed as JSON, and every id is an argument: variables do not reach
//! all shells that agents run.

mod may_stop;

use clap::Subcommand;
use ralphloop_agent::redact::Redactor;
use ralphloop_core::ids::StoryId;
use ralphloop_core::learning::{Learning, Learnings};
use ralphloop_core::plan::{Story, WorkState};
use ralphloop_core::run::Run;
use ralphloop_engine::control::Request;
use ralphloop_engine::learnings;
use ralphloop_engine::runs::RunFolder;
use serde_json::{Value, json};

use super::control::{ask, at_work};
use super::repository::{damaged, find_run, state};
use super::{mark, spec};
use crate::arguments::MarkArguments;
use crate::error::CliError;
use crate::exit::Exit;
use crate::host::Host;
use crate::output;

/// `agent`
#[derive(Debug, Subcommand)]
pub(crate) enum AgentVerb {
    /// What there is to know of a story: tasks, criteria, checks, design, and what was learned
    Context {
        /// The story
        story: String,
    },
    /// Leave a sentence for all later prompts, of this run and of those to come
    Learn {
        /// The sentence
        text: String,
    },
    /// Tick a task, changing nothing else in the file; the checks still decide
    Done {
        /// The task
        task: String,
        /// The work; that of the run at work if absent
        work: Option<String>,
    },
    /// For a stop hook of Claude Code: says on the standard output that the session has to go on, if it drives a run that is not
    /// over; a few times in a row, if nothing comes of it
    MayStop,
    /// How far a story is by its boxes, and how many stories there are
    Status {
        /// The story; the one that is being worked on if absent
        story: Option<String>,
    },
}

/// A learning is one sentence.
const LONGEST: usize = 500;

pub(super) fn agent(verb: AgentVerb, host: &Host) -> Result<Exit, CliError> {
    let said = match verb {
        AgentVerb::Context { story } => context(&story, host)?,
        AgentVerb::Learn { text } => learn(&text, host)?,
        AgentVerb::Done { task, work } => {
            let work = work.map_or_else(|| work_of_the_run(host), Ok)?;
            let exit = mark::mark(&MarkArguments { work, id: task.clone() }, host)?;
            if exit != Exit::DONE {
                return Ok(exit);
            }
            json!({ "complete": true, "task": task })
        }
        AgentVerb::Status { story } => status(story.as_deref(), host)?,
        AgentVerb::MayStop => return Ok(may_stop::may_stop(host)),
    };
    output::json(&said)?;
    Ok(Exit::DONE)
}

/// The run that is at work, else the latest.
fn present_run(host: &Host) -> Result<(RunFolder, Run), CliError> {
    let folder = match at_work(host)?.as_slice() {
        [folder] => folder.clone(),
        _ => find_run(None, host)?,
    };
    let run = folder.fold().map_err(|error| damaged(&error))?.run;
    Ok((folder, run))
}

fn work_of_the_run(host: &Host) -> Result<String, CliError> {
    Ok(present_run(host)?.1.plan().work.to_string())
}

fn context(story: &str, host: &Host) -> Result<Value, CliError> {
    let (folder, run) = present_run(host)?;
    let found = story_of(&run, story)?;
    let checks: Vec<&str> = found.checks.iter().map(ralphloop_core::plan::Check::label).collect();
    let gates: Vec<&str> = run.policy().gates.iter().map(|gate| gate.name.as_str()).collect();
    let context = &run.plan().context;
    Ok(json!({
        "run": folder.id.as_str(),
        "work": run.plan().work.to_string(),
        "story": found.id.as_str(),
        "title": found.title,
        "description": found.description,
        "tasks": found.tasks.iter().map(|task| json!({
            "id": task.id.as_str(), "text": task.text, "done": task.state == WorkState::Done,
        })).collect::<Vec<_>>(),
        "criteria": found.criteria,
        "checks": checks,
        "gates": gates,
        "proposal": context.proposal,
        "design": context.design,
        "learnings": run.learnings().ranked(Some(found)),
    }))
}

fn story_of<'r>(run: &'r Run, story: &str) -> Result<&'r Story, CliError> {
    run.plan().story(&StoryId::from(story)).ok_or_else(|| {
        let ids: Vec<String> = run.plan().stories.iter().map(|story| output::one_line(story.id.as_str())).collect();
        CliError::usage(format!("run {} has no story {}", run.id(), output::one_line(story)))
            .hint(format!("it has {}", ids.join(", ")))
    })
}

/// Into the run that is at work, and through it into all later ones; without a run, for those to come.
fn learn(text: &str, host: &Host) -> Result<Value, CliError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(CliError::usage("the learning is empty; one sentence is needed, in quotes"));
    }
    if text.len() > LONGEST {
        return Err(CliError::usage(format!("the learning has {} bytes, and {LONGEST} at most fit", text.len()))
            .hint("say it in one sentence"));
    }
    // What the agent sees, it may repeat.
    let text = &*Redactor::new(std::env::vars_os()).redact_text(text);
    if let [folder] = at_work(host)?.as_slice() {
        ask(folder, &Request::Learn { text: text.to_owned() })?;
    } else {
        let mut learned = Learnings::default();
        learned.add(text, None);
        let learned: Vec<Learning> = learned.iter().cloned().collect();
        learnings::keep(&state(host)?, &learned).map_err(|error| CliError::environment(error.to_string()))?;
    }
    Ok(json!({ "learned": text }))
}

/// How the story and its work stand in the files as they are now; what is ticked there is a claim, not yet proven.
fn status(story: Option<&str>, host: &Host) -> Result<Value, CliError> {
    let (_, run) = present_run(host)?;
    let opened = spec::open(Some(&run.plan().work.to_string()), host)?;
    let plan = opened.reading()?.plan;
    let wanted = match story {
        Some(story) => Some(StoryId::from(story)),
        None => run.attempts().next().map(|attempt| attempt.id.story.clone()),
    };
    let done = |story: &&Story| story.state == WorkState::Done;
    let stories =
        json!({ "stories_done": plan.stories.iter().filter(done).count(), "stories_total": plan.stories.len() });
    let Some(wanted) = wanted else { return Ok(json!({ "story": null, "change": stories })) };
    story_of(&run, wanted.as_str())?;
    let found = plan.story(&wanted);
    let tasks = found.map(|story| story.tasks.as_slice()).unwrap_or_default();
    let open: Vec<Value> = tasks
        .iter()
        .filter(|task| task.state != WorkState::Done)
        .map(|task| json!({ "id": task.id.as_str(), "text": task.text }))
        .collect();
    Ok(json!({
        "story_complete": found.is_none_or(|story| story.state == WorkState::Done || (!tasks.is_empty() && open.is_empty())),
        "story": { "id": wanted.as_str(), "tasks_done": tasks.len() - open.len(), "tasks_total": tasks.len() },
        "remaining": open,
        "change": stories,
    }))
}
