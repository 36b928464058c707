//! Lines that say how a story is verified, where that is a command beyond doubt.

use ralphloop_core::plan::{Check, Story};

use crate::words;

/// Words before the colon, lower case.
const WORDS: &[&str] = &["verify", "verification"];

/// What may stand behind the commands of a verification line.
const TAILS: &[&str] =
    &["", ".", "passes", "passes.", "pass", "pass.", "succeeds", "succeeds.", "is green", "is green.", "exits 0"];

/// The checks that the story's text and tasks name: a command in backquotes behind `Verify:` or `Story verification:`.
pub(crate) fn checks(story: &Story) -> Vec<Check> {
    let mut commands: Vec<String> = Vec::new();
    let mut fenced = false;
    for line in story.description.lines() {
        if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") {
            fenced = !fenced;
        }
        if !fenced {
            commands.extend(commands_of(line));
        }
    }
    commands.extend(story.tasks.iter().flat_map(|task| commands_of(&task.text)));
    let mut seen = Vec::new();
    for command in commands {
        if !seen.contains(&command) {
            seen.push(command);
        }
    }
    seen.into_iter().map(shell).collect()
}

fn shell(command: String) -> Check {
    Check::Shell {
        name: None,
        command,
        cwd: None,
        expect_output_contains: Vec::new(),
        expect_files_glob: Vec::new(),
        timeout: None,
    }
}

/// The commands in backquotes behind the word and a colon; none if anything else stands there.
fn commands_of(line: &str) -> Vec<String> {
    let Some(mut rest) = behind_word(line) else { return Vec::new() };
    let mut commands = Vec::new();
    while let Some((command, after)) = rest.strip_prefix('`').and_then(|inner| inner.split_once('`')) {
        if !words::is_command(command) {
            return Vec::new();
        }
        commands.push(command.trim().to_owned());
        rest = after.trim_start();
        rest = [",", ";", "&&", "and ", "then "].iter().find_map(|joint| rest.strip_prefix(joint)).unwrap_or(rest);
        rest = rest.trim_start();
    }
    if TAILS.contains(&rest.trim_end()) { commands } else { Vec::new() }
}

fn behind_word(line: &str) -> Option<&str> {
    let lower = line.to_ascii_lowercase();
    WORDS.iter().find_map(|word| {
        lower.match_indices(word).find_map(|(at, _)| {
            let starts = !lower[..at].ends_with(|c: char| c.is_alphanumeric());
            let rest = line[at + word.len()..].trim_start_matches(['*', '_']);
            let rest = rest.strip_prefix(':')?;
            starts.then(|| rest.trim_start_matches(['*', '_', ' ', '\t']))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_in_backquotes_behind_the_word_are_checks() {
        for line in [
            "Story verification: `cargo test jar`",
            "- **Verify:** `cargo test jar`.",
            "**Verify**: `cargo test jar` passes",
            "Add a lid. Verify: `cargo test jar`",
        ] {
            assert_eq!(commands_of(line), ["cargo test jar"], "{line}");
        }
        assert_eq!(commands_of("verify: `make fmt`, `make lint` and `make it`"), ["make fmt", "make lint", "make it"]);
    }

    #[test]
    fn what_is_not_surely_a_command_stays_text() {
        for line in [
            "Verify: cargo test",
            "Verify: `README.md` mentions it",
            "Verify: open the page and look",
            "Verify: `cargo test` prints the jar",
            "verify `cargo test`",
            "Reverify: `cargo test`",
        ] {
            assert!(commands_of(line).is_empty(), "{line}");
        }
    }
}
