//! Why a run does not start.

use std::path::PathBuf;

use ralphloop_spec::SpecError;

use crate::aftermath::AftermathError;
use crate::files::FileError;
use crate::git;
use crate::journal::JournalError;
use crate::lock::LockError;
use crate::own_commit::OwnCommitError;
use crate::sandbox;
use crate::work::WorkError;

/// Why no run was started. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The work cannot be found.
    #[error(transparent)]
    Work(#[from] WorkError),
    /// The work cannot be read.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The work has changed since the commands that it brings were judged.
    #[error(
        "{work} changed while the run was being started, and brings a new command now: {command:?}; start it again"
    )]
    OtherCommands {
        /// The work.
        work: String,
        /// The first new command.
        command: String,
    },
    /// Git cannot merge without a working tree.
    #[error("stories in worktrees need git 2.38 or newer; update git, or leave out --worktree and --jobs")]
    NoWorktrees,
    /// Another working tree is on the branch.
    #[error(
        "the branch {branch} is checked out at {}, and would change under whoever works there; start there, or name another \
         branch with --branch",
        .elsewhere.display()
    )]
    CheckedOutElsewhere {
        /// The branch.
        branch: String,
        /// The working tree.
        elsewhere: PathBuf,
    },
    /// A story was named that the work does not have.
    #[error("{work} has no story {}; it has: {}", .unknown.join(", "), .known.join(", "))]
    UnknownStory {
        /// The work.
        work: String,
        /// What was named.
        unknown: Vec<String>,
        /// What there is.
        known: Vec<String>,
    },
    /// Stories depend on each other in a circle.
    #[error("the dependencies of {work} form a circle: {}", .cycle.join(" → "))]
    Cycle {
        /// The work.
        work: String,
        /// The circle.
        cycle: Vec<String>,
    },
    /// No repository.
    #[error(transparent)]
    Repository(#[from] git::OpenError),
    /// The repository or the machine is in no condition to work in; all that was found.
    #[error("{}", git::lines(.0))]
    Preflight(Vec<git::Finding>),
    /// The agent's program is not there.
    #[error("the agent `{program}` cannot be started: {why}")]
    AgentMissing {
        /// The program.
        program: String,
        /// What is wrong.
        why: String,
    },
    /// Another run is at work.
    #[error(transparent)]
    Locked(#[from] LockError),
    /// The branch cannot be switched to.
    #[error(transparent)]
    Branch(#[from] git::BranchError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] git::GitError),
    /// HEAD is on no branch, so a commit would be on none.
    #[error("HEAD is detached, so commits would be on no branch; `git switch -c NAME` makes one")]
    NoBranch,
    /// There is no commit to start from.
    #[error("the branch has no commit yet; `git commit --allow-empty -m start` makes the first")]
    NoCommit,
    /// Something of a run's own cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The journal of the run that is to be gone on with cannot be used.
    #[error("{0}; `ralphloop run --fresh` begins a new run, what has landed stays")]
    Journal(#[from] JournalError),
    /// What a dead run left in the tree could not be put right.
    #[error(transparent)]
    Aftermath(Box<AftermathError>),
    /// What a crash left of closing the work, or of signing a story of it, could not be put back.
    #[error(transparent)]
    OwnCommit(Box<OwnCommitError>),
    /// The run to be gone on with has nothing left.
    #[error("run {run} is finished: every selected story passed")]
    Finished {
        /// The run.
        run: String,
    },
    /// The run to be gone on with was made for other work.
    #[error("run {run} worked on {its}, not on {asked}")]
    OtherWork {
        /// The run.
        run: String,
        /// What it worked on.
        its: String,
        /// What was asked for.
        asked: String,
    },
    /// The branch is not to be committed to.
    #[error(
        "nothing may be committed to the branch {branch}, since protected_branches has `{pattern}`; name another branch with \
         --branch NAME"
    )]
    Protected {
        /// The branch.
        branch: String,
        /// What names it.
        pattern: String,
    },
    /// The sandbox that was asked for cannot be had.
    #[error("{0}; nothing was started")]
    NoSandbox(Box<sandbox::Unavailable>),
    /// A sandbox was asked for, and the agent is there already.
    #[error(
        "the session that drives the run is its own agent and cannot be put into a sandbox; leave out --sandbox, or start the run with `ralphloop run`"
    )]
    SandboxInside,
    /// The system refuses something basic.
    #[error("cannot {doing}: {source}")]
    System {
        /// What was done.
        doing: &'static str,
        /// What the system says.
        source: std::io::Error,
    },
}

impl From<AftermathError> for StartError {
    fn from(error: AftermathError) -> Self {
        Self::Aftermath(Box::new(error))
    }
}
