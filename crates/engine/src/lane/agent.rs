//! One call of an agent in the lane: prompt in, stream decoded and kept, all of it gone at the end.

use std::time::{Duration, Instant};

use ralphloop_agent::client::{Format, LONGEST_ARGUMENT, PromptDelivery};
use ralphloop_agent::decoder::{Clock, Decoder, Ending, LOOP_AFTER, ProcessEnd};
use ralphloop_agent::event::{AgentEvent, Stream as AgentStream};
use ralphloop_agent::prompt;
use ralphloop_core::effect::Brief;
use ralphloop_core::event::Fact;
use ralphloop_core::evidence::{AgentEnd, AgentReport, Claim, Usage};
use ralphloop_core::ids::{AttemptId, CallNumber};
use ralphloop_core::run::Run;
use tokio_util::sync::CancellationToken;

use super::Parts;
use super::recorder::Recorder;
use crate::inside::Handed;
use crate::process::{Running, SpawnError, StopLevel, Stream};
use crate::settings::Settings;
use crate::{clock, invoke, transcript};

/// How long the end of a quiet agent's transcript may wait to be readable.
const FLUSH_AFTER: Duration = Duration::from_secs(1);

/// What the agent is told, or why that could not be written.
pub(super) fn prompt(run: &Run, attempt: &AttemptId, brief: &Brief, settings: &Settings) -> Result<String, String> {
    let Some(story) = run.plan().story(&attempt.story) else {
        return Err(format!("the plan has no story {}", attempt.story));
    };
    let max = run.policy().max_retries + 1;
    let charged = run.record(&attempt.story).map_or(0, |r| r.charged);
    prompt::build(&prompt::PromptInput {
        plan: run.plan(),
        story,
        brief,
        attempt: charged + 1,
        max_attempts: max,
        grammar: &settings.grammar,
        gates: &run.policy().gates,
        learnings_budget: settings.prompts.learnings,
        template: settings.prompts.template.as_ref().map(|(name, text)| (name.as_str(), text.as_str())),
    })
    .map_err(|e| e.to_string())
}

pub(super) async fn run(
    parts: &Parts,
    attempt: AttemptId,
    call: CallNumber,
    prompt: Result<String, String>,
    time: Duration,
    cancel: CancellationToken,
) {
    let began = Instant::now();
    let report = match prompt {
        Err(message) => gone(AgentEnd::CannotStart { message }),
        Ok(prompt) if let Some(inside) = &parts.shared.inside => {
            let handed = inside.hand_over(
                (&attempt, call),
                &prompt,
                parts.work.project.clone(),
                parts.environment.clone(),
                time,
            );
            parts.shared.say(Fact::AgentStarted { attempt: attempt.clone(), call });
            match handed {
                Some(handed) => answered(parts, &attempt, call, &prompt, handed, &cancel, began).await,
                None => gone(AgentEnd::Stopped),
            }
        }
        Ok(prompt) if !fits(&prompt, parts.shared.settings.agent.invocation().prompt) => {
            gone(AgentEnd::PromptTooLong {
                message: format!("a prompt of {} bytes does not fit into an argument of a program", prompt.len()),
            })
        }
        Ok(prompt) => match start(parts, &prompt, time, cancel).await {
            Err(error) => gone(AgentEnd::CannotStart { message: error.to_string() }),
            Ok(running) => {
                // Only for the case that this process and the agent's supervisor are killed at once.
                drop(parts.shared.folder.note_child(&running.record()));
                parts.shared.say(Fact::AgentStarted { attempt: attempt.clone(), call });
                watch(parts, &attempt, call, &prompt, running, began).await
            }
        },
    };
    let report = Box::new(AgentReport { took: began.elapsed(), ..redacted(parts, report) });
    parts.shared.say(Fact::AgentEnded { attempt, call, report });
}

/// Whether the agent can be given so long a prompt.
fn fits(prompt: &str, delivery: PromptDelivery) -> bool {
    delivery == PromptDelivery::Stdin || prompt.len() <= LONGEST_ARGUMENT
}

