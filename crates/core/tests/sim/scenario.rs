//! What a seed decides before anything happens: the work, the policy, and how bad the world is.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use ralphloop_core::choice::Difficulty;
use ralphloop_core::evidence::{AgentEnd, AgentReport, Claim, Usage};
use ralphloop_core::ids::{AgentId, TaskId};
use ralphloop_core::plan::{Check, Plan, Priority, Scheme, Story, Task, WorkId, WorkState};
use ralphloop_core::policy::{Budget, FailureKind, Gate, OnExhausted, Place, Policy, Retry};
use ralphloop_core::relay::{Relay, Role};
use ralphloop_core::units::Usd;

use super::rng::Rng;

/// How often each kind of trouble comes, per thousand.
pub(crate) struct Faults {
    /// The process dies, per step.
    pub(crate) crash: u64,
    /// A fact comes a second time, later.
    pub(crate) doubled: u64,
    /// An effect is asked for twice.
    pub(crate) asked_twice: u64,
    /// Somebody stops, pauses or guides, per step.
    pub(crate) control: u64,
    /// The clock jumps, per step.
    pub(crate) clock: u64,
    /// A person edits the spec, per look at it.
    pub(crate) edit: u64,
    /// A gate's result has nothing to do with the tree.
    pub(crate) flap: u64,
    /// A check fails because the disk is full.
    pub(crate) full_disk: u64,
    /// The agent claims what it has not done.
    pub(crate) lie: u64,
    /// The agent ends in another way than by finishing.
    pub(crate) bad_end: u64,
    /// The provider refuses.
    pub(crate) provider: u64,
    /// Git refuses, or the repository changes under the run.
    pub(crate) git: u64,
    /// A worktree cannot be made or taken away.
    pub(crate) lane: u64,
    /// Somebody else's run in the same repository starts, ends or dies, per step.
    pub(crate) neighbour: u64,
    /// Somebody moves the branch or the user's checkout, per look at them.
    pub(crate) trespass: u64,
    /// A merge has conflicts.
    pub(crate) conflict: u64,
    /// What was green by itself is red with what has landed meanwhile, per gate and check.
    pub(crate) together: u64,
}

impl Faults {
    /// Agents do what they say, mostly, and nobody interferes much.
    fn kinder(self) -> Self {
        let Self { crash, control, lie, bad_end, provider, .. } = self;
        Self {
            crash: crash / 4,
            control: control / 4,
            lie: lie / 4,
            bad_end: bad_end / 10,
            provider: provider / 10,
            ..self
        }
    }
}

pub(crate) struct Scenario {
    pub(crate) plan: Plan,
    pub(crate) policy: Policy,
    pub(crate) faults: Faults,
}

impl Scenario {
    pub(crate) fn new(rng: &mut Rng) -> Self {
        let place = *rng.pick(&[Place::Checkout, Place::Worktrees]);
        let (most, depends) = if place == Place::Checkout { (4, 350) } else { (7, *rng.pick(&[0, 100, 300])) };
        let count = 1 + rng.below(most);
        let mut stories: Vec<Story> = Vec::new();
        for n in 0..count {
            let mut story = story(&format!("S{n}"));
            for earlier in &stories {
                if rng.chance(depends) {
                    story.deps.push(earlier.id.clone());
                }
            }
            decorate(&mut story, rng);
            stories.push(story);
        }
        if rng.chance(300) {
            stories.reverse();
        }
        let gates = (0..*rng.pick(&[0, 1, 1, 2, 2]))
            .map(|n| Gate { name: format!("gate {n}"), command: format!("gate-{n}") })
            .collect();
        let agents: Vec<AgentId> = (0..*rng.pick(&[0, 1, 2, 3, 3])).map(|n| AgentId(format!("agent {n}"))).collect();
        let reviewer = rng.chance(300).then(|| AgentId(format!("agent {}", rng.below(5))));
        let max_reviews = u32::try_from(rng.below(3)).unwrap_or(0);
        let orders = orders(rng, &agents);
        let relay = rng.chance(250).then(|| relay(rng));
        let policy = Policy {
            place,
            jobs: jobs(rng),
            agents,
            orders,
            reviewer,
            max_reviews,
            relay,
            ..policy(rng, gates, &stories)
        };
        let faults = Faults {
            crash: *rng.pick(&[0, 5, 20, 60]),
            doubled: *rng.pick(&[0, 50, 300]),
            asked_twice: *rng.pick(&[0, 50, 200]),
            control: *rng.pick(&[0, 2, 10, 40]),
            clock: *rng.pick(&[0, 0, 10, 50]),
            edit: *rng.pick(&[0, 0, 30, 150]),
            flap: *rng.pick(&[0, 0, 50, 200]),
            full_disk: *rng.pick(&[0, 0, 0, 100]),
            lie: *rng.pick(&[0, 200, 600]),
            bad_end: *rng.pick(&[0, 50, 200, 900]),
            provider: *rng.pick(&[0, 30, 150]),
            git: *rng.pick(&[0, 0, 10, 40]),
            lane: *rng.pick(&[0, 0, 0, 10, 30]),
            neighbour: *rng.pick(&[0, 0, 5, 20]),
            trespass: *rng.pick(&[0, 0, 5, 20]),
            conflict: *rng.pick(&[0, 100, 500]),
            together: *rng.pick(&[0, 50, 300]),
        };
        // Lanes meet on the branch only where stories get that far.
        let faults = if place == Place::Worktrees && rng.chance(500) { faults.kinder() } else { faults };
        let policy = Policy { retries: retries(rng), ..policy };
        Self { plan: plan(stories), policy, faults }
    }
}

