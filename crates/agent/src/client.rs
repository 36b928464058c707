//! An agent as it was chosen, and how it is started.

use std::path::Path;

use ralphloop_core::agent_name::{AgentName, Effort};
use ralphloop_core::ids::AgentId;
use serde::{Deserialize, Serialize};

use crate::builtin::{self, KNOWN_PROVIDERS, Limits, Provider, Setup};
pub use crate::choice_error::AgentError;
use crate::choice_error::as_model;
pub use crate::clients::{Efforts, Endpoint, KNOWN, KnownClient, Reports, SignIn, Source};

/// How an agent's output reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// The `stream-json` lines of Claude Code, and of Qwen Code, Amp and Cursor, which write the same.
    Claude,
    /// The lines of `codex exec --json`.
    Codex,
    /// The lines of `opencode run --format json`.
    OpenCode,
    /// The `stream-json` lines of Gemini CLI.
    Gemini,
    /// The lines of `copilot --output-format json`.
    Copilot,
    /// The lines of `pi --mode json`.
    Pi,
    /// The Agent Client Protocol, of any agent that speaks it on its standard streams.
    Acp,
    /// Plain text.
    Text,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 8] =
        [Self::Claude, Self::Codex, Self::OpenCode, Self::Gemini, Self::Copilot, Self::Pi, Self::Acp, Self::Text];

    /// As written on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::OpenCode => "opencode",
            Self::Gemini => "gemini",
            Self::Copilot => "copilot",
            Self::Pi => "pi",
            Self::Acp => "acp",
            Self::Text => "text",
        }
    }
}

impl Format {
    /// How a stream reads that begins so, told by its first events.
    pub fn of_stream(beginning: &[u8]) -> Self {
        let text = String::from_utf8_lossy(beginning);
        let events = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        for event in events.filter(serde_json::Value::is_object) {
            let kind = event["type"].as_str().unwrap_or_default();
            let has = |key: &str| event.get(key).is_some();
            match kind {
                _ if event["jsonrpc"] == "2.0" => return Self::Acp,
                "thread.started" | "turn.started" | "item.started" | "item.completed" => return Self::Codex,
                "init" | "message" if has("session_id") || has("role") => return Self::Gemini,
                "session" | "agent_start" | "message_end" => return Self::Pi,
                _ if has("sessionID") => return Self::OpenCode,
                _ if kind.starts_with("session.") || kind.starts_with("user.message") => return Self::Copilot,
                "system" | "assistant" | "user" | "result" => return Self::Claude,
                _ => {}
            }
        }
        if text.trim_start().starts_with('{') { Self::Claude } else { Self::Text }
    }
}

impl std::str::FromStr for Format {
    type Err = AgentError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let format = Self::ALL.into_iter().find(|format| format.as_str() == name.trim());
        format.ok_or_else(|| AgentError::UnknownFormat {
            name: name.to_owned(),
            known: Self::ALL.map(Self::as_str).join(", "),
        })
    }
}

/// An agent of the user's own, as a table `[agents.NAME]` describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnClient {
    /// What it is called.
    pub name: String,
    /// The command line, split into words as a shell would.
    pub command: String,
    /// How its output reads.
    pub format: Format,
    /// The flag that is followed by a model; none if no model can be chosen.
    pub model_flag: Option<String>,
    /// The flag that is followed by an effort; none if no effort can be chosen.
    pub effort_flag: Option<String>,
    /// How it gets the prompt.
    pub prompt: PromptDelivery,
}

/// What the name of an agent is looked up in, beside the known ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roster {
    /// Agents of the user's own. One hides a known agent of the same name.
    pub own: Vec<OwnClient>,
    /// Providers of the user's own, for the built-in agent. One hides a known provider of the same name.
    pub providers: Vec<Provider>,
    /// Within what the built-in agent stays.
    pub limits: Limits,
    /// The program that is the built-in agent: this one.
    pub program: String,
}

impl Default for Roster {
    /// Nothing of the user's own.
    fn default() -> Self {
        let program = KNOWN.iter().find(|client| client.is_built_in()).map_or(builtin::NAME, |client| client.program);
        Self { own: Vec::new(), providers: Vec::new(), limits: Limits::default(), program: program.to_owned() }
    }
}

