//! The branch on which stories land, and the user's checkout, as the run left them. What moves them meanwhile is not the
//! run's doing.

use ralphloop_core::ids::CommitId;

use tokio::sync::Mutex;

use crate::git::{AdvanceError, BranchStanding, HeadError, MovedSubmodule, Repository};
use crate::runs::RunFolder;

/// Letters of a commit's name in messages.
const SHORT: usize = 10;

/// A branch, and where it and the checkout stood when the run last moved or saw them.
#[derive(Debug)]
pub struct Target {
    /// Its full name.
    pub branch: String,
    /// Held while the branch moves, so that nobody takes a half of that for somebody else's doing.
    known: Mutex<BranchStanding>,
}

impl Target {
    /// The branch as it stands now.
    pub fn of(home: &Repository, branch: &str) -> Result<Self, HeadError> {
        Ok(Self { branch: branch.to_owned(), known: Mutex::new(home.standing(branch)?) })
    }

    /// The commit on which the branch stands, as the run knows it.
    pub(super) async fn tip(&self) -> Option<CommitId> {
        self.known.lock().await.tip.clone()
    }

    /// Moves the branch from `old` to `new`, and the checkout along with it; `submodules` are those that differ.
    pub(super) async fn advance(
        &self,
        home: &Repository,
        folder: &RunFolder,
        (old, new): (&CommitId, &CommitId),
        submodules: &[MovedSubmodule],
    ) -> Result<(), AdvanceError> {
        let mut known = self.known.lock().await;
        // Git moves the checkout file by file; if it is killed meanwhile, the next start takes that back.
        folder.note_advance(&self.branch, old, new)?;
        let advanced = home.advance(&self.branch, (old, new), submodules).await;
        folder.forget_advance();
        advanced?;
        *known = home.standing(&self.branch)?;
        Ok(())
    }

    /// What somebody else moved, and the commands that keep or drop it; nothing if all is as the run left it.
    pub(super) async fn trespass(&self, home: &Repository) -> Result<Option<String>, HeadError> {
        let known = self.known.lock().await;
        let now = home.standing(&self.branch)?;
        if now == *known {
            return Ok(None);
        }
        let name = |branch: &str| branch.strip_prefix("refs/heads/").unwrap_or(branch).to_owned();
        let short = |commit: &Option<CommitId>| {
            commit.as_ref().map_or_else(|| "nothing".to_owned(), |c| c.as_str().chars().take(SHORT).collect())
        };
        let mut moved = Vec::new();
        if now.checked_out != known.checked_out {
            let to = now.checked_out.as_deref().map_or_else(|| "no branch".to_owned(), name);
            let from = known.checked_out.as_deref().map_or_else(|| "no branch".to_owned(), name);
            moved.push(format!("the main checkout is on {to} and was on {from} (`git switch {from}` goes back)"));
        }
        if now.tip != known.tip {
            let (branch, is, was) = (name(&self.branch), short(&now.tip), short(&known.tip));
            moved.push(format!(
                "{branch} is at {is} and was at {was} (`ralphloop resume` goes on from there and keeps it; `git branch kept \
                 {is}`, then `git reset --keep {was}` on {branch} takes it off)"
            ));
        } else if now.head != known.head {
            moved.push(format!("the main checkout is at {} and was at {}", short(&now.head), short(&known.head)));
        }
        Ok(Some(moved.join("; ")))
    }
}