/// Some kinds of failures have attempts and waits of their own.
fn retries(rng: &mut Rng) -> BTreeMap<FailureKind, Retry> {
    let mut all = BTreeMap::new();
    for kind in FailureKind::ALL.iter().filter(|_| rng.chance(150)).copied().collect::<Vec<_>>() {
        let attempts = rng.chance(500).then(|| u32::try_from(rng.below(3)).unwrap_or(0));
        let backoff = (0..rng.below(3)).map(|_| Duration::from_secs(rng.below(1000))).collect();
        all.insert(kind, Retry { attempts, backoff });
    }
    all
}

/// Another order of the agents for some stories.
fn orders(rng: &mut Rng, agents: &[AgentId]) -> BTreeMap<Difficulty, Vec<AgentId>> {
    let some = |rng: &mut Rng| rng.chance(200) && agents.len() > 1;
    let mut turned = |difficulty| {
        let mut order = agents.to_vec();
        order.rotate_left(1 % agents.len().max(1));
        some(rng).then_some((difficulty, order))
    };
    Difficulty::ALL.into_iter().filter_map(&mut turned).collect()
}

/// Some roles, some with agents of their own, which may be those of the chain or others.
fn relay(rng: &mut Rng) -> Relay {
    let role = |n: u64, rng: &mut Rng| Role {
        name: format!("role {n}"),
        agent: rng.chance(400).then(|| AgentId(format!("agent {}", rng.below(5)))),
        instructions: None,
    };
    let count = 1 + rng.below(4);
    let roles = (0..count).map(|n| role(n, rng)).collect();
    Relay { roles, rounds: 1 + u32::try_from(rng.below(3)).unwrap_or(0) }
}

/// How many stories may be under way at once.
pub(crate) fn jobs(rng: &mut Rng) -> NonZeroU32 {
    NonZeroU32::MIN.saturating_add(u32::try_from(rng.below(8)).unwrap_or(0))
}

fn decorate(story: &mut Story, rng: &mut Rng) {
    if rng.chance(300) {
        story.description = format!("change `src/file{}.rs`", rng.below(3));
    }
    if rng.chance(300) {
        story.priority = Some(Priority(f64::from(u32::try_from(rng.below(4)).unwrap_or(0)) / 2.0));
    }
    if rng.chance(500) {
        story.tasks.push(task(&format!("{}#1", story.id)));
    }
    for n in 0..*rng.pick(&[0, 0, 1, 2]) {
        let path = format!("{}-{n}.txt", story.id);
        story.checks.push(Check::FileExists { name: None, path, glob: false });
    }
    if let (Some(task), Some(check)) = (story.tasks.first_mut(), story.checks.first())
        && rng.chance(900)
    {
        task.verified_by = Some(check.clone());
    }
    if rng.chance(120) {
        story.sign_off.push("it shines".to_owned());
    }
    story.needs_no_change = rng.chance(50);
    story.optional = rng.chance(30);
    if rng.chance(60) {
        story.state = WorkState::Done;
    }
}

fn policy(rng: &mut Rng, gates: Vec<Gate>, stories: &[Story]) -> Policy {
    let some = |rng: &mut Rng| rng.chance(150);
    let small = |rng: &mut Rng, bound| u32::try_from(rng.below(bound)).unwrap_or(0);
    Policy {
        max_retries: small(rng, 4),
        max_repairs: small(rng, 3),
        on_exhausted: *rng.pick(&[OnExhausted::Stop, OnExhausted::Skip, OnExhausted::Skip, OnExhausted::Pause]),
        require_verify: rng.chance(100),
        create_tasks: rng.chance(800),
        gates,
        budget: Budget {
            iterations: some(rng).then(|| small(rng, 8)),
            duration: some(rng).then(|| Duration::from_secs(600 + rng.below(20_000))),
            cost: some(rng).then(|| Usd(rng.below(5_000_000))),
            tokens: some(rng).then(|| rng.below(20_000)),
            margin: 10,
            stories: None,
        },
        limit_wait: Duration::from_mins(*rng.pick(&[1, 30, 360])),
        provider_retries: small(rng, 5),
        only: if rng.chance(100) { vec![rng.pick(stories).id.clone()] } else { Vec::new() },
        ..Policy::default()
    }
}

pub(crate) fn story(id: &str) -> Story {
    Story::new(id, format!("title of {id}"))
}

pub(crate) fn task(id: &str) -> Task {
    Task::new(TaskId::from(id), id)
}

pub(crate) fn plan(stories: Vec<Story>) -> Plan {
    Plan::new(WorkId { scheme: Scheme::Prd, id: "prd.json".to_owned() }, stories)
}

/// The report of an agent that finished by itself and claims that.
pub(crate) fn finished(claim: Claim) -> AgentReport {
    AgentReport {
        end: AgentEnd::Finished,
        claim,
        last_words: "last words".to_owned(),
        handover: String::new(),
        usage: Usage::default(),
        took: Duration::from_secs(10),
        learnings: Vec::new(),
        model: None,
    }
}
