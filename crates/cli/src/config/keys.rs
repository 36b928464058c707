//! The one list of settings. Flags, environment variables, keys of the files, defaults, `config show` and
//! `docs/configuration.md` all come from it, so that they cannot differ.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use ralphloop_core::agent_name::AgentName;
use ralphloop_core::units::Usd;
use ralphloop_engine::lane::Generated;
use ralphloop_engine::sandbox::Host;
use serde_json::Value as Json;

use super::origin::{Config, Given, Origin};
use super::own_agents::OwnAgent;
use super::own_prices::OwnPrice;
use super::own_providers::OwnProvider;
use super::own_retries::OwnRetry;
use super::own_roles::{OwnRole, RelayRoles};
use super::screen::{ScreenKeys, ScreenTheme};
use super::told::{Destination, Secret};
use super::value::{
    AgentFormat, AgentNames, Bytes, Count, Dirty, Form, Iterations, Jobs, OnExhausted, Raw, Sandbox, SandboxBy,
    Trusting, Value,
};

/// The table of a file that holds the settings of the screen.
pub(super) const SCREEN: &str = "screen";

/// Where a setting can be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// As a flag, in the environment, in a file.
    Flag,
    /// In the environment and in a file.
    File,
}

/// What is known of a setting without its type.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    /// As a key of a file: `max_retries`.
    pub(crate) name: &'static str,
    /// The group that it is shown in.
    pub(crate) heading: &'static str,
    /// What it does, a sentence or more.
    pub(crate) help: &'static str,
    /// What its value is called: `N`, `CMD`.
    pub(crate) value_name: &'static str,
    /// Where it can be given.
    pub(crate) reach: Reach,
    /// How its flag is given.
    pub(crate) form: Form,
    /// The default, in words where the value itself says little.
    pub(crate) default_in_words: Option<&'static str>,
    /// The default, as it would be written.
    pub(crate) default: fn() -> String,
    /// Reads a value only to see whether it can be read.
    pub(crate) check: fn(Raw<'_>) -> Result<(), String>,
}

impl Key {
    /// The flag without its dashes: `max-retries`.
    pub(crate) fn flag(&self) -> String {
        self.name.replace('_', "-")
    }

    /// As it stands in a file: `max_retries`, or `screen.theme` for what stands in a table.
    pub(crate) fn written(&self) -> String {
        self.table().map_or_else(|| self.name.to_owned(), |(table, key)| format!("{table}.{key}"))
    }

    /// The table that it stands in, and its name there.
    pub(super) fn table(&self) -> Option<(&'static str, &'static str)> {
        self.name.split_once('_').filter(|(table, _)| *table == SCREEN)
    }

    /// The environment variable: `RALPHLOOP_MAX_RETRIES`.
    pub(crate) fn variable(&self) -> String {
        format!("RALPHLOOP_{}", self.name.to_uppercase())
    }

    /// The default for people.
    pub(crate) fn default_text(&self) -> String {
        self.default_in_words.map_or_else(self.default, str::to_owned)
    }
}

macro_rules! optional {
    () => {
        None
    };
    ($words:literal) => {
        Some($words)
    };
}

