//! From a request to a running run: everything that can be wrong is looked at before anything is changed or paid for.

mod error;
mod ground;
mod guard;
mod leftovers;
mod reading;
mod ready;

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use jiff::tz::TimeZone;
use ralphloop_agent::client::{Agent, Format};
use ralphloop_agent::redact::Redactor;
use ralphloop_core::effect::Effect;
use ralphloop_core::event::{CutOff, Event, Fact, PlanChange};
use ralphloop_core::graph;
use ralphloop_core::ids::{AgentId, CommitId, RunId, StoryId};
use ralphloop_core::learning::Learning;
use ralphloop_core::plan::Plan;
use ralphloop_core::run::Run;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::aftermath;
pub use crate::aftermath::AftermathError;
use crate::control::Control;
use crate::driver::Driver;
use crate::earlier::{Taken, earlier_run};
pub use crate::earlier::{TakingUp, unfinished_run};
use crate::files::FileError;
use crate::gates::cache::Cache;
use crate::git::{Git, Repository, Seal, Severity, SnapshotLimits};
use crate::inside::Inside;
use crate::journal::{Journal, JournalError};
use crate::lane::announced::Ours;
use crate::lane::message::trailer_id;
use crate::lane::tree::look_at_plan;
use crate::lane::{Announced, Foreseen, Lanes, Shared, Target, site};
use crate::lock::{Holder, LockError, LockKey, RunLock};
use crate::notice::{self, Notices};
use crate::notify::Notifier;
use crate::outcomes::Outcomes;
use crate::process::{self, Spawner};
use crate::runs::{ProcessMark, RunFolder, StateFolder};
use crate::sandbox::Choice;
use crate::scribe::Scribe;
use crate::settings::Settings;
use crate::signals::Signals;
use crate::work::{WorkRef, landed};
use crate::{clock, cut_off, git, learnings, own_commit, stale_locks};
pub use error::StartError;
use ground::{Ground, left_by_an_attempt};
use guard::{asked_sandbox, refuse_protected};
pub use leftovers::{has_leftovers, put_back_leftovers};
pub use reading::WorkReading;
pub use ready::Ready;
use ready::{After, Aside};

/// What is asked for.
pub struct Request {
    /// The work.
    pub work: WorkRef,
    /// The work as it was read when the commands that it brings were judged; none if it could not be read then.
    pub judged: Option<WorkReading>,
    /// How.
    pub settings: Settings,
    /// Go on with a run, or begin one.
    pub taking_up: TakingUp,
    /// How the caller was called, in its own words: kept beside the journal before the run begins, for a later resume.
    pub launch: Vec<u8>,
    /// The session that drives the run and is its agent, if one does.
    pub inside: Option<Inside>,
    /// Writes the run down for others, if somebody does.
    pub scribe: Option<Box<dyn Scribe>>,
    /// What was learned elsewhere, and is not known here yet.
    pub learned: Vec<Learning>,
}

/// What came of a request.
#[derive(Debug)]
pub enum Started {
    /// Every story is done already: nothing was started.
    NothingToDo {
        /// In words.
        reason: String,
    },
    /// A run, ready to be driven.
    Ready(Box<Ready>),
}

/// What a run works in.
#[derive(Debug, Clone)]
pub struct Place {
    /// The repository.
    pub repository: Repository,
    /// Starts programs.
    pub spawner: Spawner,
}

/// Opens the repository that `project` is in.
pub async fn open(project: &Path, spawner: Spawner, command_timeout: Duration) -> Result<Place, git::OpenError> {
    let git = Git::new(spawner.clone(), command_timeout);
    let repository = Repository::open(project, git, SnapshotLimits::default()).await?;
    Ok(Place { repository, spawner })
}

