//! The state of a run, for `status` and whatever else asks how it stands.

use ralphloop_core::ids::AgentId;
use ralphloop_core::outcome::Outcome;
use ralphloop_core::plan::Story;
use ralphloop_core::run::{Activity, Away, Run, StoryRecord, StoryState};
use serde::Serialize;

use super::{branch_name, rfc3339, span};
use crate::output::{BAD, DIM, GOOD, WARN, count, one_line, styled, table};

/// How a run stands. The words are a contract with scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RunState {
    Running,
    Stopping,
    Paused,
    Complete,
    Failed,
    Limit,
    Stopped,
    /// Its process is gone, and it has not ended.
    Interrupted,
}

impl RunState {
    pub(crate) fn of(run: &Run, alive: bool) -> Self {
        match run.activity() {
            Activity::Ended(outcome) => match outcome {
                Outcome::Complete | Outcome::NothingToDo { .. } => Self::Complete,
                Outcome::Failed => Self::Failed,
                Outcome::Paused { .. } | Outcome::Environment { .. } => Self::Paused,
                Outcome::Stopped { .. } => Self::Stopped,
                Outcome::BoundReached { .. } => Self::Limit,
            },
            _ if !alive => Self::Interrupted,
            _ if run.stopping() => Self::Stopping,
            _ => Self::Running,
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Paused => "paused",
            Self::Complete => "complete",
            Self::Failed => "failed",
            Self::Limit => "limit",
            Self::Stopped => "stopped",
            Self::Interrupted => "interrupted",
        }
    }
}

/// The object of `status --json`. Fields are only ever added. `docs/status.md` is made from it.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct Status {
    /// The run's id.
    pub(crate) run: String,
    /// The work: `scheme:id`.
    pub(crate) work: String,
    /// How the run stands.
    pub(crate) state: RunState,
    /// Why, in one line: what it does just now, what it waits for, how it ended.
    pub(crate) reason: Option<String>,
    /// When it began.
    pub(crate) started_at: String,
    /// When it ended.
    pub(crate) ended_at: Option<String>,
    /// The branch on which stories land.
    pub(crate) branch: String,
    /// The agents and their models, the preferred first, parted by commas.
    pub(crate) agent: String,
    /// How each of them stands.
    pub(crate) agents: Vec<AgentStatus>,
    /// The process that works on it, while there is one.
    pub(crate) pid: Option<u32>,
    /// When it goes on, while it waits for a provider's limit; when it can be resumed, if the wait was too long.
    pub(crate) resume_at: Option<String>,
    /// Stories that have passed, those that were done before included.
    pub(crate) passed: usize,
    /// All stories of the plan.
    pub(crate) total: usize,
    /// How many times an agent was started.
    pub(crate) iterations: u32,
    /// Calls of agents that were cut off with the process that watched them, and are in no sum below.
    pub(crate) uncounted_calls: u32,
    /// Calls of agents of which nobody knows what they cost.
    pub(crate) unpriced_calls: u32,
    /// What the agents cost in all: as far as their clients say so, else by list prices.
    pub(crate) cost_usd: Option<f64>,
    /// Of that, what was computed from list prices.
    pub(crate) estimated_cost_usd: Option<f64>,
    /// Of that, what a subscription covers: the API's equivalent, which nobody is billed for.
    pub(crate) covered_cost_usd: Option<f64>,
    /// The cost in words.
    #[serde(skip)]
    pub(crate) cost_in_words: Option<String>,
    /// Tokens that they read, cached ones included.
    pub(crate) input_tokens: Option<u64>,
    /// Tokens that they wrote.
    pub(crate) output_tokens: Option<u64>,
    /// The stories, in the order of the file.
    pub(crate) stories: Vec<StoryStatus>,
}

/// One story of [`Status`].
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct StoryStatus {
    /// Its id.
    pub(crate) id: String,
    /// Its title.
    pub(crate) title: String,
    /// How it stands.
    pub(crate) state: StoryWord,
    /// A gate or check of this run has proven it.
    pub(crate) verified: bool,
    /// Attempts so far.
    pub(crate) attempts: u32,
    /// The agent that was called for it last, and its model if one was named.
    pub(crate) agent: Option<String>,
    /// The model that it worked with, as its client names it.
    pub(crate) model: Option<String>,
    /// Why it has not passed: the last attempt's words.
    pub(crate) reason: Option<String>,
    /// Its commit, if it landed in this run.
    pub(crate) commit: Option<String>,
    /// The refs that keep the work of its reverted attempts, oldest first.
    pub(crate) kept: Vec<String>,
    /// How the work that landed was reviewed, where there is a reviewer.
    pub(crate) review: Option<String>,
    /// What is worth saying about its landing.
    pub(crate) notes: Vec<String>,
    /// What its attempts cost: as far as their clients say so, else by list prices.
    pub(crate) cost_usd: Option<f64>,
    /// How long agents worked on it.
    pub(crate) duration_ms: u64,
}