impl Roster {
    fn setup(&self, model: Option<&str>, effort: Option<Effort>) -> Result<Setup, AgentError> {
        let (name, model) = model.and_then(|model| model.split_once('/')).ok_or(AgentError::NoProvider)?;
        if name.is_empty() || model.is_empty() {
            return Err(AgentError::NoProvider);
        }
        let own = self.providers.iter().find(|own| own.name == name).cloned();
        let provider = own.or_else(|| Provider::known(name)).ok_or_else(|| {
            let own = self.providers.iter().map(|own| own.name.as_str());
            let known = own.chain(KNOWN_PROVIDERS.iter().map(|known| known.name)).collect::<Vec<_>>().join(", ");
            AgentError::UnknownProvider { name: name.to_owned(), known }
        })?;
        Ok(Setup { provider, model: model.to_owned(), effort, limits: self.limits })
    }
}

/// An agent as the user chose it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// How it is called in messages and commits: the known name, or the program.
    pub name: String,
    /// The model that was asked for.
    pub model: Option<String>,
    /// The effort that was asked for.
    pub effort: Option<Effort>,
    /// How its output reads.
    pub format: Format,
    program: String,
    arguments: Vec<String>,
    prompt: PromptDelivery,
    /// Its client, if it was chosen by the name of one; otherwise it is started by a command, with no arguments but its
    /// own.
    client: Option<&'static KnownClient>,
    /// What the built-in agent is told of itself, if it is that one.
    setup: Option<Box<Setup>>,
}

/// How a process is to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// The program: a path, or a name to be found on the path.
    pub program: String,
    /// Its arguments, without the prompt.
    pub arguments: Vec<String>,
    /// How it gets the prompt.
    pub prompt: PromptDelivery,
    /// Variables that are taken out of its environment.
    pub env_remove: &'static [&'static str],
    /// Variables that it gets, unless the user has set them.
    pub env_default: &'static [(&'static str, &'static str)],
}

/// The longest prompt that fits into an argument, in bytes; the system allows no more.
pub const LONGEST_ARGUMENT: usize = 128 * 1024 - 1;

/// How an agent gets its prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PromptDelivery {
    /// On standard input, which is then closed.
    Stdin,
    /// As its last argument, for a client that reads none from standard input. It is limited to [`LONGEST_ARGUMENT`]
    /// and shows in the list of processes.
    Argument,
    /// In the conversation that its format is; standard input stays open until the turn is over.
    Conversation,
}

/// The marks that an agent's session leaves in the environment of what it starts, by which another agent refuses to
/// start or behaves as a part of the first. Keys, endpoints and settings of the user are none of these.
pub const SESSION_VARIABLES: &[&str] = &[
    "CLAUDECODE",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_SSE_PORT",
    "CLAUDE_CODE_SESSION_ID",
    "CODEX_SANDBOX",
    "CODEX_SANDBOX_NETWORK_DISABLED",
    "GEMINI_CLI",
    "QWEN_CODE",
    "OPENCODE",
    "CURSOR_AGENT",
];

impl Agent {
    /// A known agent, as an [`AgentName`] is written.
    ///
    /// # Errors
    /// No client has that name ([`AgentError::UnknownAgent`]).
    pub fn named(choice: &str) -> Result<Self, AgentError> {
        Self::chosen(choice, &Roster::default())
    }

    /// One of the user's own agents, or a known one, as an [`AgentName`] is written.
    ///
    /// # Errors
    /// Nothing has that name, or what has it cannot be started so.
    pub fn chosen(choice: &str, roster: &Roster) -> Result<Self, AgentError> {
        let own = &roster.own;
        let choice: AgentName = choice.parse()?;
        let AgentName { name, model, effort } = &choice;
        if let Some(client) = own.iter().find(|client| client.name == *name) {
            return Self::own(client, &choice);
        }
        let Some(client) = KNOWN.iter().find(|client| client.name == name) else {
            let names = || own.iter().map(|client| client.name.as_str()).chain(KNOWN.iter().map(|client| client.name));
            return Err(AgentError::UnknownAgent {
                name: name.clone(),
                meant: closest(name, names()).map(str::to_owned),
                known: names().collect::<Vec<_>>().join(", "),
            });
        };
        let mut arguments: Vec<String> = client.arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let setup = client.is_built_in().then(|| roster.setup(model.as_deref(), *effort)).transpose()?;
        if let Some(setup) = &setup {
            // All of it are names, numbers and texts, which JSON can hold.
            arguments.push(serde_json::to_string(setup).unwrap_or_default());
        }
        if let Some(model) = model {
            arguments.extend([client.model_flag.to_owned(), model.clone()]);
        }
        if let Some(effort) = *effort {
            arguments.extend(effort_arguments(client, effort, &choice)?);
        }
        Ok(Self {
            name: client.name.to_owned(),
            format: client.format,
            program: if client.is_built_in() { roster.program.clone() } else { client.program.to_owned() },
            arguments,
            prompt: client.prompt,
            client: Some(client),
            setup: setup.map(Box::new),
            model: choice.model,
            effort: choice.effort,
        })
    }

