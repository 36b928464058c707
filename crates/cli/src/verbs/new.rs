//! `new prd`: a first `prd.json`, from flags, from answers on a terminal, or drafted by the agent.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;

use ralphloop_core::plan::Scheme;
use ralphloop_engine::draft::{self, DraftError};
use ralphloop_engine::files::write_new;
use ralphloop_spec::{Severity, SpecFiles, SpecText};
use serde::Serialize;
use serde_json::{Value, json};

use super::{repository, settings};
use crate::arguments::{NewArguments, NewPrdArguments, NewWhat};
use crate::config;
use crate::error::CliError;
use crate::exit::Exit;
use crate::host::Host;
use crate::output;
use crate::story_flags::ToldStory;

/// Names of the project's top folder that the agent is told, at most.
const NAMES: usize = 60;

pub(super) fn new(arguments: &NewArguments, host: &Host) -> Result<Exit, CliError> {
    let NewWhat::Prd(arguments) = &arguments.what;
    prd(arguments, host)
}

fn prd(arguments: &NewPrdArguments, host: &Host) -> Result<Exit, CliError> {
    let file = host.cwd.join(&arguments.output);
    refuse_existing(&file)?;
    let terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
    let told = &arguments.stories.0;
    let text = match &arguments.from {
        Some(idea) => {
            if !terminal && !arguments.yes {
                return Err(CliError::usage("there is no terminal on which the draft could be shown and agreed to")
                    .hint("add --yes to have it written as soon as it can be read"));
            }
            drafted(idea, arguments.settings.clone(), host)?
        }
        None if told.is_empty() && !terminal => {
            return Err(CliError::usage("there is no terminal to ask on, and no --story")
                .hint("ralphloop new prd --name NAME --story TITLE --criterion TEXT --check COMMAND")
                .hint("or let the agent draft one: ralphloop new prd --from \"the idea\" --yes"));
        }
        None => {
            let usual = host.cwd.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
            let asked = if told.is_empty() { ask(arguments.name.as_deref(), &usual)? } else { None };
            let (name, stories) =
                asked.unwrap_or_else(|| (arguments.name.clone().unwrap_or(usual), arguments.stories.0.clone()));
            if stories.is_empty() {
                return Err(CliError::usage("a PRD without a story is none; nothing was written"));
            }
            written_out(&name, &stories)
        }
    };
    proven(&text)?;
    let asks = terminal && !arguments.yes && (arguments.from.is_some() || told.is_empty());
    if asks {
        output::data(&output::harmless(&text))?;
        if !answer(&format!("Write this to {}? [y/N] ", file.display()))?.is_some_and(|answer| is_yes(&answer)) {
            output::talk("nothing was written\n");
            return Ok(Exit::PERSON);
        }
    }
    write_new(&file, text.as_bytes()).map_err(|error| match refuse_existing(&file) {
        Err(exists) => exists,
        Ok(()) => CliError::environment("nothing was written").cause(&error),
    })?;
    output::talk(&format!(
        "{} is written; `ralphloop check` looks it over, `ralphloop run` works it through\n",
        file.display()
    ));
    Ok(Exit::DONE)
}

fn refuse_existing(file: &Path) -> Result<(), CliError> {
    if file.symlink_metadata().is_err() {
        return Ok(());
    }
    Err(CliError::usage(format!("{} exists already and is left as it is", file.display()))
        .hint("name another file with -o, or remove it first"))
}

/// What is about to be written reads without an error.
fn proven(text: &str) -> Result<(), CliError> {
    let findings = ralphloop_spec::check(&SpecFiles::single(Scheme::Prd, SpecText::new("prd.json", text)));
    match findings.iter().find(|finding| finding.severity == Severity::Error) {
        None => Ok(()),
        Some(finding) => Err(CliError::usage(format!("this is no usable PRD: {}", finding.message))),
    }
}