/// How an agent of the run stands.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct AgentStatus {
    /// The agent, and its model if one was named.
    pub(crate) agent: String,
    /// Whether it is called.
    pub(crate) state: AgentWord,
    /// When it is called again, of one that waits.
    pub(crate) until: Option<String>,
    /// Why it is not called, and what mends it.
    pub(crate) reason: Option<String>,
}

/// Whether an agent is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AgentWord {
    Ready,
    /// Not before a limit has reset, or a provider has had time to recover.
    Waiting,
    /// Not before somebody has acted.
    Unusable,
}

impl AgentStatus {
    fn of(agent: &AgentId, run: &Run) -> Self {
        let away = run.away(agent);
        let until = away.and_then(Away::until);
        Self {
            agent: agent.to_string(),
            state: match (away, until) {
                (None, _) => AgentWord::Ready,
                (Some(_), Some(_)) => AgentWord::Waiting,
                (Some(_), None) => AgentWord::Unusable,
            },
            until: until.map(|until| rfc3339(until.at)),
            reason: away.map(|away| away.reason().to_owned()),
        }
    }

    /// For people, if there is something to say.
    fn line(&self) -> Option<String> {
        let reason = one_line(self.reason.as_deref()?);
        let agent = one_line(&self.agent);
        Some(match &self.until {
            Some(until) => format!("  {agent} is not called before {until}: {reason}\n"),
            None => format!("  {agent} is not called: {reason}\n"),
        })
    }
}

/// How a story stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StoryWord {
    Pending,
    Running,
    Passed,
    Failed,
    Blocked,
    Skipped,
    /// Its commit is on the branch, and a person has to sign it.
    #[serde(rename = "awaiting_sign_off")]
    AwaitingSignOff,
}

impl StoryWord {
    fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Blocked => "blocked",
            Self::Skipped => "skipped",
            Self::AwaitingSignOff => "awaiting sign-off",
        }
    }
}

impl Status {
    /// Of a run; `pid` is that of its live process.
    pub(crate) fn of(run: &Run, pid: Option<u32>) -> Self {
        let state = RunState::of(run, pid.is_some());
        let usage = run.usage();
        let stories: Vec<StoryStatus> = run.records().map(|(s, r)| story_status(s, r, pid.is_some())).collect();
        Self {
            run: run.id().to_string(),
            work: run.plan().work.to_string(),
            state,
            reason: reason(run, state),
            started_at: rfc3339(run.started_at()),
            ended_at: run.ended_at().map(rfc3339),
            branch: branch_name(run.branch()).to_owned(),
            agent: run.agent().to_owned(),
            agents: run.chain().iter().map(|agent| AgentStatus::of(agent, run)).collect(),
            pid,
            resume_at: resume_at(run),
            passed: stories.iter().filter(|s| s.state == StoryWord::Passed).count(),
            total: stories.len(),
            iterations: run.calls(),
            uncounted_calls: run.uncounted_calls(),
            unpriced_calls: run.unpriced_calls(),
            cost_usd: usage.money().map(ralphloop_core::units::Usd::dollars),
            estimated_cost_usd: usage.estimate.map(ralphloop_core::units::Usd::dollars),
            covered_cost_usd: usage.covered.map(ralphloop_core::units::Usd::dollars),
            cost_in_words: usage.money_in_words(),
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            stories,
        }
    }

    /// For people.
    pub(crate) fn text(&self) -> String {
        let style = match self.state {
            RunState::Complete => GOOD,
            RunState::Failed => BAD,
            RunState::Running => DIM,
            _ => WARN,
        };
        let mut text = format!("run {}  {}  {}\n", self.run, one_line(&self.work), styled(style, self.state.as_str()));
        if let Some(reason) = &self.reason {
            text.push_str(&format!("  {}\n", one_line(reason)));
        }
        if let Some(at) = &self.resume_at {
            text.push_str(&format!("  goes on at {at}\n"));
        }
        if !matches!(self.state, RunState::Complete | RunState::Failed) {
            text.extend(self.agents.iter().filter_map(AgentStatus::line));
        }
        let without = super::without_uncounted(self.uncounted_calls, self.unpriced_calls);
        let cost = self.cost_in_words.as_ref().map_or_else(|| "cost unknown".to_owned(), |c| format!("{c}{without}"));
        let pid = self.pid.map_or_else(String::new, |pid| format!(", pid {pid}"));
        text.push_str(&format!(
            "  branch {}, agent {}, {} of {} passed, {}, {cost}{pid}\n\n",
            one_line(&self.branch),
            one_line(&self.agent),
            self.passed,
            count(self.total, "story", "stories"),
            count(usize::try_from(self.iterations).unwrap_or(usize::MAX), "iteration", "iterations"),
        ));
        let rows: Vec<Vec<String>> = self.stories.iter().map(StoryStatus::row).collect();
        text + &table(&["STORY", "STATE", "ATTEMPTS", "TITLE", ""], &rows)
    }
}

impl StoryStatus {
    fn row(&self) -> Vec<String> {
        let state = match (self.state, self.verified, &self.commit) {
            (StoryWord::Passed, false, Some(_)) => "passed (unverified)",
            (state, ..) => state.as_str(),
        };
        let note = self.reason.clone().or_else(|| self.commit.as_deref().map(|c| super::short(c).to_owned()));
        vec![self.id.clone(), state.to_owned(), self.attempts.to_string(), self.title.clone(), note.unwrap_or_default()]
    }
}

