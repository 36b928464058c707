//! Words that people and tools write for states, ranks and sizes.

use ralphloop_core::plan::{Priority, WorkState};

/// The state that a status word stands for; unknown words are [`WorkState::Other`], which is open.
pub(crate) fn state(word: &str) -> WorkState {
    let word = word.trim().to_lowercase().split_whitespace().collect::<Vec<_>>().join("_");
    match word.as_str() {
        "done" | "complete" | "completed" | "passed" | "passes" | "closed" | "finished" | "merged" => WorkState::Done,
        "in_progress" | "in-progress" | "doing" | "started" | "active" | "in_review" => WorkState::Doing,
        "todo" | "to_do" | "open" | "pending" | "not_started" | "actionable" | "ready" | "new" | "draft" => {
            WorkState::Todo
        }
        "blocked" => WorkState::Blocked,
        "skipped" | "deferred" | "cancelled" | "canceled" | "wontfix" | "won't_do" => WorkState::Skipped,
        _ => WorkState::Other,
    }
}

/// What a rank written as text means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Rank {
    None,
    Known(Priority),
    Unknown,
}

/// Numbers, `P0` to `P9`, and the words in use, those of `MoSCoW` included.
pub(crate) fn rank(text: &str) -> Rank {
    let word = text.trim().to_lowercase().replace(['_', '-'], " ").replace('’', "'");
    let number = match word.as_str() {
        "" | "none" => return Rank::None,
        "critical" | "urgent" | "blocker" | "highest" => 0.0,
        "high" | "must" | "must have" => 1.0,
        "medium" | "med" | "normal" | "should" | "should have" => 2.0,
        "low" | "could" | "could have" | "nice to have" => 3.0,
        "lowest" | "won't" | "wont" | "won't have" => 4.0,
        other => match p_number(other).or_else(|| text.trim().parse().ok()) {
            Some(number) if f64::is_finite(number) => number,
            _ => return Rank::Unknown,
        },
    };
    Rank::Known(Priority(number))
}

/// The word of a rank from 1 to 3, by which [`rank`] knows it again.
pub(crate) fn three(priority: Priority) -> Option<&'static str> {
    ["high", "medium", "low"].into_iter().find(|word| rank(word) == Rank::Known(priority))
}

fn p_number(word: &str) -> Option<f64> {
    let mut digits = word.strip_prefix('p')?.chars();
    match (digits.next().and_then(|d| d.to_digit(10)), digits.next()) {
        (Some(digit), None) => Some(f64::from(digit)),
        _ => None,
    }
}

/// A size in words as 1 (easy) to 5.
pub(crate) fn complexity(word: &str) -> Option<u8> {
    match word.trim().to_lowercase().as_str() {
        "trivial" | "xs" | "very low" => Some(1),
        "simple" | "easy" | "low" | "small" | "s" => Some(2),
        "medium" | "moderate" | "normal" | "m" => Some(3),
        "high" | "complex" | "hard" | "large" | "l" => Some(4),
        "very high" | "very complex" | "xl" | "xxl" => Some(5),
        other => other.parse::<f64>().ok().and_then(complexity_number),
    }
}

/// A size as a number, brought into 1 to 5.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 1..=5 before")]
pub(crate) fn complexity_number(number: f64) -> Option<u8> {
    number.is_finite().then(|| number.round().clamp(1.0, 5.0) as u8)
}

/// Programs that a verification command begins with. `true`: also an ordinary English word at the start of a sentence.
const PROGRAMS: &[(&str, bool)] = &[
    ("ansible", false),
    ("ansible-playbook", false),
    ("awk", false),
    ("bash", false),
    ("bazel", false),
    ("biome", false),
    ("bun", true),
    ("bundle", true),
    ("bunx", false),
    ("cargo", true),
    ("cat", true),
    ("clang", false),
    ("cmake", false),
    ("cmp", false),
    ("composer", true),
    ("ctest", false),
    ("curl", true),
    ("deno", false),
    ("diff", true),
    ("docker", true),
    ("docker-compose", false),
    ("dotnet", false),
    ("echo", true),
    ("eslint", false),
    ("false", false),
    ("find", true),
    ("gcc", false),
    ("git", true),
    ("go", true),
    ("golangci-lint", false),
    ("gradle", false),
    ("grep", true),
    ("helm", true),
    ("jest", true),
    ("jq", false),
    ("just", true),
    ("kubectl", false),
    ("ls", false),
    ("make", true),
    ("mix", true),
    ("mvn", false),
    ("mypy", false),
    ("nix", false),
    ("node", true),
    ("npm", true),
    ("npx", false),
    ("nox", false),
    ("openspec", true),
    ("php", true),
    ("phpunit", false),
    ("playwright", true),
    ("pnpm", false),
    ("poetry", true),
    ("pre-commit", false),
    ("prettier", true),
    ("pwsh", false),
    ("pyright", false),
    ("pytest", true),
    ("python", true),
    ("python3", false),
    ("rake", true),
    ("rg", false),
    ("rspec", false),
    ("ruby", true),
    ("ruff", false),
    ("rustc", false),
    ("sbt", false),
    ("sh", false),
    ("shellcheck", false),
    ("sqlite3", false),
    ("stat", false),
    ("swift", true),
    ("task", true),
    ("terraform", true),
    ("test", true),
    ("tox", false),
    ("tsc", false),
    ("turbo", true),
    ("uv", false),
    ("vitest", false),
    ("wc", false),
    ("xcodebuild", false),
    ("yarn", true),
    ("zig", false),
    ("[", false),
    ("[[", false),
];

