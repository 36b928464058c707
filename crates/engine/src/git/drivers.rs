//! Programs of git's configuration that work on files of the tree: filters, and drivers of merges. Git starts them itself.
use super::{GitError, Repository};

/// Git's own storage of large files loads nothing from the tree, and needs the network.
const KNOWN_TO_BE_SAFE: [&str; 2] = ["git-lfs ", "git lfs "];

impl Repository {
    /// What git starts of those, as `NAME (COMMAND)`, and what could be given code of the tree.
    pub(crate) async fn drivers(&self) -> Result<Vec<String>, GitError> {
        let wanted = r"^(filter\..*\.(clean|smudge|process)|merge\..*\.driver)$";
        // It is an error if there is none.
        let answer = self.read().args(["config", "-z", "--get-regexp", wanted]).answer().await?;
        let drivers = answer.items().filter_map(|item| {
            let text = String::from_utf8_lossy(item);
            let (name, command) = text.split_once('\n')?;
            let is_safe = command.is_empty() || KNOWN_TO_BE_SAFE.iter().any(|known| command.starts_with(known));
            (!is_safe).then(|| format!("{name} (`{command}`)"))
        });
        Ok(drivers.collect())
    }
}
