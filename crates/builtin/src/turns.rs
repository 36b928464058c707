//! The loop: ask the model, carry out what it calls, tell it what came of that, until it has said its last word.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use genai::chat::{ChatMessage, Tool, ToolCall};
use ralphloop_agent::Class;
use ralphloop_agent::builtin::{Limits, Setup};
use ralphloop_engine::process::{Environment, Spawner};
use thiserror::Error;

use crate::conversation::{Conversation, Room};
use crate::failure::Failure;
use crate::instructions;
use crate::key::Secret;
use crate::model::{Answer, Model, Tokens};
use crate::stream::{End, Stream};
use crate::tools::{Returned, Toolbox, offered};
use crate::workspace::Workspace;

/// How often a request is sent again that failed for a reason that passes.
const TRIES: u32 = 3;
/// How long is waited here before one of them. What takes longer is left to whoever started the agent.
const PATIENCE: Duration = Duration::from_mins(1);
/// How often at most it is said that an answer is coming in.
const ALIVE: Duration = Duration::from_secs(1);
/// How often it is said that a tool is at work.
const AT_WORK: Duration = Duration::from_secs(5);
/// What the model is told if its answer was longer than it may be.
const GO_ON: &str = "Your answer was cut off, since it was as long as an answer may be. Go on, in smaller pieces.";

/// A piece of work for the agent.
#[derive(Debug)]
pub struct Work {
    /// Which model, and within what.
    pub setup: Setup,
    /// What is to be done.
    pub prompt: String,
    /// The folder that it works in.
    pub folder: PathBuf,
    /// What starts its commands.
    pub spawner: Spawner,
}

/// The agent cannot even say what is wrong.
#[derive(Debug, Error)]
pub enum WorkError {
    /// What it prints cannot be written.
    #[error("the agent's events cannot be written: {0}")]
    Output(#[from] io::Error),
    /// The folder cannot be used.
    #[error("the agent cannot work here: {0}")]
    Folder(String),
}

/// Does a piece of work, and writes what happens to `out`. However it ends, the last line says so.
///
/// # Errors
/// Nothing can be written, or the folder cannot be used.
pub async fn work(work: Work, out: impl Write) -> Result<(), WorkError> {
    let Work { setup, prompt, folder, spawner } = work;
    let workspace = Workspace::around(&folder).map_err(|error| WorkError::Folder(error.to_string()))?;
    let key = Secret::get(&setup.provider.key, &folder, &spawner).await;
    let redactor = match &key {
        Ok(key) => key.redactor(),
        Err(_) => ralphloop_agent::redact::Redactor::new(std::env::vars_os()),
    };
    let mut stream = Stream::new(out, redactor, setup.model_name());
    stream.begins()?;
    let started = match &key {
        Ok(key) => Model::new(&setup, key, stream.session()).map(|model| (key, model)).map_err(End::Failed),
        Err(why) => Err(End::NotStarted(Class::SignIn, why.to_string())),
    };
    let (key, model) = match started {
        Ok(started) => started,
        Err(end) => return Ok(stream.ends(&end, 0, None)?),
    };
    let environment = key.kept_from(Environment::inherited());
    let system = instructions::system(&workspace);
    let tools = offered();
    let fixed = system.len() + tools.iter().map(Tool::size).sum::<usize>();
    let mut turns = Turns {
        talk: Conversation::new(&prompt, fixed, &setup),
        toolbox: Toolbox { workspace, spawner, environment },
        stream,
        model,
        system,
        tools,
        limits: setup.limits,
        steps: 0,
        used: Some(Tokens::default()),
    };
    let end = match setup.limits.duration {
        None => turns.all().await?,
        Some(duration) => match tokio::time::timeout(duration, turns.all()).await {
            Ok(end) => end?,
            Err(_) => {
                End::Limit(format!("the time of the agent is up: {}s (builtin_max_duration)", duration.as_secs()))
            }
        },
    };
    Ok(turns.stream.ends(&end, turns.steps, turns.used)?)
}

struct Turns<W> {
    talk: Conversation,
    toolbox: Toolbox,
    stream: Stream<W>,
    model: Model,
    system: String,
    tools: Vec<Tool>,
    limits: Limits,
    /// How often the model has answered.
    steps: u32,
    /// What that took; none once an answer came of which it is not known.
    used: Option<Tokens>,
}

impl<W: Write> Turns<W> {
    async fn all(&mut self) -> io::Result<End> {
        loop {
            if let Some(limit) = self.limit() {
                return Ok(End::Limit(limit));
            }
            let answer = match self.next().await? {
                Ok(answer) => answer,
                Err(end) => return Ok(end),
            };
            let ids: Vec<String> = (1..=answer.calls.len()).map(|n| format!("call_{}_{n}", self.steps)).collect();
            self.stream.answered(self.steps, &answer, &ids)?;
            let Answer { text, calls, message, cut, tokens, .. } = answer;
            // A message without any content is refused by every provider when it is sent back.
            if !message.content.is_empty() {
                self.talk.answered(message, tokens.map(|tokens| tokens.sum()));
            }
            if calls.is_empty() {
                if cut {
                    self.talk.said(GO_ON);
                    continue;
                }
                return Ok(End::Finished(text));
            }
            let mut results = Vec::new();
            for (call, id) in calls.into_iter().zip(&ids) {
                let result = self.carry_out(&call).await?;
                self.stream.tool_returned(id, &result)?;
                results.push((call, result.unwrap_or_else(|why| format!("Error: {why}"))));
            }
            self.talk.returned(results);
        }
    }

