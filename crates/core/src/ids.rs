//! Names of things: runs, stories, attempts, checkpoints.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub String);

        impl $name {
            /// The id as it was written.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text)
            }
        }
    };
}

text_id!(
    /// One execution of a plan. Sorts by the time at which the run began.
    RunId
);
text_id!(
    /// A story, as its spec names it: any text, spaces and slashes included.
    StoryId
);
text_id!(
    /// A task (a box) inside a story.
    TaskId
);
text_id!(
    /// An agent that a run may call, with its model and effort if such were named: `claude:opus:high`. See
    /// [`crate::agent_name::AgentName`].
    AgentId
);
text_id!(
    /// A git commit, as its full hexadecimal name.
    CommitId
);
text_id!(
    /// The content of a working tree, as one hash: equal content has an equal id.
    TreeId
);

/// One try of a story, from its checkpoint. Written `S-3#2`. It is the fencing token of every event about the try:
/// what a finished attempt still says changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AttemptId {
    /// The story that is tried.
    pub story: StoryId,
    /// Which try of the story in this run, from 1. Tries that were not charged have a number too.
    pub number: u32,
}

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.story, self.number)
    }
}

/// A working tree that a run uses, by number. At most one attempt lives in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LaneId(pub u32);

/// One spawn of an agent inside an attempt: 0 is the first, every repair adds one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallNumber(pub u32);
