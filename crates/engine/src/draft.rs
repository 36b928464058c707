//! A first `prd.json`, drafted by the agent in a scratch folder: asked once, and once more with what is wrong with it.

use std::path::Path;
use std::time::Instant;

use ralphloop_agent::decoder::{Clock, Ending};
use ralphloop_agent::event::AgentEvent;
use ralphloop_core::evidence::AgentEnd;
use ralphloop_core::ids::StoryId;
use ralphloop_core::plan::Scheme;
use ralphloop_spec::{Diagnostic, Severity, SpecFiles, SpecText, check};
use tokio_util::sync::CancellationToken;

use crate::process::{SpawnError, Spawner, StopLevel};
use crate::settings::Settings;
use crate::signals::Signals;
use crate::{clock, invoke};

/// The file that the agent is to write.
const FILE: &str = "prd.json";
/// Calls of the agent: the draft, and one repair.
const CALLS: usize = 2;
/// Larger drafts are none.
const MAX_BYTES: u64 = 1024 * 1024;

/// Why there is no draft. Nothing was written outside of the scratch folder, which is gone.
#[derive(Debug, thiserror::Error)]
pub enum DraftError {
    /// The system refuses something basic.
    #[error("could not {doing}")]
    System {
        /// What was done.
        doing: &'static str,
        /// What the system says.
        source: std::io::Error,
    },
    /// The agent could not be started.
    #[error("the agent could not be started")]
    Start(#[source] SpawnError),
    /// The agent ended without a file.
    #[error("the agent wrote no {FILE}: {}", words(.end))]
    Nothing {
        /// How it ended.
        end: AgentEnd,
    },
    /// What it wrote cannot be used, also after a repair.
    #[error("what the agent wrote cannot be used: {}", .problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Unusable {
        /// What is wrong.
        problems: Vec<Diagnostic>,
    },
    /// The user wants no draft any more.
    #[error("stopped; nothing was written")]
    Stopped,
}

fn words(end: &AgentEnd) -> String {
    match end {
        AgentEnd::Error { message }
        | AgentEnd::PromptTooLong { message }
        | AgentEnd::Limit { message, .. }
        | AgentEnd::Overloaded { message }
        | AgentEnd::Network { message }
        | AgentEnd::NoCredit { message }
        | AgentEnd::ModelUnknown { message }
        | AgentEnd::CannotStart { message }
        | AgentEnd::OverBudget { message, .. }
        | AgentEnd::SignIn { message, remedy: None }
        | AgentEnd::Internal { message } => message.clone(),
        AgentEnd::SignIn { message, remedy: Some(remedy) } => format!("{message}; {remedy}"),
        AgentEnd::Crashed { message, .. } => format!("it crashed: {message}"),
        AgentEnd::Finished => "it says that it is done".to_owned(),
        AgentEnd::NoFinalMessage | AgentEnd::NoOutput => "it said nothing".to_owned(),
        AgentEnd::NeverSpoke { .. } | AgentEnd::Silent { .. } => "it fell silent".to_owned(),
        AgentEnd::TimedOut { .. } => "it took too long".to_owned(),
        AgentEnd::Looped { .. } => "it turned in a circle".to_owned(),
        AgentEnd::PermissionDenied { tools } => format!("it was denied {}", tools.join(", ")),
        AgentEnd::Stopped => "it was stopped".to_owned(),
    }
}

/// Lets the agent of `settings` draft a `prd.json` for `idea`; `names` are the files at the top of the project.
///
/// What comes back reads without an error. `say` is told, in a sentence, what is going on.
pub async fn draft(
    spawner: &Spawner,
    settings: &Settings,
    idea: &str,
    names: &[String],
    say: &mut (dyn FnMut(&str) + Send),
) -> Result<Vec<u8>, DraftError> {
    let system = |doing| move |source| DraftError::System { doing, source };
    let scratch = tempfile::Builder::new()
        .prefix("ralphloop-draft-")
        .tempdir()
        .map_err(system("make a scratch folder for the agent"))?;
    let mut signals = Signals::catch().map_err(system("take over signals"))?;
    let file = scratch.path().join(FILE);
    let mut prompt = first_prompt(idea, names);
    let mut problems = Vec::new();
    for round in 0..CALLS {
        let end = call_or_stop(spawner, settings, scratch.path(), &prompt, &mut signals).await?;
        let Some(bytes) = written(&file).map_err(system("read what the agent wrote"))? else {
            return Err(DraftError::Nothing { end });
        };
        problems = problems_of(&bytes);
        if problems.is_empty() {
            return Ok(bytes);
        }
        if round + 1 < CALLS {
            say(&format!("the draft cannot be used yet ({}); the agent is told", problems[0].message));
            prompt = repair_prompt(&problems);
        }
    }
    Err(DraftError::Unusable { problems })
}

