//! What dead runs left in a working tree, put back before anything in it is read: the settings, the gates and the stories that
//! lie there may be what an agent made of them that nobody has judged yet.

use std::path::Path;

use super::ground::left_by_an_attempt;
use super::{Place, StartError, clear_locks, end_leftovers, lock_tree};
use crate::aftermath::{self, AftermathError};
use crate::git::{Severity, common_dir_of};
use crate::runs::{RunFolder, StateFolder};

/// Whether a run has died in the middle of something in the repository that `project` is in. Starts no program.
pub fn has_leftovers(project: &Path) -> bool {
    let common_dir = project.ancestors().find_map(common_dir_of);
    let runs = common_dir.and_then(|common_dir| StateFolder::of(&common_dir).runs().ok());
    runs.is_some_and(|runs| runs.iter().any(RunFolder::died_in_the_middle))
}

/// Puts back what dead runs left in the working tree; what attempts did is kept. Says what was taken away of what git left.
/// The checkpoints stay, so that the start of a run finds and tells what was kept. Where nothing can be put back as the tree
/// is now, it stays as it is, and the start of a run says why.
pub async fn put_back_leftovers(place: Place) -> Result<Vec<String>, StartError> {
    let repository = place.repository.with_programs_from_elsewhere();
    let state = StateFolder::of(&repository.places().common_dir);
    let Ok(lock) = lock_tree(&repository) else { return Ok(Vec::new()) };
    let said = clear_locks(&state, &repository).await;
    let runs = state.runs()?;
    aftermath::undo_half_advances(&runs, &repository).await?;
    let leftovers = aftermath::leftovers(runs, &repository).await.map_err(AftermathError::from)?;
    if leftovers.is_empty() {
        return Ok(said);
    }
    end_leftovers(&state).await;
    let findings = repository.preflight().await?;
    if findings.iter().any(|f| f.severity == Severity::Refusal && !left_by_an_attempt(f.kind)) {
        return Ok(said);
    }
    for leftover in &leftovers {
        match leftover.put_back(&repository).await {
            Ok(()) | Err(AftermathError::CommittedSince { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    drop(lock);
    Ok(said)
}
