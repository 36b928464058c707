//! How an agent is started, wherever it works: its program, its environment, its prompt, its limits; and how its
//! process is told to the decoder of its stream.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use ralphloop_agent::builtin::Key;
use ralphloop_agent::client::{Agent, PromptDelivery};
use ralphloop_agent::decoder::{Decoder, Errand, LOOP_AFTER, ProcessEnd};
use ralphloop_agent::event::{AgentEvent, Stream as AgentStream};
use tokio_util::sync::CancellationToken;

use crate::process::{Call, Chunk, Ending, Environment, Exit, Limits, Ownership, Passing, Running, Stream};
use crate::settings::Times;

/// From TERM to KILL.
const GRACE: Duration = Duration::from_secs(5);
/// The signal by which a runaway is ended.
const KILL: i32 = 9;

/// The call of an agent in `folder`, with the variables `own` on top of the inherited ones; within those times.
pub(crate) fn call(
    agent: &Agent,
    folder: &Path,
    prompt: &str,
    own: &[(OsString, OsString)],
    times: Times,
    cancel: CancellationToken,
) -> Call {
    let invocation = agent.invocation();
    let environment = invocation.env_remove.iter().fold(Environment::inherited(), |env, name| env.remove(*name));
    let unset = invocation.env_default.iter().filter(|(name, _)| std::env::var_os(name).is_none());
    let environment = unset.fold(environment, |env, (name, value)| env.set(*name, *value));
    let environment = own.iter().fold(environment, |env, (name, value)| env.set(name, value));
    let call = Call::new(&invocation.program, folder).args(&invocation.arguments);
    let call = match invocation.prompt {
        PromptDelivery::Stdin => call.stdin_bytes(prompt.as_bytes()),
        PromptDelivery::Argument => call.arg(prompt),
        PromptDelivery::Conversation => call.stdin_talk(),
    };
    call.environment(environment)
        .limits(Limits {
            total: times.agent,
            first_output: Some(times.start),
            idle: Some(times.idle),
            exit_grace: times.exit_grace,
            grace: GRACE,
        })
        .ownership(Ownership::Supervised)
        .cancel(cancel)
}

/// What an agent sees of the environment: what may pass, and the variables that its own client is signed in by.
pub(crate) fn seen_by(agent: &Agent, passing: &Passing) -> Passing {
    let own = agent.client().into_iter().flat_map(|client| client.sign_in.variables.iter().chain(client.billed_by));
    let own = own.filter_map(|name| Some(format!("{}_*", name.split_once('_')?.0)));
    match agent.setup().map(|setup| &setup.provider.key) {
        // Of the built-in agent it is known which one it needs.
        Some(Key::Variables(names)) => passing.clone().and(names.iter().cloned()),
        Some(Key::None | Key::Command(_)) => passing.clone(),
        None => passing.clone().and(own),
    }
}

/// What reads the output of that call, and says what the agent is to be told.
pub(crate) fn decoder(agent: &Agent, folder: &Path, prompt: &str) -> Decoder {
    match agent.invocation().prompt {
        PromptDelivery::Stdin | PromptDelivery::Argument => Decoder::new(agent.format, prompt, LOOP_AFTER),
        PromptDelivery::Conversation => {
            let errand = Errand { prompt: prompt.to_owned(), folder: folder.display().to_string() };
            Decoder::talking(errand, LOOP_AFTER)
        }
    }
}

/// Gives what an agent wrote to the reading of its output, and the agent what that has to say: now, and if it is to be ended.
pub(crate) fn converse(decoder: &mut Decoder, running: &mut Running, chunk: &Chunk, events: &mut Vec<AgentEvent>) {
    if running.is_ending() {
        decoder.wind_up();
    }
    decoder.push(agent_stream(chunk.stream), &chunk.bytes, events);
    running.say(&decoder.replies());
    running.part_with(decoder.farewell());
}

/// How the process ended, for the decoder.
pub(crate) fn process_end(ending: &Ending) -> ProcessEnd {
    match ending.exit {
        _ if ending.stayed => ProcessEnd::Lingered,
        Exit::Code(code) => ProcessEnd::Exited { code },
        Exit::Signal(signal) => ProcessEnd::Signalled { signal },
        // The report says so in its own words.
        Exit::Exceeded(_) => ProcessEnd::Signalled { signal: KILL },
        Exit::TimedOut(after) => ProcessEnd::TimedOut { after },
        Exit::NeverSpoke(after) => ProcessEnd::NeverSpoke { after },
        Exit::Silent(after) => ProcessEnd::Silent { after },
        Exit::Cancelled => ProcessEnd::Stopped,
    }
}

/// Where a piece of output came from, for the decoder.
fn agent_stream(stream: Stream) -> AgentStream {
    match stream {
        Stream::Stdout => AgentStream::Stdout,
        Stream::Stderr => AgentStream::Stderr,
    }
}
