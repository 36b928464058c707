//! `run` and `resume`: the loop, and what is printed of it.

use std::collections::BTreeSet;

use ralphloop_agent::client::Agent;
use ralphloop_agent::event::AgentEvent;
use ralphloop_core::event::Event;
use ralphloop_core::ids::StoryId;
use ralphloop_core::learning::Learning;
use ralphloop_core::outcome::Outcome;
use ralphloop_core::run::Run;
use ralphloop_engine::driver::DriveError;
use ralphloop_engine::finish;
use ralphloop_engine::learnings;
use ralphloop_engine::notice::{self, TalkNotice};
use ralphloop_engine::runs::{RunFolder, StateFolder};
use ralphloop_engine::scribe::Scribe;
use ralphloop_engine::start::{self, Place, Ready, Request, Started};
use ralphloop_engine::work::{self, WorkError, WorkRef};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Receiver, UnboundedReceiver};

use super::between::Between;
use super::launch::{Launch, Prepared};
use super::take_up::{self, Asker, Wish};
use super::{commit_key, dry_run, repository, spec, tracker};
use crate::arguments::{ResumeArguments, RunArguments, ViewArguments};
use crate::config::{Config, Layer};
use crate::error::CliError;
use crate::exit::Exit;
use crate::export::{self, live::Live};
use crate::host::Host;
use crate::mcp::Seat;
use crate::output;
use crate::screen::{self, pick::Called};
use crate::view::plans::Plans;
use crate::view::{lines, live, public, summary};

pub(super) fn run(arguments: RunArguments, host: &Host) -> Result<Exit, CliError> {
    let RunArguments { mut works, stories, loops, dry_run, resume, fresh, view, mut settings } = arguments;
    works.extend(loops.work());
    loops.lay_over(&mut settings)?;
    if works.len() > 1 && !(stories.is_empty() && loops.tasks.is_empty()) {
        return Err(CliError::usage("--story and --task name parts of one work, and several works are given"));
    }
    let wish = match (resume, fresh) {
        (_, true) => Wish::Fresh,
        (true, false) => Wish::Resume,
        (false, false) => Wish::Open,
    };
    if works.is_empty() && loops.tasks.is_empty() && !dry_run && screen::wanted(view)? && several(host) {
        return screen::pick::pick(Called { flags: settings, stories, wish }, host);
    }
    let works = if works.is_empty() { vec![None] } else { works.into_iter().map(Some).collect() };
    let asks = take_up::can_ask(view) && !resume;
    let prepare = |work| {
        let launch = Launch::new(work, stories.clone(), &settings, host).of_tasks(&loops.tasks);
        if dry_run {
            launch.prepare(settings.clone(), host)
        } else {
            launch.prepare_to_run(settings.clone(), asks, host)
        }
    };
    // What is wrong with the last is said before the first begins.
    let prepared = works.into_iter().map(prepare).collect::<Result<Vec<_>, _>>()?;
    let between = if prepared.len() > 1 && !dry_run {
        let watched = Between::works();
        Some(watched.map_err(|error| CliError::environment("signals cannot be taken over").cause(&error))?)
    } else {
        None
    };
    let mut worst = Exit::NOTHING;
    for prepared in prepared {
        // What is watched between two works is looked at before the next one.
        if let Some(exit) = between.as_ref().and_then(Between::run_is_over) {
            output::warn(&format!("a signal ended the call: {} was not begun", prepared.work.named_in_full()));
            return Ok(exit);
        }
        let exit = if dry_run {
            dry_run::dry_run(&prepared)?
        } else {
            go(prepared, wish.clone(), asks, view, between.as_ref(), host)?
        };
        worst = match exit {
            Exit::NOTHING => worst,
            Exit::DONE if worst == Exit::FAILED => worst,
            Exit::DONE | Exit::FAILED => exit,
            // A person is needed, or wants it to end.
            other => return Ok(other),
        };
    }
    Ok(worst)
}

/// Whether there is more than one piece of work that could be meant.
fn several(host: &Host) -> bool {
    matches!(work::resolve(None, &host.cwd), Err(WorkError::Several { .. }))
}

pub(super) fn resume(arguments: ResumeArguments, host: &Host) -> Result<Exit, CliError> {
    let folder = repository::find_run(arguments.run.as_deref(), host)?;
    let asks = take_up::can_ask(arguments.view) && !arguments.yes;
    let mut wish = Wish::Run(folder.clone());
    if let Err(error) = folder.fold() {
        let mut asker = take_up::on_terminal(asks);
        if !take_up::instead_of_damaged(&folder, &error, asker.as_mut().map(|asker| asker as &mut dyn Asker))? {
            return Ok(take_up::left_alone());
        }
        wish = Wish::Fresh;
    }
    let prepared = launch_of(&folder, &arguments.settings, host)?.prepare_to_run(arguments.settings, asks, host)?;
    go(prepared, wish, asks, arguments.view, None, host)
}