    fn own(client: &OwnClient, choice: &AgentName) -> Result<Self, AgentError> {
        let mut agent = Self::command(&client.command, client.format)?;
        agent.name.clone_from(&client.name);
        // A conversation has its own way to give it.
        if agent.prompt != PromptDelivery::Conversation {
            agent.prompt = client.prompt;
        }
        if let Some(model) = &choice.model {
            let name = || client.name.clone();
            let flag = client.model_flag.as_ref().ok_or_else(|| AgentError::TakesNoModel { name: name() })?;
            agent.arguments.extend([flag.clone(), model.clone()]);
            agent.model = Some(model.clone());
        }
        if let Some(effort) = choice.effort {
            let flag = client.effort_flag.as_ref().ok_or_else(|| AgentError::TakesNoEffort {
                agent: client.name.clone(),
                asked: choice.to_string(),
                effort,
                remedy: format!("give its table an effort_flag, {}", as_model(choice)),
            })?;
            agent.arguments.extend([flag.clone(), effort.to_string()]);
            agent.effort = Some(effort);
        }
        Ok(agent)
    }

    /// The same agent with further arguments after its own. A program that is no known client has none but those of its
    /// command: of it, nothing changes.
    ///
    /// # Errors
    /// An argument is one that the client's own arguments settle ([`AgentError::ReservedArgument`]).
    pub fn with_arguments(mut self, extra: &[String]) -> Result<Self, AgentError> {
        let Some(client) = self.client else { return Ok(self) };
        for argument in extra {
            let flag = argument.split_once('=').map_or(argument.as_str(), |(flag, _)| flag);
            // The built-in agent is set by settings alone.
            if client.is_built_in() || client.reserved.contains(&flag) || flag == client.model_flag {
                return Err(AgentError::ReservedArgument {
                    agent: self.name,
                    argument: argument.clone(),
                    flag: flag.to_owned(),
                });
            }
            if self.effort.is_some() && client.efforts.as_ref().is_some_and(|efforts| efforts.is_set_by(argument)) {
                return Err(AgentError::EffortTwice { agent: self.id().to_string(), argument: argument.clone() });
            }
        }
        self.arguments.extend(extra.iter().cloned());
        Ok(self)
    }

    /// Any program, with exactly the arguments that `command` names: it is split like a shell splits words, and
    /// nothing is added, so that a wrapper decides itself what it passes on. It gets the prompt on standard input.
    ///
    /// # Errors
    /// The command has no word, or its quotes do not match.
    pub fn command(command: &str, format: Format) -> Result<Self, AgentError> {
        let mut words = shell_words::split(command)
            .map_err(|error| AgentError::BadCommand { command: command.to_owned(), why: error.to_string() })?
            .into_iter();
        let program = words.next().filter(|program| !program.trim().is_empty()).ok_or(AgentError::EmptyCommand)?;
        let name = program.rsplit('/').next().unwrap_or(&program).to_owned();
        Ok(Self {
            name,
            model: None,
            effort: None,
            format,
            program,
            arguments: words.collect(),
            prompt: if format == Format::Acp { PromptDelivery::Conversation } else { PromptDelivery::Stdin },
            client: None,
            setup: None,
        })
    }

    /// What it is called in journals, messages and commits, as an [`AgentName`] is written.
    pub fn id(&self) -> AgentId {
        let Self { name, model, effort, .. } = self;
        AgentId(AgentName { name: name.clone(), model: model.clone(), effort: *effort }.to_string())
    }

    /// The same agent, to be started in another folder than the project's: a program that is named by a relative path is that
    /// of `project` still.
    #[must_use]
    pub fn away_from(mut self, project: &Path) -> Self {
        if self.program.contains('/') && Path::new(&self.program).is_relative() {
            self.program = project.join(&self.program).to_string_lossy().into_owned();
        }
        self
    }