async fn start(parts: &Parts, prompt: &str, time: Duration, cancel: CancellationToken) -> Result<Running, SpawnError> {
    let call = invoke::call(&parts.shared.settings, &parts.work.project, prompt, &parts.environment, time, cancel);
    parts.shared.spawner.start(call).await
}

/// Why we ended the agent ourselves, if we did.
enum OurReason {
    Loop { call: String, times: u32 },
    Transcript { message: String },
}

async fn watch(
    parts: &Parts,
    attempt: &AttemptId,
    call: CallNumber,
    prompt: &str,
    mut running: Running,
    began: Instant,
) -> AgentReport {
    let mut ours = None;
    let mut transcript = begin_transcript(parts, attempt, call, &mut ours);
    let mut decoder = Decoder::new(parts.shared.settings.agent.format, prompt, LOOP_AFTER);
    let mut events = Vec::new();
    let mut hurried = false;
    let mut unflushed = false;
    if ours.is_some() {
        running.stop(StopLevel::Gentle);
    }
    loop {
        let chunk = tokio::select! {
            chunk = running.next() => chunk,
            () = parts.shared.hurry.cancelled(), if !hurried => {
                hurried = true;
                running.stop(StopLevel::Now);
                continue;
            }
            () = tokio::time::sleep(FLUSH_AFTER), if unflushed => {
                unflushed = false;
                // What a quiet agent said last is to be seen.
                if let Some(transcript) = &transcript {
                    transcript.flush().await;
                }
                continue;
            }
        };
        unflushed = true;
        let Some(chunk) = chunk else { break };
        decoder.push(invoke::agent_stream(chunk.stream), &chunk.bytes, &mut events);
        if let Some(recorder) = &transcript
            && recorder.write(stream_of(chunk.stream), chunk.bytes).await.is_err()
        {
            end_transcript(transcript.take(), &mut ours).await;
            running.stop(StopLevel::Gentle);
        }
        for event in events.drain(..) {
            match &event {
                AgentEvent::Ended { .. } => running.saw_final_event(),
                AgentEvent::Repeating { call, times } if ours.is_none() => {
                    ours = Some(OurReason::Loop { call: call.clone(), times: *times });
                    running.stop(StopLevel::Gentle);
                }
                _ => {}
            }
            parts.shared.talk(attempt, call, event);
        }
    }
    let ending = running.wait().await;
    let process = match ending {
        Ok(ending) => invoke::process_end(&ending),
        Err(error) => return gone(AgentEnd::Internal { message: error.to_string() }),
    };
    let mut report = conclude(parts, attempt, call, decoder, process, began);
    end_transcript(transcript, &mut ours).await;
    match ours {
        Some(OurReason::Loop { call, times }) => report.end = AgentEnd::Looped { call, times },
        Some(OurReason::Transcript { message }) => report.end = AgentEnd::Internal { message },
        None => {}
    }
    report
}

/// Waits for what the session that drives the run has to say of a call; it reads like the output of a program that prints
/// its last words only.
async fn answered(
    parts: &Parts,
    attempt: &AttemptId,
    call: CallNumber,
    prompt: &str,
    handed: Handed,
    cancel: &CancellationToken,
    began: Instant,
) -> AgentReport {
    let (words, process) = handed.ended(cancel).await;
    let mut ours = None;
    let transcript = begin_transcript(parts, attempt, call, &mut ours);
    let mut decoder = Decoder::new(Format::Text, prompt, LOOP_AFTER);
    let mut events = Vec::new();
    decoder.push(AgentStream::Stdout, words.as_bytes(), &mut events);
    events.drain(..).for_each(|event| parts.shared.talk(attempt, call, event));
    if let Some(recorder) = &transcript {
        // Why it failed, the end of the transcript says.
        drop(recorder.write(transcript::Stream::Out, words.into_bytes()).await);
    }
    let mut report = conclude(parts, attempt, call, decoder, process, began);
    end_transcript(transcript, &mut ours).await;
    if let Some(OurReason::Transcript { message }) = ours {
        report.end = AgentEnd::Internal { message };
    }
    report
}

