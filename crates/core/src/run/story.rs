//! What a run knows of each story.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::effect::{FixTask, Ground};
use crate::evidence::Usage;
use crate::fingerprint::Fingerprint;
use crate::ids::{AgentId, CommitId, StoryId};
use crate::plan::Story;
use crate::policy::FailureKind;
use crate::review::Reviewed;
use crate::units::Timestamp;
use crate::verdict::Tell;

/// How far a story is in this run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum StoryState {
    /// Not begun, or to be tried again.
    Pending,
    /// An attempt is under way.
    Running,
    /// Landed in this run.
    Landed {
        /// Its commit.
        commit: CommitId,
        /// How it was proven.
        ground: Ground,
    },
    /// Its commit is on the branch, proven as far as commands can; it is not done before a person has signed it.
    AwaitsSignOff {
        /// Its commit.
        commit: CommitId,
        /// How it was proven.
        ground: Ground,
    },
    /// Done before this run looked at it, or ticked by a person meanwhile.
    DoneBefore,
    /// All attempts are used up, or no further one makes sense.
    Failed,
    /// Cannot be done without a person, or depends on something that did not land.
    Blocked,
    /// Not to be done in this run.
    Skipped,
}

impl StoryState {
    /// The story is done.
    pub fn passed(&self) -> bool {
        matches!(self, Self::Landed { .. } | Self::DoneBefore)
    }

    /// The story's change is on the branch, be it signed or not.
    pub fn is_on_branch(&self) -> bool {
        self.passed() || matches!(self, Self::AwaitsSignOff { .. })
    }

    /// Its commit, if it landed in this run.
    pub fn commit(&self) -> Option<&CommitId> {
        match self {
            Self::Landed { commit, .. } | Self::AwaitsSignOff { commit, .. } => Some(commit),
            _ => None,
        }
    }

    /// How its commit was proven, if it landed in this run.
    pub fn ground(&self) -> Option<Ground> {
        match self {
            Self::Landed { ground, .. } | Self::AwaitsSignOff { ground, .. } => Some(*ground),
            _ => None,
        }
    }
}

/// What a person wants of a story.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Wish {
    /// Nothing special.
    None,
    /// That it is left out, until somebody wants it tried again.
    Skip,
    /// That it is tried again.
    Again,
}

/// A wait before a story's next attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Rest {
    /// Until then.
    pub(super) until: Timestamp,
    /// How long it may still take, so that a clock that is set back makes it no longer.
    pub(super) span: Duration,
}

/// Whether a task is added to a story that mends one of its own. That is done once in a run at most.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) enum Mending {
    /// Nothing of the kind was done.
    #[default]
    Never,
    /// The next attempt adds it.
    Wanted(Box<FixTask>),
    /// That was done, or cannot be done.
    Over,
}

/// What a run knows of a story.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoryRecord {
    /// How far it is.
    pub state: StoryState,
    /// The run was asked to do it.
    pub selected: bool,
    /// Attempts begun, those that were not charged included.
    pub attempts: u32,
    /// Attempts that count against the limit.
    pub charged: u32,
    /// Why it is not passed: the last attempt's reason.
    pub reason: Option<String>,
    /// What its agents have used.
    pub usage: Usage,
    /// The agent that was called for it last.
    pub agent: Option<AgentId>,
    /// The model that it worked with, as its client named it.
    pub model: Option<String>,
    /// How the work that lands, or has landed, was reviewed; nothing without a reviewer.
    pub reviewed: Option<Reviewed>,
    /// How long its agents ran.
    pub agent_time: Duration,
    /// The refs under which its attempts' work was kept, with the attempt's number.
    pub kept: Vec<(u32, String)>,
    /// The commit by which a task was added to it that mends one of its own.
    #[serde(default)]
    pub mended_by: Option<CommitId>,
    /// Things worth saying about how it landed.
    pub notes: Vec<String>,
    /// It is blocked only because this one has not landed.
    pub(super) waits_for: Option<StoryId>,
    /// A person took it out of the spec.
    pub(super) taken_out: bool,
    /// Commits that a person looked at and wanted done again: they are no landings of the story any more.
    #[serde(default)]
    pub(super) sent_back: Vec<CommitId>,
    /// What a person wanted of it last, as long as nothing has come of that yet.
    pub(super) wish: Wish,
    /// Charged attempts by kind of failure.
    #[serde(default)]
    pub(super) failed_as: BTreeMap<FailureKind, u32>,
    /// It is not tried again before then.
    #[serde(default)]
    pub(super) rest: Option<Rest>,
    /// Whether a task is to be added that mends one of its own.
    #[serde(default)]
    pub(super) mending: Mending,
    /// Why the last charged attempt failed, for the next prompt.
    pub(super) failure: Option<String>,
    /// Attempts that could not be merged with what landed meanwhile.
    pub(super) conflicts: u32,
    /// Files that its attempts have changed.
    #[serde(default)]
    pub(super) shown: BTreeSet<String>,
    /// What reviewers have found in it so far.
    pub(super) findings: Vec<String>,
    /// How far up the chain of agents it has moved, since those before could not do it.
    pub(super) rung: usize,
    /// Charged attempts since then.
    pub(super) on_rung: u32,
    pub(super) tell: Tell,
    pub(super) streak: Option<(Fingerprint, u32)>,
}