/// Gets a run ready, or says why not.
#[expect(clippy::too_many_lines, reason = "one step after the other, each of which may refuse")]
pub async fn start(request: Request, place: Place) -> Result<Started, StartError> {
    let Request { work, judged, mut settings, taking_up, launch, inside, scribe, learned } = request;
    let Place { mut repository, spawner } = place;
    if settings.sandbox != Choice::Off {
        repository = repository.with_programs_from_elsewhere();
    }
    let state = StateFolder::of(&repository.places().common_dir);
    // First of all: from here on no other process changes what is looked at.
    let mut locks = vec![lock_tree(&repository)?];
    let mut warnings = clear_locks(&state, &repository).await;
    aftermath::undo_half_advances(&state.runs()?, &repository).await?;
    own_commit::put_right(&repository, &work.id).await.map_err(|e| StartError::OwnCommit(Box::new(e)))?;
    let earlier = earlier_run(&state, &work, &taking_up)?;
    warnings.extend(earlier.warnings);
    warnings.extend(put_right(&state, &repository, &work, earlier.run.as_ref(), settings.worktrees.keep).await?);
    warnings.extend(ground::keep_place(&mut settings, earlier.run.as_ref()));
    let read = reading::now(&work, judged, earlier.run.as_ref().map(|taken| taken.run.plan()));
    let read = read.and_then(|read| read.checked(&settings.only));
    let (plan, read_warnings) = match (&earlier.run, read) {
        (_, Ok(read)) => read,
        // An interrupted attempt may have broken the spec; it is put back before anything else.
        (Some(taken), Err(StartError::Spec(_))) if taken.run.attempts().len() > 0 => {
            (taken.run.plan().clone(), Vec::new())
        }
        (_, Err(error)) => return Err(error),
    };
    let mut plan = plan;
    if earlier.run.is_none() {
        let landed = landed::known_from_commits(&repository, &work, &plan, &settings.only).await?;
        landed::take_for_done(&mut plan, &landed);
        let said = landed::said(&landed);
        if let Some(reason) = nothing_to_do(&plan, &settings.only) {
            let reason = said.map_or(reason.clone(), |said| format!("{reason}; {said}"));
            return Ok(Started::NothingToDo { reason });
        }
        warnings.extend(said);
    }
    if inside.is_none() {
        warnings.extend(keep_those_here(&mut settings)?);
        warnings.extend(settings.bounds_that_cannot_be_kept());
    }
    for agent in settings.reviewer.iter().chain(settings.of_the_team().filter(|_| inside.is_none())) {
        check_agent(agent)?;
    }
    let branch = settings.branch.clone().or_else(|| plan.branch.clone()).filter(|b| !b.trim().is_empty());
    locks.extend(lock_branch(&repository, branch.as_deref(), earlier.run.as_ref())?);
    end_leftovers(&state).await;
    refuse_protected(&repository, &settings, branch.as_deref(), earlier.run.as_ref())?;
    let sandbox = asked_sandbox(&settings, inside.is_some(), &state, &spawner).await?;
    if sandbox.is_some() {
        warnings.extend(guard::drivers_outside(&repository).await?);
    }
    let ground = ground::take(&repository, &mut settings, earlier.run.as_ref(), branch).await?;
    let Ground { branch, switched, doubts } = ground;
    let signals = Signals::catch().map_err(|source| StartError::System { doing: "take over signals", source })?;
    warnings.extend(doubts.iter().map(ToString::to_string));
    warnings.extend(read_warnings.iter().map(ToString::to_string));

    let mut policy = Box::new(settings.policy(&plan, &work.project));
    if !learned.is_empty() {
        learnings::keep(&state, &learned)?;
    }
    policy.learnings = learnings::known(&state).iter().cloned().collect();
    if let Some(inside) = &inside {
        policy.agents = vec![AgentId(inside.name.clone())];
    }
    if settings.choose && inside.is_none() {
        let outcomes = Outcomes::of(&state);
        for (difficulty, order) in outcomes.orders(&policy.agents, clock::now()) {
            if order != policy.agents {
                let names: Vec<&str> = order.iter().map(AgentId::as_str).collect();
                warnings.push(format!(
                    "by what earlier attempts came to, agents are tried for {difficulty} stories in the order {}; `ralphloop \
                     agents stats` says why",
                    names.join(", ")
                ));
                policy.orders.insert(difficulty, order);
            }
        }
    }
    let agent = inside.as_ref().map_or_else(|| settings.agents.to_string(), |inside| inside.name.clone());
    let (inbox, inbox_out) = mpsc::unbounded_channel();
    let (mut notices, watch) = notice::channel();
    let events = notices.another();
    let (hurry, forced) = (CancellationToken::new(), CancellationToken::new());
    let begun = match earlier.run {
        None => {
            let base = repository.standing(&branch).map_err(git::BranchError::from)?.tip.ok_or(StartError::NoCommit)?;
            let folder = state.create_run()?;
            // Before the first event: a run that there is can be gone on with as it was called.
            write_beginnings(&folder, &work, launch).await?;
            let run = folder.id.clone();
            let unsigned = landed::unsigned(&repository, &work, &plan).await?;
            let fact = Fact::RunStarted { run, plan: Box::new(plan), policy, branch, base, agent, unsigned };
            begin(folder, fact)?
        }
        Some(taken) => {
            write_beginnings(&taken.folder, &work, launch).await?;
            let Meanwhile { landed, spec, cut_off } = taken.meanwhile(&repository, &work, &settings, &branch).await?;
            let retry = taken.retry.clone().into_iter().collect();
            go_on(taken, Fact::Restarted { policy, landed, spec, agent, cut_off, retry })?
        }
    };
    let holder = Holder::this_process(begun.folder.id.clone());
    for lock in &mut locks {
        lock.name(&holder);
    }
    let control = match Control::open(&begun.folder.id, begun.folder.path()) {
        Ok(control) => Some(control),
        Err(error) => {
            warnings.push(format!("the run cannot be controlled from other terminals: {error}"));
            None
        }
    };
    let place = work.project.strip_prefix(&repository.places().top).unwrap_or(Path::new("")).display().to_string();
    let cache = Mutex::new(Cache::open(state.path().join("cache").join("gates.json"), place));
    let after = After { state: state.clone(), repository: repository.clone(), folder: begun.folder.clone(), switched };
    let notifier = notifier(&settings, &spawner, &work, &notices);
    // What lies in lanes keeps a run where it is.
    let place = begun.run.policy().place;
    let shared = Shared {
        target: Target::of(&repository, begun.run.branch()).map_err(git::BranchError::from)?,
        home: repository,
        spawner,
        folder: begun.folder.clone(),
        work,
        settings,
        inside,
        base: begun.run.base().clone(),
        redactor: notifier.redactor.clone(),
        sandbox,
        cache,
        running_gates: Mutex::new(HashMap::new()),
        foreseen: Foreseen::default(),
        announced: Announced::default(),
        git_turn: tokio::sync::Mutex::default(),
        filling: tokio::sync::Semaphore::new(std::thread::available_parallelism().map_or(1, usize::from)),
        zone: TimeZone::system(),
        inbox: inbox.clone(),
        notices: notices.clone(),
        hurry: hurry.clone(),
    };
    let said = shared.sandbox.as_ref().map(ToString::to_string);
    let lanes = Lanes::new(shared, place);
    let kept = begun.folder.kept_state();
    let kept = (kept, Outcomes::of(&state));
    let scribe = begin_to_write(scribe, &begun.folder, &mut warnings);
    let driver = Driver::new(begun.run.clone(), begun.journal, kept, lanes, inbox_out, notices, forced.clone())
        .written_down_by(scribe);
    Ok(Started::Ready(Box::new(Ready {
        run: begun.run,
        first: begun.first,
        watch,
        warnings,
        sandbox: said,
        driver,
        effects: begun.effects,
        aside: Aside { signals, control, folder: begun.folder, inbox, hurry, forced },
        after,
        notifier,
        events,
        locks,
    })))
}

