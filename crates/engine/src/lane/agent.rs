//! One call of an agent in the lane: prompt in, stream decoded and kept, all of it gone at the end.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ralphloop_agent::client::{Agent, Format, LONGEST_ARGUMENT, PromptDelivery};
use ralphloop_agent::decoder::{Clock, Decoder, Ending, LOOP_AFTER, ProcessEnd};
use ralphloop_agent::event::{AgentEvent, Stream as AgentStream};
use ralphloop_agent::prices::Prices;
use ralphloop_agent::prompt;
use ralphloop_core::effect::Brief;
use ralphloop_core::event::Fact;
use ralphloop_core::evidence::{AgentEnd, AgentReport, Claim, Usage};
use ralphloop_core::ids::{AgentId, AttemptId, CallNumber};
use ralphloop_core::outcome::Bound;
use ralphloop_core::relay::BATON;
use ralphloop_core::run::{Allowance, Run};
use tokio_util::sync::CancellationToken;

use super::Parts;
use super::recorder::Recorder;
use crate::inside::Handed;
use crate::process::{Exit, Running, StopLevel, Stream};
use crate::sandbox::Role;
use crate::settings::{Settings, Times};
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

/// A call of an agent, with all that it needs of the run.
pub(super) struct Calling {
    call: CallNumber,
    prompt: Result<String, String>,
    /// What it says is handed on to another role.
    hands_on: bool,
    pub(super) with: With,
}

/// Which agent is called, and within which bounds.
pub(super) struct With {
    pub(super) agent: Agent,
    times: Times,
    allowance: Allowance,
}

impl With {
    /// This agent, within the time and the budget that the run has left.
    pub(super) fn of(agent: Agent, run: &Run, settings: &Settings) -> Self {
        let time = run.time_left().map_or(settings.times.agent, |left| left.min(settings.times.agent));
        Self { agent, times: Times { agent: time, ..settings.times }, allowance: run.allowance() }
    }
}

impl Calling {
    /// The call of `agent`, within the time that the run has left.
    pub(super) fn of(
        call: CallNumber,
        agent: &AgentId,
        (prompt, hands_on): (Result<String, String>, bool),
        run: &Run,
        settings: &Settings,
    ) -> Self {
        // The run calls those of its chain and of its relay, which are those of the settings.
        let agent = settings.worker(agent).unwrap_or(settings.agents.first()).clone();
        Self { call, prompt, hands_on, with: With::of(agent, run, settings) }
    }
}

pub(super) async fn run(parts: &Parts, attempt: AttemptId, calling: Calling, cancel: CancellationToken) {
    let Calling { call, prompt, hands_on, with } = calling;
    let inside = parts.shared.inside.as_ref();
    let agent = Some(inside.map_or_else(|| with.agent.id(), |inside| AgentId(inside.name.clone())));
    let started = Fact::AgentStarted { attempt: attempt.clone(), call, agent: agent.clone() };
    let site = Site {
        attempt: &attempt,
        folder: &parts.work.project,
        transcript: transcript::path_of(parts.shared.folder.path(), &attempt, call),
        heard_as: Some(call),
        started,
    };
    let (report, message) = match prompt {
        Err(message) => (gone(AgentEnd::CannotStart { message }), String::new()),
        Ok(prompt) if let Some(inside) = inside => {
            let (folder, environment) = (parts.work.project.clone(), parts.environment.clone());
            let handed = inside.hand_over((&attempt, call), &prompt, folder, environment, with.times.agent);
            parts.shared.say(site.started.clone());
            match handed {
                Some(handed) => answered(parts, &site, &with, &prompt, handed, &cancel).await,
                None => (gone(AgentEnd::Stopped), String::new()),
            }
        }
        Ok(prompt) => carry_out(parts, &with, &prompt, site, cancel).await,
    };
    let handover = if hands_on { handed_on(&parts.shared.redact_text(&message)) } else { String::new() };
    let report = AgentReport { handover, ..report };
    parts.shared.say(Fact::AgentEnded { attempt, call, agent, report: Box::new(report) });
}

/// What the next role gets of a message: its end, which says what it comes to.
fn handed_on(message: &str) -> String {
    let message = message.trim();
    message[message.ceil_char_boundary(message.len().saturating_sub(BATON))..].to_owned()
}

/// Where a call happens, and what is told of it.
pub(super) struct Site<'a> {
    pub(super) attempt: &'a AttemptId,
    /// The folder that the agent works in.
    pub(super) folder: &'a Path,
    pub(super) transcript: PathBuf,
    /// As which call of the attempt views hear it talk, if they do.
    pub(super) heard_as: Option<CallNumber>,
    /// What is said once it runs.
    pub(super) started: Fact,
}

