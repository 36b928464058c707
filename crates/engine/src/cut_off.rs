//! Calls of agents that nobody saw the end of, because the process that watched them died: what they used is told by their
//! transcripts, as far as these go.

use jiff::tz::TimeZone;
use ralphloop_agent::decoder::{Clock, Decoder, Ending, ProcessEnd};
use ralphloop_agent::event::Stream as AgentStream;
use ralphloop_core::event::CutOff;
use ralphloop_core::evidence::Usage;
use ralphloop_core::ids::{AttemptId, CallNumber};
use ralphloop_core::run::{Phase, Run};

use crate::clock;
use crate::runs::RunFolder;
use crate::settings::Settings;
use crate::transcript::{self, Reader, Stream};

/// The calls that were under way when the last event of `run` was noted.
pub(crate) fn of(folder: &RunFolder, run: &Run, settings: &Settings) -> Vec<CutOff> {
    run.attempts()
        .filter_map(|attempt| match attempt.phase {
            Phase::Agent { call } => Some((attempt.id.clone(), call)),
            _ => None,
        })
        .map(|(attempt, call)| {
            let usage = usage_of(folder, &attempt, call, settings);
            CutOff { attempt, call, usage }
        })
        .collect()
}

/// What the transcript of a call tells; it may be torn, or not be there at all.
fn usage_of(folder: &RunFolder, attempt: &AttemptId, call: CallNumber, settings: &Settings) -> Usage {
    let Ok(records) = Reader::open(&transcript::path_of(folder.path(), attempt, call)) else { return Usage::default() };
    let mut decoder = Decoder::new(settings.agent.format, "", 0);
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
        sign_in: settings.agent.sign_in(),
    };
    decoder.finish(ending, &mut events).usage
}
