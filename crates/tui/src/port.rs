//! What goes in and out of the screen: messages from whoever knows something, requests to whoever can do something.

use ralphloop_core::event::{Event, StopCause};
use ralphloop_core::ids::{AttemptId, CallNumber, StoryId};
use ralphloop_core::units::Timestamp;

/// So many entries of a transcript are read at once. Chunk `n` holds the entries from `n * CHUNK`.
pub const CHUNK: u64 = 256;

/// One call of an agent: what a transcript is kept of.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId {
    /// The attempt.
    pub attempt: AttemptId,
    /// Which call in it; 0 is the first, every repair adds one.
    pub call: CallNumber,
}

/// What kind of thing an entry of a transcript is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// The agent's own words.
    Agent,
    /// Words of an agent that the agent started.
    SubAgent,
    /// It thought.
    Thought,
    /// It called a tool.
    Tool,
    /// What a tool returned.
    ToolOutput,
    /// What a tool returned when it failed.
    ToolFailed,
    /// Its plan, a line a step.
    Plan,
    /// Plain output: of an agent that only prints text, or lines that are no event.
    Output,
    /// A remark of the client or of ours.
    Note,
}

impl EntryKind {
    /// Shown in one line until it is asked for.
    pub(crate) fn folds(self) -> bool {
        matches!(self, Self::Thought | Self::ToolOutput | Self::ToolFailed | Self::Tool)
    }
}

/// One thing that an agent did, as a transcript tells it. The text may have several lines and comes from outside: the
/// screen makes it harmless.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// When.
    pub at: Timestamp,
    /// What kind.
    pub kind: EntryKind,
    /// The text.
    pub text: String,
}

/// A long text that is read by window.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum SheetId {
    /// What an attempt changed.
    Attempt(AttemptId),
    /// What the run has landed.
    Landed,
}

/// Where the part of a file begins in a sheet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SheetMark {
    /// The line, from 0.
    pub line: u64,
    /// The file.
    pub path: String,
}

/// What can be done about a run that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gesture {
    /// Say of a story that has landed that it is done, after having looked at it.
    Sign(StoryId),
    /// Make one commit of them.
    Squash,
    /// Open a pull request.
    PullRequest,
    /// Close the work as its format has it.
    Close,
}

/// One of those, for this run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Which.
    pub gesture: Gesture,
    /// What exactly would be done, commands included; or why it cannot be.
    pub what: Result<String, String>,
    /// The same from a shell.
    pub command: String,
}

/// Something that the screen is told.
#[derive(Debug)]
pub enum Msg {
    /// What happened in the run, in order, from its first event on.
    Event(Box<Event>),
    /// Whether a process works on the run.
    Alive(bool),
    /// So many entries are known of a call's transcript; `reading` while older ones are still being counted.
    Extent {
        /// The call.
        call: CallId,
        /// Entries so far.
        entries: u64,
        /// More is on the disk than was counted yet.
        reading: bool,
    },
    /// A chunk that was asked for, or that has grown.
    Entries {
        /// The call.
        call: CallId,
        /// Which chunk.
        chunk: u64,
        /// What is in it.
        entries: Vec<Entry>,
    },
    /// The end of a search.
    Found {
        /// The call.
        call: CallId,
        /// The entry, if there is one.
        entry: Option<u64>,
    },
    /// A sheet was made, or why it cannot be shown.
    Sheet {
        /// Which.
        id: SheetId,
        /// Tells its chunks from those of an older one.
        version: u64,
        /// Its lines, how many of them list files, and where each file's part begins.
        made: Result<(u64, u64, Vec<SheetMark>), String>,
    },
    /// A chunk of a sheet that was asked for.
    SheetLines {
        /// Which.
        id: SheetId,
        /// Of which version.
        version: u64,
        /// Which chunk.
        chunk: u64,
        /// What is in it.
        lines: Vec<String>,
    },
    /// What can be done with the run's commits now that it is over.
    Offers(Vec<Offer>),
    /// What was done, or why not.
    Done {
        /// What was wanted.
        gesture: Gesture,
        /// In words.
        said: Result<String, String>,
    },
    /// The answer to a request, for people.
    Said(String),
    /// Something that went wrong beside the run, for people.
    Note(String),
    /// Time goes on.
    Tick(Timestamp),
    /// The terminal has this size now.
    Resize(u16, u16),
    /// A key.
    Key(crate::keys::Press),
    /// Text was pasted.
    Paste(String),
    /// The mouse.
    Mouse(Mouse),
    /// A signal came that ends the program.
    Signal(StopCause),
}

/// What the mouse did, where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mouse {
    /// A click with the left button.
    Click {
        /// Column, from 0.
        x: u16,
        /// Row, from 0.
        y: u16,
    },
    /// The wheel; up is negative.
    Wheel {
        /// Column, from 0.
        x: u16,
        /// Row, from 0.
        y: u16,
        /// Steps.
        by: i32,
    },
}

/// Something that the screen wants done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Look at this call's transcript from now on: tell its extent, and its last chunk whenever it grows.
    Watch(CallId),
    /// Read a chunk.
    Read {
        /// The call.
        call: CallId,
        /// Which chunk.
        chunk: u64,
    },
    /// Look for a text in a transcript, from an entry on.
    Find {
        /// The call.
        call: CallId,
        /// The text; case does not matter.
        text: String,
        /// The first entry to look at.
        from: u64,
        /// Towards the beginning.
        backwards: bool,
    },
    /// Make a sheet: what an attempt has changed, as it is now if it is under way and as it was kept otherwise; or what the
    /// run has landed.
    MakeSheet(SheetId),
    /// Read a chunk of a sheet.
    ReadSheet {
        /// Which.
        id: SheetId,
        /// Of which version.
        version: u64,
        /// Which chunk.
        chunk: u64,
    },
    /// What can be done with the run's commits?
    Offers,
    /// Do it.
    Do(Gesture),
    /// Write a call's whole transcript as text into a file.
    Export(CallId),
    /// Put a text into the clipboard.
    Copy(String),
    /// Put a text into the buffer of a program such as tmux that stands between the screen and the terminal.
    Hold(String),
    /// Stop the run: ask the agent to end, put the attempt back, keep what has landed.
    Stop(StopCause),
    /// Kill the agent that was asked to end, without waiting for it.
    Hurry,
    /// Pause after the attempt.
    Pause,
    /// Take a story out of the run.
    Skip(StoryId),
    /// Try a story again.
    Retry(StoryId),
    /// A sentence for the next prompt.
    Guide(String),
    /// Stop the program until the shell goes on with it.
    Suspend,
    /// Close the screen.
    Leave(Leave),
}

/// How the screen is left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leave {
    /// The run is over, or it is somebody else's and goes on.
    Done,
    /// The run was started with the screen and goes on without it.
    Detach,
    /// The run is over, and is to be gone on with to try this story again.
    Retry(StoryId),
    /// At once: what runs is killed, nothing is waited for.
    Force,
}
