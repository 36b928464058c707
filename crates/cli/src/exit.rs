//! The exit codes of the program, for scripts.

use ralphloop_core::event::StopCause;
use ralphloop_core::outcome::Outcome;

/// An exit code: its number, its meaning, and what to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exit {
    /// The number.
    pub(crate) code: u8,
    /// What it means.
    pub(crate) means: &'static str,
}

macro_rules! exits {
    ($( $name:ident = $code:literal: $means:literal; )+) => {
        impl Exit {
            $( #[doc = $means] pub(crate) const $name: Self = Self { code: $code, means: $means }; )+
            /// All of them, by number.
            #[cfg(test)]
            pub(crate) const ALL: &[Self] = &[$( Self::$name ),+];
        }
    };
}

exits! {
    DONE = 0: "every selected story passed; of other verbs: done";
    FAILED = 1: "the run ended, and at least one story failed or is blocked; of `verify`: something failed";
    USAGE = 2: "the call, the configuration or the work is wrong; nothing was started";
    NOTHING = 3: "nothing to do, though not everything is done: what is left is optional, skipped or waits for something";
    PERSON = 4: "paused, or stopped on request: a person is needed, and the line printed last says for what";
    LIMIT = 5: "a budget or limit ended it: iterations, duration, cost, tokens, wait";
    ENVIRONMENT = 6: "the environment is wrong: no git repository, agent missing, not signed in, disk full";
    HUP = 129: "stopped by the signal HUP";
    INT = 130: "stopped by the signal INT, or forced to quit at once";
    CLOSED = 141: "the reader of the standard output went away (verbs that only read)";
    TERM = 143: "stopped by the signal TERM";
}

impl Exit {
    /// Of a run that ended so.
    pub(crate) fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Complete => Self::DONE,
            Outcome::Failed => Self::FAILED,
            Outcome::NothingToDo { .. } => Self::NOTHING,
            Outcome::Paused { .. } | Outcome::Stopped { cause: StopCause::Request } => Self::PERSON,
            Outcome::Stopped { cause: StopCause::Hup } => Self::HUP,
            Outcome::Stopped { cause: StopCause::Int } => Self::INT,
            Outcome::Stopped { cause: StopCause::Term } => Self::TERM,
            Outcome::BoundReached { .. } => Self::LIMIT,
            Outcome::Environment { .. } => Self::ENVIRONMENT,
        }
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code)
    }
}
