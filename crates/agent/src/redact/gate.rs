//! Which parts of a text have to be looked at. A key, and a value that a name calls secret, is one long word; nearly all
//! words are short. So most of a text is passed over eight bytes at a time.

use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};

use super::find::{ADDRESS, PRIVATE_KEY};
use super::rules::{Class, RULES};

/// A word shorter than this is none that is looked for, in bytes: whatever stands where, it holds eight that are read at once.
const LONG_WORD: usize = 15;
/// Before a word so much may belong to it, in bytes: the beginning of a form …
const BEGINNING: usize = 32;
/// … and the name that says of a value what it is.
const NAME: usize = 64;
/// The end of a text may be the beginning of a secret, however short it is yet.
const END: usize = 64;
/// In a text that is no longer, everything is looked at.
const SHORT: usize = 256;

/// Knows where to look.
#[derive(Debug)]
pub(super) struct Gate {
    /// The beginnings of what is not, or need not be, a long word.
    rare: AhoCorasick,
}

impl Gate {
    /// For these forms of values, and all that is always looked for.
    #[expect(clippy::expect_used, reason = "fails above 2^31 bytes of patterns, which no environment holds")]
    pub(super) fn of(forms: &[Vec<u8>]) -> Self {
        let is_word =
            |form: &&Vec<u8>| form.get(..LONG_WORD).is_some_and(|begin| begin.iter().all(|byte| is_of_word(*byte)));
        let values = forms.iter().filter(|form| !is_word(form)).map(|form| &form[..form.len().min(8)]);
        let of_rules = RULES.iter().flat_map(|rule| {
            let is_short = |prefix: &&&str| {
                let word = prefix.bytes().rev().take_while(|byte| is_of_word(*byte)).count();
                word + rule.least < LONG_WORD
            };
            rule.prefixes.iter().filter(is_short).map(|prefix| prefix.as_bytes())
        });
        let rare = values.chain(of_rules).chain([PRIVATE_KEY.as_bytes(), ADDRESS.as_bytes()]);
        let mut builder = AhoCorasick::builder();
        builder.match_kind(MatchKind::LeftmostFirst);
        Self { rare: builder.build(rare).expect("patterns of bounded size") }
    }

    /// The parts of the text in which something that is looked for may begin: in order, and each once.
    pub(super) fn regions<'t>(&'t self, text: &'t [u8]) -> impl Iterator<Item = Range<usize>> + 't {
        let whole = (text.len() <= SHORT).then_some(0..text.len());
        let bare = if whole.is_some() { &[][..] } else { text };
        let end = text.len().saturating_sub(END)..text.len();
        let mut words = words(bare).chain((!bare.is_empty()).then_some(end)).peekable();
        let mut rare = self.rare.find_iter(bare).map(|found| found.start()..found.end()).peekable();
        let mut told = 0;
        let next = move || {
            loop {
                let takes_word = match (words.peek(), rare.peek()) {
                    (Some(word), Some(rare)) => word.start <= rare.start,
                    (word, _) => word.is_some(),
                };
                let region = if takes_word { words.next() } else { rare.next() }?;
                let region = region.start.max(told)..region.end;
                if !region.is_empty() {
                    told = region.end;
                    return Some(region);
                }
            }
        };
        whole.into_iter().chain(std::iter::from_fn(next))
    }
}

/// What words are made of.
static OF_WORDS: [bool; 256] = {
    let mut all = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        #[expect(clippy::cast_possible_truncation, reason = "it is below 256")]
        let is = Class::Header.has(byte as u8);
        all[byte] = is;
        byte += 1;
    }
    all
};

fn is_of_word(byte: u8) -> bool {
    OF_WORDS[usize::from(byte)]
}

/// The long words of a text, each with what may belong to it before it.
fn words(text: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let block = next_block(text, at)?;
            at = block + 8;
            // Without a branch for each byte.
            if !text[block..at].iter().fold(true, |all, byte| all & is_of_word(*byte)) {
                continue;
            }
            let start = block - text[..block].iter().rev().take_while(|byte| is_of_word(**byte)).count();
            let end = at + text[at..].iter().take_while(|byte| is_of_word(**byte)).count();
            // Within a word nothing else begins.
            at = end.next_multiple_of(8);
            if end - start >= LONG_WORD {
                // What is drawn by lot holds digits.
                let digits = text[start..end].iter().filter(|byte| byte.is_ascii_digit()).count();
                let before = if digits < 2 { BEGINNING } else { NAME };
                return Some(start.saturating_sub(before)..end);
            }
        }
    })
}

/// The next place from `at` on, of every eighth, where eight bytes are neither blanks, quotes nor brackets, and all ASCII.
fn next_block(text: &[u8], at: usize) -> Option<usize> {
    const HIGHEST: u64 = 0x8080_8080_8080_8080;
    const FIRST: u64 = 0x2b2b_2b2b_2b2b_2b2b;
    let blocks = text.get(at..)?.chunks_exact(8);
    let mut eights = blocks.map(|block| block.try_into().map_or(HIGHEST, u64::from_le_bytes));
    // A byte below the first takes its highest bit from the one above it.
    eights.position(|eight| (eight | eight.wrapping_sub(FIRST)) & HIGHEST == 0).map(|block| at + 8 * block)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regions(text: &str) -> Vec<String> {
        let gate = Gate::of(&[b"a value of words".to_vec(), b"short-1!".to_vec(), b"0123456789abcdefghi".to_vec()]);
        let ground = "some words, and more (of them) ".repeat(20);
        let text = format!("{ground}{text}{ground}");
        let end = text.len() - END..text.len();
        gate.regions(text.as_bytes()).filter(|region| *region != end).map(|region| text[region].to_owned()).collect()
    }

    #[test]
    fn long_words_and_what_is_before_them_are_looked_at_wherever_they_stand() {
        assert_eq!(regions(""), Vec::<String>::new());
        for before in 0..8 {
            let blank = " ".repeat(before);
            for word in ["abcdefghijklmno", "0123456789abcdefghi", "https.//x-y_z~a+b="] {
                let seen = regions(&format!("{blank}{word}, and"));
                assert!(seen.len() == 1 && seen[0].ends_with(word), "{before} {word}: {seen:?}");
            }
        }
    }

    #[test]
    fn what_is_no_long_word_is_known_by_its_beginning() {
        for text in ["a value of words", "short-1!", "Basic dXNlcjpw", "x://u:p@h", "-----BEGIN X"] {
            assert_eq!(regions(text).len(), 1, "{text}");
        }
    }
}
