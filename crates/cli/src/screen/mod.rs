//! The screen, wired: what it is told and who does what it asks for. The screen itself is `ralphloop-tui`.

mod ending;
mod host;
pub(crate) mod leash;
pub(crate) mod pick;
mod preview;
mod sheets;
mod talk;

use std::io::IsTerminal as _;

use ralphloop_core::event::StopCause;
use ralphloop_core::ids::StoryId;
use ralphloop_engine::control;
use ralphloop_engine::runs::RunFolder;
use ralphloop_engine::start::Place;
use ralphloop_tui::app::{Session, Use};
use ralphloop_tui::keys::Keymap;
use ralphloop_tui::mailbox::mailbox;
use ralphloop_tui::model::Options;
use ralphloop_tui::port::Leave;
use ralphloop_tui::theme::Theme;
use ralphloop_tui::{Model, Msg, Request, Signals, app};
use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::task::JoinHandle;

use crate::arguments::ViewArguments;
use crate::config::{self, Layer};
use crate::error::CliError;
use crate::exit::Exit;
use crate::host::Host;
use crate::output;
use crate::verbs::between::Between;
use crate::verbs::launch::Prepared;
use crate::verbs::take_up::{self, Asker, Wish};
use crate::verbs::{self, repository};
use crate::view::{status, summary};
use leash::{Begun, Leashed, Order};

/// How long a run that was forced to end has to say that it heard it.
const LAST_WORD: std::time::Duration = std::time::Duration::from_secs(1);
/// How the terminal is used.
const USING: Use = Use { mouse: true };
/// Lines of a run's complaints that are repeated once the screen is gone.
const COMPLAINTS: usize = 20;

