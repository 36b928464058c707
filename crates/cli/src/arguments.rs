//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::config::Layer;
use crate::loop_flags::LoopFlags;
use crate::story_flags::StoryFlags;
use crate::verbs::agent::AgentVerb;
use crate::verbs::init::commands::Home;

pub(crate) const AFTER_HELP: &str = "\
WORK is a file, a folder, or FORMAT:NAME such as openspec:add-login or prd:prd.json. Without it, the only one found is taken.

Settings may also stand in ralphloop.toml and in RALPHLOOP_… variables; `ralphloop config` shows what holds and why.
To see the whole loop at work without an agent or a key: ralphloop demo";

/// Runs coding agents unattended, story by story, and lands only what is proven.
#[derive(Debug, Parser)]
#[command(name = "ralphloop", version, after_help = AFTER_HELP, disable_help_subcommand = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) verb: Option<Verb>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Run the loop: hand the stories to the agent one by one, check each, commit what passes, revert what does not
    Run(Box<RunArguments>),
    /// List the work found here
    List(ListArguments),
    /// Show the stories, tasks, order and gates of a piece of work
    Show(ShowArguments),
    /// Check that a piece of work can be read and run
    Check(CheckArguments),
    /// Write a starter for new work
    New(NewArguments),
    /// Write a piece of work down in another format, saying what that format cannot say
    Convert(ConvertArguments),
    /// Tick a story or a task by hand, changing nothing else in the file
    Mark(MarkArguments),
    /// Say that a story is done which a person has to look at, once it has landed
    Sign(SignArguments),
    /// Show how a run stands: the latest one, or RUN
    Status(StatusArguments),
    /// List all runs of this repository, newest first
    Runs(RunsArguments),
    /// Show what happened in a run, oldest first
    Log(LogArguments),
    /// Show what an attempt changed, a failed one too
    Diff(DiffArguments),
    /// Make one commit of a run's commits, on its branch; the old ones are kept under a ref
    Squash(SquashArguments),
    /// Open a pull request for what a run has landed: push its branch, and call gh; asks first
    Pr(PullRequestArguments),
    /// Go on with a run that ended early
    Resume(Box<ResumeArguments>),
    /// Ask a running loop to stop after the attempt, or at once
    Stop(StopArguments),
    /// Ask a running loop to pause after the attempt
    Pause(PauseArguments),
    /// Give the agent a sentence of guidance with its next prompt
    Guide(GuideArguments),
    /// Take a story out of a running loop; an attempt of it is ended, kept and put back
    Skip(SkipArguments),
    /// Try a story again that failed, is blocked or was skipped; a run that has ended is gone on with for it
    Retry(Box<RetryArguments>),
    /// Run the gates and a story's checks on the tree as it is, changing nothing
    Verify(Box<VerifyArguments>),
    /// Check that what is written of a run is what was written, and that its commits are those it tells of
    VerifyLog(VerifyLogArguments),
    /// Show the commands that a repository brings with it, and trust them for the runs to come
    Trust(TrustArguments),
    /// Show every setting with its value and where that comes from
    Config(ConfigArguments),
    /// For agents at work: a story's context, a learning, a task done, how it stands; printed as JSON
    Agent {
        #[command(subcommand)]
        what: AgentVerb,
    },
    /// Show the known agents: which are here, their versions, and whether they look signed in
    Agents(AgentsArguments),
    /// Look at everything that a run depends on, and say what mends what is wrong
    Doctor(DoctorArguments),
    /// List what runs left, or remove what is named of it
    Clean(CleanArguments),
    /// Write the state files that other tools read, anew from the journal of a run
    Export(ExportArguments),
    /// Print the JSON Schema of a file that is written or read, or of what is printed; without NAME, list them
    Schema(SchemaArguments),
    /// Print the script that completes the command line in a shell
    Completions(CompletionsArguments),
    /// Print the manual page of the program or of a verb; `man -l -` shows it
    Man(ManArguments),
    /// Write the project's file of settings, or the commands with which agents drive the loop themselves
    Init(InitArguments),
    /// Let an agent drive the loop from inside its own session: an MCP server on the standard input and output
    Mcp,
    /// Play the whole loop in a temporary folder with a scripted agent: no key, no network
    Demo(DemoArguments),
    /// The run of a screen: takes its order on the standard input, and ends with it unless it is let go
    #[command(name = "__leashed", hide = true)]
    Leashed,
    /// The built-in agent: takes its prompt on the standard input
    #[command(name = "__agent", hide = true)]
    BuiltinAgent {
        /// Its provider, model and limits, as JSON
        setup: String,
        /// Its model for people, who see the list of processes
        #[arg(long)]
        model: Option<String>,
    },
    /// The scripted agent of the demo
    #[command(name = "__demo-agent", hide = true)]
    DemoAgent {
        /// Where it notes which calls it has had
        notes: PathBuf,
    },
}

