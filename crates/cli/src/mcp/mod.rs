//! The loop driven from inside an agent's own session: an MCP server on the standard input and output. Its tools are the
//! protocol of the loop. The session is handed one call of one attempt after the other and reports what came of each;
//! whether something is done is decided by the same engine as ever, from what it observes itself.

mod seat;
mod session;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use ralphloop_core::event::StopCause;
use ralphloop_core::run::Run;
use ralphloop_engine::control::Request;
use rmcp::handler::server::wrapper::{Json, Parameters};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler, ServiceExt as _, tool, tool_handler, tool_router};
use serde_json::{Map, Value};
use tokio::signal::unix::{SignalKind, signal};

pub(crate) use seat::Seat;

use crate::error::CliError;
use crate::exit::Exit;
use crate::host::Host;
use crate::output;
use crate::verbs;
use session::{Session, Wanted};
use wire::{Guide, Next, Report, ShowWork, StartRun, Stop, Turn};

/// How long a tool waits for something to do. Clients give a tool a minute, and more only where they are told to.
const PATIENCE: Duration = Duration::from_secs(45);

/// Behind the name of a session that drives a run.
const INSIDE: &str = " (inside)";

/// Whether the run is driven by a session.
pub(crate) fn drives(run: &Run) -> bool {
    run.agent().ends_with(INSIDE)
}

/// Serves a session until it goes away.
pub(crate) fn serve(host: Host) -> Result<Exit, CliError> {
    let runtime = verbs::repository::runtime()?;
    let result = runtime.block_on(serve_here(host));
    // A read of the standard input may still be waiting, and nobody waits for it.
    runtime.shutdown_background();
    result
}

async fn serve_here(host: Host) -> Result<Exit, CliError> {
    let broken = |what: &str, error: &dyn std::error::Error| CliError::environment(what).cause(error);
    let session = Arc::new(Session::new(host));
    let catch = |kind| signal(kind).map_err(|error| broken("signals cannot be taken over", &error));
    let (mut hup, mut int, mut term) =
        (catch(SignalKind::hangup())?, catch(SignalKind::interrupt())?, catch(SignalKind::terminate())?);
    let serving = async {
        let server = Tools { session: session.clone() }
            .serve(rmcp::transport::stdio())
            .await
            .map_err(|error| broken("no session of the Model Context Protocol was begun", &error))?;
        server.waiting().await.map_err(|error| broken("the session broke off", &error))?;
        Ok::<_, CliError>(())
    };
    // A run takes the same signals as its word to stop.
    let signalled = tokio::select! {
        result = serving => result.map(|()| None),
        _ = hup.recv() => Ok(Some(StopCause::Hup)),
        _ = int.recv() => Ok(Some(StopCause::Int)),
        _ = term.recv() => Ok(Some(StopCause::Term)),
    };
    let ended = session.close().await?;
    Ok(match signalled? {
        None => ended,
        Some(cause) => Exit::of(&ralphloop_core::outcome::Outcome::Stopped { cause }),
    })
}

/// The tools of one session.
#[derive(Debug, Clone)]
struct Tools {
    session: Arc<Session>,
}

type Answer<T> = Result<Json<T>, String>;

/// An error as the session reads it.
fn said(error: &CliError) -> String {
    output::plain(&error.render())
}

#[tool_router]
impl Tools {
    /// The work that is written down in this repository, with how much of it is done and whether it can be run.
    #[tool(annotations(read_only_hint = true))]
    async fn list_work(&self) -> Answer<Map<String, Value>> {
        let host = self.session.host();
        let rows = apart(move || verbs::list::rows(&host)).await?;
        Ok(Json(Map::from_iter([("works".to_owned(), rows)])))
    }

    /// The stories of a piece of work: tasks, criteria, dependencies, checks.
    #[tool(annotations(read_only_hint = true))]
    async fn show_work(&self, Parameters(ShowWork { work }): Parameters<ShowWork>) -> Answer<Map<String, Value>> {
        let host = self.session.host();
        let value = apart(move || verbs::show::reading(work.as_deref(), &host)).await?;
        match value {
            Value::Object(object) => Ok(Json(object)),
            other => Err(other.to_string()),
        }
    }