    /// What a call comes to. A command that is silent for long is no agent that hangs: whoever watches is told so meanwhile.
    async fn carry_out(&mut self, call: &ToolCall) -> io::Result<Returned> {
        let mut running = std::pin::pin!(self.toolbox.call(call));
        loop {
            match tokio::time::timeout(AT_WORK, &mut running).await {
                Ok(returned) => return Ok(returned),
                Err(_) => self.stream.alive()?,
            }
        }
    }

    /// The limit that is reached, if one is.
    fn limit(&self) -> Option<String> {
        let Limits { steps, tokens, .. } = self.limits;
        if self.steps >= steps {
            return Some(format!("the agent has used its {steps} steps (builtin_max_steps) without coming to an end"));
        }
        let used = self.used.unwrap_or_default().sum();
        let most = tokens.filter(|most| used >= *most)?;
        Some(format!("the agent has used {used} tokens of {most} (builtin_max_tokens) without coming to an end"))
    }

    /// The next answer, after room was made for it if there was none.
    async fn next(&mut self) -> io::Result<Result<Answer, End>> {
        let mut overflowed = false;
        loop {
            match self.talk.make_room() {
                Room::Enough => {}
                Room::Made => self.stream.notice("older results of tools were left out to make room")?,
                Room::Wanted => {
                    let request = self.talk.for_summary();
                    let summary = self.ask(&request).await?;
                    // A summary that cannot be had is no reason to end: the files are still there.
                    self.talk.sum_up(summary.ok().as_ref().map(|answer| answer.text.as_str()));
                    self.stream.notice("the older part of the conversation was summed up to make room")?;
                }
            }
            let messages = self.talk.messages().to_vec();
            match self.ask(&messages).await? {
                Err(failure) if failure.class == Some(Class::PromptTooLong) && !overflowed => {
                    overflowed = true;
                    self.talk.overflowed();
                }
                answer => return Ok(answer.map_err(End::Failed)),
            }
        }
    }

    /// One answer. What fails for a reason that passes is tried again.
    async fn ask(&mut self, messages: &[ChatMessage]) -> io::Result<Result<Answer, Failure>> {
        let mut tries = 0;
        loop {
            let Self { model, stream, system, tools, .. } = self;
            let (mut told, mut broken) = (Instant::now(), None);
            let alive = || {
                if told.elapsed() >= ALIVE {
                    told = Instant::now();
                    broken = stream.alive().err();
                }
            };
            let answer = model.ask(system, messages, tools, alive).await;
            if let Some(error) = broken {
                return Err(error);
            }
            let failure = match answer {
                Ok(answer) => {
                    self.steps += 1;
                    self.used = self.used.zip(answer.tokens).map(|(used, tokens)| used.plus(tokens));
                    return Ok(Ok(answer));
                }
                Err(failure) => failure,
            };
            let Some(wait) = failure.wait(tries, PATIENCE).filter(|_| tries < TRIES) else { return Ok(Err(failure)) };
            tries += 1;
            self.stream.tries_again(&failure, (tries, TRIES), wait)?;
            tokio::time::sleep(wait).await;
        }
    }
}
