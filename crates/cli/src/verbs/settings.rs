//! From what was written in flags, variables and files to what the engine works with.

use std::path::{Path, PathBuf};

use ralphloop_agent::builtin::Limits;
use ralphloop_agent::chain::Chain;
use ralphloop_agent::client::{Agent, Roster};
use ralphloop_agent::prices::Prices;
use ralphloop_agent::prompt::relay::{ROLES, instructions_of};
use ralphloop_core::agent_name::AgentName;
use ralphloop_core::ids::StoryId;
use ralphloop_core::policy::{Budget, OnExhausted, Place};
use ralphloop_core::signal::SignalGrammar;
use ralphloop_engine::agents;
use ralphloop_engine::notify::Notify;
use ralphloop_engine::patterns::FilePatterns;
use ralphloop_engine::process::{Passing, Resources};
use ralphloop_engine::sandbox;
use ralphloop_engine::settings::{
    FixTasks, GateChoice, Member, OnDirty, Passings, PromptSettings, Settings, Team, Times, Worktrees,
};

use crate::config::{self, Config, Gates};
use crate::error::{CliError, closest};

/// The engine's settings; `only` are the stories that were named.
pub(crate) fn decide(config: &Config, project: &Path, only: Vec<StoryId>) -> Result<Settings, CliError> {
    let given = &config.settings;
    let grammar = SignalGrammar::with_own_words(given.completion_words.iter().map(String::as_str))
        .map_err(|error| at(config, "completion_words", &error))?;
    Ok(Settings {
        max_retries: given.max_retries,
        max_repairs: given.max_repairs,
        on_exhausted: match given.on_exhausted {
            config::OnExhausted::Stop => OnExhausted::Stop,
            config::OnExhausted::Skip => OnExhausted::Skip,
            config::OnExhausted::Pause => OnExhausted::Pause,
        },
        require_verify: given.require_verify,
        skip_manual: given.skip_manual,
        fix_tasks: if given.create_tasks { FixTasks::One } else { FixTasks::None },
        gates: match given.gates() {
            Gates::Found => GateChoice::Found,
            Gates::Commands(commands) => GateChoice::Named(commands),
            Gates::Off => GateChoice::None,
        },
        budget: Budget {
            iterations: given.max_iterations.0,
            stories: given.max_stories.0,
            duration: given.max_duration,
            cost: given.max_cost,
            tokens: given.max_tokens.map(|tokens| tokens.0),
            margin: given.budget_margin,
        },
        limit_wait: given.limit_wait,
        provider_retries: given.provider_retries,
        provider_backoff: given.provider_backoff.clone(),
        retries: given.retries.iter().map(|own| (own.kind, own.retry.clone())).collect(),
        only,
        place: place(config)?,
        jobs: given.jobs.0,
        on_dirty: match given.dirty {
            config::Dirty::Refuse => OnDirty::Refuse,
            config::Dirty::Worktree => OnDirty::Worktree,
        },
        generated: given.generate.value.clone(),
        worktrees: Worktrees {
            copy: given.worktree_copy.clone(),
            link: given.worktree_link.clone(),
            setup: given.worktree_setup.clone(),
            folder: given.worktree_folder.as_ref().map(|folder| project.join(folder)),
            keep: given.worktree_keep,
        },
        times: Times {
            command: given.command_timeout,
            gate: given.gate_timeout,
            agent: given.agent_timeout,
            start: given.start_timeout,
            idle: given.idle_timeout,
            exit_grace: given.exit_grace,
        },
        agents: agents(config)?,
        choose: given.choose,
        reviewer: reviewer(config)?,
        max_reviews: given.max_reviews,
        relay: relay(config)?,
        prices: Prices::with_own(given.prices.iter().map(|own| (own.prefix.clone(), own.price)).collect()),
        grammar,
        prompts: PromptSettings {
            template: template(config, project)?,
            learnings: usize::try_from(given.learnings_budget).unwrap_or(usize::MAX),
        },
        branch: given.branch.clone(),
        passing: Passings { agents: Passing::of(&given.agent_env), gates: Passing::of(&given.gate_env) },
        // Whoever starts a run finds it out: a command may have to be asked.
        seal: None,
        commit_anyway: FilePatterns::of(&given.commit_anyway).map_err(|error| at(config, "commit_anyway", &error))?,
        notify: Notify {
            targets: given.notify.iter().map(|told| told.target.clone()).collect(),
            secret: given.notify_secret.as_ref().map(|secret| secret.0.clone()),
        },
        resources: resources(config),
        protected_branches: given.protected_branches.clone(),
        sandbox: sandbox(config),
        sandbox_terms: sandbox_terms(config),
    })
}

/// How much of the machine may be used.
fn resources(config: &Config) -> Resources {
    let given = &config.settings;
    let bytes = |limit: Option<config::Bytes>| limit.map(|limit| limit.0);
    Resources {
        memory: bytes(given.max_memory).or_else(Resources::usual_memory),
        processes: given.max_processes.map(|count| count.0),
        written: bytes(given.max_written),
        output: bytes(given.max_output),
    }
}

/// What is to keep agents and gates inside.
pub(super) fn sandbox(config: &Config) -> sandbox::Choice {
    match config.settings.sandbox {
        config::Sandbox::Off => sandbox::Choice::Off,
        config::Sandbox::Workspace => sandbox::Choice::Asked(sandbox::Level::Workspace),
        config::Sandbox::Strict => sandbox::Choice::Asked(sandbox::Level::Strict),
    }
}