/// One call of the agent; a signal ends it.
async fn call_or_stop(
    spawner: &Spawner,
    settings: &Settings,
    folder: &Path,
    prompt: &str,
    signals: &mut Signals,
) -> Result<AgentEnd, DraftError> {
    let cancel = CancellationToken::new();
    let calling = call(spawner, settings, folder, prompt, cancel.clone());
    tokio::pin!(calling);
    tokio::select! {
        end = &mut calling => end,
        _ = signals.next() => {
            cancel.cancel();
            // The agent is gone before its folder is.
            drop(calling.await);
            Err(DraftError::Stopped)
        }
    }
}

/// The file, if it is one of a sensible size.
fn written(file: &Path) -> std::io::Result<Option<Vec<u8>>> {
    match std::fs::symlink_metadata(file) {
        Ok(meta) if meta.is_file() && meta.len() <= MAX_BYTES => std::fs::read(file).map(Some),
        Ok(_) => Ok(None),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn problems_of(bytes: &[u8]) -> Vec<Diagnostic> {
    let findings = check(&SpecFiles::single(Scheme::Prd, SpecText::new(FILE, bytes)));
    findings.into_iter().filter(|finding| finding.severity == Severity::Error).collect()
}

fn first_prompt(idea: &str, names: &[String]) -> String {
    let names = if names.is_empty() { "nothing yet".to_owned() } else { names.join(", ") };
    format!(
        "Write a plan for this idea as the file {FILE} in the current folder:\n\n{idea}\n\n\
         The project itself is not here; at its top it has: {names}.\n\n\
         The file is one JSON object, without comments:\n\
         {{\"project\": \"name\", \"description\": \"why, in a few sentences\", \"userStories\": [\n\
         \x20 {{\"id\": \"US-001\", \"title\": \"short\", \"description\": \"what and why\",\n\
         \x20   \"acceptanceCriteria\": [\"what must hold, each to be seen from outside\"],\n\
         \x20   \"verification_steps\": [{{\"type\": \"shell\", \"command\": \"a command that fails until it holds\"}}],\n\
         \x20   \"priority\": 1, \"dependsOn\": [], \"passes\": false}}\n\
         ]}}\n\n\
         Each story is small enough for one sitting and leaves the project working. Stories come in the order in which they \
         are to be done; dependsOn names ids of this file only. Leave verification_steps out where no command can tell. \
         Every \"passes\" is false. Write nothing but that file, and do not begin with the work.\n"
    )
}

fn repair_prompt(problems: &[Diagnostic]) -> String {
    let list: Vec<String> = problems.iter().map(|problem| format!("- {problem}")).collect();
    format!(
        "The file {FILE} in the current folder cannot be used as it is:\n\n{}\n\nMend exactly that in the file and change \
         nothing else.\n",
        list.join("\n")
    )
}

/// One call of the agent, from its start until all of it is gone.
async fn call(
    spawner: &Spawner,
    settings: &Settings,
    folder: &Path,
    prompt: &str,
    cancel: CancellationToken,
) -> Result<AgentEnd, DraftError> {
    let began = Instant::now();
    let agent = settings.agents.first();
    let sees = invoke::seen_by(agent, &settings.passing.agents);
    let call = invoke::call(agent, folder, prompt, &[], settings.times, cancel).seeing(sees);
    let mut running = spawner.start(call).await.map_err(DraftError::Start)?;
    let mut decoder = invoke::decoder(settings.agents.first(), folder, prompt);
    running.say(&decoder.replies());
    let mut events = Vec::new();
    while let Some(chunk) = running.next().await {
        invoke::converse(&mut decoder, &mut running, &chunk, &mut events);
        for event in events.drain(..) {
            match event {
                AgentEvent::Ended { .. } => {
                    running.hang_up();
                    running.saw_final_event();
                }
                AgentEvent::Repeating { .. } => running.stop(StopLevel::Gentle),
                _ => {}
            }
        }
    }
    let ending = running.wait().await.map_err(DraftError::Start)?;
    let process = invoke::process_end(&ending);
    let clock = Clock { now: clock::now(), zone: jiff::tz::TimeZone::system() };
    let story = StoryId::from(FILE);
    let sign_in = settings.agents.first().sign_in();
    let ending = Ending {
        process,
        story: &story,
        grammar: &settings.grammar,
        clock: &clock,
        took: began.elapsed(),
        sign_in: sign_in.as_deref(),
    };
    Ok(decoder.finish(ending, &mut events).end)
}
