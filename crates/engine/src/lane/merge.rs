//! Bringing a proven attempt onto where the branch stands now, in its own lane.

use ralphloop_core::event::Fact;
use ralphloop_core::evidence::Merge;
use ralphloop_core::ids::{AttemptId, CallNumber};

use super::{Parts, tree};
use crate::files;
use crate::git::{self, MergeOutcome, Merging};

pub(super) async fn merge(parts: &Parts, attempt: AttemptId, call: CallNumber) {
    let fact = match try_to_merge(parts, &attempt).await {
        Ok(Ok(merge)) => Fact::Merged { attempt, call, merge },
        Ok(Err(moved)) => Fact::Trespassed { attempt, why: moved },
        Err(why) => Fact::MergeFailed { attempt, why },
    };
    parts.shared.say(fact);
}

/// The inner error is what somebody else moved.
async fn try_to_merge(parts: &Parts, attempt: &AttemptId) -> Result<Result<Merge, String>, String> {
    let shared = &parts.shared;
    if let Some(moved) = shared.target.trespass(&shared.home).await.map_err(|e| e.to_string())? {
        return Ok(Err(moved));
    }
    let checkpoint = tree::load(parts, attempt).await?;
    let Some(tip) = shared.target.tip().await else { return Err("the branch has no commit".to_owned()) };
    if checkpoint.head.as_ref() == Some(&tip) {
        return Ok(Ok(Merge::Current));
    }
    let reference = git::attempt_ref(&shared.folder.id, attempt);
    let message = format!("attempt {attempt} of run {}: before it was merged", shared.folder.id);
    let spec = tree::spec_in_tree(parts, attempt)?;
    let merging = Merging { onto: &tip, kept_under: &reference, message: &message, spec: &spec };
    let outcome = parts.repository.merge_onto(&checkpoint, merging).await.map_err(|e| e.to_string())?;
    tree::keep_spec(parts, attempt).await?;
    Ok(Ok(match outcome {
        MergeOutcome::Conflicts { files, tree } => {
            let noted = shared.folder.merged_tree(attempt);
            files::write_atomic(&noted, tree.as_bytes(), files::Access::Private).map_err(|e| e.to_string())?;
            Merge::Conflicts { files: files.iter().map(|file| file.display().to_string()).collect() }
        }
        MergeOutcome::Clean => Merge::Merged { report: Box::new(tree::look(parts, attempt, &[]).await?) },
    }))
}
