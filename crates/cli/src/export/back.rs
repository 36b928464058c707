//! What state files still say where the journal is gone.

use std::path::Path;

use ralphloop_core::learning::{Learning, Learnings};

use super::states::{ContinuousSession, LoopStatus};
use crate::output::{count, one_line};

/// What was read back.
#[derive(Debug)]
pub(crate) struct Back {
    /// What they say of the work, in words.
    pub(crate) said: String,
    /// What was learned.
    pub(crate) learned: Vec<Learning>,
}

/// Reads the state files in a folder; nothing if there are none.
pub(crate) fn read(folder: &Path) -> Option<Back> {
    let learned = learned_in(folder);
    let path = folder.join(".continuous-session-state.json");
    let shown = path.display().to_string();
    let said = match std::fs::read(&path) {
        Ok(bytes) => match serde_json::from_slice::<ContinuousSession>(&bytes) {
            Ok(session) => told(&session, &shown),
            Err(error) => format!(
                "no journal is here, and {shown} is corrupt ({error}): commits and the work itself tell what is done"
            ),
        },
        Err(_) if learned.is_empty() => return None,
        Err(_) => format!("no journal is here; what was learned is taken from {}", folder.display()),
    };
    Some(Back { said, learned })
}

fn told(session: &ContinuousSession, shown: &str) -> String {
    let how = match session.status {
        LoopStatus::Running => "was running, and its process is gone",
        LoopStatus::Stopping => "was stopping, and its process is gone",
        LoopStatus::Paused => "was paused",
        LoopStatus::Complete => "was complete",
        LoopStatus::Failed => "had failed",
    };
    let titles = |titles: Vec<&str>| titles.iter().map(|title| one_line(title)).collect::<Vec<_>>().join(", ");
    let done = session.completed_items.iter().map(|item| item.title.as_str()).collect();
    let mut text = format!(
        "no journal is here; by {shown} the loop {how}, with {} done ({})",
        count(session.completed_items.len(), "item", "items"),
        titles(done),
    );
    if !session.failed_items.is_empty() {
        let failed = session.failed_items.iter().map(|item| item.title.as_str()).collect();
        text.push_str(&format!(", and {} failed ({})", session.failed_items.len(), titles(failed)));
    }
    text + ". Commits and the work itself tell what is left"
}

/// The list items of `critical-learnings.md`, and of the patterns on top of `progress.txt`.
fn learned_in(folder: &Path) -> Vec<Learning> {
    let mut learned = Learnings::default();
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    let progress = text("progress.txt");
    let patterns = progress.split_once("## Codebase Patterns").map_or("", |(_, rest)| rest);
    let patterns = patterns.split("\n## ").next().unwrap_or_default();
    for part in [patterns, &text("critical-learnings.md")] {
        let part = part.split("<!-- ralphloop: end of").next().unwrap_or_default();
        for line in part.lines() {
            if let Some(item) = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")) {
                learned.add(item, None);
            }
        }
    }
    // The best stand first there, and the oldest here.
    let mut list: Vec<Learning> = learned.iter().cloned().collect();
    list.reverse();
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_learned_is_read_from_either_file_once() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(
            folder.path().join("progress.txt"),
            "# Log\n\n## Codebase Patterns\n- use brass\n* mind the cat\n\n## 2026-01-17 - S1\n- no pattern\n",
        )
        .unwrap();
        std::fs::write(folder.path().join("critical-learnings.md"), "# Critical\n\n- Use brass.\n- no iron\n").unwrap();
        let back = read(folder.path()).unwrap();
        let mut texts: Vec<&str> = back.learned.iter().map(|learning| learning.text.as_str()).collect();
        texts.sort_unstable();
        assert_eq!(texts, ["mind the cat", "no iron", "use brass"]);
        assert!(read(&folder.path().join("nothing")).is_none());
    }

    #[test]
    fn f36_a_corrupt_state_file_is_said_and_the_rest_counts() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(".continuous-session-state.json"), "{ torn").unwrap();
        assert!(read(folder.path()).unwrap().said.contains("corrupt"));
    }
}