/// How the loop shows itself.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct ViewArguments {
    /// Show the screen: stories, what the agent does, checks; the default on a terminal
    #[arg(long, conflicts_with_all = ["headless", "json"])]
    pub(crate) tui: bool,
    /// Print plain lines, one an event, also on a terminal
    #[arg(long)]
    pub(crate) headless: bool,
    /// Print one JSON event a line on the standard output, and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
}

/// `run`
#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// Files, folders or FORMAT:NAME, worked on one after the other, each in a run of its own; the only one found if absent
    #[arg(value_name = "WORK")]
    pub(crate) works: Vec<String>,
    /// Run only this story; may be given more than once
    #[arg(long = "story", value_name = "ID")]
    pub(crate) stories: Vec<String>,
    #[command(flatten)]
    pub(crate) loops: LoopFlags,
    /// Show order, stages, prompts and gates; start nothing, write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Go on with an unfinished run of the same work, if there is one
    #[arg(long, conflicts_with = "fresh")]
    pub(crate) resume: bool,
    /// Begin anew even if an unfinished run of the same work exists
    #[arg(long)]
    pub(crate) fresh: bool,
    #[command(flatten)]
    pub(crate) view: ViewArguments,
    #[command(flatten)]
    pub(crate) settings: Layer,
}

/// `init`
#[derive(Debug, Args)]
pub(crate) struct InitArguments {
    /// Write the commands of the internal mode and name the server, for these agents; without names, for those whose folder
    /// is here, else for Claude Code
    #[arg(long, value_name = "AGENT", num_args = 0.., value_delimiter = ',')]
    pub(crate) commands: Option<Vec<Home>>,
}

/// `list`
#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `show`
#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    /// A file, a folder or FORMAT:NAME; the only one found if absent
    pub(crate) work: Option<String>,
    /// As JSON: the same form for every format
    #[arg(long, conflicts_with = "prompt")]
    pub(crate) json: bool,
    /// The exact prompt that the agent would get for this story
    #[arg(long, value_name = "STORY")]
    pub(crate) prompt: Option<String>,
}

/// `check`
#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// A file, a folder or FORMAT:NAME; the only one found if absent
    pub(crate) work: Option<String>,
    /// Mend what has one possible meaning only, and show what is left
    #[arg(long)]
    pub(crate) fix: bool,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `new`
#[derive(Debug, Args)]
pub(crate) struct NewArguments {
    #[command(subcommand)]
    pub(crate) what: NewWhat,
}

/// What is to be begun.
#[derive(Debug, Subcommand)]
pub(crate) enum NewWhat {
    /// A prd.json: from flags, from answers on a terminal, or drafted by the agent from an idea
    Prd(Box<NewPrdArguments>),
}

/// `new prd`
#[derive(Debug, Args)]
pub(crate) struct NewPrdArguments {
    /// The file to write, which must not exist
    #[arg(short, long, value_name = "FILE", default_value = "prd.json")]
    pub(crate) output: PathBuf,
    /// The name of the project; the folder's if absent
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Let the agent draft it from this idea, in a scratch folder; it is shown before it is written
    #[arg(long, value_name = "IDEA", conflicts_with_all = ["story", "name"])]
    pub(crate) from: Option<String>,
    /// Write it without asking
    #[arg(long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) stories: StoryFlags,
    #[command(flatten)]
    pub(crate) settings: Layer,
}

