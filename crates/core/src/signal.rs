//! The signal grammar: what in an agent's final message is a claim, and what only looks like one.
//!
//! A signal counts if it is, by itself, the last line of the message that is not blank. Letter case, blanks around it,
//! line ends and Markdown emphasis (`**…**`) do not matter. A signal in a code fence or in quotes does not count, nor
//! does one that other text follows: an agent that goes on talking has not ended with its signal. Since only the last
//! line is read, the last of several signals wins. Whatever looks like a signal and is none is reported as a near miss,
//! so that no attempt is lost without a word.
//!
//! The spellings are `<promise>COMPLETE</promise>`, `<promise>FAILED: reason</promise>`,
//! `<promise>BLOCKED: reason</promise>`, `STORY_COMPLETE` (also with `: id`), `STORY_BLOCKED: reason`,
//! `ITERATION_COMPLETE`, `ITERATION_FAILED` (also with `: reason`), `LOOP_COMPLETE`, `CONFLICTS_RESOLVED`,
//! `CONFLICTS_UNRESOLVED: reason`, and the user's own words for completion. The reason of a promise may run over several lines.

use std::fmt;

use crate::evidence::Claim;
use crate::ids::StoryId;

/// How far above its closing tag a promise may begin, in lines that are not blank.
const LONGEST_PROMISE: usize = 20;
/// How much of a near miss is shown, in characters.
const EXCERPT: usize = 160;

/// The words that signal: the fixed spellings and the user's own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SignalGrammar {
    own_words: Vec<String>,
}

/// An own word that cannot serve as a signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnWordError {
    /// It is empty or blank, so that every message would contain it.
    Blank,
    /// It has more than one line, and a signal is one line.
    SeveralLines {
        /// The word.
        word: String,
    },
}

impl fmt::Display for OwnWordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blank => f.write_str("a completion word is empty or blank; give it a text or leave it out"),
            Self::SeveralLines { word } => {
                write!(f, "the completion word {word:?} has several lines; a signal is a single line")
            }
        }
    }
}

impl std::error::Error for OwnWordError {}

impl SignalGrammar {
    /// The fixed spellings, and `words` as further signals of completion.
    pub fn with_own_words<W: Into<String>>(words: impl IntoIterator<Item = W>) -> Result<Self, OwnWordError> {
        let mut own_words = Vec::new();
        for word in words {
            let word: String = word.into();
            let trimmed = trim(&word);
            if trimmed.is_empty() {
                return Err(OwnWordError::Blank);
            }
            if trimmed.contains(['\n', '\r']) {
                return Err(OwnWordError::SeveralLines { word });
            }
            own_words.push(trimmed.to_owned());
        }
        Ok(Self { own_words })
    }

    /// The spelling of completion that an agent is asked for: the first own word, else the promise.
    pub fn completion(&self) -> &str {
        self.own_words.first().map_or("<promise>COMPLETE</promise>", String::as_str)
    }

    fn is_own_word(&self, line: &str) -> bool {
        self.own_words.iter().any(|word| word.to_lowercase() == line.to_lowercase())
    }
}

/// What the agent claims about `story` in its final message. Nothing else that was printed may be passed in: not the
/// prompt, not tool results, not thinking, not the text of sub-agents.
pub fn claim(final_message: &str, story: &StoryId, grammar: &SignalGrammar) -> Claim {
    let lines = split(final_message);
    let Some(last) = lines.last() else { return Claim::None { near_miss: None } };
    let word = match last.place {
        Place::Open => word(last.text, grammar).or_else(|| long_promise(&lines)),
        Place::Fenced | Place::Quoted => None,
    };
    match word {
        Some(Word::Complete { named: Some(id) }) if id != story.as_str().trim() => {
            near_miss("the signal names another story", last.text)
        }
        Some(Word::Complete { .. }) => match lines.iter().find(|line| line.denies_the_end()) {
            Some(denial) => near_miss("the signal is contradicted by a status line", denial.text),
            None => Claim::Complete,
        },
        Some(Word::Failed(reason)) => Claim::Failed { reason },
        Some(Word::Blocked(reason)) => Claim::Blocked { reason },
        None => find_near_miss(&lines, grammar),
    }
}

