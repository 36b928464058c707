//! What a run is started with, decided and complete.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use ralphloop_agent::chain::Chain;
use ralphloop_agent::client::{Agent, Reports};
use ralphloop_agent::prices::Prices;
use ralphloop_core::ids::{AgentId, StoryId};
use ralphloop_core::plan::Plan;
use ralphloop_core::policy::{Budget, FailureKind, Gate, OnExhausted, Place, Policy, Retry};
use ralphloop_core::relay::{Relay, Role};
use ralphloop_core::signal::SignalGrammar;

use crate::gates::find::{find, on_path};
use crate::git::Seal;
use crate::lane::Generated;
use crate::notify::Notify;
use crate::patterns::FilePatterns;
use crate::process::Passing;
use crate::{process, sandbox};

/// Time limits of what a run starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// Git and other helpers.
    pub command: Duration,
    /// A gate, and a check that names none.
    pub gate: Duration,
    /// One call of an agent in all.
    pub agent: Duration,
    /// To the agent's first byte.
    pub start: Duration,
    /// Silence of the agent after that.
    pub idle: Duration,
    /// From the agent's final event to its exit.
    pub exit_grace: Duration,
}

/// Which gates a run has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateChoice {
    /// Those that the spec names, else those found in the project.
    Found,
    /// These commands.
    Named(Vec<String>),
    /// None.
    None,
}

/// What the prompts are made with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptSettings {
    /// The user's template, with its file's name for messages.
    pub template: Option<(String, String)>,
    /// Bytes of learnings in a prompt.
    pub learnings: usize,
}

/// What a task gets that fails for good, where the work's format has such a thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FixTasks {
    /// Nothing.
    None,
    /// A task that mends it, once in a run.
    One,
}

/// All of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Attempts of a story after the first.
    pub max_retries: u32,
    /// Repairs in place, per attempt.
    pub max_repairs: u32,
    /// What happens when a story is exhausted.
    pub on_exhausted: OnExhausted,
    /// A story that nothing can verify is not run.
    pub require_verify: bool,
    /// Stories that a person has to sign are left aside.
    pub skip_manual: bool,
    /// What a task that fails for good gets.
    pub fix_tasks: FixTasks,
    /// The gates.
    pub gates: GateChoice,
    /// Bounds on the run.
    pub budget: Budget,
    /// The longest wait for a provider's limit.
    pub limit_wait: Duration,
    /// Failed tries to reach the provider before the run pauses.
    pub provider_retries: u32,
    /// The waits before those tries; none for the usual ones.
    pub provider_backoff: Vec<Duration>,
    /// What is different for failures of some kind.
    pub retries: BTreeMap<FailureKind, Retry>,
    /// Only these stories; empty is all.
    pub only: Vec<StoryId>,
    /// Where agents work.
    pub place: Place,
    /// Stories at once.
    pub jobs: NonZeroU32,
    /// What to do about changes of the user's that are in no commit.
    pub on_dirty: OnDirty,
    /// What a worktree gets that git does not carry.
    pub worktrees: Worktrees,
    /// Files that are made anew where a merge has them in conflict.
    pub generated: Generated,
    /// Time limits.
    pub times: Times,
    /// The agents, the preferred first.
    pub agents: Chain,
    /// Earlier outcomes decide in which order the agents are tried.
    pub choose: bool,
    /// Who looks at proven work before it lands.
    pub reviewer: Option<Agent>,
    /// How often a reviewer may send the work of an attempt back.
    pub max_reviews: u32,
    /// Who works on a story one after the other.
    pub relay: Option<Team>,
    /// What the use of agents costs that do not say so themselves.
    pub prices: Prices,
    /// What counts as a signal.
    pub grammar: SignalGrammar,
    /// What the prompts are made with.
    pub prompts: PromptSettings,
    /// Where commits go: the plan's branch, else the current one, if absent.
    pub branch: Option<String>,
    /// What agents and gates see of the environment.
    pub passing: Passings,
    /// Signs commits.
    pub seal: Option<Seal>,
    /// Files that may be committed whatever they hold.
    pub commit_anyway: FilePatterns,
    /// Who is told when the run ends or waits.
    pub notify: Notify,
    /// How much of the machine one call of an agent, or one gate, may use.
    pub resources: process::Resources,
    /// Branches that nothing is committed to: patterns of names.
    pub protected_branches: Vec<String>,
    /// What keeps agents and gates inside.
    pub sandbox: sandbox::Choice,
    /// What of the machine is open to them there, beside what its level says.
    pub sandbox_terms: sandbox::Terms,
}

/// Who works on a story one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Team {
    /// In this order; at least one.
    pub members: Vec<Member>,
    /// How often all of them may have their turn in one attempt.
    pub rounds: u32,
}