    /// Its client, if it was chosen by the name of a known one.
    pub fn client(&self) -> Option<&'static KnownClient> {
        self.client
    }

    /// What a user should know before it is let loose; nothing of a program that the user's own command starts.
    pub fn caution(&self) -> Option<&'static str> {
        self.client.map(|client| client.caution)
    }

    /// What it reports of its use.
    pub fn reports(&self) -> Reports {
        match (self.client, self.format) {
            (Some(client), _) => client.usage,
            (None, Format::Claude | Format::OpenCode | Format::Pi) => Reports::TokensAndCost,
            (None, Format::Codex | Format::Gemini) => Reports::Tokens,
            (None, Format::Copilot | Format::Acp | Format::Text) => Reports::Nothing,
        }
    }

    /// What signs it in, if it is a known client.
    pub fn sign_in(&self) -> Option<String> {
        match self.setup() {
            Some(Setup { provider, .. }) => Some(provider.key.remedy(&provider.name)),
            None => self.client.map(|client| client.sign_in.command.to_owned()),
        }
    }

    /// What the built-in agent is told of itself, if it is that one.
    pub fn setup(&self) -> Option<&Setup> {
        self.setup.as_deref()
    }

    /// How it is started.
    pub fn invocation(&self) -> Invocation {
        let last = self.client.map_or(&[][..], |client| client.last_arguments).iter().map(|last| (*last).to_owned());
        Invocation {
            program: self.program.clone(),
            arguments: self.arguments.iter().cloned().chain(last).collect(),
            prompt: self.prompt,
            env_remove: SESSION_VARIABLES,
            env_default: self.client.map_or(&[], |client| client.environment),
        }
    }
}

/// What tells the client the effort.
fn effort_arguments(client: &KnownClient, effort: Effort, choice: &AgentName) -> Result<Vec<String>, AgentError> {
    let agent = || client.name.to_owned();
    let Some(efforts) = &client.efforts else {
        let (asked, remedy) = (choice.to_string(), as_model(choice));
        return Err(AgentError::TakesNoEffort { agent: agent(), asked, effort, remedy });
    };
    if !efforts.levels.contains(&effort) {
        let known = efforts.levels.iter().map(|level| level.as_str()).collect::<Vec<_>>().join(", ");
        return Err(AgentError::UnknownEffort { agent: agent(), effort, known });
    }
    Ok(efforts.flag.iter().flat_map(|flag| [(*flag).to_owned(), format!("{}{effort}", efforts.key)]).collect())
}

/// The known name that `name` is most likely meant to be.
fn closest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let scored = known.map(|candidate| (candidate, strsim::jaro_winkler(&name.to_lowercase(), candidate)));
    scored.filter(|(_, score)| *score > 0.8).max_by(|a, b| a.1.total_cmp(&b.1)).map(|(candidate, _)| candidate)
}

#[cfg(test)]
mod tests {
    use ralphloop_core::agent_name::NoAgentName;

    use super::*;

    #[test]
    fn r24_claude_is_started_with_streaming_output_and_without_questions() {
        let agent = Agent::named("claude:opus").unwrap();
        let invocation = agent.invocation();
        assert_eq!(invocation.program, "claude");
        assert_eq!(
            invocation.arguments.join(" "),
            "-p --output-format stream-json --verbose --dangerously-skip-permissions --model opus"
        );
        assert_eq!(invocation.prompt, PromptDelivery::Stdin);
        assert!(!Agent::named("claude").unwrap().invocation().arguments.contains(&"--model".to_owned()));
    }

    #[test]
    fn r22_the_prompt_is_no_argument_and_every_call_is_a_session_of_its_own() {
        let arguments = Agent::named("claude").unwrap().invocation().arguments;
        assert!(!arguments.iter().any(|argument| argument.contains("resume") || argument.contains("continue")));
    }

    #[test]
    fn an_unknown_agent_is_an_error_that_lists_the_known_ones() {
        let error = Agent::named("nobody").unwrap_err().to_string();
        assert!(error.contains("nobody") && error.contains("claude") && error.contains("--agent-command"), "{error}");
        let error = "morse".parse::<Format>().unwrap_err().to_string();
        assert!(error.contains("claude, codex, opencode"), "{error}");
    }

    #[test]
    fn a_name_that_is_mistyped_is_answered_with_the_one_that_was_meant() {
        for (typed, meant) in [("cluade", "claude"), ("codx", "codex"), ("Gemini", "gemini"), ("opencoed", "opencode")]
        {
            let error = Agent::named(typed).unwrap_err().to_string();
            assert!(error.contains(&format!("did you mean {meant}?")), "{error}");
        }
        assert!(!Agent::named("zzz").unwrap_err().to_string().contains("did you mean"));
    }

