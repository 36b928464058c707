//! Commands that a repository brings with it: shown, refused by their shape, and trusted by this user once.

use std::collections::BTreeSet;
use std::path::Path;

use ralphloop_core::plan::{Check, Plan, Story, WorkState};
use ralphloop_engine::commands::{Shape, Trust, TrustError, shape_of};
use ralphloop_engine::notify::Target;
use serde_json::json;

use super::take_up::{Asker, on_terminal};
use super::{gates, repository, spec};
use crate::arguments::TrustArguments;
use crate::config::{self, Config, Layer, Origin, Trusting};
use crate::error::CliError;
use crate::exit::Exit;
use crate::host::Host;
use crate::output::{self, HEAD, count, one_line, styled};

/// A command that the repository brings with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Brought {
    /// For `sh -c`, or split into words where it starts an agent.
    pub(crate) command: String,
    /// `a check of S1`, `ralphloop.toml:3`.
    pub(crate) from: String,
    /// What its shape says.
    pub(crate) shape: Shape,
}

/// All commands that a run of this work could run and that neither this call nor the user's own settings have given. Of a
/// work that cannot be read there are none: it is not run.
pub(crate) fn brought(config: &Config, plan: Option<&Plan>, project: &Path) -> Vec<Brought> {
    let is_open = |story: &Story| story.state != WorkState::Done;
    let mut all = plan.map(|plan| by_work(config, plan, project, is_open)).unwrap_or_default();
    for one in by_settings(config) {
        if all.iter().all(|known| known.command != one.command) {
            all.push(one);
        }
    }
    all
}

/// The gates of the work and the checks of the wanted stories, each command once.
pub(crate) fn by_work(
    config: &Config,
    plan: &Plan,
    project: &Path,
    is_wanted: impl Fn(&Story) -> bool,
) -> Vec<Brought> {
    let mut all: Vec<(String, String)> = Vec::new();
    let is_own = !config.settings.gate.is_empty() && from_project(config, "gate").is_none();
    let chosen = if is_own { Vec::new() } else { gates::choose(config, plan, project).0 };
    all.extend(chosen.into_iter().map(|chosen| (chosen.gate.command, format!("gate, {}", chosen.from))));
    for story in plan.stories.iter().filter(|story| is_wanted(story)) {
        for check in &story.checks {
            if let Check::Shell { command, .. } = check {
                all.push((command.clone(), format!("check of {}", story.id)));
            }
        }
    }
    each_once(all)
}

/// What the project's file starts beside the gates.
fn by_settings(config: &Config) -> Vec<Brought> {
    let settings = &config.settings;
    let mut all: Vec<(String, String)> = Vec::new();
    let mut add = |name: &str, commands: Vec<String>| {
        if let Some(from) = from_project(config, name) {
            all.extend(commands.into_iter().map(|command| (command, format!("{name}, {from}"))));
        }
    };
    add("worktree_setup", settings.worktree_setup.clone().into_iter().collect());
    add("agent_command", settings.agent_command.clone().into_iter().collect());
    let told = settings.notify.iter().filter_map(|told| match &told.target {
        Target::Command(command) => Some(command.clone()),
        _ => None,
    });
    add("notify", told.collect());
    // What opens the sandbox lets commands do more than their words say.
    add(
        "sandbox_write",
        settings.sandbox_write.iter().map(|path| format!("sandbox_write {}", path.display())).collect(),
    );
    add("sandbox_read", settings.sandbox_read.iter().map(|path| format!("sandbox_read {}", path.display())).collect());
    add("sandbox_hosts", settings.sandbox_hosts.iter().map(|host| format!("sandbox_hosts {host}")).collect());
    let made = &settings.generate;
    if matches!(made.origin, Origin::ProjectFile { .. }) {
        all.extend(made.value.rules().map(|(_, command)| (command.to_owned(), format!("generate, {}", made.origin))));
    }
    for own in settings.agents.iter().filter(|own| matches!(own.origin, Origin::ProjectFile { .. })) {
        all.push((own.client.command.clone(), format!("agent {}, {}", own.client.name, own.origin)));
    }
    for own in settings.providers.iter().filter(|own| matches!(own.origin, Origin::ProjectFile { .. })) {
        all.push((own.told(), format!("provider {}, {}", own.provider.name, own.origin)));
    }
    each_once(all)
}