/// One call of an agent, from its start until all of it is gone: the report, and the whole final message if it finished.
pub(super) async fn carry_out(
    parts: &Parts,
    with: &With,
    prompt: &str,
    site: Site<'_>,
    cancel: CancellationToken,
) -> (AgentReport, String) {
    let began = Instant::now();
    let (report, message) = if fits(prompt, with.agent.invocation().prompt) {
        let sees = invoke::seen_by(&with.agent, &parts.shared.settings.passing.agents);
        let call = invoke::call(&with.agent, site.folder, prompt, &parts.environment, with.times, cancel).seeing(sees);
        let call = parts.confined(call, Role::Agent(&with.agent));
        match parts.shared.spawner.start(call).await {
            Err(error) => (gone(AgentEnd::CannotStart { message: error.to_string() }), String::new()),
            Ok(running) => {
                // Only for the case that this process and the agent's supervisor are killed at once.
                drop(parts.shared.folder.note_child(&running.record()));
                parts.shared.say(site.started.clone());
                watch(parts, &site, with, prompt, running, began).await
            }
        }
    } else {
        let message = format!("a prompt of {} bytes does not fit into an argument of a program", prompt.len());
        (gone(AgentEnd::PromptTooLong { message }), String::new())
    };
    (AgentReport { took: began.elapsed(), ..redacted(parts, report) }, message)
}

/// Whether the agent can be given so long a prompt.
fn fits(prompt: &str, delivery: PromptDelivery) -> bool {
    delivery != PromptDelivery::Argument || prompt.len() <= LONGEST_ARGUMENT
}

/// Why we ended the agent ourselves, if we did.
enum OurReason {
    Loop { call: String, times: u32 },
    Transcript { message: String },
    Budget { bound: Bound, message: String },
}

/// Which bound a call has passed that has used so much, if any.
fn over_budget(allowance: Allowance, prices: &Prices, model: Option<&str>, so_far: &Usage) -> Option<OurReason> {
    let over = |bound, what: String| {
        let message = format!("the agent was ended in the middle of its call: {what} were left with the margin");
        Some(OurReason::Budget { bound, message })
    };
    if let Some(most) = allowance.tokens
        && so_far.tokens() > most
    {
        return over(Bound::Tokens, format!("it had used {} tokens, and {most}", so_far.tokens()));
    }
    let cost = so_far.money().or_else(|| prices.at_least(model, so_far))?;
    match allowance.cost {
        Some(most) if cost > most => over(Bound::Cost, format!("it had cost {cost}, and {most}")),
        _ => None,
    }
}

async fn watch(
    parts: &Parts,
    site: &Site<'_>,
    with: &With,
    prompt: &str,
    mut running: Running,
    began: Instant,
) -> (AgentReport, String) {
    let agent = &with.agent;
    let mut ours = None;
    let mut transcript = begin_transcript(parts, site, &mut ours);
    let mut decoder = invoke::decoder(agent, site.folder, prompt);
    running.say(&decoder.replies());
    let mut events = Vec::new();
    let mut hurried = false;
    let mut unflushed = false;
    let mut model = agent.model.clone();
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
        invoke::converse(&mut decoder, &mut running, &chunk, &mut events);
        if let Some(recorder) = &transcript
            && recorder.write(stream_of(chunk.stream), chunk.bytes).await.is_err()
        {
            end_transcript(transcript.take(), &mut ours).await;
            running.stop(StopLevel::Gentle);
        }
        for event in events.drain(..) {
            match &event {
                AgentEvent::Ended { .. } => {
                    running.hang_up();
                    running.saw_final_event();
                }
                AgentEvent::Repeating { call, times } if ours.is_none() => {
                    ours = Some(OurReason::Loop { call: call.clone(), times: *times });
                    running.stop(StopLevel::Gentle);
                }
                AgentEvent::SessionStarted { model: Some(told), .. } => model = Some(told.clone()),
                AgentEvent::Usage { so_far } if ours.is_none() => {
                    ours = over_budget(with.allowance, &parts.shared.settings.prices, model.as_deref(), so_far);
                    if ours.is_some() {
                        running.stop(StopLevel::Gentle);
                    }
                }
                _ => {}
            }
            site.heard(parts, event);
        }
    }
    let ending = running.wait().await;
    let away = running.turned_away();
    if !away.is_empty() {
        parts.shared.notices.note(format!(
            "{}: the sandbox kept {} from reaching {}; sandbox_hosts names hosts that agents may reach",
            site.attempt,
            agent.id(),
            away.join(", ")
        ));
    }
    let mut excess = None;
    let process = match ending {
        Ok(ending) => {
            if let Exit::Exceeded(found) = ending.exit {
                excess = Some(found);
            }
            invoke::process_end(&ending)
        }
        Err(error) => return (gone(AgentEnd::Internal { message: error.to_string() }), String::new()),
    };
    let (mut report, message) = conclude(parts, site, agent, decoder, process, began);
    end_transcript(transcript, &mut ours).await;
    if let Some(excess) = excess {
        report.end = AgentEnd::Crashed { status: excess.to_string(), message: String::new() };
    }
    match ours {
        Some(OurReason::Loop { call, times }) => report.end = AgentEnd::Looped { call, times },
        Some(OurReason::Transcript { message }) => report.end = AgentEnd::Internal { message },
        // What came to its end before it could be ended has the usual end; the next call does not start.
        Some(OurReason::Budget { .. }) if report.end == AgentEnd::Finished => {}
        Some(OurReason::Budget { bound, message }) => report.end = AgentEnd::OverBudget { bound, message },
        None => {}
    }
    (report, message)
}

