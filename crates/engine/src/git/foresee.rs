//! Commits that are likely to be made: what others are prepared on before it lands. They are on no branch and have no
//! trailers, so that none is ever taken for a landing.
use std::path::{Path, PathBuf};

use ralphloop_core::ids::CommitId;

use super::{GitError, Repository};

impl Repository {
    /// A commit of a tree on top of another commit, with these files as they will be written; those that the tree does not
    /// have are left out.
    pub async fn commit_foreseen(
        &self,
        tree: &str,
        onto: &CommitId,
        files: &[(PathBuf, Vec<u8>)],
    ) -> Result<CommitId, GitError> {
        let tree = if files.is_empty() { tree.to_owned() } else { self.tree_with(tree, files).await? };
        let mut command = self.write().args(["commit-tree", &tree, "-p", onto.as_str(), "-m", "What is about to land"]);
        for name in ["AUTHOR", "COMMITTER"] {
            command = command
                .env(format!("GIT_{name}_NAME"), "ralphloop")
                .env(format!("GIT_{name}_EMAIL"), "ralphloop@localhost");
        }
        let answer = command.option("commit.gpgSign=false").run().await?;
        Ok(CommitId(answer.line()?.to_owned()))
    }

    async fn tree_with(&self, tree: &str, files: &[(PathBuf, Vec<u8>)]) -> Result<String, GitError> {
        let index = self.places().git_dir.join("ralphloop-foresee");
        let made = self.tree_in(&index, tree, files).await;
        drop(std::fs::remove_file(&index));
        made
    }

    async fn tree_in(&self, index: &Path, tree: &str, files: &[(PathBuf, Vec<u8>)]) -> Result<String, GitError> {
        self.write().env("GIT_INDEX_FILE", index).args(["read-tree", tree]).run().await?;
        for (file, bytes) in files {
            let listed = self
                .read()
                .env("GIT_INDEX_FILE", index)
                .args(["ls-files", "--stage", "-z", "--"])
                .arg(file)
                .run()
                .await?;
            // `mode object stage`, a tab, the path. A link is not written through here, so what lands will differ.
            let mode =
                listed.items().next().and_then(|item| std::str::from_utf8(item.split(|b| *b == b' ').next()?).ok());
            let Some(mode) = mode.filter(|mode| mode.starts_with("100")) else { continue };
            let hashed = self.write().args(["hash-object", "-w", "--stdin", "--path"]).arg(file).stdin(bytes.clone());
            let hashed = hashed.run().await?;
            let mut entry = std::ffi::OsString::from(format!("{mode},{},", hashed.line()?));
            entry.push(file);
            self.write().env("GIT_INDEX_FILE", index).args(["update-index", "--cacheinfo"]).arg(entry).run().await?;
        }
        let answer = self.write().env("GIT_INDEX_FILE", index).arg("write-tree").run().await?;
        Ok(answer.line()?.to_owned())
    }
}
