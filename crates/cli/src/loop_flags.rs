//! The three loops as ways to call `run`: what they are about and how they answer failures, by the names that Flight Rules has
//! for it.

use clap::Args;

use crate::config::{self, Layer};
use crate::error::CliError;

/// Each stands for a WORK or a setting.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Loops")]
pub(crate) struct LoopFlags {
    /// Work on the next steps of this session log
    #[arg(long, value_name = "FILE", conflicts_with_all = ["works", "area", "task_group"])]
    from_session: Option<String>,
    /// Work on the task groups of this area of Flight Rules: its number or the name of its folder
    #[arg(long, value_name = "AREA", conflicts_with_all = ["works", "task_group"])]
    area: Option<String>,
    /// Work on this task group of Flight Rules: its number
    #[arg(long, value_name = "GROUP", conflicts_with = "works")]
    task_group: Option<String>,
    /// Run only the story that this task belongs to, which lands as a whole; may be given more than once
    #[arg(long = "task", value_name = "ID")]
    pub(crate) tasks: Vec<String>,
    /// Begin at most so many items: --max-stories N
    #[arg(long, value_name = "N", conflicts_with = "max_stories")]
    max_sessions: Option<String>,
    /// Pause for a person when a story has used up its attempts: --on-exhausted pause
    #[arg(long, conflicts_with_all = ["on_exhausted", "stop_on_fail"])]
    pause_on_fail: bool,
    /// Stop when a story has used up its attempts: --on-exhausted stop
    #[arg(long, conflicts_with = "on_exhausted")]
    stop_on_fail: bool,
    /// Do not run a story that nothing can check: --require-verify
    #[arg(long)]
    skip_unverifiable: bool,
    #[command(flatten)]
    always: AlwaysSo,
}

/// Flags of other loops for what every run does: they are known, so that whoever gives one is told.
#[derive(Debug, Clone, Default, Args)]
struct AlwaysSo {
    #[arg(long, hide = true)]
    task_loop: bool,
    #[arg(long, hide = true)]
    session_per_task: bool,
}

impl LoopFlags {
    /// The work that is named.
    pub(crate) fn work(&self) -> Option<String> {
        let session = self.from_session.as_ref().map(|file| format!("flight:{file}{}", ralphloop_spec::NEXT_STEPS));
        let named = self.area.as_ref().or(self.task_group.as_ref()).map(|name| format!("flight:{name}"));
        session.or(named)
    }

    /// Adds the settings that they stand for.
    ///
    /// # Errors
    /// A value cannot be read, or a flag has nothing that it could switch on.
    pub(crate) fn lay_over(&self, settings: &mut Layer) -> Result<(), CliError> {
        if self.always.task_loop {
            return Err(CliError::usage("there is no --task-loop, since that is what every run does").hint(
                "leave it out: the open tasks of a story are all in its prompt, and are worked on in its attempts",
            ));
        }
        if self.always.session_per_task {
            return Err(CliError::usage("there is no --session-per-task, since no session is ever used twice").hint(
                "leave it out: every attempt of a story is an agent with a fresh context; --task ID works on one task's story",
            ));
        }
        let mut texts = Vec::new();
        let mut say = |name: &str, value: &str| texts.push((name.to_owned(), vec![value.to_owned()]));
        if let Some(number) = &self.max_sessions {
            say("max_stories", number);
        }
        if self.pause_on_fail {
            say("on_exhausted", "pause");
        }
        if self.stop_on_fail {
            say("on_exhausted", "stop");
        }
        if self.skip_unverifiable {
            say("require_verify", "true");
        }
        if !texts.is_empty() {
            let given = std::mem::take(settings);
            *settings = config::over(given, config::named(&texts)?);
        }
        Ok(())
    }
}