enum Word {
    Complete { named: Option<String> },
    Failed(String),
    Blocked(String),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Open,
    Fenced,
    Quoted,
}

struct Line<'a> {
    text: &'a str,
    place: Place,
}

impl Line<'_> {
    /// `EXIT_SIGNAL: false`: the agent says in so many words that it has not ended.
    fn denies_the_end(&self) -> bool {
        self.place == Place::Open
            && self.text.split_once(':').is_some_and(|(key, value)| {
                key.trim().eq_ignore_ascii_case("EXIT_SIGNAL") && value.trim().eq_ignore_ascii_case("false")
            })
    }
}

/// The lines that are not blank, trimmed, each with its place. A fence that is never closed reaches to the end.
fn split(message: &str) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    let mut fence: Option<(char, usize)> = None;
    for raw in message.split(['\n', '\r']) {
        let text = trim(raw);
        if text.is_empty() {
            continue;
        }
        let place = match (fence, fence_of(text)) {
            (None, Some(opening)) => {
                fence = Some((opening.mark, opening.length));
                Place::Fenced
            }
            (Some((mark, length)), Some(end)) if end.mark == mark && end.length >= length && end.bare => {
                fence = None;
                Place::Fenced
            }
            (Some(_), _) => Place::Fenced,
            (None, None) if unquoted(text).is_some() => Place::Quoted,
            (None, None) => Place::Open,
        };
        lines.push(Line { text: if place == Place::Open { emphasised(text) } else { text }, place });
    }
    lines
}

struct Fence {
    mark: char,
    length: usize,
    bare: bool,
}

fn fence_of(text: &str) -> Option<Fence> {
    let mark = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let rest = text.trim_start_matches(mark);
    let length = text.len() - rest.len();
    let is_fence = length >= 3 && !(mark == '`' && rest.contains('`'));
    is_fence.then_some(Fence { mark, length, bare: rest.is_empty() })
}

/// What stands inside a line that is a quotation as a whole: `> …`, `"…"`, `` `…` `` and their like.
fn unquoted(text: &str) -> Option<&str> {
    const PAIRS: [(char, char); 6] =
        [('"', '"'), ('\'', '\''), ('`', '`'), ('\u{201c}', '\u{201d}'), ('\u{2018}', '\u{2019}'), ('«', '»')];
    if let Some(quoted) = text.strip_prefix('>') {
        return Some(trim(quoted));
    }
    PAIRS.iter().find_map(|(open, close)| {
        let inside = text.strip_prefix(*open)?.strip_suffix(*close)?;
        Some(trim(inside.trim_matches(*open)))
    })
}

fn emphasised(mut text: &str) -> &str {
    while let Some(inside) = text.strip_prefix('*').and_then(|t| t.strip_suffix('*')) {
        text = trim(inside);
    }
    text
}

/// Without blanks and the invisible characters that copied text carries.
fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '\u{200b}' | '\u{feff}' | '\u{2060}' | '\0'))
}

fn word(line: &str, grammar: &SignalGrammar) -> Option<Word> {
    if grammar.is_own_word(line) {
        return Some(Word::Complete { named: None });
    }
    if let Some(inside) = after_opening_tag(line).and_then(before_closing_tag) {
        return promise(inside);
    }
    let (head, tail) = head_and_tail(line);
    if head.eq_ignore_ascii_case("STORY_COMPLETE") {
        return Some(Word::Complete { named: tail.filter(|id| !id.is_empty()).map(str::to_owned) });
    }
    let reason = || tail.unwrap_or_default().to_owned();
    if head.eq_ignore_ascii_case("STORY_BLOCKED") {
        return Some(Word::Blocked(reason()));
    }
    if head.eq_ignore_ascii_case("ITERATION_FAILED") || head.eq_ignore_ascii_case("CONFLICTS_UNRESOLVED") {
        return Some(Word::Failed(reason()));
    }
    let ends =
        ["ITERATION_COMPLETE", "LOOP_COMPLETE", "CONFLICTS_RESOLVED"].iter().any(|end| line.eq_ignore_ascii_case(end));
    ends.then_some(Word::Complete { named: None })
}

