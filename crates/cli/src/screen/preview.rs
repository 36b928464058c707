//! What a run would be, worked out for the screen with the same code as `show`, `check` and `run`.

use ralphloop_agent::client::KNOWN;
use ralphloop_core::ids::StoryId;
use ralphloop_core::plan::{Plan, WorkId};
use ralphloop_engine::runs::StateFolder;
use ralphloop_engine::start;
use ralphloop_engine::work;
use ralphloop_spec::{Diagnostic, Severity};
use ralphloop_tui::pick::port::{AgentRow, Choices, GateRow, Msg, Preview, Problem, RunRow};

use super::pick::Called;
use crate::config::{self, Layer, Value as _};
use crate::error::CliError;
use crate::host::Host;
use crate::verbs::launch::{Launch, Prepared};
use crate::verbs::spec::{self, Opened};
use crate::verbs::{check, dry_run, gates, inventory, prompt, repository};
use crate::view::branch_name;

/// The work that is looked at, with what was chosen for it.
pub(super) struct Desk {
    called: Called,
    host: Host,
    /// The work, and the flags that hold for it.
    at: Option<(WorkId, Layer)>,
}

impl Desk {
    pub(super) fn new(called: Called, host: Host) -> Self {
        Self { called, host, at: None }
    }

    /// Works out what a run of `work` would be, and tells it; first without what takes long.
    pub(super) fn preview(&mut self, work: &WorkId, choices: Option<&Choices>, tell: &mut dyn FnMut(Msg)) {
        match self.look(work, choices) {
            Ok((flags, preview, opened)) => {
                self.at = Some((work.clone(), flags));
                let quick = preview.problems.len();
                tell(Msg::Preview(Box::new(preview.clone())));
                let Some(opened) = opened else { return };
                let Ok((findings, unasked)) = check::findings(&opened) else { return };
                if findings.len() > quick || unasked.is_some() {
                    let problems = findings.iter().map(problem).collect();
                    let warnings = preview.warnings.iter().cloned().chain(unasked).collect();
                    tell(Msg::Preview(Box::new(Preview { problems, warnings, ..preview })));
                }
            }
            Err(error) => tell(Msg::Refused(error.plain())),
        }
    }

    fn look(&self, work: &WorkId, choices: Option<&Choices>) -> Result<(Layer, Preview, Option<Opened>), CliError> {
        let usual = self.prepare_with(work, &self.called.flags)?;
        let agents = agents(&usual);
        let flags = self.with(&usual, choices)?;
        let prepared = self.prepare_with(work, &flags)?;
        let (preview, opened) = self.show(work, &prepared, agents);
        Ok((flags, preview, opened))
    }

    /// The flags of the call with what was chosen. Only what differs from what would hold anyway is a flag.
    fn with(&self, prepared: &Prepared, choices: Option<&Choices>) -> Result<Layer, CliError> {
        let Some(choices) = choices else { return Ok(self.called.flags.clone()) };
        let (usual, command) = choices_of(prepared);
        let mut texts = Vec::new();
        let agent = choices.agent.trim();
        let by_name = agent != usual.agent || (!command && choices.model.trim() != usual.model);
        if by_name {
            let model = choices.model.trim();
            let named = if model.is_empty() { agent.to_owned() } else { format!("{agent}:{model}") };
            texts.push(("agent".to_owned(), vec![named]));
        }
        if choices.jobs.trim() != usual.jobs {
            texts.push(("jobs".to_owned(), vec![choices.jobs.trim().to_owned()]));
        }
        if choices.retries.trim() != usual.retries {
            texts.push(("max_retries".to_owned(), vec![choices.retries.trim().to_owned()]));
        }
        let mut flags = config::over(self.called.flags.clone(), config::named(&texts)?);
        if by_name {
            // An agent that was just named comes before a command of the call.
            flags.agent_command = None;
        }
        Ok(flags)
    }

    fn prepare_with(&self, work: &WorkId, flags: &Layer) -> Result<Prepared, CliError> {
        let launch = Launch::new(Some(work.to_string()), self.called.stories.clone(), flags, &self.host);
        launch.prepare(flags.clone(), &self.host)
    }

    /// The run that would begin now.
    pub(super) fn prepare(&self) -> Result<Prepared, CliError> {
        let (work, flags) = self.at.as_ref().ok_or_else(|| CliError::usage("no work is open"))?;
        self.prepare_with(work, flags)
    }

    /// What the agent of a story's first attempt is told.
    pub(super) fn prompt(&self, story: &StoryId) -> Result<String, CliError> {
        let prepared = self.prepare()?;
        let opened = open(&prepared)?;
        let reading = opened.reading()?;
        let story = reading.plan.story(story).ok_or_else(|| opened.no_story(story.as_str(), &reading))?;
        prompt::first(&reading.plan, story, &prepared.settings, &prepared.work.project)
    }