/// How the run in that folder was called.
fn launch_of(folder: &RunFolder, settings: &Layer, host: &Host) -> Result<Launch, CliError> {
    if let Some(launch) = Launch::of_run(folder) {
        return Ok(launch);
    }
    let run = folder.fold().map_err(|error| repository::damaged(&error))?.run;
    output::warn("the flags that the run was started with are not known any more; the present settings hold");
    Ok(Launch::new(Some(run.plan().work.to_string()), Vec::new(), settings, host))
}

/// Goes on with a run that nobody is at work on, to try one of its stories again.
pub(crate) fn retry(
    folder: RunFolder,
    story: StoryId,
    settings: Layer,
    view: ViewArguments,
    host: &Host,
) -> Result<Exit, CliError> {
    let launch = launch_of(&folder, &settings, host)?.with_story(&story);
    let asks = take_up::can_ask(view);
    go(launch.prepare_to_run(settings, asks, host)?, Wish::Retry(folder, story), asks, view, None, host)
}

/// Starts the run, shows what happens, and says how the program ends. `asks`: there is somebody to ask, and to be asked.
/// `between` watches signals where other works come before or after.
pub(super) fn go(
    prepared: Prepared,
    wish: Wish,
    asks: bool,
    view: ViewArguments,
    between: Option<&Between>,
    host: &Host,
) -> Result<Exit, CliError> {
    if screen::wanted(view)? {
        return screen::run(prepared, wish, asks, between, host);
    }
    go_with(prepared, wish, asks, Eyes::Printed(view), between)
}

/// Who watches a run of this process.
#[derive(Debug)]
pub(crate) enum Eyes {
    /// What happens is printed.
    Printed(ViewArguments),
    /// The screen of another process, which reads the journal.
    Screen,
    /// The session that drives the run and is its agent.
    Inside(Box<Seat>),
}

/// Starts the run in this process, and says how the program ends.
pub(crate) fn go_with(
    prepared: Prepared,
    wish: Wish,
    asks: bool,
    eyes: Eyes,
    between: Option<&Between>,
) -> Result<Exit, CliError> {
    repository::runtime()?.block_on(go_under(prepared, wish, asks, eyes, between))
}

/// Starts the run under the eyes of somebody, and says how it ended.
pub(crate) async fn go_under(
    mut prepared: Prepared,
    wish: Wish,
    asks: bool,
    eyes: Eyes,
    between: Option<&Between>,
) -> Result<Exit, CliError> {
    let command_timeout = prepared.settings.times.command;
    let place = start::open(&prepared.work.project, repository::spawner()?, command_timeout)
        .await
        .map_err(|error| CliError::environment(error.to_string()))?;
    for warning in &prepared.warnings {
        output::warn(warning);
    }
    let mut asker = take_up::on_terminal(asks);
    let mut asker = asker.as_mut().map(|asker| asker as &mut dyn Asker);
    let taking_up = take_up::decide(wish, take_up::again(&mut asker), &mut prepared, &place).await?;
    let Some(taking_up) = taking_up else { return Ok(take_up::left_alone()) };
    if asks && start::has_leftovers(&prepared.work.project) {
        prepared = prepared.on_clean_ground(place.clone()).await?;
        if !take_up::may_begin(asker, &mut prepared, &place)? {
            return Ok(take_up::left_alone());
        }
    }
    prepared.settings.seal = commit_key::seal(&prepared.config, &prepared.work.project, &place.spawner).await?;
    let finish = prepared.config.settings.finish;
    let Prepared { launch, work, settings, config, judged, .. } = prepared;
    let closing = finish.then(|| place.clone());
    let inside = match &eyes {
        Eyes::Inside(seat) => Some(seat.inside()),
        Eyes::Printed(_) | Eyes::Screen => None,
    };
    // Only what is started without anybody to ask needs it.
    let agents =
        settings.agents.iter().chain(settings.of_the_team()).filter(|_| inside.is_none()).chain(&settings.reviewer);
    let cautions: BTreeSet<&str> = agents.filter_map(Agent::caution).collect();
    let scribe = scribe(&config, &work, &place).await?;
    let learned = read_back(&config, &work, &place);
    let launch = launch.bytes()?;
    let request = Request { work: work.clone(), judged, settings, taking_up, launch, inside, scribe, learned };
    match start::start(request, place).await.map_err(|error| spec::not_started(&error, &work))? {
        Started::NothingToDo { reason } => {
            let said = format!("nothing to do: {}\n", output::one_line(&reason));
            match eyes {
                Eyes::Printed(view) if !view.json => output::data(&said)?,
                Eyes::Printed(_) | Eyes::Screen => output::talk(&said),
                Eyes::Inside(seat) => seat.sum_up(said),
            }
            if let Some(place) = closing {
                tracker::finish(&place, &work, command_timeout).await?;
            }
            Ok(Exit::DONE)
        }
        Started::Ready(ready) => {
            between.into_iter().for_each(Between::run_begins);
            match &ready.sandbox {
                Some(sandbox) => output::talk(&format!("{sandbox}\n")),
                None => cautions.into_iter().for_each(output::warn),
            }
            let offer = finish::offer(&work).filter(|_| !finish);
            let exit = match eyes {
                Eyes::Printed(view) => drive(*ready, view, offer).await?,
                Eyes::Screen => screen::leash::drive(*ready).await?,
                Eyes::Inside(seat) => seat.drive(*ready, offer).await?,
            };
            if let Some(place) = closing.filter(|_| exit == Exit::DONE) {
                tracker::finish(&place, &work, command_timeout).await?;
            }
            Ok(exit)
        }
    }
}