/// One role of a relay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// What it is called.
    pub role: String,
    /// Its own agent; whoever works on the story if absent.
    pub agent: Option<Agent>,
    /// The user's own words for its part.
    pub instructions: Option<String>,
}

impl Team {
    fn relay(&self) -> Relay {
        let role = |member: &Member| Role {
            name: member.role.clone(),
            agent: member.agent.as_ref().map(Agent::id),
            instructions: member.instructions.clone(),
        };
        Relay { roles: self.members.iter().map(role).collect(), rounds: self.rounds }
    }
}

/// What programs see of our environment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Passings {
    /// Agents.
    pub agents: Passing,
    /// Gates and checks.
    pub gates: Passing,
}

/// What is done about changes of the user's that are in no commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDirty {
    /// The run does not start.
    #[default]
    Refuse,
    /// Agents work in worktrees, without these changes.
    Worktree,
}

/// What a worktree gets that git does not carry.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Worktrees {
    /// Files and folders of the checkout that are copied into it: patterns from its top.
    pub copy: Vec<String>,
    /// Those that it gets a link to.
    pub link: Vec<String>,
    /// A command that is run once in it.
    pub setup: Option<String>,
    /// Where worktrees are; beside the runs if absent.
    pub folder: Option<std::path::PathBuf>,
    /// How many are kept from one run to the next.
    pub keep: u32,
}

impl Settings {
    /// The core's part, for this plan in that project.
    pub fn policy(&self, plan: &Plan, project: &std::path::Path) -> Policy {
        Policy {
            max_retries: self.max_retries,
            max_repairs: self.max_repairs,
            on_exhausted: self.on_exhausted,
            require_verify: self.require_verify,
            skip_manual: self.skip_manual,
            create_tasks: self.fix_tasks == FixTasks::One,
            gates: self.gates(plan, project),
            budget: self.budget,
            limit_wait: self.limit_wait,
            provider_retries: self.provider_retries,
            provider_backoff: self.provider_backoff.clone(),
            retries: self.retries.clone(),
            only: self.only.clone(),
            agents: self.agents.ids(),
            // What the evidence says, the start of the run adds.
            orders: BTreeMap::new(),
            reviewer: self.reviewer.as_ref().map(Agent::id),
            max_reviews: self.max_reviews,
            relay: self.relay.as_ref().map(Team::relay),
            learnings: Vec::new(),
            place: self.place,
            jobs: self.jobs,
        }
    }

    /// The agent of that name and model, wherever in these settings it is named to work on stories.
    pub fn worker(&self, id: &AgentId) -> Option<&Agent> {
        self.agents.get(id).or_else(|| self.of_the_team().find(|agent| agent.id() == *id))
    }

    /// The agents that roles of a relay have for themselves.
    pub fn of_the_team(&self) -> impl Iterator<Item = &Agent> {
        self.relay.iter().flat_map(|team| team.members.iter().filter_map(|member| member.agent.as_ref()))
    }

    /// Bounds on money and tokens that no call of an agent will be counted for, since nobody says what it uses.
    pub fn bounds_that_cannot_be_kept(&self) -> Vec<String> {
        let mut said = Vec::new();
        for agent in self.agents.iter().chain(&self.reviewer).chain(self.of_the_team()) {
            let (id, reports) = (agent.id(), agent.reports());
            let priced = agent.model.as_deref().is_some_and(|model| self.prices.of(model).is_some());
            if self.budget.tokens.is_some() && reports == Reports::Nothing {
                said.push(format!("max_tokens cannot be kept with {id}: it does not say how many tokens it uses"));
            }
            if self.budget.cost.is_some() && reports == Reports::Nothing {
                said.push(format!(
                    "max_cost cannot be kept with {id}: it says neither what it costs nor how many tokens it uses"
                ));
            } else if self.budget.cost.is_some() && reports == Reports::Tokens && !priced {
                said.push(format!(
                    "max_cost may not be kept with {id}: it says how many tokens it uses, not what they cost, and no model \
                     with a price is named; name one ({}:MODEL), or give the model a price in a table [prices.\"MODEL\"]",
                    agent.name
                ));
            }
        }
        said
    }

    /// The gates, for this plan in that project.
    pub fn gates(&self, plan: &Plan, project: &std::path::Path) -> Vec<Gate> {
        match &self.gates {
            GateChoice::None => Vec::new(),
            GateChoice::Named(commands) => {
                commands.iter().map(|c| Gate { name: c.clone(), command: c.clone() }).collect()
            }
            GateChoice::Found if !plan.gates.is_empty() => {
                plan.gates.iter().map(|g| Gate { name: g.command.clone(), command: g.command.clone() }).collect()
            }
            GateChoice::Found => find(project, &on_path).gates.into_iter().map(|g| g.gate).collect(),
        }
    }
}