/// Words after a program's name with which it is a sentence, not a call.
const PROSE: &[&str] = &[
    "a", "an", "all", "and", "are", "back", "be", "by", "can", "code", "each", "every", "for", "from", "has", "have",
    "if", "in", "is", "must", "no", "not", "of", "on", "one", "or", "our", "passes", "should", "sure", "that", "the",
    "their", "this", "through", "to", "two", "whether", "when", "with", "you", "your",
];

/// Words with which even a call is a statement about it.
const CLAIMS: &[&str] =
    &["fails", "must", "outputs", "passes", "prints", "returns", "should", "shows", "succeeds", "works"];

/// Whether the text is a shell command beyond reasonable doubt, and not a sentence for a person.
pub(crate) fn is_command(text: &str) -> bool {
    let text = text.trim();
    if text.is_empty() || text.contains('\n') || text.split_whitespace().any(|word| CLAIMS.contains(&word)) {
        return false;
    }
    let mut words = text.split_whitespace().skip_while(|word| is_assignment(word));
    let Some(first) = words.next() else { return false };
    if is_script(first) {
        return true;
    }
    let Some((_, english)) = PROGRAMS.iter().find(|(program, _)| *program == first) else { return false };
    if !english {
        return true;
    }
    let prose = words.next().is_some_and(|word| PROSE.contains(&word.trim_matches(|c: char| !c.is_alphanumeric())));
    let sentence = text.ends_with('.') && !text.ends_with("/...") && !text.ends_with(" .");
    !prose && !sentence
}

/// `./run.sh`, `scripts/check`, `$BIN`.
fn is_script(word: &str) -> bool {
    let ascii = word.is_ascii();
    ascii && (word.starts_with("./") || word.starts_with("../") || word.starts_with('/') || word.starts_with('$'))
        || ascii
            && [".sh", ".py", ".js", ".ts", ".rb", ".pl"].iter().any(|end| word.ends_with(end))
            && word.contains('/')
}

/// `NAME=value` in front of a command.
fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c == '_' || c.is_ascii_uppercase() || c.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_for_done_are_done_and_unknown_ones_stay_open() {
        assert_eq!(state(" Completed "), WorkState::Done);
        assert_eq!(state("In Progress"), WorkState::Doing);
        assert_eq!(state("Won't do"), WorkState::Skipped);
        assert_eq!(state("partial"), WorkState::Other);
        assert_eq!(state("undone"), WorkState::Other);
    }

    #[test]
    fn ranks_are_numbers_letters_or_words() {
        for (text, number) in [("P0", 0.0), ("2", 2.0), ("1.5", 1.5), ("must have", 1.0), ("LOW", 3.0), ("-1", -1.0)] {
            assert_eq!(rank(text), Rank::Known(Priority(number)), "{text}");
        }
        assert_eq!(rank(" "), Rank::None);
        for text in ["someday", "P10", "p", "nan", "inf", "1e999"] {
            assert_eq!(rank(text), Rank::Unknown, "{text}");
        }
    }

    #[test]
    fn a_sentence_for_a_person_is_no_command() {
        for text in [
            "open the editor and drag the second point",
            "make sure the list is sorted",
            "test that it works",
            "go to the page",
            "Run cargo test",
            "find a shelf",
            "check everything",
            "",
            "node is started.",
            "npm run build passes",
            "curl localhost:8080/health returns 200",
            "make test\nmake",
        ] {
            assert!(!is_command(text), "{text}");
        }
        for text in [
            "cargo test curve",
            "make test",
            "test -f out.txt",
            "go test ./...",
            "CI=1 npm test",
            "./check.sh",
            "[ -s a ]",
            "pytest",
            "just",
            "python3 -m unittest",
            "scripts/run.py --fast",
            "grep -q a b",
        ] {
            assert!(is_command(text), "{text}");
        }
    }
}
