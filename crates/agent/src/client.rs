//! The known agents, and how each is started.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// How an agent's output reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// The `stream-json` lines of Claude Code.
    Claude,
    /// Plain text.
    Text,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Claude, Self::Text];

    /// As written on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Text => "text",
        }
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

/// An agent that is started by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownClient {
    /// Its name on the command line.
    pub name: &'static str,
    /// The program, to be found on the path.
    pub program: &'static str,
    /// How its output reads.
    pub format: Format,
    /// How to get it.
    pub install: &'static str,
    /// What a user should know before it is let loose.
    pub caution: &'static str,
    arguments: &'static [&'static str],
    model_flag: &'static str,
    /// Arguments that nobody else may give: the reading of the output, a fresh session and the model hang on them.
    reserved: &'static [&'static str],
}

/// All agents that can be started by name.
pub const KNOWN: &[KnownClient] = &[KnownClient {
    name: "claude",
    program: "claude",
    format: Format::Claude,
    install: "npm install -g @anthropic-ai/claude-code",
    caution: "claude runs without permission questions (--dangerously-skip-permissions), since nobody is there to answer \
              them: it can do here whatever you can",
    arguments: &["-p", "--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions"],
    model_flag: "--model",
    reserved: &[
        "-p",
        "--print",
        "--output-format",
        "--input-format",
        "--verbose",
        "-c",
        "--continue",
        "-r",
        "--resume",
        "--model",
    ],
}];

/// A choice of agent that cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AgentError {
    /// No agent of that name.
    #[error(
        "unknown agent {name:?}; known: {known}; any other program can be used with --agent-command and --agent-format"
    )]
    UnknownAgent {
        /// What was asked for.
        name: String,
        /// The names that are known.
        known: String,
    },
    /// No format of that name.
    #[error("unknown agent format {name:?}; known: {known}")]
    UnknownFormat {
        /// What was asked for.
        name: String,
        /// The names that are known.
        known: String,
    },
    /// The command is empty or blank.
    #[error("the agent command is empty; give a program and its arguments")]
    EmptyCommand,
    /// The command's quotes do not match.
    #[error("the agent command {command:?} cannot be split into words: {why}")]
    BadCommand {
        /// The command.
        command: String,
        /// What is wrong.
        why: String,
    },
    /// An extra argument that ralphloop gives itself, or that would break its reading.
    #[error("the argument {argument:?} is not yours to give to {agent}: ralphloop decides on {flag} itself{}", model_hint(.flag))]
    ReservedArgument {
        /// The agent.
        agent: String,
        /// The argument as it was given.
        argument: String,
        /// The flag that it is.
        flag: String,
    },
}

fn model_hint(flag: &str) -> &'static str {
    if flag == "--model" { "; name the model as NAME:MODEL in `agent`" } else { "" }
}

/// An agent as the user chose it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    /// How it is called in messages and commits: the known name, or the program.
    pub name: String,
    /// The model that was asked for.
    pub model: Option<String>,
    /// How its output reads.
    pub format: Format,
    program: String,
    arguments: Vec<String>,
    /// Started by its name, with the arguments of its client; otherwise by a command, with none but its own.
    known: bool,
}

/// How a process is to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// The program: a path, or a name to be found on the path.
    pub program: String,
    /// Its arguments. The prompt is never among them: an argument is limited to 128 KiB and shows in process lists.
    pub arguments: Vec<String>,
    /// How it gets the prompt.
    pub prompt: PromptDelivery,
    /// Variables that are taken out of its environment.
    pub env_remove: &'static [&'static str],
}

/// How an agent gets its prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptDelivery {
    /// On standard input, which is then closed.
    Stdin,
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
    /// A known agent, as `NAME` or `NAME:MODEL`.
    pub fn named(choice: &str) -> Result<Self, AgentError> {
        let (name, model) = match choice.split_once(':') {
            Some((name, model)) => (name.trim(), Some(model.trim()).filter(|model| !model.is_empty())),
            None => (choice.trim(), None),
        };
        let client = KNOWN.iter().find(|client| client.name == name).ok_or_else(|| AgentError::UnknownAgent {
            name: name.to_owned(),
            known: KNOWN.iter().map(|client| client.name).collect::<Vec<_>>().join(", "),
        })?;
        let mut arguments: Vec<String> = client.arguments.iter().map(|argument| (*argument).to_owned()).collect();
        if let Some(model) = model {
            arguments.extend([client.model_flag.to_owned(), model.to_owned()]);
        }
        Ok(Self {
            name: client.name.to_owned(),
            model: model.map(str::to_owned),
            format: client.format,
            program: client.program.to_owned(),
            arguments,
            known: true,
        })
    }

    /// The same agent with further arguments after its own. A program that is no known client has none but those of its
    /// command: of it, nothing changes.
    ///
    /// # Errors
    /// An argument is one that the client's own arguments settle ([`AgentError::ReservedArgument`]).
    pub fn with_arguments(mut self, extra: &[String]) -> Result<Self, AgentError> {
        let Some(client) = KNOWN.iter().find(|client| self.known && client.name == self.name) else { return Ok(self) };
        for argument in extra {
            let flag = argument.split_once('=').map_or(argument.as_str(), |(flag, _)| flag);
            if client.reserved.contains(&flag) {
                return Err(AgentError::ReservedArgument {
                    agent: self.name,
                    argument: argument.clone(),
                    flag: flag.to_owned(),
                });
            }
        }
        self.arguments.extend(extra.iter().cloned());
        Ok(self)
    }

    /// Any program, with exactly the arguments that `command` names: it is split like a shell splits words, and
    /// nothing is added, so that a wrapper decides itself what it passes on. It gets the prompt on standard input.
    pub fn command(command: &str, format: Format) -> Result<Self, AgentError> {
        let mut words = shell_words::split(command)
            .map_err(|error| AgentError::BadCommand { command: command.to_owned(), why: error.to_string() })?
            .into_iter();
        let program = words.next().filter(|program| !program.trim().is_empty()).ok_or(AgentError::EmptyCommand)?;
        let name = program.rsplit('/').next().unwrap_or(&program).to_owned();
        Ok(Self { name, model: None, format, program, arguments: words.collect(), known: false })
    }

    /// What a user should know before it is let loose; nothing of a program that the user's own command starts.
    pub fn caution(&self) -> Option<&'static str> {
        KNOWN.iter().find(|client| self.known && client.name == self.name).map(|client| client.caution)
    }

    /// How it is started.
    pub fn invocation(&self) -> Invocation {
        Invocation {
            program: self.program.clone(),
            arguments: self.arguments.clone(),
            prompt: PromptDelivery::Stdin,
            env_remove: SESSION_VARIABLES,
        }
    }
}

#[cfg(test)]
mod tests {
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
        let error = "codex".parse::<Format>().unwrap_err().to_string();
        assert!(error.contains("claude, text"), "{error}");
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