/// What the user says of the sandbox beside its level.
pub(super) fn sandbox_terms(config: &Config) -> sandbox::Terms {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let whole = |path: &PathBuf| match (path.strip_prefix("~"), &home) {
        (Ok(below), Some(home)) => home.join(below),
        _ => path.clone(),
    };
    let given = &config.settings;
    sandbox::Terms {
        by: match given.sandbox_by {
            config::SandboxBy::Auto => None,
            config::SandboxBy::Namespaces => Some(sandbox::Mechanism::Namespaces),
            config::SandboxBy::Bubblewrap => Some(sandbox::Mechanism::Bubblewrap),
        },
        write: given.sandbox_write.iter().map(whole).collect(),
        read: given.sandbox_read.iter().map(whole).collect(),
        hosts: given.sandbox_hosts.clone(),
    }
}

/// Where agents work. Several at once need worktrees.
fn place(config: &Config) -> Result<Place, CliError> {
    let given = &config.settings;
    let asked = if given.jobs.0.get() > 1 { Some("jobs") } else { given.worktree.then_some("worktree") };
    match asked {
        Some(name) if given.in_place => Err(CliError::usage(format!(
            "in_place ({}) and {name} ({}) exclude each other: in the checkout, one story is worked on at a time",
            config.origin("in_place"),
            config.origin(name),
        ))),
        Some(_) => Ok(Place::Worktrees),
        None => Ok(Place::Checkout),
    }
}

/// What the names of agents are looked up in.
fn roster(config: &Config) -> Roster {
    let given = &config.settings;
    let usual = Roster::default();
    Roster {
        own: given.agents.iter().map(|own| own.client.clone()).collect(),
        providers: given.providers.iter().map(|own| own.provider.clone()).collect(),
        limits: Limits {
            steps: u32::try_from(given.builtin_max_steps.0).unwrap_or(u32::MAX),
            tokens: given.builtin_max_tokens.map(|tokens| tokens.0),
            duration: given.builtin_max_duration,
        },
        // Where this program cannot find itself, the one on the path is most likely the same.
        program: std::env::current_exe().map_or(usual.program, |path| path.to_string_lossy().into_owned()),
    }
}

/// The agents that were chosen, the preferred first.
pub(super) fn agents(config: &Config) -> Result<Chain, CliError> {
    let given = &config.settings;
    if let Some(command) = &given.agent_command {
        let agent = Agent::command(command, given.agent_format.format());
        return agent.map(Chain::of).map_err(|error| at(config, "agent_command", &error));
    }
    let choices = given.agent.as_ref().map_or_else(|| vec![agents::usual().name.to_owned()], config::Value::texts);
    let roster = roster(config);
    let mut chain: Option<Chain> = None;
    for choice in choices {
        let mut agent = Agent::chosen(&choice, &roster).map_err(|error| at(config, "agent", &error))?;
        if chain.as_ref().is_none_or(|chain| chain.first().name == agent.name) {
            agent =
                agent.with_arguments(&given.agent_arguments).map_err(|error| at(config, "agent_arguments", &error))?;
        }
        chain = Some(match chain {
            None => Chain::of(agent),
            Some(chain) => chain.then(agent).map_err(|error| at(config, "agent", &error))?,
        });
    }
    chain.ok_or_else(|| CliError::usage("no agent is named"))
}

/// The agent that looks at proven work, if there is to be one.
fn reviewer(config: &Config) -> Result<Option<Agent>, CliError> {
    let given = &config.settings;
    let Some(name) = &given.reviewer else { return Ok(None) };
    Agent::chosen(&config::Value::show(name), &roster(config)).map(Some).map_err(|error| at(config, "reviewer", &error))
}

/// Those who work on a story one after the other, if several are to.
fn relay(config: &Config) -> Result<Option<Team>, CliError> {
    let given = &config.settings;
    let Some(relay) = &given.relay else { return Ok(None) };
    let roster = roster(config);
    let member = |(name, agent): &(String, Option<AgentName>)| {
        let described = given.roles.iter().find(|role| role.name == *name);
        if described.is_none_or(|role| role.prompt.is_none()) && instructions_of(name).is_none() {
            let known = ROLES.iter().map(|(role, _)| *role).chain(given.roles.iter().map(|role| role.name.as_str()));
            let error = CliError::usage(format!("there is no role {name:?} ({})", config.origin("relay")));
            return Err(match closest(name, known.clone()) {
                Some(meant) => error.hint(format!("did you mean {meant}?")),
                None => error.hint(format!(
                    "known are {}; a table [roles.{name}] with a prompt makes another",
                    known.collect::<Vec<_>>().join(", ")
                )),
            });
        }
        let chosen = agent.as_ref().or_else(|| described.and_then(|role| role.agent.as_ref()));
        let chosen = chosen.map(|agent| Agent::chosen(&config::Value::show(agent), &roster)).transpose();
        Ok(Member {
            role: name.clone(),
            agent: chosen.map_err(|error| at(config, "relay", &error))?,
            instructions: described.and_then(|role| role.prompt.clone()),
        })
    };
    let members = relay.0.iter().map(member).collect::<Result<_, _>>()?;
    Ok(Some(Team { members, rounds: given.relay_rounds.0.get() }))
}

/// The user's template and what it is called in messages.
fn template(config: &Config, project: &Path) -> Result<Option<(String, String)>, CliError> {
    let Some(path) = &config.settings.prompt_template else { return Ok(None) };
    let text = std::fs::read_to_string(project.join(path))
        .map_err(|error| at(config, "prompt_template", &error).hint("a relative path counts from the project"))?;
    Ok(Some((path.display().to_string(), text)))
}

/// A setting that can be read but not used, with the place it stands at.
fn at(config: &Config, name: &str, error: &dyn std::error::Error) -> CliError {
    CliError::usage(format!("{name} cannot be used ({})", config.origin(name))).cause(error)
}
