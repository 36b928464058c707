//! Trackers with a program of their own: asked before work is read, told when an issue is closed or a work is finished.

use ralphloop_core::ids::StoryId;
use ralphloop_engine::finish::{self, FinishError, Finished};
use ralphloop_engine::start::Place;
use ralphloop_engine::tracker::{self, Tracker, TrackerError};
use ralphloop_engine::work::WorkRef;

use super::repository;
use crate::config::Settings;
use crate::error::CliError;
use crate::output;

fn failed(error: &TrackerError) -> CliError {
    CliError::environment(error.to_string())
}

/// Asks for the issues that the work is, if it is some.
pub(super) fn refresh(work: &WorkRef) -> Result<(), CliError> {
    if Tracker::of(work).is_none() {
        return Ok(());
    }
    let spawner = repository::spawner()?;
    let asked = tracker::refresh(work, &spawner, Settings::default().command_timeout);
    repository::runtime()?.block_on(asked).map_err(|error| failed(&error))
}

/// Closes an issue.
pub(super) fn close(tracker: &Tracker, issue: &StoryId) -> Result<(), CliError> {
    let spawner = repository::spawner()?;
    let closed = tracker.close(&spawner, issue, None, Settings::default().command_timeout);
    repository::runtime()?.block_on(closed).map_err(|error| failed(&error))
}

/// Closes a work that is done, and tells how.
pub(super) async fn finish(place: &Place, work: &WorkRef, timeout: std::time::Duration) -> Result<(), CliError> {
    match finish::finish(place, work, timeout).await {
        Ok(finished) => {
            if finished != Finished::default() {
                output::talk(&(super::closing::finished_text(&finished) + "\n"));
            }
            Ok(())
        }
        Err(error) => Err(not_finished(&error, work)),
    }
}

fn not_finished(error: &FinishError, work: &WorkRef) -> CliError {
    CliError::environment(format!("{} is done, but could not be closed", work.id))
        .cause(error)
        .hint("put that right, then `ralphloop run` it again with --finish; what has landed stays")
}