/// Where the project's file says something, if what it says holds.
fn from_project(config: &Config, name: &str) -> Option<String> {
    match config.origin(name) {
        origin @ Origin::ProjectFile { .. } => Some(origin.to_string()),
        _ => None,
    }
}

fn each_once(mut all: Vec<(String, String)>) -> Vec<Brought> {
    let mut seen = BTreeSet::new();
    all.retain(|(command, _)| seen.insert(command.clone()));
    let brought = |(command, from): (String, String)| Brought { shape: shape_of(&command), command, from };
    all.into_iter().map(brought).collect()
}

/// The error that names the commands which are not run at all, if there are any.
fn refused(brought: &[Brought]) -> Result<(), CliError> {
    let lines: Vec<String> = brought
        .iter()
        .filter_map(|one| match &one.shape {
            Shape::Refused { why } => {
                Some(format!("`{}` ({}) {}", one_line(&one.command), one_line(&one.from), one_line(why)))
            }
            _ => None,
        })
        .collect();
    let Some(first) = lines.first() else { return Ok(()) };
    let more = if lines.len() > 1 { format!(", and {} more like it", lines.len() - 1) } else { String::new() };
    let error = CliError::usage(format!("this repository brings a command that is not run: {first}{more}"));
    Err(error
        .hint("take it out of the file; nothing was started")
        .hint("a gate that you want all the same is yours if you give it yourself: --gate, or your own config.toml"))
}

/// Whether what runs the commands that the repository brings may begin: refused ones are an error; others that are of no
/// ordinary shape and not trusted yet are shown and asked about, as far as there is somebody to ask.
pub(crate) fn may_begin(
    config: &Config,
    brought: &[Brought],
    common_dir: &Path,
    asker: Option<&mut dyn Asker>,
) -> Result<bool, CliError> {
    config.refuse_from_repository("trust")?;
    refused(brought)?;
    let unknown: Vec<&Brought> = brought.iter().filter(|one| one.shape == Shape::Unknown).collect();
    if unknown.is_empty() || config.settings.trust == Trusting::Off {
        return Ok(true);
    }
    let mut trust = match open() {
        Ok(trust) => trust,
        // Without a home nothing can be trusted, and nothing asked for good.
        Err(TrustError::NoHome) if config.settings.trust == Trusting::Ask => return Ok(true),
        Err(error) => return Err(CliError::environment(error.to_string())),
    };
    let new: Vec<&Brought> = unknown.into_iter().filter(|one| !trust.has(common_dir, &one.command)).collect();
    if new.is_empty() {
        return Ok(true);
    }
    let said = format!("{} of this repository, not trusted yet", count(new.len(), "command", "commands"));
    match (asker, config.settings.trust) {
        (Some(asker), _) => {
            asker.tell(&format!("{}\n{}", styled(HEAD, &said), listed(new.iter().copied())));
            let answers =
                [('t', "trust them, and go on: this is not asked again"), ('q', "quit, and leave everything as it is")];
            if asker.ask("Run them?", &answers)? != 't' {
                return Ok(false);
            }
            trust
                .add(common_dir, new.iter().map(|one| one.command.as_str()))
                .map_err(|error| CliError::environment(error.to_string()))?;
            Ok(true)
        }
        (None, Trusting::Require) => {
            let mut error = CliError::new(Exit::PERSON, format!("{said}; nothing was started"));
            for one in new.iter().take(5) {
                error = error.hint(format!("{}  ({})", one_line(&one.command), one_line(&one.from)));
            }
            Err(error.hint("`ralphloop trust` shows all of them and trusts them"))
        }
        (None, _) => {
            output::talk(&format!("note: {said}; they are run all the same; `ralphloop trust` shows them\n"));
            Ok(true)
        }
    }
}

