//! Calls of agents that nobody saw the end of, because the process that watched them died: what they used is told by their
//! transcripts, as far as these go.

use std::path::Path;

use jiff::tz::TimeZone;
use ralphloop_agent::client::Agent;
use ralphloop_agent::decoder::{Clock, Decoder, Ending, ProcessEnd};
use ralphloop_agent::event::Stream as AgentStream;
use ralphloop_core::event::CutOff;
use ralphloop_core::evidence::Usage;
use ralphloop_core::ids::AttemptId;
use ralphloop_core::run::{Phase, Run};

use crate::clock;
use crate::lane::agent::priced;
use crate::runs::RunFolder;
use crate::settings::Settings;
use crate::transcript::{self, Reader, Stream};

/// The calls that were under way when the last event of `run` was noted.
pub(crate) fn of(folder: &RunFolder, run: &Run, settings: &Settings) -> Vec<CutOff> {
    run.attempts()
        .filter_map(|attempt| {
            let (run, id) = (folder.path(), &attempt.id);
            match &attempt.phase {
                Phase::Agent { call } => {
                    let agent = attempt.agent.as_ref().and_then(|agent| settings.worker(agent));
                    Some((id, *call, transcript::path_of(run, id, *call), agent))
                }
                Phase::Reviewing(reviewing) => {
                    let agent = settings.reviewer.as_ref().filter(|agent| agent.id() == reviewing.by);
                    Some((id, reviewing.call(), transcript::path_of_review(run, id, reviewing.round), agent))
                }
                _ => None,
            }
        })
        .map(|(attempt, call, path, agent)| {
            let (attempt, usage) = (attempt.clone(), usage_of(&path, attempt, settings, agent));
            CutOff { attempt, call, usage }
        })
        .collect()
}

/// What the transcript of a call tells; it may be torn, or not be there at all. Of an agent that is not one of this run any
/// more, the transcript itself tells how it reads.
fn usage_of(path: &Path, attempt: &AttemptId, settings: &Settings, agent: Option<&Agent>) -> Usage {
    let Some(format) = agent.map(|agent| agent.format).or_else(|| transcript::format_of(path)) else {
        return Usage::default();
    };
    let Ok(records) = Reader::open(path) else { return Usage::default() };
    let mut decoder = Decoder::new(format, "", 0);
    let mut events = Vec::new();
    for record in records.map_while(Result::ok).filter(|record| record.stream == Stream::Out) {
        decoder.push(AgentStream::Stdout, &record.bytes, &mut events);
        events.clear();
    }
    let clock = Clock { now: clock::now(), zone: TimeZone::system() };
    let ending = Ending {
        process: ProcessEnd::Signalled { signal: 9 },
        story: &attempt.story,
        grammar: &settings.grammar,
        clock: &clock,
        took: std::time::Duration::ZERO,
        sign_in: None,
    };
    let report = decoder.finish(ending, &mut events);
    match agent {
        Some(agent) => priced(report.usage, report.model.as_deref(), agent, &settings.prices),
        None => report.usage,
    }
}
