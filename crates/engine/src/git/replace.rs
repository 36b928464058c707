//! A stretch of a branch replaced by one commit of the same tree.
use ralphloop_core::ids::CommitId;

use super::{GitError, Repository};

/// What takes the place of what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Replacement {
    /// The full name of the branch.
    pub(crate) branch: String,
    /// Where it stands; it is left alone if it stands elsewhere by then.
    pub(crate) old: CommitId,
    /// What the new commit follows on.
    pub(crate) parent: CommitId,
    /// The ref that the old tip is kept under; a number is added if there is one already.
    pub(crate) kept: String,
}

impl Repository {
    /// The branch of a remote that holds a commit, as far as it was fetched or pushed.
    pub(crate) async fn on_remote(&self, commit: &CommitId) -> Result<Option<String>, GitError> {
        let args =
            ["for-each-ref", "--count=1", "--format=%(refname:short)", "--contains", commit.as_str(), "refs/remotes/"];
        let answer = self.read().args(args).run().await?;
        Ok(Some(answer.line()?.to_owned()).filter(|name| !name.is_empty()))
    }

    /// The remote that a branch is pushed to: its own, else `origin`, else the first; none if there is none.
    pub(crate) async fn push_remote(&self, branch: &str) -> Result<Option<String>, GitError> {
        let listed = self.read().arg("remote").run().await?;
        let names = String::from_utf8_lossy(&listed.stdout).into_owned();
        let known = |name: &str| names.lines().any(|known| known == name);
        for key in
            [format!("branch.{branch}.pushRemote"), "remote.pushDefault".to_owned(), format!("branch.{branch}.remote")]
        {
            let answer = self.read().args(["config", "--get", &key]).answer().await?;
            if let Ok(name) = answer.line()
                && known(name)
            {
                return Ok(Some(name.to_owned()));
            }
        }
        Ok(if known("origin") { Some("origin".to_owned()) } else { names.lines().next().map(str::to_owned) })
    }

    /// The branch that a remote calls its main one, as far as that is known here.
    pub(crate) async fn main_branch_of(&self, remote: &str) -> Result<Option<String>, GitError> {
        let head = format!("refs/remotes/{remote}/HEAD");
        let answer = self.read().args(["symbolic-ref", "--quiet", &head]).answer().await?;
        let prefix = format!("refs/remotes/{remote}/");
        Ok(answer.line().ok().and_then(|name| name.strip_prefix(&prefix)).map(str::to_owned))
    }

    /// Makes a commit with the tree of `old` and moves the branch there; signed, if the user's commits are. The old tip is
    /// kept in the same transaction. Working trees stay as they are, since the tree is the same.
    pub(crate) async fn replace(&self, what: &Replacement, message: &str) -> Result<(CommitId, String), GitError> {
        let signed = self.read().args(["config", "--type=bool", "--get", "commit.gpgSign"]).answer().await?;
        let mut command = self.git().commit(&self.places().top).arg("commit-tree");
        if signed.line().is_ok_and(|value| value == "true") {
            command = command.arg("-S");
        }
        let tree = format!("{}^{{tree}}", what.old);
        let made = command.args(["-p", what.parent.as_str(), "-F", "-", &tree]).stdin(message).run().await?;
        let commit = CommitId(made.line()?.to_owned());
        let kept = self.free_ref(&what.kept).await?;
        let (branch, old) = (&what.branch, &what.old);
        let moves = format!("start\ncreate {kept} {old}\nupdate {branch} {commit} {old}\nprepare\ncommit\n");
        let reason = "ralphloop: the commits of a run made one";
        self.write().args(["update-ref", "-m", reason, "--create-reflog", "--stdin"]).stdin(moves).run().await?;
        Ok((commit, kept))
    }

    async fn free_ref(&self, wanted: &str) -> Result<String, GitError> {
        let answer = self.read().args(["for-each-ref", "--format=%(refname)", &format!("{wanted}*")]).run().await?;
        let text = String::from_utf8_lossy(&answer.stdout).into_owned();
        let taken = |name: &str| text.lines().any(|line| line == name);
        let mut name = wanted.to_owned();
        for number in 2_u32.. {
            if !taken(&name) {
                break;
            }
            name = format!("{wanted}-{number}");
        }
        Ok(name)
    }
}