fn story_status(story: &Story, record: &StoryRecord, alive: bool) -> StoryStatus {
    use ralphloop_core::effect::Ground;
    let (state, verified, commit) = match &record.state {
        StoryState::Landed { commit, ground } => {
            (StoryWord::Passed, *ground != Ground::Unverified, Some(commit.as_str().to_owned()))
        }
        StoryState::AwaitsSignOff { commit, ground } => {
            (StoryWord::AwaitingSignOff, *ground != Ground::Unverified, Some(commit.as_str().to_owned()))
        }
        StoryState::DoneBefore => (StoryWord::Passed, false, None),
        StoryState::Running if alive => (StoryWord::Running, false, None),
        StoryState::Running | StoryState::Pending => (StoryWord::Pending, false, None),
        StoryState::Failed => (StoryWord::Failed, false, None),
        StoryState::Blocked => (StoryWord::Blocked, false, None),
        StoryState::Skipped => (StoryWord::Skipped, false, None),
    };
    StoryStatus {
        id: story.id.to_string(),
        title: story.title.clone(),
        state,
        verified,
        attempts: record.attempts,
        agent: record.agent.as_ref().map(ToString::to_string),
        model: record.model.clone(),
        reason: record.reason.clone().filter(|_| state != StoryWord::Passed),
        commit,
        kept: record.kept.iter().map(|(_, reference)| reference.clone()).collect(),
        review: record.reviewed.as_ref().map(ToString::to_string),
        notes: record.notes.clone(),
        cost_usd: record.usage.money().map(ralphloop_core::units::Usd::dollars),
        duration_ms: u64::try_from(record.agent_time.as_millis()).unwrap_or(u64::MAX),
    }
}

fn resume_at(run: &Run) -> Option<String> {
    match run.activity() {
        Activity::Waiting(wait) => Some(rfc3339(wait.until)),
        Activity::Ended(Outcome::BoundReached { resume_at, .. }) => resume_at.map(rfc3339),
        _ => None,
    }
}

/// Why the run is in its state, in one line.
pub(crate) fn reason(run: &Run, state: RunState) -> Option<String> {
    match run.activity() {
        Activity::Ended(outcome) => Some(outcome_text(outcome)),
        _ if state == RunState::Interrupted => {
            Some("its process is gone; `ralphloop resume` goes on with it".to_owned())
        }
        Activity::Waiting(wait) => Some(wait.reason.clone()),
        _ => {
            let each: Vec<String> = run.attempts().map(|attempt| phase_text(attempt, run)).collect();
            (!each.is_empty()).then(|| each.join("; "))
        }
    }
}

/// An outcome in words.
pub(crate) fn outcome_text(outcome: &Outcome) -> String {
    outcome.to_string()
}

fn phase_text(attempt: &ralphloop_core::run::Attempt, run: &Run) -> String {
    format!("{}: {}", attempt.id, phase_words(attempt, run))
}

/// What an attempt does just now.
pub(crate) fn phase_words(attempt: &ralphloop_core::run::Attempt, run: &Run) -> String {
    use ralphloop_core::run::Phase;
    match &attempt.phase {
        phase if run.mends(&attempt.id).is_some() && !matches!(phase, Phase::Reverting { .. }) => {
            "adding a fix task to the spec".to_owned()
        }
        Phase::Beginning => "begins".to_owned(),
        Phase::Baseline { queue } => {
            let check = queue.front().map(|c| run.label(&attempt.id, *c)).unwrap_or_default();
            format!("checking the base with `{check}`")
        }
        Phase::Checkpointing => "taking the checkpoint".to_owned(),
        Phase::Held { .. } => "waits for the provider before the agent is called again".to_owned(),
        Phase::Agent { call } => {
            let who = match &attempt.agent {
                Some(agent) if run.chain().len() > 1 || attempt.leg().is_some() => agent.as_str(),
                _ => "the agent",
            };
            match (attempt.leg(), attempt.repair_number(*call)) {
                (Some(leg), _) => {
                    format!("{who} works as {}, round {} of {} at most", leg.role.name, leg.round, leg.rounds)
                }
                (None, 0) => format!("{who} works"),
                (None, repair) => format!("{who} works (repair {repair})"),
            }
        }
        Phase::Inspecting { .. } => "looking at the tree".to_owned(),
        Phase::Checking(_) => "checking".to_owned(),
        Phase::Reviewing(reviewing) => format!("reviewed by {}", reviewing.by),
        Phase::Queued(_) => "proven, waits for its turn to land".to_owned(),
        Phase::Merging(_) => "merging with what lands before it".to_owned(),
        Phase::Landing(_) => "committing".to_owned(),
        Phase::Reverting { .. } => "putting the tree back".to_owned(),
    }
}

/// How long the run has been at work, for people.
pub(crate) fn worked(run: &Run) -> String {
    span(run.active_time())
}