/// The agent's draft; what it does meanwhile is told.
fn drafted(idea: &str, flags: config::Layer, host: &Host) -> Result<String, CliError> {
    let (config, warnings) = config::load(&host.cwd, &host.environment, flags)?;
    for warning in warnings {
        output::warn(&warning);
    }
    let settings = settings::decide(&config, &host.cwd, Vec::new())?;
    if let Some(caution) = settings.agents.first().caution() {
        output::warn(caution);
    }
    output::talk("asking the agent for a draft, in a scratch folder\n");
    let names = top_names(&host.cwd);
    let mut say = |text: &str| output::talk(&format!("{}\n", output::one_line(text)));
    let spawner = repository::spawner()?;
    let drafting = draft::draft(&spawner, &settings, idea, &names, &mut say);
    let bytes = repository::runtime()?.block_on(drafting).map_err(|error| {
        let said = match &error {
            DraftError::Unusable { .. } | DraftError::Nothing { .. } => CliError::new(Exit::FAILED, error.to_string()),
            DraftError::Stopped => CliError::new(Exit::INT, error.to_string()),
            DraftError::System { source, .. } => CliError::environment(error.to_string()).cause(source),
            DraftError::Start(source) => CliError::environment(error.to_string()).cause(source),
        };
        match error {
            DraftError::Unusable { .. } => said.hint("nothing was written; try again, or say the idea in more words"),
            DraftError::Start(_) => said.hint("`ralphloop doctor` says what is missing"),
            _ => said,
        }
    })?;
    String::from_utf8(bytes).map_err(|error| CliError::new(Exit::FAILED, "the draft is no text").cause(&error))
}

/// What stands at the top of the project, hidden files left out.
fn top_names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| !name.starts_with('.'));
    names.sort();
    names.truncate(NAMES);
    names
}

/// Asks for everything; `None` if there is nobody who answers.
fn ask(name: Option<&str>, usual: &str) -> Result<Option<(String, Vec<ToldStory>)>, CliError> {
    let name = match name {
        Some(name) => name.to_owned(),
        None => match answer(&format!("Name of the project [{usual}]: "))? {
            None => return Ok(None),
            Some(name) if name.is_empty() => usual.to_owned(),
            Some(name) => name,
        },
    };
    output::talk("Now the stories, in the order in which they are to be done. An empty line ends each list.\n");
    let mut stories = Vec::new();
    while let Some(title) = answer(&format!("Story {}: ", stories.len() + 1))?.filter(|title| !title.is_empty()) {
        let criteria = several("  It is done when: ")?;
        let checks = several("  A command that tells so: ")?;
        stories.push(ToldStory { title, criteria, checks });
    }
    Ok(Some((name, stories)))
}

fn several(question: &str) -> Result<Vec<String>, CliError> {
    let mut answers = Vec::new();
    while let Some(one) = answer(question)?.filter(|answer| !answer.is_empty()) {
        answers.push(one);
    }
    Ok(answers)
}

/// A line from the terminal, trimmed; `None` at its end.
fn answer(question: &str) -> Result<Option<String>, CliError> {
    let mut err = io::stderr().lock();
    drop(err.write_all(question.as_bytes()).and_then(|()| err.flush()));
    let mut line = String::new();
    match io::stdin().read_line(&mut line) {
        Ok(0) => Ok(None),
        Ok(_) => Ok(Some(line.trim().to_owned())),
        Err(error) => Err(CliError::environment("could not read the answer").cause(&error)),
    }
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.to_lowercase().as_str(), "y" | "yes")
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Prd<'t> {
    project: &'t str,
    user_stories: Vec<PrdStory<'t>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PrdStory<'t> {
    id: String,
    title: &'t str,
    acceptance_criteria: &'t [String],
    #[serde(rename = "verification_steps")]
    verification_steps: Vec<Value>,
    priority: usize,
    passes: bool,
}

fn written_out(name: &str, stories: &[ToldStory]) -> String {
    let shell = |command: &String| json!({ "type": "shell", "command": command });
    let user_stories = stories.iter().enumerate().map(|(index, told)| PrdStory {
        id: format!("US-{:03}", index + 1),
        title: &told.title,
        acceptance_criteria: &told.criteria,
        verification_steps: told.checks.iter().map(shell).collect(),
        priority: index + 1,
        passes: false,
    });
    let prd = Prd { project: name, user_stories: user_stories.collect() };
    // Texts and numbers are always JSON.
    serde_json::to_string_pretty(&prd).map(|text| text + "\n").unwrap_or_default()
}