/// Whoever keeps state files up to date, if they are wanted.
async fn scribe(config: &Config, work: &WorkRef, place: &Place) -> Result<Option<Box<dyn Scribe>>, CliError> {
    let Some(folder) = &config.settings.state_files else { return Ok(None) };
    let (live, said) = Live::open(work.project.join(folder), &place.repository).await?;
    if let Some(said) = &said {
        output::warn(said);
    }
    Ok(Some(Box::new(live)))
}

/// What state files say where no journal is left: how it stood is told, and what was learned is taken over.
fn read_back(config: &Config, work: &WorkRef, place: &Place) -> Vec<Learning> {
    let state = StateFolder::of(&place.repository.places().common_dir);
    let Some(folder) = &config.settings.state_files else { return Vec::new() };
    if learnings::is_there(&state) || state.runs().map_or(true, |runs| !runs.is_empty()) {
        return Vec::new();
    }
    let Some(back) = export::back::read(&work.project.join(folder)) else { return Vec::new() };
    output::warn(&back.said);
    back.learned
}

/// Drives a run that is ready, with a view of it beside.
async fn drive(mut ready: Ready, view: ViewArguments, offer: Option<&str>) -> Result<Exit, CliError> {
    for warning in &ready.warnings {
        output::warn(warning);
    }
    let mut watch = std::mem::replace(&mut ready.watch, notice::channel().1);
    let (first, run) = (ready.first.clone(), ready.run.clone());
    let is_live = !view.json && !view.headless && live::possible();
    if !is_live {
        // Of what agents say, lines tell their plans, and events nothing.
        watch.hear_only(if view.json { |_| false } else { |event| matches!(event, AgentEvent::Plan { .. }) });
    }
    // On a thread of its own: a slow terminal must not slow the loop.
    let here = Handle::current();
    let printing = tokio::task::spawn_blocking(move || {
        if is_live {
            here.block_on(live::watch(&first, run, watch.state, watch.talk));
        } else {
            here.block_on(print(view, &first, run, watch.state, watch.talk));
        }
    });
    let noting = tokio::task::spawn_blocking(move || {
        while let Some(note) = watch.notes.blocking_recv() {
            output::warn(&note);
        }
    });
    let (run, result) = ready.drive().await;
    if let Err(error) = tokio::join!(printing, noting).0 {
        output::warn(&format!("the view of the run broke: {error}"));
    }
    sum_up(&run, result, view, offer)
}

/// Prints the summary; `offer` is what closing the work would do.
fn sum_up(
    run: &Run,
    result: Result<Outcome, DriveError>,
    view: ViewArguments,
    offer: Option<&str>,
) -> Result<Exit, CliError> {
    let text = summary::text(run, offer);
    if view.json {
        output::talk(&text);
    } else if let Err(error) = output::data(&text)
        && !error.silent
    {
        output::talk(&error.render());
    }
    ended(result)
}

/// How the program ends after a run that ended so.
pub(crate) fn ended(result: Result<Outcome, DriveError>) -> Result<Exit, CliError> {
    match result {
        Ok(outcome) => Ok(Exit::of(&outcome)),
        Err(error @ DriveError::Forced) => Err(CliError::new(Exit::INT, error.to_string())),
        Err(error @ DriveError::Journal(_)) => Err(CliError::environment(error.to_string())),
        Err(error @ DriveError::Bug { .. }) => Err(CliError::new(Exit::FAILED, error.to_string())),
    }
}

/// Prints each event until the run ends: lines for people, or JSON. A reader that goes away ends the printing, not the
/// run.
async fn print(
    view: ViewArguments,
    first: &Event,
    mut run: Run,
    mut events: UnboundedReceiver<Event>,
    mut talk: Receiver<TalkNotice>,
) {
    let mut readable = show(view, first, &run);
    let mut plans = Plans::default();
    loop {
        tokio::select! {
            biased;
            event = events.recv() => {
                let Some(event) = event else { return };
                drop(run.step(&event));
                readable = readable && show(view, &event, &run);
            }
            Some(notice) = talk.recv() => {
                if let Some(line) = plans.line(&notice) {
                    output::talk(&line);
                }
            }
        }
    }
}

/// Whether somebody still reads.
fn show(view: ViewArguments, event: &Event, run: &Run) -> bool {
    if !view.json {
        output::talk(&lines::printed(event, run));
        return true;
    }
    public::of(event, run).iter().all(|event| output::json_line(event).is_ok())
}
