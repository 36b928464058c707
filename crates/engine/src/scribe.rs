//! Whoever writes a run down for others, in files of its own: told of each event once it is durable, and before anything is
//! done about it.

use ralphloop_core::event::Event;

use crate::runs::RunFolder;

/// Writes a run down. What it says changes nothing about the run; after an error it is not asked again.
pub trait Scribe: Send {
    /// The run in that folder begins, or is gone on with; its journal holds what happened so far. Says what a person should
    /// know.
    fn begin(&mut self, folder: &RunFolder) -> Result<Vec<String>, String>;

    /// The next event.
    fn take_in(&mut self, event: &Event) -> Result<Vec<String>, String>;
}