    #[test]
    fn an_agent_of_the_users_own_hides_a_known_one_and_takes_a_model_only_by_its_flag() {
        let own = OwnClient {
            name: "codex".to_owned(),
            command: "local --url http://127.0.0.1:1".to_owned(),
            format: Format::Text,
            model_flag: Some("--use".to_owned()),
            effort_flag: None,
            prompt: PromptDelivery::Argument,
        };
        let roster = |own: OwnClient| Roster { own: vec![own], ..Roster::default() };
        let agent = Agent::chosen("codex:small:7b", &roster(own.clone())).unwrap();
        let invocation = agent.invocation();
        assert_eq!((agent.name.as_str(), agent.format, agent.caution()), ("codex", Format::Text, None));
        assert_eq!(invocation.program, "local");
        assert_eq!(invocation.arguments, ["--url", "http://127.0.0.1:1", "--use", "small:7b"]);
        assert_eq!(invocation.prompt, PromptDelivery::Argument);
        let deep = OwnClient { effort_flag: Some("--think".to_owned()), ..own.clone() };
        let agent = Agent::chosen("codex:small:7b:max", &roster(deep)).unwrap();
        assert_eq!(agent.invocation().arguments[2..], ["--use", "small:7b", "--think", "max"]);
        assert_eq!(agent.id().as_str(), "codex:small:7b:max");
        let error = Agent::chosen("codex:small:max", &roster(own.clone())).unwrap_err().to_string();
        assert!(error.contains("effort_flag") && error.contains("codex:small:max:"), "{error}");
        let own = OwnClient { model_flag: None, ..own };
        assert!(matches!(Agent::chosen("codex:x", &roster(own)), Err(AgentError::TakesNoModel { .. })));
    }

    #[test]
    fn each_client_is_told_the_effort_in_its_own_way_and_one_without_refuses_it() {
        for (choice, told) in [
            ("claude:opus:max", "--model opus --effort max"),
            ("claude::low", "--effort low"),
            ("codex:gpt-5:high", "--model gpt-5 -c model_reasoning_effort=high -"),
            ("opencode:openai/gpt-5:minimal", "--model openai/gpt-5 --variant minimal"),
            ("copilot::none", "--reasoning-effort none"),
            ("pi:x:xhigh", "--model x --thinking xhigh"),
        ] {
            let agent = Agent::named(choice).unwrap();
            assert!(agent.invocation().arguments.join(" ").ends_with(told), "{:?}", agent.invocation());
            assert_eq!(agent.id().as_str(), choice);
        }
        let setup = Agent::named("builtin:openai/gpt-5:high").unwrap().setup().cloned().unwrap();
        assert_eq!((setup.model.as_str(), setup.effort), ("gpt-5", Some(Effort::High)));
        for client in KNOWN.iter().filter(|client| client.efforts.is_none()) {
            let error = Agent::named(&format!("{}:m:high", client.name)).unwrap_err().to_string();
            assert!(error.contains("cannot be told") && error.contains(&format!("{}:m:high:", client.name)), "{error}");
        }
        let error = Agent::named("pi::max").unwrap_err().to_string();
        assert!(error.contains("minimal, low"), "{error}");
        assert_eq!(Agent::named("claude:"), Err(AgentError::NoName(NoAgentName)));
    }

    #[test]
    fn the_effort_is_said_once() {
        for (choice, argument) in [("claude::low", "--effort=max"), ("codex::low", "model_reasoning_effort=\"high\"")] {
            let twice = Agent::named(choice).unwrap().with_arguments(&["-v".to_owned(), argument.to_owned()]);
            assert!(matches!(twice, Err(AgentError::EffortTwice { .. })), "{twice:?}");
            let (name, _) = choice.split_once(':').unwrap();
            assert!(Agent::named(name).unwrap().with_arguments(&[argument.to_owned()]).is_ok());
        }
    }

    #[test]
    fn every_client_is_told_its_model_before_its_last_arguments_and_is_not_told_to_go_on_with_a_session() {
        for client in KNOWN {
            let named = if client.is_built_in() { "anthropic/m-1" } else { "m-1" };
            let arguments = Agent::named(&format!("{}:{named}", client.name)).unwrap().invocation().arguments;
            let model = arguments.iter().position(|argument| argument == named).unwrap();
            assert_eq!(arguments[model - 1], client.model_flag, "{}", client.name);
            assert_eq!(&arguments[model + 1..], client.last_arguments, "{}", client.name);
            assert!(!arguments.iter().any(|argument| ["resume", "continue"].iter().any(|w| argument.contains(w))));
            let refused = Agent::named(&format!("{}:{named}", client.name))
                .unwrap()
                .with_arguments(&[client.model_flag.to_owned()]);
            assert!(matches!(refused, Err(AgentError::ReservedArgument { .. })), "{}", client.name);
        }
    }