    /// Begins a run that this session drives, or goes on with the unfinished one of the same work, and hands out the first
    /// call.
    #[tool]
    async fn start_run(
        &self,
        Parameters(start): Parameters<StartRun>,
        context: RequestContext<RoleServer>,
    ) -> Answer<Turn> {
        let client = context.peer.peer_info().map(|info| output::one_line(&info.client_info.name));
        let name = client.filter(|name| !name.is_empty()).unwrap_or_else(|| "agent".to_owned());
        let StartRun { work, stories, settings, fresh } = start;
        let flags = session::flags(&settings).map_err(|error| said(&error))?;
        let wanted = Wanted { work, stories, flags, fresh, name: format!("{name}{INSIDE}") };
        self.session.start(wanted).await.map_err(|error| said(&error))?;
        self.turn(None).await
    }

    /// What is to be done next. Waits for up to 45 seconds; call it again while the answer is `busy` or `waiting`.
    #[tool]
    async fn next(&self, Parameters(Next { attempt }): Parameters<Next>) -> Answer<Turn> {
        self.turn(attempt.as_deref()).await
    }

    /// Reports how the work on an attempt ended. The tree is then inspected, gates and checks run, and what follows is
    /// decided: the answer says what happened and what is to be done next.
    #[tool]
    async fn report(&self, Parameters(report): Parameters<Report>) -> Answer<Turn> {
        self.session.answer(&report.attempt, report.words()).await.map_err(|error| said(&error))?;
        self.turn(None).await
    }

    /// How the run stands: its state, and every story with its attempts and reasons.
    #[tool(annotations(read_only_hint = true))]
    async fn status(&self) -> Answer<Map<String, Value>> {
        let status = if let Some(status) = self.session.status().await {
            status
        } else {
            let host = self.session.host();
            apart(move || verbs::runs::latest(&host)).await?
        };
        match serde_json::to_value(status) {
            Ok(Value::Object(object)) => Ok(Json(object)),
            Ok(other) => Err(other.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Gives the next prompt a sentence of the user's.
    #[tool]
    async fn guide(&self, Parameters(Guide { text }): Parameters<Guide>) -> Result<String, String> {
        if text.trim().is_empty() {
            return Err("the guidance is empty".to_owned());
        }
        self.ask(Request::Guide { text }, "the next prompt has it").await
    }

    /// Pauses the run after the attempt; `start_run` goes on with it.
    #[tool]
    async fn pause(&self) -> Result<String, String> {
        self.ask(Request::Pause, "the run pauses after the attempt").await
    }

    /// Stops the run after the attempt, or now.
    #[tool]
    async fn stop(&self, Parameters(Stop { now }): Parameters<Stop>) -> Result<String, String> {
        let when = if now { "now; the attempt is put back, its work is kept" } else { "after the attempt" };
        self.session.stop(now, PATIENCE).await.map_err(|error| said(&error))?;
        Ok(format!("the run stops {when}"))
    }
}

impl Tools {
    async fn turn(&self, again: Option<&str>) -> Answer<Turn> {
        self.session.next(again, PATIENCE).await.map(Json).map_err(|error| said(&error))
    }

    async fn ask(&self, request: Request, done: &str) -> Result<String, String> {
        self.session.ask(&request).await.map(|()| done.to_owned()).map_err(|error| said(&error))
    }
}

/// What reads files, or starts programs, on a thread of its own.
async fn apart<T: Send + 'static>(work: impl FnOnce() -> Result<T, CliError> + Send + 'static) -> Result<T, String> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result.map_err(|error| said(&error)),
        Err(error) => Err(error.to_string()),
    }
}

#[tool_handler(
    name = "ralphloop",
    instructions = "ralphloop runs written-down work story by story. You are the agent of the loop, and never decide \
yourself whether something is done. `list_work` shows what there is; `start_run` begins and hands out the first call. For \
each call, give its `prompt` unchanged to a fresh sub-agent that works in `folder` and nowhere else, wait for its end, and \
`report` the attempt with the sub-agent's last message, whole. Gates and checks then run, and the answer hands out the next \
call: a repair, a further attempt, or the next story. While the answer is `busy` or `waiting`, call `next`. Do not commit, \
do not tick boxes, do not touch files between calls. When the answer is `ended`, show its summary to the user."
)]
impl ServerHandler for Tools {}