macro_rules! settings {
    ($(
        $heading:literal {
            $( $(#[doc = $doc:literal])+ $name:ident: $type:ty = $default:expr, $reach:ident $value_name:literal $(, $words:literal)?; )+
        }
    )+) => {
        /// Every setting, decided.
        #[derive(Debug, Clone, PartialEq)]
        pub(crate) struct Settings {
            /// The tables `[agents.NAME]`: agents of the user's own.
            pub(crate) agents: Vec<OwnAgent>,
            /// The tables `[prices."MODEL"]`: prices of the user's own.
            pub(crate) prices: Vec<OwnPrice>,
            /// The tables `[retry.KIND]`: how failures of that kind are answered.
            pub(crate) retries: Vec<OwnRetry>,
            /// The tables `[providers.NAME]`: providers for the built-in agent.
            pub(crate) providers: Vec<OwnProvider>,
            /// The tables `[roles.NAME]`: roles of a relay.
            pub(crate) roles: Vec<OwnRole>,
            /// The tables `[[generate]]`: files that are made anew where they are in conflict.
            pub(crate) generate: Given<Generated>,
            $($( $(#[doc = $doc])+ pub(crate) $name: $type, )+)+
        }

        impl Default for Settings {
            fn default() -> Self {
                Self {
                    agents: Vec::new(),
                    prices: Vec::new(),
                    retries: Vec::new(),
                    providers: Vec::new(),
                    roles: Vec::new(),
                    generate: Given { value: Generated::default(), origin: Origin::Default },
                    $($( $name: $default, )+)+
                }
            }
        }

        /// What one place says: some settings, each with where exactly it stands.
        #[derive(Debug, Clone, Default)]
        pub(crate) struct Layer {
            pub(super) agents: Vec<OwnAgent>,
            pub(super) prices: Vec<OwnPrice>,
            pub(super) retries: Vec<OwnRetry>,
            pub(super) providers: Vec<OwnProvider>,
            pub(super) roles: Vec<OwnRole>,
            pub(super) generate: Option<Given<Generated>>,
            $($( pub(crate) $name: Option<Given<$type>>, )+)+
        }

        /// Every setting, in the order in which they are shown.
        pub(crate) const KEYS: &[Key] = &[
            $($( Key {
                name: stringify!($name),
                heading: $heading,
                help: concat!($($doc),+),
                value_name: $value_name,
                reach: Reach::$reach,
                form: <$type as Value>::FORM,
                default_in_words: optional!($($words)?),
                default: || <$type as Value>::show(&$default),
                check: |raw| <$type as Value>::read(raw).map(drop),
            }, )+)+
        ];

        impl Layer {
            /// Reads what was written for the setting `name`, which is a name of [`KEYS`].
            pub(super) fn set(&mut self, name: &str, raw: Raw<'_>, origin: Origin) -> Result<(), String> {
                match name {
                    $($( stringify!($name) => self.$name = Some(Given { value: Value::read(raw)?, origin }), )+)+
                    _ => unreachable!("BUG: {name} is no setting"),
                }
                Ok(())
            }
        }

        /// Lays `layers`, the weakest first, over the defaults.
        pub(super) fn merge(layers: Vec<Layer>) -> Config {
            let mut settings = Settings::default();
            let mut origins = vec![Origin::Default; KEYS.len()];
            for layer in layers {
                settings.agents.retain(|old| layer.agents.iter().all(|new| new.client.name != old.client.name));
                settings.agents.extend(layer.agents);
                settings.prices.retain(|old| layer.prices.iter().all(|new| new.prefix != old.prefix));
                settings.prices.extend(layer.prices);
                settings.retries.retain(|old| layer.retries.iter().all(|new| new.kind != old.kind));
                settings.retries.extend(layer.retries);
                settings.providers.retain(|old| layer.providers.iter().all(|new| new.provider.name != old.provider.name));
                settings.providers.extend(layer.providers);
                settings.roles.retain(|old| layer.roles.iter().all(|new| new.name != old.name));
                settings.roles.extend(layer.roles);
                if let Some(rules) = layer.generate {
                    settings.generate = rules;
                }
                let mut origin = origins.iter_mut();
                $($(
                    let place = origin.next();
                    if let (Some(given), Some(place)) = (layer.$name, place) {
                        settings.$name = given.value;
                        *place = given.origin;
                    }
                )+)+
            }
            Config { settings, origins }
        }

        /// Of two layers of one strength, what `later` says, else what `earlier` says.
        pub(super) fn over(earlier: Layer, later: Layer) -> Layer {
            Layer {
                agents: later.agents,
                prices: later.prices,
                retries: later.retries,
                providers: later.providers,
                roles: later.roles,
                generate: later.generate,
                $($( $name: later.$name.or(earlier.$name), )+)+
            }
        }

        impl Layer {
            /// What is said here, as it would be given on the command line: the name of each setting with its texts.
            pub(crate) fn texts(&self) -> Vec<(&'static str, Vec<String>)> {
                let mut texts = Vec::new();
                $($(
                    if let Some(given) = &self.$name {
                        texts.push((stringify!($name), Value::texts(&given.value)));
                    }
                )+)+
                texts
            }
        }

        impl Settings {
            /// Every value as it would be written and as JSON, in the order of [`KEYS`].
            pub(crate) fn values(&self) -> Vec<(String, Json)> {
                vec![$($( (Value::show(&self.$name), Value::json(&self.$name)), )+)+]
            }
        }
    };
}

settings! {
    "Agent" {
        /// The agent that works on the stories, the model it is to use and with how much effort; or several, parted by commas,
        /// the preferred first. While one cannot be called (a limit, an overload, no sign-in), the next takes its place; a story that
        /// fails in the same way again and again moves up to the next, too.
        agent: Option<AgentNames> = None, Flag "NAME[:MODEL[:EFFORT]],...", "claude, else the first found";
        /// Further arguments for the first agent of `agent`, and for its other models, after those that ralphloop gives
        /// it, one an item. They are not added to `agent_command`.
        agent_arguments: Vec<String> = Vec::new(), File "ARGUMENT";
        /// Any program as the agent: a command line, split into words as a shell would, that gets the prompt on its
        /// standard input. It takes the place of `agent`, unless that is given in a stronger place, as by a flag against a
        /// file.
        agent_command: Option<String> = None, Flag "CMD";
        /// Which variables of the environment agents see: names, in which `*` stands for any characters at the end. `*` alone is
        /// all. What every program needs (`PATH`, `HOME`, the language, proxies) passes anyway, and what the agent's own client is
        /// signed in by (`ANTHROPIC_*` for claude).
        agent_env: Vec<String> = vec!["*".to_owned()], File "NAME";
        /// Let what earlier attempts in this repository came to decide which of several agents is tried first, for easy, medium
        /// and hard stories each: `ralphloop agents stats` shows it. Those of whom nothing is known keep their order.
        choose: bool = false, Flag "BOOL";
        /// An agent that looks at proven work before it lands, and may send it back. It sees the story, the change and which
        /// checks passed, and can write nothing. What it says is advice: an unclear answer is no objection.
        reviewer: Option<AgentName> = None, Flag "NAME[:MODEL[:EFFORT]]", "nobody";
        /// How often the reviewer may send the work of one attempt back.
        max_reviews: u32 = 2, Flag "N";
        /// Let several work on each story one after the other, in the same tree, each handing on to the next what it has to
        /// say: planner, coder, reviewer, tester, refactorer, or roles of your own (`[roles.NAME]`). A role may have its own
        /// agent; the others are taken by `agent`. What the last one leaves is checked as ever.
        relay: Option<RelayRoles> = None, Flag "ROLE[=NAME[:MODEL[:EFFORT]]],...", "one agent alone";
        /// How often all roles of a relay may have their turn in one attempt, as long as the last does not say that the
        /// story is complete.
        relay_rounds: Jobs = Jobs(NonZeroU32::MIN.saturating_add(1)), Flag "N";
        /// How the output of `agent_command` reads.
        agent_format: AgentFormat = AgentFormat::Text, Flag "claude|codex|opencode|gemini|copilot|pi|acp|text";
    }
    "Attempts" {
        /// Attempts of a story after the first, each from its checkpoint.
        max_retries: u32 = 3, Flag "N";
        /// Further calls of the agent inside an attempt, on the tree as it is, when a gate or a check fails.
        max_repairs: u32 = 2, Flag "N";
        /// What follows when a story has used up its attempts.
        on_exhausted: OnExhausted = OnExhausted::Stop, Flag "stop|skip|pause";
        /// A task of Flight Rules whose own check fails for good gets a task that mends it (`1.4.1a. Fix: …`), in a commit of the
        /// run's own; then its task group has all its attempts again. That is done once for a task group; `on_exhausted` says what
        /// follows when it fails all the same.
        create_tasks: bool = false, Flag "BOOL";
        /// Tries of one call when the provider is overloaded or the network fails, before the run pauses.
        provider_retries: u32 = 4, File "N";
        /// The waits before those tries, each up to a quarter longer so that not all come back at once; the last holds for all
        /// further ones.
        provider_backoff: Vec<Duration> = Vec::new(), File "T", "2s, 6s, 18s and so on, up to 5m";
    }
    "Working trees" {
        /// Stories at once, beside one that lands. More than one are worked on in worktrees, each in its own, and land one after
        /// the other.
        jobs: Jobs = Jobs(NonZeroU32::MIN), Flag "N";
        /// Let the agent work in a worktree of its own, and not in the checkout.
        worktree: bool = false, Flag "BOOL";
        /// Let the agent work in the checkout, one story at a time.
        in_place: bool = false, Flag "BOOL";
        /// What to do when the checkout has changes that are in no commit: refuse to start, or work in a worktree without
        /// them.
        dirty: Dirty = Dirty::Refuse, Flag "refuse|worktree";
        /// Files and folders of the checkout that a fresh worktree gets copies of: a pattern from the top of the repository.
        worktree_copy: Vec<String> = vec![".env*".to_owned()], Flag "GLOB";
        /// Files and folders of the checkout that a fresh worktree gets clones of, such as caches of dependencies: they share
        /// their bytes until somebody writes. Where the file system cannot do that it gets links, and what an agent writes
        /// there it writes in the checkout.
        worktree_link: Vec<String> = Vec::new(), Flag "GLOB", "none";
        /// A command that is run once in a fresh worktree, before the first agent. If it fails, that is no story's fault.
        worktree_setup: Option<String> = None, Flag "CMD";
        /// The folder in which worktrees are made; a relative one counts from the project.
        worktree_folder: Option<PathBuf> = None, Flag "DIR", "below .git";
        /// How many worktrees stay for the next run, with what was set up and built in them. `clean` removes them.
        worktree_keep: u32 = 0, Flag "N";
    }
    "Gates" {
        /// A quality gate: a command for `sh -c` that must succeed before a story lands. They run in the given order.
        gate: Vec<String> = Vec::new(), Flag "CMD", "found in the project";
        /// Run no quality gates; the stories' own checks still run.
        no_gates: bool = false, Flag "BOOL";
        /// Which variables of the environment gates and checks see: names, in which `*` stands for any characters at the end. `*`
        /// alone is all. What every program needs (`PATH`, `HOME`, the language, proxies) passes anyway.
        gate_env: Vec<String> = vec!["*".to_owned()], File "NAME";
        /// What becomes of commands that the repository brings with it (gates and checks of the work and of the project's
        /// `ralphloop.toml`), that are of no ordinary shape, and that you have not trusted yet: `ask` shows them and asks on a
        /// terminal, and elsewhere runs them and says so; `require` does not start without `ralphloop trust`; `off` runs them.
        /// The project's file cannot set it. Commands that destroy, publish or run what comes from the network are never run.
        trust: Trusting = Trusting::Ask, File "ask|require|off";
        /// Do not run a story that nothing can check.
        require_verify: bool = false, Flag "BOOL";
        /// Leave stories aside that a person has to look at and sign. Otherwise such a story lands once its checks pass, and the
        /// run pauses for `ralphloop sign STORY` when nothing else is left to do.
        skip_manual: bool = false, Flag "BOOL";
    }
    "Sandbox" {
        /// What keeps agents and gates inside. If it is asked for and this machine has none, the run does not start.
        sandbox: Sandbox = Sandbox::Off, Flag "off|workspace|strict";
        /// Folders that confined agents and gates can also write, such as caches of dependencies: absolute, or below `~/`.
        sandbox_write: Vec<PathBuf> = Vec::new(), File "DIR", "none";
        /// Files and folders that they can also read where the sandbox hides them: absolute, or below `~/`.
        sandbox_read: Vec<PathBuf> = Vec::new(), File "PATH", "none";
        /// Who keeps them in there: ralphloop itself by `namespaces`, or `bubblewrap`.
        sandbox_by: SandboxBy = SandboxBy::Auto, File "auto|namespaces|bubblewrap";
        /// Hosts that agents can also reach at `strict`, beside their own endpoint: `NAME`, `*.NAME` or `NAME:PORT`.
        sandbox_hosts: Vec<Host> = Vec::new(), File "HOST", "none";
    }
    "The built-in agent" {
        /// How often the built-in agent may ask its model in one call. What reaches a limit of its own ends with that reason.
        builtin_max_steps: Count = Count(200), File "N";
        /// How many tokens it may read and write together in one call.
        builtin_max_tokens: Option<Count> = None, File "N";
        /// How long one call of it may take, if less than `agent_timeout`.
        builtin_max_duration: Option<Duration> = None, File "T";
    }
    "Resources" {
        /// How much memory one call of an agent, or one gate, may use with all that it starts. What uses more is ended.
        max_memory: Option<Bytes> = None, Flag "SIZE", "four fifths of the machine's";
        /// How many processes it may have at a time.
        max_processes: Option<Count> = Some(Count(2000)), Flag "N";
        /// How many bytes it may write to disks.
        max_written: Option<Bytes> = Some(Bytes(100 << 30)), Flag "SIZE";
        /// How many bytes it may print.
        max_output: Option<Bytes> = Some(Bytes(1 << 30)), Flag "SIZE";
    }
    "Budgets" {
        /// How often agents may be started in this run; each start is an iteration. 0 is no bound.
        max_iterations: Iterations = Iterations(None), Flag "N";
        /// How many stories may be begun in this run, however many attempts each needs; 0 is no bound.
        max_stories: Iterations = Iterations(None), Flag "N";
        /// How long the run may take.
        max_duration: Option<Duration> = None, Flag "T";
        /// How much the agents may cost, in US dollars: as far as they say so, else by list prices. Bounds on cost and tokens
        /// are looked at before each start of an agent.
        max_cost: Option<Usd> = None, Flag "USD";
        /// How many tokens the agents may read and write together, as far as they say.
        max_tokens: Option<Count> = None, Flag "N";
        /// By how many hundredths of `max_cost` and `max_tokens` a call that is under way may pass them. Then it is ended, its
        /// story is put back, uncharged, and the run ends.
        budget_margin: u32 = 10, File "PERCENT";
    }
    "Time limits" {
        /// The time that git, openspec and other helper commands have; a git that fills a worktree has ten times that.
        command_timeout: Duration = Duration::from_secs(30), Flag "T";
        /// The time that one gate or check has.
        gate_timeout: Duration = Duration::from_mins(10), Flag "T";
        /// The time that an attempt has.
        agent_timeout: Duration = Duration::from_hours(1), Flag "T";
        /// The time from the agent's start to its first byte.
        start_timeout: Duration = Duration::from_mins(3), Flag "T";
        /// How long the agent may be silent after its first byte.
        idle_timeout: Duration = Duration::from_mins(10), Flag "T";
        /// The time from the agent's final event to its exit.
        exit_grace: Duration = Duration::from_secs(10), Flag "T";
        /// The longest wait for a provider's limit to end. If it takes longer, the run pauses.
        limit_wait: Duration = Duration::from_hours(6), Flag "T";
    }
    "Commits" {
        /// The branch that commits go to.
        branch: Option<String> = None, Flag "NAME", "the plan's branch, else the current one";
        /// A key with which commits are signed, in a trailer over the tree, the parent and the message; `ralphloop verify-log`
        /// checks it. Best given as `RALPHLOOP_COMMIT_KEY`. git's own signatures are made as your git is set.
        commit_key: Option<Secret> = None, File "KEY", "not signed";
        /// A command whose first line is that key, such as `pass show ralphloop`: it is asked when a run begins and by
        /// `verify-log`, if `commit_key` is not set. Not for the file of a project.
        commit_key_command: Option<String> = None, File "CMD", "none";
        /// Files that a story may commit whatever they hold, by patterns from the top of the repository. In all others, a secret, a
        /// private key, a compiled program or a large binary file that a story adds stops its commit, and so does a change of
        /// `ralphloop.toml`.
        commit_anyway: Vec<String> = Vec::new(), File "GLOB";
        /// Branches that nothing is committed to, by name or with `*` for a part of it, such as `release/*`. A run that would
        /// commit to one does not start.
        protected_branches: Vec<String> = Vec::new(), File "NAME", "none";
        /// Once every story is done, close the work as its format has it: archive the OpenSpec change, put finished tasks of
        /// Backlog.md and plans aside, note the history of a Flight Rules PRD, close issues. What that changes in the tree is
        /// a commit of its own.
        finish: bool = false, Flag "BOOL";
    }
    "State files" {
        /// A folder for the state files that other tools read: those of the loops of Flight Rules, a PRD's status, progress, a
        /// session log, a failure log. They are written before and after each piece of work, and read again where the journal
        /// is gone. A relative path counts from the project; git must ignore what lies in the working tree.
        state_files: Option<PathBuf> = None, Flag "DIR", "none are written";
    }
    "Notifications" {
        /// Who is told when the run ends, is paused, or waits for a provider's limit: an address for a web hook, of Slack or
        /// of ntfy (`ntfy://HOST/TOPIC`), `desktop`, or a command for `sh -c`, which gets the message on its standard input
        /// and no variable that looks like a secret.
        notify: Vec<Destination> = Vec::new(), Flag "URL|CMD", "nobody";
        /// The key with which web hooks are signed: `X-Ralphloop-Signature: sha256=` and the HMAC of the body.
        notify_secret: Option<Secret> = None, File "KEY", "not signed";
    }
    "Screen" {
        /// The colours of the screen, out of the sixteen that every terminal has. `NO_COLOR` counts where this is `auto`.
        screen_theme: ScreenTheme = ScreenTheme::Auto, File "auto|dark|light|none|high-contrast", "auto: dark, or none if NO_COLOR is set";
        /// Keys of your own: an action, and the key or the list of keys that it has instead of its own, such as
        /// `{ stop = "X", pause = ["p", "ctrl-p"] }`. Another action that had the key loses it. `docs/screen.md` has all actions.
        screen_keys: ScreenKeys = ScreenKeys::default(), File "TABLE", "each action has its own";
    }
    "Prompt and signals" {
        /// A template that takes the place of the built-in prompt. A relative path counts from the project.
        prompt_template: Option<PathBuf> = None, File "FILE";
        /// How many bytes of earlier learnings a prompt may carry.
        learnings_budget: u32 = 4096, File "BYTES";
        /// Words of your own that an agent may claim completion with, each alone on the last line of its final message.
        completion_words: Vec<String> = Vec::new(), File "WORD";
    }
}