    #[test]
    fn the_built_in_agent_is_this_program_with_a_provider_that_is_known_or_the_users_own() {
        let local = Provider { url: "http://127.0.0.1:1/v1".to_owned(), ..Provider::known("ollama").unwrap() };
        let roster = Roster {
            providers: vec![local, Provider { name: "mine".to_owned(), ..Provider::known("openai").unwrap() }],
            program: "/opt/ralphloop".to_owned(),
            ..Roster::default()
        };
        let agent = Agent::chosen("builtin:ollama/qwen3:8b", &roster).unwrap();
        let setup = agent.setup().unwrap();
        assert_eq!((setup.model.as_str(), setup.provider.url.as_str()), ("qwen3:8b", "http://127.0.0.1:1/v1"));
        assert_eq!(agent.id().0, "builtin:ollama/qwen3:8b");
        let Invocation { program, arguments, .. } = agent.invocation();
        assert_eq!(program, "/opt/ralphloop");
        assert_eq!(serde_json::from_str::<Setup>(&arguments[1]).unwrap(), *setup);
        assert!(Agent::chosen("builtin:mine/gpt-5", &roster).is_ok());
        for wrong in ["builtin", "builtin:gpt-5", "builtin:openai/", "builtin:/gpt-5"] {
            assert_eq!(Agent::chosen(wrong, &roster), Err(AgentError::NoProvider), "{wrong}");
        }
        let error = Agent::chosen("builtin:nobody/gpt-5", &roster).unwrap_err().to_string();
        assert!(error.contains("mine, anthropic, openai") && error.contains("[providers.nobody]"), "{error}");
        let openai = Agent::named("builtin:openai/gpt-5").unwrap();
        assert!(openai.sign_in().unwrap().contains("OPENAI_API_KEY"));
        assert!(matches!(openai.with_arguments(&["--x".to_owned()]), Err(AgentError::ReservedArgument { .. })));
    }

    #[test]
    fn a_command_is_used_exactly_as_it_is() {
        let agent = Agent::command("'/opt/my tools/agent' --fast \"two words\"", Format::Claude).unwrap();
        let invocation = agent.invocation();
        assert_eq!(agent.name, "agent");
        assert_eq!(invocation.program, "/opt/my tools/agent");
        assert_eq!(invocation.arguments, ["--fast", "two words"]);
        assert!(matches!(Agent::command("'open", Format::Text), Err(AgentError::BadCommand { .. })));
        assert_eq!(Agent::command("  ", Format::Text), Err(AgentError::EmptyCommand));
    }

    #[test]
    fn further_arguments_follow_those_of_a_known_client_and_never_join_a_command() {
        let extra = ["--effort".to_owned(), "high".to_owned()];
        let known = Agent::named("claude:opus").unwrap().with_arguments(&extra).unwrap();
        assert!(known.invocation().arguments.join(" ").ends_with("--model opus --effort high"));
        let command = Agent::command("./claude --fast", Format::Claude).unwrap().with_arguments(&extra).unwrap();
        assert_eq!(command.invocation().arguments, ["--fast"]);
    }

    #[test]
    fn an_argument_that_would_break_the_reading_or_the_fresh_session_is_refused() {
        for argument in ["--output-format=text", "-p", "--resume", "--continue", "--model"] {
            let error = Agent::named("claude").unwrap().with_arguments(&[argument.to_owned()]).unwrap_err();
            assert!(error.to_string().contains(argument), "{error}");
        }
        let error = Agent::named("claude").unwrap().with_arguments(&["--model=x".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("NAME:MODEL"), "{error}");
    }

    #[test]
    fn session_marks_are_removed_and_the_users_own_settings_stay() {
        let removed = Agent::named("claude").unwrap().invocation().env_remove;
        for mark in ["CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT", "CODEX_SANDBOX"] {
            assert!(removed.contains(&mark), "{mark}");
        }
        let own = ["ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_MAX_RETRIES", "IS_SANDBOX", "MY_OWN"];
        assert!(own.iter().all(|variable| !removed.contains(variable)));
    }
}