    /// Without what other programs say of the work; with its files, if those can be read.
    fn show(&self, work: &WorkId, prepared: &Prepared, agents: Vec<AgentRow>) -> (Preview, Option<Opened>) {
        let (choices, command) = choices_of(prepared);
        let mut preview = Preview {
            work: work.clone(),
            file: prepared.work.shown(&prepared.work.main),
            plan: None,
            stages: Vec::new(),
            problems: Vec::new(),
            gates: Vec::new(),
            warnings: prepared.warnings.clone(),
            agents,
            choices,
            command,
            branch: String::new(),
            unfinished: None,
        };
        let opened = match open(prepared) {
            Ok(opened) => opened,
            Err(error) => {
                let (message, help) = (error.one_line(), String::new());
                preview.problems = vec![Problem { error: true, place: String::new(), message, help }];
                return (preview, None);
            }
        };
        preview.problems = ralphloop_spec::check(&opened.files).iter().map(problem).collect();
        let Ok(reading) = opened.read() else { return (preview, Some(opened)) };
        let plan = reading.plan;
        let (chosen, warnings) = gates::choose(&prepared.config, &plan, &prepared.work.project);
        preview.gates =
            chosen.into_iter().map(|chosen| GateRow { command: chosen.gate.command, from: chosen.from }).collect();
        preview.warnings.extend(warnings);
        preview.stages = dry_run::selected(&plan, &prepared.settings.only);
        (preview.branch, preview.unfinished) = self.around(prepared, &plan);
        preview.plan = Some(Box::new(plan));
        (preview, Some(opened))
    }

    /// Where the commits will go, and the run that would be asked about.
    fn around(&self, prepared: &Prepared, plan: &Plan) -> (String, Option<RunRow>) {
        let wanted = prepared.settings.branch.clone().or_else(|| plan.branch.clone());
        let wanted = wanted.filter(|branch| !branch.trim().is_empty());
        let place = repository::runtime().and_then(|runtime| runtime.block_on(repository::open(&self.host)));
        let Ok(place) = place else { return (wanted.unwrap_or_else(|| "none: no repository".to_owned()), None) };
        let current = place.repository.current_branch().ok().flatten();
        let branch = wanted
            .or(current)
            .map_or_else(|| "none: HEAD is detached".to_owned(), |branch| branch_name(&branch).to_owned());
        let state = StateFolder::of(&place.repository.places().common_dir);
        let unfinished = start::unfinished_run(&state, &prepared.work).ok().flatten();
        let unfinished = unfinished.map(|(folder, run)| {
            let pid = folder.live_process().map(|process| process.pid);
            inventory::row(&folder, &run, pid)
        });
        (branch, unfinished)
    }
}

fn open(prepared: &Prepared) -> Result<Opened, CliError> {
    let work = prepared.work.clone();
    let files = work::load(&work).map_err(|error| spec::not_usable(&error))?;
    Ok(Opened { work, files })
}

/// What holds, as it would be written, and whether the agent is a command.
fn choices_of(prepared: &Prepared) -> (Choices, bool) {
    let settings = &prepared.config.settings;
    let command = settings.agent_command.clone();
    let (agent, model) = if let Some(command) = &command {
        (command.clone(), String::new())
    } else {
        let first = prepared.settings.agents.first();
        let id = first.id();
        // Behind the name stands the model, with its effort if one was named.
        let model = id.as_str().strip_prefix(&first.name).and_then(|rest| rest.strip_prefix(':'));
        (first.name.clone(), model.unwrap_or_default().to_owned())
    };
    let (jobs, retries) = (settings.jobs.show(), settings.max_retries.to_string());
    (Choices { agent, model, jobs, retries }, command.is_some())
}

/// Every agent that could be named, the user's own first; a command that is set is one of them.
fn agents(prepared: &Prepared) -> Vec<AgentRow> {
    let settings = &prepared.config.settings;
    let command = settings.agent_command.iter().map(|command| AgentRow {
        name: command.clone(),
        title: "the command".to_owned(),
        here: start::is_there(command),
        install: "its program is not there".to_owned(),
    });
    let own = settings.agents.iter().map(|own| AgentRow {
        name: own.client.name.clone(),
        title: own.client.name.clone(),
        here: start::is_there(&own.client.command),
        install: format!("`{}` is not there ({})", own.client.command, own.origin),
    });
    let is_own = |name: &str| settings.agents.iter().any(|own| own.client.name == name);
    let known = KNOWN.iter().filter(|client| !is_own(client.name)).map(|client| AgentRow {
        name: client.name.to_owned(),
        title: client.title.to_owned(),
        here: ralphloop_engine::agents::is_here(client),
        install: client.install.to_owned(),
    });
    command.chain(own).chain(known).collect()
}

fn problem(finding: &Diagnostic) -> Problem {
    let mut place = finding.file.clone();
    for number in [finding.line, finding.column].into_iter().flatten() {
        place.push_str(&format!(":{number}"));
    }
    Problem {
        error: finding.severity == Severity::Error,
        place,
        message: finding.message.clone(),
        help: finding.help.clone(),
    }
}