/// Whether this terminal can show the screen.
pub(crate) fn possible() -> bool {
    let usable = std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
    usable && std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Whether a run is to be shown on the screen.
pub(crate) fn wanted(view: ViewArguments) -> Result<bool, CliError> {
    match (view.tui, possible()) {
        (true, false) => Err(CliError::usage("the screen needs a terminal on the standard input and output")
            .hint("leave `--tui` out for plain lines")),
        (true, true) => Ok(true),
        (false, possible) => Ok(possible && !view.headless && !view.json),
    }
}

/// How the screen looks, and the keys that it obeys.
#[derive(Debug, Clone)]
struct Look {
    keys: Keymap,
    theme: Theme,
}

impl Look {
    /// As the settings say that hold where the program was called.
    fn of(host: &Host) -> Result<Self, CliError> {
        let (config, _) = config::load(&host.cwd, &host.environment, Layer::default())?;
        let no_color = host.environment.get("NO_COLOR").is_some_and(|value| !value.is_empty());
        Ok(Self { keys: config.settings.screen_keys.keymap(), theme: config.settings.screen_theme.theme(no_color) })
    }
}

fn options(own: bool, look: &Look) -> Options {
    let Look { keys, theme } = look.clone();
    let zone = jiff::tz::TimeZone::system();
    let utc_offset = zone.to_offset(jiff::Timestamp::now()).seconds();
    Options { keys, theme, own, utc_offset }
}

/// Starts a run in a process of its own and shows it.
pub(crate) fn run(
    prepared: Prepared,
    wish: Wish,
    asks: bool,
    between: Option<&Between>,
    host: &Host,
) -> Result<Exit, CliError> {
    let look = Look::of(host)?;
    let runtime = repository::runtime()?;
    let begun = runtime.block_on(async {
        let place = repository::open(host).await?;
        let mut asker = take_up::on_terminal(asks);
        let asker = asker.as_mut().map(|asker| asker as &mut dyn Asker);
        Ok::<_, CliError>(begin(prepared, wish, asker, &place, host).await?.map(|begun| (place, begun)))
    })?;
    match begun {
        None => Ok(take_up::left_alone()),
        Some((_, Begun::Ended { exit, said })) => {
            output::talk(&said);
            Ok(exit)
        }
        Some((place, Begun::Running(leashed))) => {
            let session = Signals::catch().and_then(|signals| {
                // From here on the screen takes them.
                between.into_iter().for_each(Between::run_begins);
                Session::with(signals, USING)
            });
            show_own(&runtime, session, *leashed, (place, &look), host)
        }
    }
}

/// Asks what is to be asked, and starts the run in a process of its own; nothing if that is not wanted.
async fn begin(
    mut prepared: Prepared,
    wish: Wish,
    asker: Option<&mut dyn Asker>,
    place: &Place,
    host: &Host,
) -> Result<Option<Begun>, CliError> {
    let Some(taking_up) = take_up::decide(wish, asker, &mut prepared, place).await? else { return Ok(None) };
    // What was answered holds in the run's own process too.
    prepared.launch.keep_answer(prepared.settings.on_dirty);
    let apart = host.environment.is_empty();
    let order = Order { launch: prepared.launch, taking_up: (&taking_up).into(), apart };
    let begun = Leashed::start(&order, &host.cwd).await;
    begun.map(Some).map_err(|error| CliError::environment("the run's process could not be started").cause(&error))
}

/// Shows a run that was started here until the screen is left, and says how the program ends.
fn show_own(
    runtime: &tokio::runtime::Runtime,
    session: std::io::Result<Session>,
    mut leashed: Leashed,
    (place, look): (Place, &Look),
    host: &Host,
) -> Result<Exit, CliError> {
    let folder = leashed.folder.clone();
    let shown =
        session.and_then(|mut session| show(runtime, &mut session, &folder, (place, look), host, Some(&mut leashed)));
    let left = match shown {
        Ok((left, complaints)) => {
            for line in &complaints {
                output::talk(&format!("{line}\n"));
            }
            left
        }
        Err(error) => {
            // The terminal is gone or unusable: the run ends with it.
            leashed.signal(Signal::HUP);
            output::warn(&format!("the screen broke: {error}"));
            Leave::Done
        }
    };
    finish(runtime, leashed, left, host)
}

fn finish(runtime: &tokio::runtime::Runtime, mut leashed: Leashed, left: Leave, host: &Host) -> Result<Exit, CliError> {
    let folder = leashed.folder.clone();
    let lost = |error: &std::io::Error| CliError::environment("the run's process cannot be waited for").cause(error);
    match left {
        Leave::Detach => {
            runtime.block_on(leashed.let_go()).map_err(|error| lost(&error))?;
            output::talk(&format!(
                "run {} goes on; `ralphloop status --follow` shows it again, `ralphloop stop` stops it\n",
                folder.id
            ));
            Ok(Exit::DONE)
        }
        Leave::Force => {
            let heard = runtime.block_on(async {
                let ask = control::ask(&folder.id, folder.path(), &control::Request::Force);
                tokio::time::timeout(LAST_WORD, ask).await.is_ok_and(|answer| answer.is_ok())
            });
            if !heard {
                // Its supervisors end the agents when it is gone.
                leashed.signal(Signal::KILL);
            }
            Err(CliError::new(
                Exit::INT,
                "forced to quit: what ran is killed, and the tree was not put back".to_owned(),
            )
            .hint(format!("`ralphloop resume {}` puts it back and goes on", folder.id)))
        }
        Leave::Retry(story) => {
            runtime.block_on(leashed.wait()).map_err(|error| lost(&error))?;
            try_again(folder, story, host)
        }
        Leave::Done => {
            let exit = runtime.block_on(leashed.wait()).map_err(|error| lost(&error))?;
            let run = folder.fold().map_err(|error| repository::damaged(&error))?.run;
            let offer = ending::to_close(&run, &host.cwd).map(|(_, does)| does);
            output::data(&summary::text(&run, offer))?;
            Ok(exit)
        }
    }
}

/// Goes on with a run that is over to try a story of it again, on the screen as before.
fn try_again(folder: RunFolder, story: StoryId, host: &Host) -> Result<Exit, CliError> {
    let view = ViewArguments { tui: true, headless: false, json: false };
    verbs::run::retry(folder, story, Layer::default(), view, host)
}

/// Shows a run that somebody else started, or that is over.
pub(crate) fn attach(folder: &RunFolder, host: &Host) -> Result<Exit, CliError> {
    let runtime = repository::runtime()?;
    let place = runtime.block_on(repository::open(host))?;
    let look = Look::of(host)?;
    let shown =
        Session::enter(USING).and_then(|mut session| show(&runtime, &mut session, folder, (place, &look), host, None));
    if let (Leave::Retry(story), _) = shown.map_err(|error| unusable(&error))? {
        return try_again(folder.clone(), story, host);
    }
    let run = folder.fold().map_err(|error| repository::damaged(&error))?.run;
    let pid = folder.live_process().map(|process| process.pid);
    output::talk(&status::Status::of(&run, pid).text());
    Ok(Exit::DONE)
}

fn unusable(error: &std::io::Error) -> CliError {
    CliError::environment("the terminal cannot be used").cause(error)
}

/// Shows a run until the screen is left; what its process complained of is to be said once the terminal is free.
fn show(
    runtime: &tokio::runtime::Runtime,
    session: &mut Session,
    folder: &RunFolder,
    (place, look): (Place, &Look),
    host: &Host,
    mut leashed: Option<&mut Leashed>,
) -> std::io::Result<(Leave, Vec<String>)> {
    let (to_screen, from_host) = mailbox()?;
    let (to_talk, talk_asked) = tokio::sync::mpsc::unbounded_channel();
    let (to_host, host_asked) = tokio::sync::mpsc::unbounded_channel();
    let (cwd, sheets) = (host.cwd.clone(), sheets::Sheets::default());
    let doer = host::Host { folder: folder.clone(), place, cwd, sheets, screen: to_screen.clone() };
    let telling = runtime.spawn(doer.clone().tell());
    let serving = runtime.spawn(doer.serve(host_asked));
    let talking = {
        let (folder, cwd, screen) = (folder.path().to_owned(), host.cwd.clone(), to_screen.clone());
        let handle = runtime.handle().clone();
        runtime.spawn_blocking(move || handle.block_on(talk::serve(&folder, &cwd, talk_asked, &screen)))
    };
    let complaining = leashed.as_mut().and_then(|leashed| leashed.complaints.take()).map(|complaints| {
        let screen = to_screen.clone();
        runtime.spawn(async move {
            let mut lines = BufReader::new(complaints).lines();
            let mut said = Vec::new();
            while let Ok(Some(line)) = lines.next_line().await {
                drop(screen.send(Msg::Note(line.clone())));
                if said.len() < COMPLAINTS {
                    said.push(line);
                }
            }
            said
        })
    });
    drop(to_screen);
    let leashed = leashed.map(|leashed| &*leashed);
    let mut model = Model::of_run(options(leashed.is_some(), look), app::size(), app::now());
    let left = session.show(&mut model, &from_host, |request| match (&request, leashed) {
        (Request::Watch(_) | Request::Read { .. } | Request::Find { .. } | Request::Export(_), _) => {
            drop(to_talk.send(request));
        }
        // By a signal, so that the run tells later what stopped it.
        (Request::Stop(StopCause::Int), Some(leashed)) => leashed.signal(Signal::INT),
        (Request::Stop(StopCause::Term), Some(leashed)) => leashed.signal(Signal::TERM),
        (Request::Stop(StopCause::Hup), Some(leashed)) => leashed.signal(Signal::HUP),
        _ => drop(to_host.send(request)),
    });
    drop((to_talk, to_host, from_host));
    telling.abort();
    runtime.block_on(ended(serving));
    runtime.block_on(ended(talking));
    let mut complaints = Vec::new();
    if let Some(complaining) = complaining {
        if matches!(left, Ok(Leave::Done)) {
            complaints = runtime.block_on(complaining).unwrap_or_default();
        } else {
            complaining.abort();
        }
    }
    left.map(|left| (left, complaints))
}

/// Waits for a task of the screen; one that broke has nothing more to say.
async fn ended<T>(task: JoinHandle<T>) {
    drop(task.await);
}
