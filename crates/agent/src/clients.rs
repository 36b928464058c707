//! The known agents, as data: how each is started, how it reads, how it is signed in, what it tells.

use ralphloop_core::agent_name::Effort;

use crate::client::{Format, PromptDelivery};

/// An agent that is started by name.
#[derive(Debug, PartialEq, Eq)]
pub struct KnownClient {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// The program, to be found on the path.
    pub program: &'static str,
    /// How its output reads.
    pub format: Format,
    /// How it gets the prompt.
    pub prompt: PromptDelivery,
    /// How to get it.
    pub install: &'static str,
    /// What a user should know before it is let loose.
    pub caution: &'static str,
    /// Where its sign-in shows, and what signs it in.
    pub sign_in: SignIn,
    /// How it tells that a limit is reached.
    pub limits: &'static str,
    /// What it reports of tokens and money.
    pub usage: Reports,
    /// Variables of which each says that calls are billed by use, even if its stream tells of no key.
    pub billed_by: &'static [&'static str],
    /// Below the home folder: where it keeps its own state, which it has to write.
    pub folders: &'static [&'static str],
    /// In these: what tells it, or a later session of its user, what to run. Not its own to write.
    pub settings: &'static [&'static str],
    /// Where its model is.
    pub endpoint: Endpoint,
    /// What all this is known from.
    pub known_from: Source,
    pub(crate) arguments: &'static [&'static str],
    pub(crate) model_flag: &'static str,
    /// How it is told the effort; nothing if it cannot be.
    pub efforts: Option<Efforts>,
    /// Arguments that must stand after all others.
    pub(crate) last_arguments: &'static [&'static str],
    /// Variables that it gets, unless the user has set them.
    pub(crate) environment: &'static [(&'static str, &'static str)],
    /// Arguments that nobody else may give: the reading of the output, a fresh session and the permissions hang on
    /// them. The model's flag is one without being named.
    pub(crate) reserved: &'static [&'static str],
}

/// How a client is told with how much effort its model is to think.
#[derive(Debug, PartialEq, Eq)]
pub struct Efforts {
    /// The flag that is followed by an argument with the effort; none for the built-in agent, which is told with its set-up.
    pub(crate) flag: Option<&'static str>,
    /// What stands before the effort in that argument.
    pub(crate) key: &'static str,
    /// What can be asked for.
    pub levels: &'static [Effort],
}

impl Efforts {
    const fn by_flag(flag: &'static str, levels: &'static [Effort]) -> Self {
        Self { flag: Some(flag), key: "", levels }
    }

    /// Whether an argument of the user's own sets what the effort sets.
    pub(crate) fn is_set_by(&self, argument: &str) -> bool {
        let flag = argument.split_once('=').map_or(argument, |(flag, _)| flag);
        if self.key.is_empty() { self.flag == Some(flag) } else { argument.contains(self.key) }
    }
}

/// Where a client's sign-in shows without asking anybody.
#[derive(Debug, PartialEq, Eq)]
pub struct SignIn {
    /// Variables of which any one is enough.
    pub variables: &'static [&'static str],
    /// Files below the home folder, likewise.
    pub files: &'static [&'static str],
    /// What signs it in.
    pub command: &'static str,
}

/// Where a client's model, and its sign-in, are reached.
#[derive(Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Hosts, each on port 443; `*.` stands for any names in front.
    pub hosts: &'static [&'static str],
    /// Variables of which each, where it is set, holds the address that is asked instead.
    pub variables: &'static [&'static str],
}

/// What a client reports of its use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reports {
    /// Tokens and money.
    TokensAndCost,
    /// Tokens.
    Tokens,
    /// Neither: both are unknown.
    Nothing,
}