/// Lets the scribe begin; one that cannot is not asked again.
fn begin_to_write(
    scribe: Option<Box<dyn Scribe>>,
    folder: &RunFolder,
    warnings: &mut Vec<String>,
) -> Option<Box<dyn Scribe>> {
    let mut scribe = scribe?;
    match scribe.begin(folder) {
        Ok(said) => {
            warnings.extend(said);
            Some(scribe)
        }
        Err(why) => {
            warnings.push(why);
            None
        }
    }
}

/// Notes where the run works, how it was called and which process works on it. The disk is waited for once.
async fn write_beginnings(folder: &RunFolder, work: &WorkRef, launch: Vec<u8>) -> Result<(), FileError> {
    let (first, second, third, project) = (folder.clone(), folder.clone(), folder.clone(), work.project.clone());
    let (project, launch, process) = tokio::join!(
        blocking(move || first.write_project(&project)),
        blocking(move || second.write_launch(&launch)),
        blocking(move || third.write_process(&ProcessMark::of_this_process())),
    );
    project.and(launch).and(process)
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(value) => value,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// A run whose first event of this process is in its journal.
struct Begun {
    folder: RunFolder,
    journal: Journal,
    run: Run,
    first: Event,
    effects: Vec<Effect>,
}

fn begin(folder: RunFolder, fact: Fact) -> Result<Begun, StartError> {
    let first = Event { at: clock::now(), fact };
    let mut journal = Journal::create(&folder.journal())?;
    journal.append(&first)?;
    match Run::start(&first) {
        Ok((run, effects)) => Ok(Begun { folder, journal, run, first, effects }),
        Err(_) => Err(JournalError::Empty { path: folder.journal() }.into()),
    }
}

fn go_on(taken: Taken, fact: Fact) -> Result<Begun, StartError> {
    let Taken { folder, place, mut run, .. } = taken;
    let first = Event { at: clock::now(), fact };
    let mut journal = Journal::reopen(&folder.journal(), place)?;
    journal.append(&first)?;
    let effects = run.step(&first);
    Ok(Begun { folder, journal, run, first, effects })
}

/// What became of things while nobody was at work on a run.
struct Meanwhile {
    landed: Vec<(StoryId, CommitId)>,
    spec: PlanChange,
    cut_off: Vec<CutOff>,
}

impl Taken {
    /// Attempts were under way when the run was left.
    fn is_interrupted(&self) -> bool {
        self.run.attempts().len() > 0 || self.run.is_unclean()
    }

    async fn meanwhile(
        &self,
        repository: &Repository,
        work: &WorkRef,
        settings: &Settings,
        branch: &str,
    ) -> Result<Meanwhile, StartError> {
        let stories = &self.run.plan().stories;
        let landed: Vec<_> = repository
            .landed_on(branch, Some(self.run.base()))
            .await?
            .into_iter()
            .filter(|one| one.run == *self.run.id())
            .filter_map(|one| {
                let story = stories.iter().find(|s| trailer_id(&s.id) == one.story.as_str())?;
                Some((story.id.clone(), one))
            })
            .collect();
        // What a person had to sign was not ticked by a landing.
        let ticked = landed.iter().filter(|(_, one)| !one.unsigned);
        let known: BTreeSet<StoryId> = ticked.map(|(story, _)| story.clone()).collect();
        let landed = landed.into_iter().map(|(story, one)| (story, one.commit)).collect();
        let spec = look_at_plan(work, self.run.plan(), &Ours { landed: known, ..Ours::default() });
        let (folder, run, how) = (self.folder.clone(), self.run.clone(), settings.clone());
        let cut_off = blocking(move || cut_off::of(&folder, &run, &how)).await;
        Ok(Meanwhile { landed, spec, cut_off })
    }
}

/// Why there is nothing to start, if every selected story is done.
fn nothing_to_do(plan: &Plan, only: &[StoryId]) -> Option<String> {
    use ralphloop_core::plan::WorkState;
    let mut selected = plan.stories.iter().filter(|s| {
        if only.is_empty() { s.state == WorkState::Done || graph::wanted(s) } else { only.contains(&s.id) }
    });
    selected.all(|s| s.state == WorkState::Done).then(|| format!("every selected story of {} is done", plan.work))
}

/// Knows the secrets of the environment and of the settings.
fn redactor(settings: &Settings) -> Redactor {
    let keys = settings.notify.secret.iter().chain(settings.seal.as_ref().map(Seal::key));
    let secret = keys.map(|secret| ("NOTIFY_SECRET".into(), secret.as_str().into()));
    Redactor::new::<std::ffi::OsString, std::ffi::OsString>(std::env::vars_os().chain(secret))
}

fn notifier(settings: &Settings, spawner: &Spawner, work: &WorkRef, notices: &Notices) -> Notifier {
    Notifier {
        notify: settings.notify.clone(),
        spawner: spawner.clone(),
        project: work.project.clone(),
        redactor: redactor(settings),
        notes: notices.notes(),
    }
}

/// Leaves agents out of the chain whose programs are not there, and says so; if none is there, that is an error.
fn keep_those_here(settings: &mut Settings) -> Result<Vec<String>, StartError> {
    let missing: Vec<(AgentId, StartError)> =
        settings.agents.iter().filter_map(|agent| check_agent(agent).err().map(|why| (agent.id(), why))).collect();
    let Some(here) = settings.agents.filtered(|agent| missing.iter().all(|(id, _)| *id != agent.id())) else {
        check_agent(settings.agents.first())?;
        return Ok(Vec::new());
    };
    settings.agents = here;
    Ok(missing.into_iter().map(|(id, why)| format!("{why}; the run goes on without {id}")).collect())
}

/// Whether the program of a command line is there.
pub fn is_there(command: &str) -> bool {
    Agent::command(command, Format::Text).is_ok_and(|agent| check_agent(&agent).is_ok())
}

/// Whether the agent's program is there; that it also runs is only known when it runs.
pub(crate) fn check_agent(agent: &Agent) -> Result<(), StartError> {
    let program = agent.invocation().program;
    let missing = |why: String| StartError::AgentMissing { program: program.clone(), why };
    if program.contains('/') {
        let path = PathBuf::from(&program);
        let path = std::path::absolute(&path).unwrap_or(path);
        return match std::fs::metadata(&path) {
            Err(e) => Err(missing(format!("{}: {e}", path.display()))),
            Ok(meta) if !meta.is_file() => Err(missing(format!("{} is no file", path.display()))),
            Ok(_) if rustix::fs::access(&path, rustix::fs::Access::EXEC_OK).is_err() => {
                Err(missing(format!("{} is not executable", path.display())))
            }
            Ok(_) => Ok(()),
        };
    }
    if crate::gates::find::on_path(&program) {
        Ok(())
    } else {
        Err(missing("it is not on the PATH; install it, or name another with --agent or --agent-command".to_owned()))
    }
}

/// One run per working tree. What the run is called is known later.
fn lock_tree(repository: &Repository) -> Result<RunLock, LockError> {
    let places = repository.places();
    let holder = Holder::this_process(RunId::from("about to begin"));
    RunLock::acquire(&places.common_dir, LockKey::Worktree(&places.top), &holder)
}

/// One run per branch.
fn lock_branch(
    repository: &Repository,
    branch: Option<&str>,
    earlier: Option<&Taken>,
) -> Result<Option<RunLock>, LockError> {
    let current = repository.current_branch().ok().flatten();
    let Some(branch) = earlier.map(|t| t.run.branch().to_owned()).or(branch.map(str::to_owned)).or(current) else {
        return Ok(None);
    };
    let name = branch.strip_prefix("refs/heads/").unwrap_or(&branch);
    let holder = Holder::this_process(earlier.map_or_else(|| RunId::from("about to begin"), |t| t.run.id().clone()));
    RunLock::acquire(&repository.places().common_dir, LockKey::Branch(name), &holder).map(Some)
}

/// Puts right what runs other than `taken` left in this working tree; says what was done.
async fn put_right(
    state: &StateFolder,
    repository: &Repository,
    work: &WorkRef,
    taken: Option<&Taken>,
    keep: u32,
) -> Result<Vec<String>, StartError> {
    let others = state.runs()?.into_iter().filter(|folder| taken.is_none_or(|t| t.folder != *folder)).collect();
    let others: Vec<RunFolder> = others;
    let with_worktrees: Vec<RunFolder> = others
        .iter()
        .filter(|folder| folder.live_process().is_none() && !site::left_by(folder).is_empty())
        .cloned()
        .collect();
    let leftovers = aftermath::leftovers(others, repository).await.map_err(AftermathError::from)?;
    if !repository.partial_worktrees().is_empty() {
        end_leftovers(state).await;
    }
    let mut said = site::tidy_after_the_dead(state, repository, keep).await;
    if leftovers.is_empty() && with_worktrees.is_empty() {
        return Ok(said);
    }
    end_leftovers(state).await;
    said.extend(aftermath::clear_worktrees(with_worktrees, repository, work).await);
    if leftovers.is_empty() {
        return Ok(said);
    }
    let findings = repository.preflight().await?;
    let findings: Vec<_> =
        findings.into_iter().filter(|f| f.severity == Severity::Refusal && !left_by_an_attempt(f.kind)).collect();
    if !findings.is_empty() {
        return Err(StartError::Preflight(findings));
    }
    for leftover in leftovers {
        said.extend(leftover.put_right(repository, work).await?);
    }
    Ok(said)
}

/// Takes away the locks that the git of a dead run has left; says which.
async fn clear_locks(state: &StateFolder, repository: &Repository) -> Vec<String> {
    let git_locks = repository.git_locks();
    if git_locks.is_empty() {
        return Vec::new();
    }
    end_leftovers(state).await;
    stale_locks::clear(git_locks, state, repository)
}

/// Ends what dead runs left running: their supervisors end it too, but not if they were killed with it.
async fn end_leftovers(state: &StateFolder) {
    for folder in state.runs().unwrap_or_default() {
        let records = folder.children();
        // A run may be at work in another working tree of the repository.
        if records.is_empty() || folder.live_process().is_some() {
            continue;
        }
        // What could not be ended belongs to somebody else or hangs in the kernel; the lock says that no run is at work.
        drop(tokio::task::spawn_blocking(move || process::end_leftovers(&records)).await);
        folder.forget_children();
    }
}
