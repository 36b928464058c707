//! Where a run works: whether the repository allows it, in the checkout or in worktrees, and on which branch.

use ralphloop_core::policy;

use super::{StartError, Taken};
use crate::aftermath;
use crate::git::{self, FindingKind, Repository, Severity};
use crate::settings::{OnDirty, Settings};

/// Where a run works, decided.
pub(super) struct Ground {
    /// The full name of the branch on which stories land.
    pub(super) branch: String,
    /// The checkout was switched to it.
    pub(super) switched: Option<git::Switched>,
    /// What is doubtful about the repository.
    pub(super) doubts: Vec<git::Finding>,
}

/// A run that is gone on with goes on where its interrupted attempts are; says so if something else was asked for.
pub(super) fn keep_place(settings: &mut Settings, taken: Option<&Taken>) -> Option<String> {
    let place = taken.filter(|taken| taken.is_interrupted())?.run.policy().place;
    if std::mem::replace(&mut settings.place, place) == place {
        return None;
    }
    Some("the run goes on where its interrupted attempts are: --worktree and --in-place hold for a new one".to_owned())
}

/// Looks at the repository, decides between checkout and worktrees where its changes leave a choice, and takes the branch.
pub(super) async fn take(
    repository: &Repository,
    settings: &mut Settings,
    taken: Option<&Taken>,
    branch: Option<String>,
) -> Result<Ground, StartError> {
    let in_the_middle = taken.is_some_and(Taken::is_interrupted) && settings.place == policy::Place::Checkout;
    let doubts = match preflight(repository, settings, in_the_middle).await {
        Err(StartError::Preflight(findings))
            if settings.on_dirty == OnDirty::Worktree && findings.iter().all(|f| f.kind == FindingKind::Dirty) =>
        {
            settings.place = policy::Place::Worktrees;
            preflight(repository, settings, in_the_middle).await?
        }
        other => other?,
    };
    if let Some(taken) = taken.filter(|_| in_the_middle) {
        aftermath::refuse_to_undo_commits(&taken.folder, repository).await?;
    }
    let wanted = taken.map(|taken| taken.run.branch().to_owned()).or(branch);
    let (branch, switched) = match settings.place {
        policy::Place::Checkout => take_branch(repository, wanted, in_the_middle).await?,
        policy::Place::Worktrees => (aim_at_branch(repository, wanted).await?, None),
    };
    Ok(Ground { branch, switched, doubts })
}

/// What is doubtful about the repository; what has to be mended first is an error.
async fn preflight(
    repository: &Repository,
    settings: &Settings,
    in_the_middle: bool,
) -> Result<Vec<git::Finding>, StartError> {
    let mut findings = repository.preflight().await?;
    if in_the_middle {
        findings.retain(|f| !left_by_an_attempt(f.kind));
    }
    if settings.place == policy::Place::Worktrees {
        for finding in findings.iter_mut().filter(|f| f.kind == FindingKind::Dirty) {
            finding.severity = Severity::Warning;
            "agents work in worktrees without these changes, and a story that touches the same files cannot land"
                .clone_into(&mut finding.remedy);
        }
        findings.retain(|f| f.kind != FindingKind::DetachedHead || settings.branch.is_none());
    }
    let (doubts, refusals): (Vec<_>, Vec<_>) = findings.into_iter().partition(|f| f.severity == Severity::Warning);
    if refusals.is_empty() { Ok(doubts) } else { Err(StartError::Preflight(refusals)) }
}

/// Switches to the wanted branch, unless an interrupted attempt has to be put back first; says which one is worked on.
async fn take_branch(
    repository: &Repository,
    wanted: Option<String>,
    in_the_middle: bool,
) -> Result<(String, Option<git::Switched>), StartError> {
    match wanted {
        Some(branch) if in_the_middle => Ok((branch, None)),
        Some(branch) => {
            let switched = repository.switch_to(&branch, true).await?;
            Ok((current_branch(repository)?, switched))
        }
        None => Ok((current_branch(repository)?, None)),
    }
}

/// The branch on which stories land from worktrees, by its full name. The user's checkout stays on the branch it is on.
async fn aim_at_branch(repository: &Repository, wanted: Option<String>) -> Result<String, StartError> {
    if !repository.merges_without_a_tree().await? {
        return Err(StartError::NoWorktrees);
    }
    let Some(wanted) = wanted else { return current_branch(repository) };
    let branch = repository.branch_name(&wanted).await?;
    let head = repository.head().map_err(git::BranchError::from)?.ok_or(StartError::NoCommit)?;
    repository.ensure_branch(&branch, &head).await?;
    if let Some(elsewhere) = repository.checked_out_elsewhere(&branch).await? {
        return Err(StartError::CheckedOutElsewhere { branch: wanted, elsewhere });
    }
    Ok(branch)
}

fn current_branch(repository: &Repository) -> Result<String, StartError> {
    repository.current_branch().map_err(git::BranchError::from)?.ok_or(StartError::NoBranch)
}

/// What an interrupted attempt may have left; it is put back before anything else.
pub(super) fn left_by_an_attempt(kind: FindingKind) -> bool {
    match kind {
        FindingKind::Dirty
        | FindingKind::DetachedHead
        | FindingKind::OperationUnderWay
        | FindingKind::Unmerged
        | FindingKind::Locked => true,
        FindingKind::NoCommits
        | FindingKind::NoIdentity
        | FindingKind::Signing
        | FindingKind::Unsupported
        | FindingKind::DiskSpace => false,
    }
}
