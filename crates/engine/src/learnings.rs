//! What the runs of a repository have learned, in one file beside them. Each run begins with it, and adds what it learned.

use std::path::PathBuf;

use ralphloop_core::learning::{Learning, Learnings};

use crate::files::{self, Access, FileError};
use crate::runs::StateFolder;

fn place(state: &StateFolder) -> PathBuf {
    state.path().join("learnings.json")
}

/// What is known. A file that is missing or damaged holds nothing: it is written anew.
pub fn known(state: &StateFolder) -> Learnings {
    std::fs::read(place(state)).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

/// Whether anything was ever kept.
pub fn is_there(state: &StateFolder) -> bool {
    place(state).exists()
}

/// Adds what a run has learned.
pub fn keep<'a>(state: &StateFolder, learned: impl IntoIterator<Item = &'a Learning>) -> Result<(), FileError> {
    let mut all = known(state);
    let before = all.clone();
    all.merge(learned);
    if all == before {
        return Ok(());
    }
    let path = place(state);
    let bytes = serde_json::to_vec_pretty(&all).map_err(|error| FileError::new("write", &path, error.into()))?;
    files::create_private_dir(state.path())?;
    files::write_atomic(&path, &bytes, Access::Private)
}
