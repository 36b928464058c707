//! What the model is told before the prompt: how to work here, and what the project says to all agents.

use std::fmt::Write as _;
use std::path::PathBuf;

use crate::workspace::Workspace;

/// Files in which a project speaks to agents. Of each folder the first one counts: many projects keep the second as a link.
const NAMES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];
/// How much of one file is told, in bytes.
const LONGEST: usize = 32 << 10;

const HOW: &str = "\
You are a coding agent that works alone: nobody reads along, nobody can answer a question. Do what the prompt asks for, by
calling tools, until it is done; then say in your last message, without calling a tool, what you did, and end it as the prompt
asks you to.

- Look before you change: read the files that matter, and search instead of guessing.
- Prefer edit and multi_edit over writing a whole file anew. old_text has to be found exactly once.
- Several calls that do not need each other's results can be made in one answer.
- Commands run in a shell without a terminal, with nothing on standard input; what they start ends with them.
- Run what shows that your change works, such as its tests, before you say that it does.
- Never commit, and never change what git keeps; the change is taken from the files as you leave them.
";

/// The whole text. What the project says stands from the top of the repository down, so that the nearest has the last word.
pub(crate) fn system(workspace: &Workspace) -> String {
    let mut text = HOW.to_owned();
    let (top, current) = (workspace.top().display(), workspace.current());
    let _ = write!(text, "\nThe repository: {top}\nRelative paths count from: {}\n", current.display());
    let above: Vec<PathBuf> =
        current.ancestors().take_while(|path| path.starts_with(workspace.top())).map(Into::into).collect();
    for folder in above.iter().rev() {
        let said = NAMES.iter().find_map(|name| {
            let path = folder.join(name).display().to_string();
            workspace.read_text(&path).ok().filter(|said| !said.trim().is_empty()).map(|said| (path, said))
        });
        let Some((path, said)) = said else { continue };
        let end = said.floor_char_boundary(LONGEST);
        let cut = if end < said.len() { "\n… the rest is left out; read the file if you need it\n" } else { "" };
        let _ = write!(text, "\n# The project says in {path}\n\n{}{cut}\n", said[..end].trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_every_folder_up_to_the_repositorys_top_are_told_the_nearest_last() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("repo/a/b");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::create_dir(root.path().join("repo/.git")).unwrap();
        std::fs::write(root.path().join("AGENTS.md"), "OUTSIDE").unwrap();
        std::fs::write(root.path().join("repo/AGENTS.md"), "FROM-THE-TOP").unwrap();
        std::fs::write(root.path().join("repo/CLAUDE.md"), "TWIN").unwrap();
        std::os::unix::fs::symlink("../../AGENTS.md", root.path().join("repo/a/AGENTS.md")).unwrap();
        std::fs::write(deep.join("CLAUDE.md"), format!("FROM-BELOW{}", "x".repeat(LONGEST))).unwrap();
        let text = system(&Workspace::around(&deep).unwrap());
        let (top, below) = (text.find("FROM-THE-TOP").unwrap(), text.find("FROM-BELOW").unwrap());
        assert!(top < below && !text.contains("OUTSIDE") && !text.contains("TWIN"), "{text}");
        assert!(text.contains("the rest is left out") && text.len() < LONGEST + 4000);
    }
}