/// What is known of a client, and how surely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The tests run this version against a scripted model, and replay its streams.
    Tests(&'static str),
    /// Streams of this version are replayed by the tests.
    Recordings(&'static str),
    /// This version was run by hand.
    Tried(&'static str),
    /// Only its documentation.
    Documentation,
}

impl KnownClient {
    /// The command line as a person would write it, without the prompt.
    pub fn command_line(&self) -> String {
        let words = [self.program].into_iter().chain(self.arguments.iter().copied());
        let mut line = words.collect::<Vec<_>>().join(" ");
        for word in [self.model_flag, "MODEL"] {
            line.push(' ');
            line.push_str(word);
        }
        if let Some(Efforts { flag: Some(flag), key, .. }) = self.efforts {
            line.push_str(&format!(" {flag} {key}EFFORT"));
        }
        for word in self.last_arguments {
            line.push(' ');
            line.push_str(word);
        }
        line
    }

    /// It is this program itself, and so always here.
    pub fn is_built_in(&self) -> bool {
        self.name == crate::builtin::NAME
    }

    /// Variables that it gets, unless the user has set them.
    pub fn environment(&self) -> &'static [(&'static str, &'static str)] {
        self.environment
    }
}

/// All agents that can be started by name, in the order in which they are looked for if none is named.
pub const KNOWN: &[KnownClient] = &[
    KnownClient {
        name: "claude",
        title: "Claude Code",
        program: "claude",
        format: Format::Claude,
        prompt: PromptDelivery::Stdin,
        install: "npm install -g @anthropic-ai/claude-code",
        caution: "claude runs without permission questions (--dangerously-skip-permissions), since nobody is there to \
                  answer them: it can do here whatever you can",
        sign_in: SignIn {
            variables: &[
                "ANTHROPIC_API_KEY",
                "ANTHROPIC_AUTH_TOKEN",
                "CLAUDE_CODE_OAUTH_TOKEN",
                "CLAUDE_CODE_USE_BEDROCK",
                "CLAUDE_CODE_USE_VERTEX",
            ],
            files: &[".claude/.credentials.json"],
            command: "run `claude` and sign in with /login, or set ANTHROPIC_API_KEY",
        },
        limits: "a typed event with the time of the reset (subscription), a status, the words of its last message",
        usage: Reports::TokensAndCost,
        billed_by: &["ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"],
        folders: &[".claude", ".claude.json", ".cache/claude-cli-nodejs", ".local/state/claude"],
        settings: &[
            ".claude/settings.json",
            ".claude/settings.local.json",
            ".claude/CLAUDE.md",
            ".claude/agents",
            ".claude/commands",
            ".claude/hooks",
            ".claude/plugins",
            ".claude/skills",
            ".claude/local",
        ],
        endpoint: Endpoint {
            hosts: &["api.anthropic.com", "console.anthropic.com", "platform.claude.com"],
            variables: &["ANTHROPIC_BASE_URL", "ANTHROPIC_BEDROCK_BASE_URL", "ANTHROPIC_VERTEX_BASE_URL"],
        },
        known_from: Source::Tests("2.1.332"),
        arguments: &["-p", "--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions"],
        model_flag: "--model",
        efforts: Some(Efforts::by_flag(
            "--effort",
            &[Effort::Low, Effort::Medium, Effort::High, Effort::XHigh, Effort::Max],
        )),
        last_arguments: &[],
        environment: &[],
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
        ],
    },
    KnownClient {
        name: "codex",
        title: "Codex",
        program: "codex",
        format: Format::Codex,
        prompt: PromptDelivery::Stdin,
        install: "npm install -g @openai/codex",
        caution: "codex runs without approvals and without its sandbox (--dangerously-bypass-approvals-and-sandbox), \
                  since nobody is there to answer: it can do here whatever you can",
        sign_in: SignIn {
            variables: &["OPENAI_API_KEY", "CODEX_API_KEY"],
            files: &[".codex/auth.json"],
            command: "run `codex login`",
        },
        limits: "the words of its failed turn, with a time of day",
        usage: Reports::Tokens,
        billed_by: &[],
        folders: &[".codex"],
        settings: &[".codex/config.toml", ".codex/AGENTS.md", ".codex/prompts", ".codex/rules", ".codex/skills"],
        endpoint: Endpoint {
            hosts: &["api.openai.com", "chatgpt.com", "auth.openai.com"],
            variables: &["OPENAI_BASE_URL"],
        },
        known_from: Source::Tests("0.171.0"),
        arguments: &["exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"],
        model_flag: "--model",
        efforts: Some(Efforts { flag: Some("-c"), key: "model_reasoning_effort=", levels: &Effort::ALL }),
        last_arguments: &["-"],
        environment: &[],
        reserved: &["exec", "resume", "--json", "-m", "-", "--ephemeral", "--last"],
    },
    KnownClient {
        name: "opencode",
        title: "OpenCode",
        program: "opencode",
        format: Format::OpenCode,
        prompt: PromptDelivery::Stdin,
        install: "npm install -g opencode-ai",
        caution: "opencode runs with everything approved that its configuration does not deny (--auto), since nobody is \
                  there to answer",
        sign_in: SignIn {
            variables: &["OPENCODE_CONFIG_CONTENT", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY"],
            files: &[".local/share/opencode/auth.json", ".config/opencode/opencode.json"],
            command: "run `opencode auth login`",
        },
        limits: "the status, headers and body of the provider's answer",
        usage: Reports::TokensAndCost,
        billed_by: &[],
        folders: &[".local/share/opencode", ".local/state/opencode", ".cache/opencode", ".config/opencode"],
        settings: &[
            ".config/opencode/opencode.json",
            ".config/opencode/agent",
            ".config/opencode/command",
            ".config/opencode/plugin",
        ],
        endpoint: Endpoint {
            hosts: &["opencode.ai", "models.dev", "api.anthropic.com", "api.openai.com", "openrouter.ai"],
            variables: &["ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"],
        },
        known_from: Source::Tests("1.18.33"),
        arguments: &["run", "--format", "json", "--auto"],
        model_flag: "--model",
        efforts: Some(Efforts::by_flag("--variant", &Effort::ALL)),
        last_arguments: &[],
        environment: &[("OPENCODE_DISABLE_AUTOUPDATE", "1")],
        reserved: &["run", "--format", "-m", "-c", "--continue", "-s", "--session", "--attach"],
    },
    KnownClient {
        name: "gemini",
        title: "Gemini CLI",
        program: "gemini",
        format: Format::Gemini,
        prompt: PromptDelivery::Stdin,
        install: "npm install -g @google/gemini-cli",
        caution: "gemini runs with every tool approved (--yolo), since nobody is there to answer: it can do here whatever \
                  you can",
        sign_in: SignIn {
            variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI"],
            files: &[".gemini/oauth_creds.json"],
            command: "run `gemini` and choose how to sign in, or set GEMINI_API_KEY",
        },
        limits: "the words of its result, with a number of seconds",
        usage: Reports::Tokens,
        billed_by: &[],
        folders: &[".gemini"],
        settings: &[".gemini/settings.json", ".gemini/GEMINI.md", ".gemini/commands", ".gemini/extensions"],
        endpoint: Endpoint {
            hosts: &["generativelanguage.googleapis.com", "cloudcode-pa.googleapis.com", "oauth2.googleapis.com"],
            variables: &["GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL", "CODE_ASSIST_ENDPOINT"],
        },
        known_from: Source::Tests("0.61.0"),
        arguments: &["--output-format", "stream-json", "--yolo"],
        model_flag: "--model",
        efforts: None,
        last_arguments: &[],
        // It would start itself anew, and its child would be told of no signal; a folder that is not trusted has no tools.
        environment: &[("GEMINI_CLI_NO_RELAUNCH", "true"), ("GEMINI_CLI_TRUST_WORKSPACE", "true")],
        reserved: &["--output-format", "-o", "-m", "-p", "--prompt", "-i", "--prompt-interactive", "-r", "--resume"],
    },
    KnownClient {
        name: "qwen",
        title: "Qwen Code",
        program: "qwen",
        format: Format::Claude,
        prompt: PromptDelivery::Stdin,
        install: "npm install -g @qwen-code/qwen-code",
        caution: "qwen runs with every tool approved (--yolo), since nobody is there to answer: it can do here whatever \
                  you can",
        sign_in: SignIn {
            variables: &["OPENAI_API_KEY", "DASHSCOPE_API_KEY"],
            files: &[".qwen/oauth_creds.json"],
            command: "run `qwen` and sign in with /auth, or set OPENAI_API_KEY and OPENAI_BASE_URL",
        },
        limits: "the words of its result; it waits a minute a try by itself, ten times",
        usage: Reports::Tokens,
        billed_by: &[],
        folders: &[".qwen"],
        settings: &[".qwen/settings.json", ".qwen/QWEN.md", ".qwen/commands", ".qwen/extensions"],
        endpoint: Endpoint {
            hosts: &["dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", "chat.qwen.ai", "portal.qwen.ai"],
            variables: &["OPENAI_BASE_URL"],
        },
        known_from: Source::Tests("0.15.10"),
        arguments: &["--output-format", "stream-json", "--yolo"],
        model_flag: "--model",
        efforts: None,
        last_arguments: &[],
        environment: &[],
        reserved: &[
            "--output-format",
            "-o",
            "--input-format",
            "-m",
            "-p",
            "--prompt",
            "-c",
            "--continue",
            "-r",
            "--resume",
        ],
    },
    KnownClient {
        name: "copilot",
        title: "GitHub Copilot CLI",
        program: "copilot",
        format: Format::Copilot,
        prompt: PromptDelivery::Stdin,
        install: "npm install -g @github/copilot",
        caution: "copilot runs with every tool allowed (--allow-all-tools), since nobody is there to answer: it can do \
                  here whatever you can",
        sign_in: SignIn {
            variables: &["COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN", "COPILOT_PROVIDER_API_KEY"],
            files: &[".copilot/config.json"],
            command: "run `copilot` and sign in with /login",
        },
        limits: "a typed error with the status, without a time",
        usage: Reports::Nothing,
        billed_by: &[],
        folders: &[".copilot"],
        settings: &[".copilot/mcp-config.json", ".copilot/agents"],
        endpoint: Endpoint {
            hosts: &["*.githubcopilot.com", "api.github.com"],
            variables: &["COPILOT_PROVIDER_BASE_URL"],
        },
        known_from: Source::Recordings("1.0.102"),
        arguments: &["--output-format", "json", "--allow-all-tools", "--no-auto-update"],
        model_flag: "--model",
        efforts: Some(Efforts::by_flag("--reasoning-effort", &Effort::ALL)),
        last_arguments: &[],
        environment: &[],
        reserved: &["--output-format", "-p", "--prompt", "-i", "--interactive", "--continue", "--resume", "--acp"],
    },
    KnownClient {
        name: "cursor",
        title: "Cursor",
        program: "cursor-agent",
        format: Format::Claude,
        prompt: PromptDelivery::Argument,
        install: "curl https://cursor.com/install -fsS | bash",
        caution: "cursor runs every action without approval (--force), since nobody is there to answer; its prompt shows \
                  in the list of processes",
        sign_in: SignIn {
            variables: &["CURSOR_API_KEY"],
            files: &[],
            command: "run `cursor-agent login`, or set CURSOR_API_KEY",
        },
        limits: "the words of its result",
        usage: Reports::Nothing,
        billed_by: &[],
        folders: &[".cursor", ".config/cursor", ".local/share/cursor-agent"],
        settings: &[
            ".cursor/mcp.json",
            ".cursor/hooks.json",
            ".cursor/rules",
            ".cursor/extensions",
            ".local/share/cursor-agent/versions",
        ],
        endpoint: Endpoint { hosts: &["*.cursor.sh"], variables: &["CURSOR_API_ENDPOINT"] },
        known_from: Source::Documentation,
        arguments: &["-p", "--force", "--output-format", "stream-json"],
        model_flag: "--model",
        efforts: None,
        last_arguments: &[],
        environment: &[],
        reserved: &["-p", "--print", "--output-format", "-m", "--resume", "--continue"],
    },
    KnownClient {
        name: "amp",
        title: "Amp",
        program: "amp",
        format: Format::Claude,
        prompt: PromptDelivery::Stdin,
        install: "npm install -g @ampcode/cli",
        caution: "amp asks for what its settings do not allow, and nobody is there to answer: set amp.dangerouslyAllowAll \
                  if it is to do whatever you can",
        sign_in: SignIn {
            variables: &["AMP_API_KEY"],
            files: &[".local/share/amp/secrets.json"],
            command: "run `amp login`, or set AMP_API_KEY",
        },
        limits: "the words of its result",
        usage: Reports::Tokens,
        billed_by: &[],
        folders: &[".local/share/amp", ".cache/amp", ".config/amp"],
        settings: &[".config/amp/settings.json", ".config/amp/plugins"],
        endpoint: Endpoint { hosts: &["ampcode.com"], variables: &["AMP_URL"] },
        known_from: Source::Documentation,
        arguments: &["-x", "--stream-json"],
        model_flag: "-m",
        efforts: None,
        last_arguments: &[],
        environment: &[],
        reserved: &["-x", "--execute", "--stream-json", "--stream-json-input", "--mode", "threads"],
    },
    KnownClient {
        name: "droid",
        title: "Droid",
        program: "droid",
        format: Format::Text,
        prompt: PromptDelivery::Stdin,
        install: "curl -fsSL https://app.factory.ai/cli | sh",
        caution: "droid runs without permission questions (--skip-permissions-unsafe), since nobody is there to answer: \
                  it can do here whatever you can",
        sign_in: SignIn {
            variables: &["FACTORY_API_KEY"],
            files: &[".factory/auth.json"],
            command: "run `droid` and sign in, or set FACTORY_API_KEY",
        },
        limits: "its last lines",
        usage: Reports::Nothing,
        billed_by: &[],
        folders: &[".factory"],
        settings: &[
            ".factory/settings.json",
            ".factory/mcp.json",
            ".factory/commands",
            ".factory/droids",
            ".factory/hooks.json",
        ],
        endpoint: Endpoint { hosts: &["*.factory.ai"], variables: &[] },
        known_from: Source::Documentation,
        arguments: &["exec", "--skip-permissions-unsafe"],
        model_flag: "--model",
        efforts: Some(Efforts::by_flag("--reasoning-effort", &[Effort::Low, Effort::Medium, Effort::High])),
        last_arguments: &[],
        environment: &[],
        reserved: &["exec", "-o", "--output-format", "--input-format", "-f", "--file", "-m", "-s", "--session-id"],
    },
    KnownClient {
        name: "kimi",
        title: "Kimi CLI",
        program: "kimi",
        format: Format::Text,
        prompt: PromptDelivery::Stdin,
        install: "uv tool install kimi-cli",
        caution: "kimi runs with every tool approved (--print implies it), since nobody is there to answer: it can do here \
                  whatever you can",
        sign_in: SignIn {
            variables: &["KIMI_API_KEY"],
            files: &[".kimi/config.toml", ".kimi/config.json"],
            command: "run `kimi` and sign in with /login, or set KIMI_API_KEY",
        },
        limits: "its last lines",
        usage: Reports::Nothing,
        billed_by: &[],
        folders: &[".kimi", ".local/share/kimi"],
        settings: &[".kimi/config.toml", ".kimi/mcp.json"],
        endpoint: Endpoint {
            hosts: &["api.kimi.com", "auth.kimi.com", "api.moonshot.ai", "api.moonshot.cn"],
            variables: &["KIMI_BASE_URL"],
        },
        known_from: Source::Documentation,
        arguments: &["--print", "--output-format", "text", "--final-message-only"],
        model_flag: "--model",
        efforts: None,
        last_arguments: &[],
        environment: &[],
        reserved: &[
            "--print",
            "--quiet",
            "--output-format",
            "--input-format",
            "-m",
            "-c",
            "-p",
            "--prompt",
            "--continue",
        ],
    },
    KnownClient {
        name: "pi",
        title: "Pi",
        program: "pi",
        format: Format::Pi,
        prompt: PromptDelivery::Stdin,
        install: "npm install -g @mariozechner/pi-coding-agent",
        caution: "pi has no permission questions: it can do here whatever you can",
        sign_in: SignIn {
            variables: &["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"],
            files: &[".pi/agent/auth.json", ".pi/agent/models.json"],
            command: "run `pi` and sign in with /login, or set the key of its provider",
        },
        limits: "the words of its last message",
        usage: Reports::TokensAndCost,
        billed_by: &[],
        folders: &[".pi"],
        settings: &[".pi/agent/settings.json", ".pi/agent/extensions", ".pi/agent/skills", ".pi/agent/prompts"],
        endpoint: Endpoint {
            hosts: &["api.anthropic.com", "api.openai.com", "generativelanguage.googleapis.com", "openrouter.ai"],
            variables: &[],
        },
        known_from: Source::Recordings("0.73.1"),
        arguments: &["-p", "--mode", "json"],
        model_flag: "--model",
        efforts: Some(Efforts::by_flag(
            "--thinking",
            &[Effort::Minimal, Effort::Low, Effort::Medium, Effort::High, Effort::XHigh],
        )),
        last_arguments: &[],
        environment: &[("PI_SKIP_VERSION_CHECK", "1")],
        reserved: &["-p", "--print", "--mode", "-c", "--continue", "-r", "--resume", "--session"],
    },
    KnownClient {
        name: "aider",
        title: "aider",
        program: "aider",
        format: Format::Text,
        prompt: PromptDelivery::Stdin,
        install: "python -m pip install aider-install && aider-install",
        caution: "aider says yes to all of its own questions (--yes-always), and keeps files named .aider* in the project: \
                  have git ignore them",
        sign_in: SignIn {
            variables: &["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY", "AIDER_MODEL"],
            files: &[".aider.conf.yml"],
            command: "set the key of its provider, such as OPENAI_API_KEY",
        },
        limits: "its last lines",
        usage: Reports::Nothing,
        billed_by: &[],
        folders: &[".aider"],
        settings: &[".aider.conf.yml"],
        endpoint: Endpoint {
            hosts: &["api.openai.com", "api.anthropic.com", "generativelanguage.googleapis.com", "openrouter.ai"],
            variables: &["OPENAI_API_BASE", "ANTHROPIC_BASE_URL"],
        },
        known_from: Source::Tried("0.86.2"),
        arguments: &[
            "--yes-always",
            "--no-check-update",
            "--no-show-model-warnings",
            "--analytics-disable",
            "--no-auto-commits",
            "--no-pretty",
            "--message-file",
            "/dev/stdin",
        ],
        model_flag: "--model",
        efforts: Some(Efforts::by_flag("--reasoning-effort", &[Effort::Low, Effort::Medium, Effort::High])),
        last_arguments: &[],
        environment: &[],
        reserved: &["-m", "--message", "--msg", "-f", "--message-file", "--auto-commits", "--restore-chat-history"],
    },
    KnownClient {
        name: "goose",
        title: "Goose",
        program: "goose",
        format: Format::Text,
        prompt: PromptDelivery::Stdin,
        install: "curl -fsSL https://github.com/block/goose/releases/download/stable/download_cli.sh | bash",
        caution: "goose runs with every tool approved (GOOSE_MODE=auto), since nobody is there to answer: it can do here \
                  whatever you can",
        sign_in: SignIn {
            variables: &["GOOSE_PROVIDER"],
            files: &[".config/goose/config.yaml"],
            command: "run `goose configure`",
        },
        limits: "its last lines",
        usage: Reports::Nothing,
        billed_by: &[],
        folders: &[".local/share/goose", ".local/state/goose", ".config/goose"],
        settings: &[".config/goose/config.yaml", ".config/goose/recipes"],
        endpoint: Endpoint {
            hosts: &["api.anthropic.com", "api.openai.com", "generativelanguage.googleapis.com", "openrouter.ai"],
            variables: &["OPENAI_HOST", "ANTHROPIC_HOST"],
        },
        known_from: Source::Documentation,
        arguments: &["run", "--quiet", "--no-session", "--instructions", "-"],
        model_flag: "--model",
        efforts: None,
        last_arguments: &[],
        environment: &[("GOOSE_MODE", "auto")],
        reserved: &["run", "-i", "--instructions", "-t", "--text", "-r", "--resume", "--name", "-n"],
    },
    KnownClient {
        name: crate::builtin::NAME,
        title: "the built-in agent",
        program: "ralphloop",
        format: Format::Claude,
        prompt: PromptDelivery::Stdin,
        install: "it is a part of ralphloop",
        caution: "builtin does what its model asks for without questions, since nobody is there to answer them: its files \
                  are those of the repository, but its commands can do here whatever you can",
        sign_in: SignIn {
            variables: &[
                "ANTHROPIC_API_KEY",
                "OPENAI_API_KEY",
                "GEMINI_API_KEY",
                "GOOGLE_API_KEY",
                "OPENROUTER_API_KEY",
            ],
            files: &[],
            command: "set the key of a provider, such as ANTHROPIC_API_KEY, or describe one in a table [providers.NAME]",
        },
        limits: "the status, headers and body of the provider's answer",
        usage: Reports::Tokens,
        billed_by: &[],
        folders: &[],
        settings: &[],
        // Its provider's address, which each run sets.
        endpoint: Endpoint { hosts: &[], variables: &[] },
        known_from: Source::Tests(env!("CARGO_PKG_VERSION")),
        arguments: &["__agent"],
        model_flag: "--model",
        efforts: Some(Efforts { flag: None, key: "", levels: &Effort::ALL }),
        last_arguments: &[],
        environment: &[],
        reserved: &[],
    },
];