fn open() -> Result<Trust, TrustError> {
    Trust::open(|name| std::env::var(name).ok())
}

fn listed<'b>(brought: impl IntoIterator<Item = &'b Brought>) -> String {
    brought.into_iter().map(|one| format!("  {}  ({})\n", one_line(&one.command), one_line(&one.from))).collect()
}

/// `trust`
pub(super) fn trust(arguments: &TrustArguments, host: &Host) -> Result<Exit, CliError> {
    let place = repository::runtime()?.block_on(repository::open(host))?;
    let common_dir = &place.repository.places().common_dir;
    let mut trust = open().map_err(|error| CliError::environment(error.to_string()))?;
    let failed = |error: TrustError| CliError::environment(error.to_string());
    if arguments.forget {
        let forgotten = trust.forget(common_dir).map_err(failed)?;
        output::talk(&format!("{} of this repository no longer trusted\n", count(forgotten, "command", "commands")));
        return Ok(Exit::DONE);
    }
    let opened = spec::open(arguments.work.as_deref(), host)?;
    let plan = opened.reading()?.plan;
    let (config, warnings) = config::load(&opened.work.project, &host.environment, Layer::default())?;
    for warning in &warnings {
        output::warn(warning);
    }
    let brought = brought(&config, Some(&plan), &opened.work.project);
    let is_trusted = |one: &Brought| trust.has(common_dir, &one.command);
    if arguments.json {
        let rows: Vec<_> = brought.iter().map(|one| row(one, is_trusted(one))).collect();
        output::json(&json!({ "work": opened.work.id.to_string(), "commands": rows }))?;
        return Ok(Exit::DONE);
    }
    let mut text = styled(HEAD, &format!("Commands that {} brings with it", opened.work.id)) + "\n";
    if brought.is_empty() {
        text.push_str("  none\n");
    }
    for one in &brought {
        let means = match &one.shape {
            Shape::Ordinary => "ordinary: runs without asking".to_owned(),
            Shape::Unknown if is_trusted(one) => "trusted".to_owned(),
            Shape::Unknown => "not trusted yet".to_owned(),
            Shape::Refused { why } => format!("not run: it {}", one_line(why)),
        };
        text.push_str(&format!("  {}  ({}): {means}\n", one_line(&one.command), one_line(&one.from)));
    }
    output::data(&text)?;
    let new: Vec<&str> = brought
        .iter()
        .filter(|one| one.shape == Shape::Unknown && !is_trusted(one))
        .map(|one| one.command.as_str())
        .collect();
    if arguments.list || new.is_empty() {
        refused(&brought)?;
        return Ok(Exit::DONE);
    }
    let asks = std::io::IsTerminal::is_terminal(&std::io::stdin());
    if !arguments.yes {
        let Some(mut asker) = on_terminal(asks) else {
            return Err(CliError::new(Exit::PERSON, "nothing was trusted: there is nobody to ask")
                .hint("on a terminal it is asked; --yes trusts what is listed"));
        };
        let answers = [('n', "no, leave it as it is"), ('y', "yes, for this repository and these commands")];
        // Nobody who only presses the return key has trusted anything.
        if asker.ask("Trust them?", &[answers[0], answers[1], ('q', "no")])? != 'y' {
            return Ok(Exit::PERSON);
        }
    }
    trust.add(common_dir, new.iter().copied()).map_err(failed)?;
    output::talk(&format!(
        "{} trusted, noted in {}\n",
        count(new.len(), "command", "commands"),
        one_line(&trust.path().display().to_string())
    ));
    refused(&brought)?;
    Ok(Exit::DONE)
}

fn row(one: &Brought, trusted: bool) -> serde_json::Value {
    let (shape, why) = match &one.shape {
        Shape::Ordinary => ("ordinary", None),
        Shape::Unknown => ("unknown", None),
        Shape::Refused { why } => ("refused", Some(why)),
    };
    json!({ "command": one.command, "from": one.from, "shape": shape, "why": why, "trusted": trusted })
}
