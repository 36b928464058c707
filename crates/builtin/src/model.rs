//! A model of a provider, asked one step at a time.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use genai::adapter::AdapterKind;
use genai::chat::{
    CacheControl, ChatMessage, ChatOptions, ChatRequest, ChatStreamEvent, ContentPart, MessageContent, ReasoningEffort,
    StopReason, Tool, ToolCall, Usage,
};
use genai::resolver::{AuthData, Endpoint};
use genai::{Client, ModelIden, ServiceTarget};
use ralphloop_agent::builtin::{Effort, Protocol, Setup};
use serde_json::json;

use crate::conversation::ANSWER;
use crate::failure::Failure;
use crate::key::Secret;

/// How long a connection may take to stand.
const CONNECT: Duration = Duration::from_secs(30);
/// How the names of `OpenAI`'s models begin that think before they answer.
const THINKING: &[&str] = &["gpt-5", "gpt-6", "o1", "o3", "o4", "codex"];
/// How the names of Anthropic's models begin of which the client knows that their answers are shorter than [`ANSWER`].
const SHORT_ANSWERS: &[&str] = &["claude-3-5", "claude-3-haiku", "claude-3-opus", "claude-3-sonnet"];
/// The kind of the event by which a Responses stream tells that it failed.
const FAILED: &str = "response.failed";

/// Tokens of one answer, or of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Tokens {
    /// Tokens read, those of the cache included.
    pub(crate) input: u64,
    /// Of these, what came from the provider's cache.
    pub(crate) cache_read: u64,
    /// Of these, what was put into it.
    pub(crate) cache_written: u64,
    /// Tokens written.
    pub(crate) output: u64,
}

impl Tokens {
    fn of(usage: &Usage) -> Option<Self> {
        usage.prompt_tokens.or(usage.completion_tokens)?;
        let count = |tokens: Option<i32>| tokens.and_then(|tokens| u64::try_from(tokens).ok()).unwrap_or(0);
        let details = usage.prompt_tokens_details.as_ref();
        Some(Self {
            input: count(usage.prompt_tokens),
            cache_read: count(details.and_then(|details| details.cached_tokens)),
            cache_written: count(details.and_then(|details| details.cache_creation_tokens)),
            output: count(usage.completion_tokens),
        })
    }

    /// Tokens read that have nothing to do with a cache.
    pub(crate) fn fresh(&self) -> u64 {
        self.input.saturating_sub(self.cache_read).saturating_sub(self.cache_written)
    }

    /// All of them.
    pub(crate) fn sum(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// Both together.
    #[must_use]
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            input: self.input + other.input,
            cache_read: self.cache_read + other.cache_read,
            cache_written: self.cache_written + other.cache_written,
            output: self.output + other.output,
        }
    }
}

/// What the model answered.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// What it said.
    pub(crate) text: String,
    /// What it thought aloud.
    pub(crate) thoughts: String,
    /// The tools that it calls.
    pub(crate) calls: Vec<ToolCall>,
    /// All of it, as it has to be sent back with the next request.
    pub(crate) message: ChatMessage,
    /// It ended because it was as long as it may be.
    pub(crate) cut: bool,
    /// What it took; none where the provider does not say.
    pub(crate) tokens: Option<Tokens>,
}

/// A model that can be asked.
pub(crate) struct Model {
    client: Client,
    target: ServiceTarget,
    options: ChatOptions,
    protocol: Protocol,
    /// The last event by which a stream told that it failed.
    told: Arc<Mutex<Option<String>>>,
}

impl Model {
    /// The model of `setup`, asked with `key`; `session` names the piece of work, for the provider's cache.
    ///
    /// # Errors
    /// The program for connections cannot be set up.
    pub(crate) fn new(setup: &Setup, key: &Secret, session: &str) -> Result<Self, Failure> {
        let provider = &setup.provider;
        let (kind, protocol) = (kind_of(provider.protocol), provider.protocol);
        let target = ServiceTarget {
            endpoint: Endpoint::from_owned(format!("{}/", provider.url.trim_end_matches('/'))),
            auth: AuthData::from_single(key.reveal()),
            model: ModelIden::new(kind, setup.model.as_str()),
        };
        // Whichever provider of ciphers was there first is as good.
        drop(rustls::crypto::ring::default_provider().install_default());
        let http = reqwest::Client::builder().connect_timeout(CONNECT).build();
        let http = http.map_err(|error| Failure::network(format!("no connections can be made: {error}")))?;
        let told = Arc::new(Mutex::new(None));
        let heard = Arc::clone(&told);
        let mut options = ChatOptions::default()
            .with_capture_usage(true)
            .with_capture_content(true)
            .with_capture_tool_calls(true)
            .with_capture_reasoning_content(sends_thoughts_back(protocol, &setup.model))
            .with_raw_frame_fn(move |_, frame| {
                if frame.event == Some(FAILED) || frame.data.contains(FAILED) {
                    *heard.lock().unwrap_or_else(PoisonError::into_inner) = Some(frame.data.to_owned());
                }
            });
        if let Some(effort) = setup.effort {
            options = options.with_reasoning_effort(effort_of(effort));
        } else if matches!(protocol, Protocol::Responses | Protocol::ChatCompletions) {
            // Of a name such as `…-max` the client would make a shorter one and an effort, but for those who gave one. This
            // one is of a form that these protocols do not have, and is not sent.
            options = options.with_reasoning_effort(ReasoningEffort::Budget(0));
        }
        if protocol == Protocol::Responses {
            // With thoughts, the client asks for a summary of them too, which not every account may have.
            let reasoning = setup.effort.map_or_else(|| json!({}), |effort| json!({ "effort": effort }));
            options = options.with_prompt_cache_key(session).with_extra_body(json!({ "reasoning": reasoning }));
        }
        if let Some(most) = provider.max_output.or_else(|| longest_answer(protocol, &setup.model)) {
            options = options.with_max_tokens(most);
        }
        Ok(Self {
            client: Client::builder().with_reqwest(http).build().map_err(|error| Failure::of(&error, None))?,
            target,
            options,
            protocol,
            told,
        })
    }