impl Site<'_> {
    fn heard(&self, parts: &Parts, event: AgentEvent) {
        if let Some(call) = self.heard_as {
            parts.shared.talk(self.attempt, call, event);
        }
    }
}

/// The use of an agent with what it comes to by list prices, if it does not say so itself.
pub(crate) fn priced(usage: Usage, model: Option<&str>, agent: &Agent, prices: &Prices) -> Usage {
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let billed = agent.client().is_some_and(|client| client.billed_by.iter().any(is_set));
    let estimate = match usage.cost {
        Some(_) => None,
        None => prices.cost(model.or(agent.model.as_deref()), &usage),
    };
    Usage { estimate, covered: usage.covered.filter(|_| !billed), ..usage }
}

/// Waits for what the session that drives the run has to say of a call; it reads like the output of a program that prints
/// its last words only.
async fn answered(
    parts: &Parts,
    site: &Site<'_>,
    with: &With,
    prompt: &str,
    handed: Handed,
    cancel: &CancellationToken,
) -> (AgentReport, String) {
    let began = Instant::now();
    let (words, process) = handed.ended(cancel).await;
    let mut ours = None;
    let transcript = begin_transcript(parts, site, &mut ours);
    let mut decoder = Decoder::new(Format::Text, prompt, LOOP_AFTER);
    let mut events = Vec::new();
    decoder.push(AgentStream::Stdout, words.as_bytes(), &mut events);
    events.drain(..).for_each(|event| site.heard(parts, event));
    if let Some(recorder) = &transcript {
        // Why it failed, the end of the transcript says.
        drop(recorder.write(transcript::Stream::Out, words.into_bytes()).await);
    }
    let (mut report, message) = conclude(parts, site, &with.agent, decoder, process, began);
    end_transcript(transcript, &mut ours).await;
    if let Some(OurReason::Transcript { message }) = ours {
        report.end = AgentEnd::Internal { message };
    }
    (AgentReport { took: began.elapsed(), ..redacted(parts, report) }, message)
}

/// What a call came to, once all of its words are read; and the whole final message of one that finished.
fn conclude(
    parts: &Parts,
    site: &Site<'_>,
    agent: &Agent,
    decoder: Decoder,
    process: ProcessEnd,
    began: Instant,
) -> (AgentReport, String) {
    let clock = Clock { now: clock::now(), zone: parts.shared.zone.clone() };
    let sign_in = agent.sign_in();
    let ending = Ending {
        process,
        story: &site.attempt.story,
        grammar: &parts.shared.settings.grammar,
        clock: &clock,
        took: began.elapsed(),
        sign_in: sign_in.as_deref(),
    };
    let mut events = Vec::new();
    let (mut report, message) = decoder.finish_with_message(ending, &mut events);
    for event in events {
        site.heard(parts, event);
    }
    report.usage = priced(report.usage, report.model.as_deref(), agent, &parts.shared.settings.prices);
    (report, message)
}

async fn end_transcript(transcript: Option<Recorder>, ours: &mut Option<OurReason>) {
    if let Some(recorder) = transcript
        && let Err(error) = recorder.finish().await
    {
        ours.get_or_insert(OurReason::Transcript { message: error.to_string() });
    }
}

fn begin_transcript(parts: &Parts, site: &Site<'_>, ours: &mut Option<OurReason>) -> Option<Recorder> {
    match Recorder::begin(site.transcript.clone(), parts.shared.redactor.clone()) {
        Ok(recorder) => Some(recorder),
        Err(error) => {
            *ours = Some(OurReason::Transcript { message: error.to_string() });
            None
        }
    }
}

/// A report of an agent of which nothing was seen.
pub(super) fn gone(end: AgentEnd) -> AgentReport {
    AgentReport {
        end,
        claim: Claim::None { near_miss: None },
        last_words: String::new(),
        handover: String::new(),
        usage: Usage::default(),
        took: Duration::ZERO,
        learnings: Vec::new(),
        model: None,
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
        model: report.model.as_deref().map(text),
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
        | AgentEnd::OverBudget { message, .. }
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