/// The inside of a promise: `COMPLETE`, `FAILED: reason`, `BLOCKED: reason`.
fn promise(inside: &str) -> Option<Word> {
    if mentions_tag(inside) {
        return None;
    }
    let (head, tail) = head_and_tail(trim(inside));
    if head.eq_ignore_ascii_case("COMPLETE") {
        return Some(Word::Complete { named: tail.filter(|id| !id.is_empty()).map(str::to_owned) });
    }
    let reason = tail.unwrap_or_default().to_owned();
    if head.eq_ignore_ascii_case("FAILED") {
        return Some(Word::Failed(reason));
    }
    head.eq_ignore_ascii_case("BLOCKED").then_some(Word::Blocked(reason))
}

/// A promise whose reason runs over several lines, of which the last closes it.
fn long_promise(lines: &[Line<'_>]) -> Option<Word> {
    let (last, above) = lines.split_last()?;
    let mut parts = vec![before_closing_tag(last.text).filter(|part| !mentions_tag(part))?];
    for line in above.iter().rev().take(LONGEST_PROMISE) {
        if line.place != Place::Open {
            return None;
        }
        if let Some(first) = after_opening_tag(line.text) {
            parts.push(first);
            parts.reverse();
            return match promise(&parts.join(" ")) {
                Some(Word::Complete { .. }) => None,
                word => word,
            };
        }
        if mentions_tag(line.text) {
            return None;
        }
        parts.push(line.text);
    }
    None
}

fn head_and_tail(line: &str) -> (&str, Option<&str>) {
    match line.split_once(':') {
        Some((head, tail)) => (trim(head), Some(trim(tail))),
        None => (line, None),
    }
}

fn after_opening_tag(line: &str) -> Option<&str> {
    strip_prefix_any_case(line.strip_prefix('<')?.trim_start(), "promise")?.trim_start().strip_prefix('>')
}

fn before_closing_tag(line: &str) -> Option<&str> {
    let name = line.strip_suffix('>')?.trim_end();
    let start = name.len().checked_sub("promise".len())?;
    let (head, tail) = name.split_at_checked(start)?;
    let head = tail.eq_ignore_ascii_case("promise").then_some(head)?;
    head.trim_end().strip_suffix('/')?.trim_end().strip_suffix('<')
}

fn strip_prefix_any_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (head, tail) = text.split_at_checked(prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then_some(tail)
}

fn mentions_tag(text: &str) -> bool {
    let lower = text.to_lowercase();
    lower.contains("<promise>") || lower.contains("</promise>")
}

/// The last line that looks like a signal, with the reason why it is none.
fn find_near_miss(lines: &[Line<'_>], grammar: &SignalGrammar) -> Claim {
    for line in lines.iter().rev() {
        let inside = if line.place == Place::Quoted { unquoted(line.text) } else { None };
        let whole = word(emphasised(inside.unwrap_or(line.text)), grammar).is_some();
        let why = match (whole, line.place) {
            (true, Place::Open) => "other text follows the signal",
            (true, Place::Fenced) => "the signal is in a code block",
            (true, Place::Quoted) => "the signal is in quotes",
            (false, _) if names_a_signal(line.text, grammar) => "the signal is part of a sentence",
            (false, _) => continue,
        };
        return near_miss(why, line.text);
    }
    match lines.last() {
        Some(last) if promise(last.text).is_some() => near_miss("the signal lacks its tag", last.text),
        _ => Claim::None { near_miss: None },
    }
}

fn names_a_signal(text: &str, grammar: &SignalGrammar) -> bool {
    const BARE: [&str; 7] = [
        "STORY_COMPLETE",
        "STORY_BLOCKED",
        "ITERATION_COMPLETE",
        "ITERATION_FAILED",
        "LOOP_COMPLETE",
        "CONFLICTS_RESOLVED",
        "CONFLICTS_UNRESOLVED",
    ];
    mentions_tag(text)
        || BARE.iter().any(|bare| text.contains(bare))
        || grammar.own_words.iter().any(|own| text.contains(own.as_str()))
}

fn near_miss(why: &str, text: &str) -> Claim {
    let mut excerpt: String = text.chars().take(EXCERPT).collect();
    if excerpt.len() < text.len() {
        excerpt.push('…');
    }
    Claim::None { near_miss: Some(format!("{why}: {excerpt}")) }
}

#[cfg(test)]
mod tests;