    /// Asks for the next step. `alive` is called as pieces of the answer come.
    ///
    /// # Errors
    /// The provider refused, or the answer broke off.
    pub(crate) async fn ask(
        &self,
        system: &str,
        messages: &[ChatMessage],
        tools: &[Tool],
        mut alive: impl FnMut(),
    ) -> Result<Answer, Failure> {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let request = self.request(system, messages, tools);
        let stream = self.client.exec_chat_stream(self.target.clone(), request, Some(&self.options)).await;
        let mut stream = stream.map_err(|error| self.failure(&error))?.stream;
        let (mut text, mut thoughts) = (String::new(), String::new());
        while let Some(event) = stream.next().await {
            match event.map_err(|error| self.failure(&error))? {
                ChatStreamEvent::Chunk(chunk) => text.push_str(&chunk.content),
                ChatStreamEvent::ReasoningChunk(chunk) => thoughts.push_str(&chunk.content),
                ChatStreamEvent::End(end) => {
                    let has_reason = end.captured_stop_reason.is_some();
                    // Of these two the client makes an end of its own where the connection ends too early.
                    if !has_reason && matches!(self.protocol, Protocol::Responses | Protocol::Gemini) {
                        break;
                    }
                    let cut = matches!(end.captured_stop_reason, Some(StopReason::MaxTokens(_)));
                    let tokens = end.captured_usage.as_ref().and_then(Tokens::of);
                    let content = sendable(end.captured_content.unwrap_or_default());
                    let calls = content.tool_calls().into_iter().cloned().collect();
                    let message = ChatMessage::assistant(content);
                    return Ok(Answer { text, thoughts, calls, message, cut, tokens });
                }
                _ => {}
            }
            alive();
        }
        Err(Failure::network("the provider's answer broke off"))
    }

    fn failure(&self, error: &genai::Error) -> Failure {
        Failure::of(error, self.told.lock().unwrap_or_else(PoisonError::into_inner).as_deref())
    }

    fn request(&self, system: &str, messages: &[ChatMessage], tools: &[Tool]) -> ChatRequest {
        let mut system = ChatMessage::system(system);
        let mut messages = messages.to_vec();
        // What never changes, and all that was said so far: the next request reads both from the cache. The other
        // protocols have a cache that needs no marks.
        if self.protocol == Protocol::Messages {
            system = system.with_options(CacheControl::Ephemeral);
            if let Some(last) = messages.pop() {
                messages.push(last.with_options(CacheControl::Ephemeral));
            }
        }
        messages.insert(0, system);
        ChatRequest::new(messages).with_tools(tools.iter().cloned())
    }
}

/// Whether what the model thought is sent back with the next request, as the protocols want it of models that think. Others
/// refuse to be asked for it, and so do servers that only resemble the first of their kind.
fn sends_thoughts_back(protocol: Protocol, model: &str) -> bool {
    match protocol {
        Protocol::Messages | Protocol::Gemini => true,
        Protocol::Responses => THINKING.iter().any(|beginning| model.starts_with(beginning)),
        Protocol::ChatCompletions => false,
    }
}

/// How long an answer may be where the settings do not say, if the protocol wants it said. Anthropic refuses a request whose
/// input and longest answer together are more than the model can read, so that what the client would say is too much.
fn longest_answer(protocol: Protocol, model: &str) -> Option<u32> {
    let is_short = SHORT_ANSWERS.iter().any(|beginning| model.starts_with(beginning));
    (protocol == Protocol::Messages && !is_short).then_some(ANSWER)
}

fn effort_of(effort: Effort) -> ReasoningEffort {
    match effort {
        Effort::None => ReasoningEffort::Zero,
        Effort::Minimal => ReasoningEffort::Minimal,
        Effort::Low => ReasoningEffort::Low,
        Effort::Medium => ReasoningEffort::Medium,
        Effort::High => ReasoningEffort::High,
        Effort::XHigh => ReasoningEffort::XHigh,
        Effort::Max => ReasoningEffort::Max,
    }
}

fn kind_of(protocol: Protocol) -> AdapterKind {
    match protocol {
        Protocol::Messages => AdapterKind::Anthropic,
        Protocol::Responses => AdapterKind::OpenAIResp,
        Protocol::ChatCompletions => AdapterKind::OpenAI,
        Protocol::Gemini => AdapterKind::Gemini,
    }
}

/// A call whose arguments are no object stays one that can be sent back: the provider would refuse the whole conversation.
/// What the model wrote is told with the call's result.
fn sendable(content: MessageContent) -> MessageContent {
    let part = |part| match part {
        ContentPart::ToolCall(mut call) if !call.fn_arguments.is_object() => {
            let written = match &call.fn_arguments {
                serde_json::Value::Null => json!({}),
                serde_json::Value::String(text) if text.trim().is_empty() => json!({}),
                other => json!({ UNREADABLE: other }),
            };
            call.fn_arguments = written;
            ContentPart::ToolCall(call)
        }
        part => part,
    };
    MessageContent::from_parts(content.into_parts().into_iter().map(part).collect::<Vec<_>>())
}

/// The name under which arguments stand that are no object.
pub(crate) const UNREADABLE: &str = "unreadable_arguments";