/// `convert`
#[derive(Debug, Args)]
pub(crate) struct ConvertArguments {
    /// A file, a folder or FORMAT:NAME
    pub(crate) work: String,
    /// The format: prd, openspec, markdown, fixplan, speckit, kiro or yaml
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to: String,
    /// The file to write, which must not exist; the standard output if absent
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// `mark`
#[derive(Debug, Args)]
pub(crate) struct MarkArguments {
    /// A file, a folder or FORMAT:NAME
    pub(crate) work: String,
    /// The story or task to tick
    pub(crate) id: String,
}

/// `sign`
#[derive(Debug, Args)]
pub(crate) struct SignArguments {
    /// The story
    pub(crate) story: String,
    /// A file, a folder or FORMAT:NAME; the latest run's if absent
    pub(crate) work: Option<String>,
}

/// `status`
#[derive(Debug, Args)]
pub(crate) struct StatusArguments {
    /// The run; the latest if absent
    pub(crate) run: Option<String>,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Show it again whenever it changes, until the run ends
    #[arg(long)]
    pub(crate) follow: bool,
}

/// `runs`
#[derive(Debug, Args)]
pub(crate) struct RunsArguments {
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `log`
#[derive(Debug, Args)]
pub(crate) struct LogArguments {
    /// The run; the latest if absent
    pub(crate) run: Option<String>,
    /// Only what concerns this story
    #[arg(long, value_name = "ID")]
    pub(crate) story: Option<String>,
    /// Only this attempt of the story
    #[arg(long, value_name = "N", requires = "story")]
    pub(crate) attempt: Option<u32>,
    /// Who did what, when and on what grounds: every command, decision and landing, by the lines of the journal
    #[arg(long)]
    pub(crate) audit: bool,
    /// As JSON, one event a line
    #[arg(long)]
    pub(crate) json: bool,
    /// Go on with what happens from now, until the run ends
    #[arg(long)]
    pub(crate) follow: bool,
}

/// `verify-log`
#[derive(Debug, Args)]
pub(crate) struct VerifyLogArguments {
    /// The run; the latest if absent
    pub(crate) run: Option<String>,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `trust`
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct TrustArguments {
    /// A file, a folder or FORMAT:NAME; the only one found if absent
    pub(crate) work: Option<String>,
    /// Show them, and trust nothing
    #[arg(long, conflicts_with_all = ["yes", "forget"])]
    pub(crate) list: bool,
    /// Trust what is listed without asking
    #[arg(long, conflicts_with = "forget")]
    pub(crate) yes: bool,
    /// Trust no command of this repository any more
    #[arg(long)]
    pub(crate) forget: bool,
    /// As JSON, and trust nothing
    #[arg(long, conflicts_with_all = ["yes", "forget"])]
    pub(crate) json: bool,
}

/// `diff`
#[derive(Debug, Args)]
pub(crate) struct DiffArguments {
    /// The attempt: STORY#2, or STORY for its latest
    #[arg(value_name = "STORY[#ATTEMPT]")]
    pub(crate) attempt: String,
    /// The run; the latest if absent
    pub(crate) run: Option<String>,
}

/// `squash`
#[derive(Debug, Args)]
pub(crate) struct SquashArguments {
    /// The run; the latest if absent
    pub(crate) run: Option<String>,
    /// The first line of its message; the title of the work if absent
    #[arg(long, short, value_name = "TEXT")]
    pub(crate) message: Option<String>,
    /// Show what would be done, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// `pr`
#[derive(Debug, Args)]
pub(crate) struct PullRequestArguments {
    /// The run; the latest if absent
    pub(crate) run: Option<String>,
    /// Do not ask before anything is pushed
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Show what would be called, and call nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// `resume`
#[derive(Debug, Args)]
pub(crate) struct ResumeArguments {
    /// The run; the latest if absent
    pub(crate) run: Option<String>,
    /// Do not ask on a terminal whether to go on
    #[arg(long, short)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) view: ViewArguments,
    #[command(flatten)]
    pub(crate) settings: Layer,
}

/// `stop`
#[derive(Debug, Args)]
pub(crate) struct StopArguments {
    /// The run; the one that is running if absent
    pub(crate) run: Option<String>,
    /// At once: the attempt is ended and reverted
    #[arg(long)]
    pub(crate) now: bool,
}

/// `pause`
#[derive(Debug, Args)]
pub(crate) struct PauseArguments {
    /// The run; the one that is running if absent
    pub(crate) run: Option<String>,
}

/// `guide`
#[derive(Debug, Args)]
pub(crate) struct GuideArguments {
    /// The run, if not the one that is running, and the sentence
    #[arg(value_name = "[RUN] TEXT", num_args = 1..=2, required = true)]
    pub(crate) words: Vec<String>,
}

/// `skip`
#[derive(Debug, Args)]
pub(crate) struct SkipArguments {
    /// The story
    pub(crate) story: String,
    /// The run; the one that is running if absent
    pub(crate) run: Option<String>,
}

/// `retry`
#[derive(Debug, Args)]
pub(crate) struct RetryArguments {
    /// The story
    pub(crate) story: String,
    /// The run; the one that is running if absent, else the latest
    pub(crate) run: Option<String>,
    #[command(flatten)]
    pub(crate) view: ViewArguments,
    #[command(flatten)]
    pub(crate) settings: Layer,
}

/// `verify`
#[derive(Debug, Args)]
pub(crate) struct VerifyArguments {
    /// The story
    pub(crate) story: String,
    /// A file, a folder or FORMAT:NAME; the only one found if absent
    pub(crate) work: Option<String>,
    #[command(flatten)]
    pub(crate) settings: Layer,
}

/// `config`
#[derive(Debug, Args)]
pub(crate) struct ConfigArguments {
    /// What to do with the settings
    #[arg(value_parser = ["show"], default_value = "show")]
    pub(crate) action: String,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `doctor`
#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `agents`
#[derive(Debug, Args)]
pub(crate) struct AgentsArguments {
    #[command(subcommand)]
    pub(crate) what: Option<AgentsVerb>,
    /// As JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// What to show of the agents.
#[derive(Debug, Clone, Copy, Subcommand)]
pub(crate) enum AgentsVerb {
    /// List them, which is done without a word too
    List,
    /// What their attempts in this repository came to, and in which order `--choose` tries them
    Stats,
}

/// `clean`
#[derive(Debug, Args)]
pub(crate) struct CleanArguments {
    /// What to remove, as the list names it: a run, an attempt such as S-3#1, …
    pub(crate) names: Vec<String>,
    /// Remove it; without this it is only listed
    #[arg(long)]
    pub(crate) apply: bool,
    /// All that finished runs left, but for attempts whose work nothing else holds
    #[arg(long, conflicts_with = "names")]
    pub(crate) all_finished: bool,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `export`
#[derive(Debug, Args)]
pub(crate) struct ExportArguments {
    /// The run; the latest if absent
    pub(crate) run: Option<String>,
    /// The folder to write them in; what `state_files` says if absent, else the folder of the run
    #[arg(long, value_name = "DIR")]
    pub(crate) to: Option<PathBuf>,
    /// Write what was learned into the design.md of the change or feature that the run worked on, and nothing else
    #[arg(long, conflicts_with = "to")]
    pub(crate) design: bool,
}

/// `schema`
#[derive(Debug, Args)]
pub(crate) struct SchemaArguments {
    /// Which
    pub(crate) name: Option<String>,
}

/// `completions`
#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

/// `man`
#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// The verb; the whole program if absent
    pub(crate) verb: Option<String>,
}

/// `demo`
#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    /// Show the screen, as `run` does on a terminal
    #[arg(long)]
    pub(crate) tui: bool,
    /// Play in this folder, which must be empty or not exist, instead of a temporary one
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }
}