/// Why a story that a person skipped is not passed.
const SKIPPED: &str = "skipped by you";

impl StoryRecord {
    pub(super) fn new(state: StoryState, selected: bool, reason: Option<String>) -> Self {
        Self {
            state,
            selected,
            attempts: 0,
            charged: 0,
            reason,
            usage: Usage::default(),
            agent: None,
            model: None,
            reviewed: None,
            shown: BTreeSet::new(),
            findings: Vec::new(),
            agent_time: Duration::ZERO,
            kept: Vec::new(),
            mended_by: None,
            notes: Vec::new(),
            waits_for: None,
            taken_out: false,
            sent_back: Vec::new(),
            wish: Wish::None,
            failed_as: BTreeMap::new(),
            rest: None,
            mending: Mending::Never,
            failure: None,
            conflicts: 0,
            rung: 0,
            on_rung: 0,
            tell: Tell::Nothing,
            streak: None,
        }
    }

    /// A person skipped it: it is not begun, and an attempt of it that is under way comes to nothing.
    pub fn is_put_aside(&self) -> bool {
        self.wish == Wish::Skip
    }

    /// It was tried again, and that has come to something.
    pub(super) fn answer_wish(&mut self) {
        if self.wish == Wish::Again {
            self.wish = Wish::None;
        }
    }

    /// No attempt of it is under way any more, and none has decided about it.
    pub(super) fn rest(&mut self) {
        self.state = if self.is_put_aside() { StoryState::Skipped } else { StoryState::Pending };
        if self.is_put_aside() {
            self.reason = Some(SKIPPED.to_owned());
        }
    }

    /// Gives the story all its attempts back, because a person acted.
    pub(super) fn renew(&mut self) {
        self.state = StoryState::Pending;
        self.wish = Wish::None;
        self.waits_for = None;
        self.charged = 0;
        self.failed_as.clear();
        self.rest = None;
        if let Mending::Wanted(_) = self.mending {
            self.mending = Mending::Never;
        }
        self.conflicts = 0;
        self.rung = 0;
        self.on_rung = 0;
        self.streak = None;
    }

    /// A story that was blocked by another may have become free.
    pub(super) fn unblock(&mut self) {
        if self.waits_for.take().is_some() && self.state == StoryState::Blocked {
            self.state = StoryState::Pending;
            self.reason = None;
        }
    }

    /// Its commit is on the branch.
    pub(super) fn land(&mut self, story: Option<&Story>, commit: CommitId, ground: Ground) {
        if let Some(story) = story.filter(|story| story.needs_sign_off()) {
            self.state = StoryState::AwaitsSignOff { commit, ground };
            self.reason = Some(format!("awaits a sign-off: {}", story.sign_off.join("; ")));
        } else {
            self.state = StoryState::Landed { commit, ground };
            self.reason = None;
        }
    }

    pub(super) fn block(&mut self, waits_for: StoryId, reason: String) {
        self.state = StoryState::Blocked;
        self.reason = Some(reason);
        self.waits_for = Some(waits_for);
    }
}