/// What a call came to, once all of its words are read.
fn conclude(
    parts: &Parts,
    attempt: &AttemptId,
    call: CallNumber,
    decoder: Decoder,
    process: ProcessEnd,
    began: Instant,
) -> AgentReport {
    let clock = Clock { now: clock::now(), zone: parts.shared.zone.clone() };
    let ending = Ending {
        process,
        story: &attempt.story,
        grammar: &parts.shared.settings.grammar,
        clock: &clock,
        took: began.elapsed(),
        sign_in: parts.shared.settings.agent.sign_in(),
    };
    let mut events = Vec::new();
    let report = decoder.finish(ending, &mut events);
    events.into_iter().for_each(|event| parts.shared.talk(attempt, call, event));
    report
}

async fn end_transcript(transcript: Option<Recorder>, ours: &mut Option<OurReason>) {
    if let Some(recorder) = transcript
        && let Err(error) = recorder.finish().await
    {
        ours.get_or_insert(OurReason::Transcript { message: error.to_string() });
    }
}

fn begin_transcript(
    parts: &Parts,
    attempt: &AttemptId,
    call: CallNumber,
    ours: &mut Option<OurReason>,
) -> Option<Recorder> {
    let path = transcript::path_of(parts.shared.folder.path(), attempt, call);
    match Recorder::begin(path, parts.shared.redactor.clone()) {
        Ok(recorder) => Some(recorder),
        Err(error) => {
            *ours = Some(OurReason::Transcript { message: error.to_string() });
            None
        }
    }
}

/// A report of an agent of which nothing was seen.
fn gone(end: AgentEnd) -> AgentReport {
    AgentReport {
        end,
        claim: Claim::None { near_miss: None },
        last_words: String::new(),
        usage: Usage::default(),
        took: Duration::ZERO,
        learnings: Vec::new(),
    }
}

/// No secret that the agent repeats gets into the journal.
fn redacted(parts: &Parts, report: AgentReport) -> AgentReport {
    let text = |t: &str| parts.shared.redact_text(t);
    let claim = match &report.claim {
        Claim::Complete => Claim::Complete,
        Claim::Failed { reason } => Claim::Failed { reason: text(reason) },
        Claim::Blocked { reason } => Claim::Blocked { reason: text(reason) },
        Claim::None { near_miss } => Claim::None { near_miss: near_miss.as_deref().map(text) },
    };
    AgentReport {
        end: redacted_end(report.end, &text),
        claim,
        last_words: text(&report.last_words),
        learnings: report.learnings.iter().map(|l| text(l)).collect(),
        ..report
    }
}

fn redacted_end(mut end: AgentEnd, text: &dyn Fn(&str) -> String) -> AgentEnd {
    match &mut end {
        AgentEnd::Error { message }
        | AgentEnd::Crashed { message, .. }
        | AgentEnd::PromptTooLong { message }
        | AgentEnd::Limit { message, .. }
        | AgentEnd::Overloaded { message }
        | AgentEnd::Network { message }
        | AgentEnd::SignIn { message, .. }
        | AgentEnd::NoCredit { message }
        | AgentEnd::ModelUnknown { message }
        | AgentEnd::CannotStart { message }
        | AgentEnd::Internal { message }
        | AgentEnd::Silent { last_output: message, .. }
        | AgentEnd::Looped { call: message, .. } => *message = text(message),
        AgentEnd::Finished
        | AgentEnd::NoFinalMessage
        | AgentEnd::NoOutput
        | AgentEnd::NeverSpoke { .. }
        | AgentEnd::TimedOut { .. }
        | AgentEnd::Stopped => {}
        AgentEnd::PermissionDenied { tools } => tools.iter_mut().for_each(|tool| *tool = text(tool)),
    }
    end
}

fn stream_of(stream: Stream) -> transcript::Stream {
    match stream {
        Stream::Stdout => transcript::Stream::Out,
        Stream::Stderr => transcript::Stream::Err,
    }
}
