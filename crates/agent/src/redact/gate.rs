//! Which parts of a text have to be looked at. A key, and a value that a name calls secret, is one long word; nearly all
//! words are short.

use std::ops::Range;

use aho_corasick::{AhoCorasick, Input, MatchKind, packed};

use super::bits::{BLOCK, Bits, is_of_word};
use super::joined::{back, end_of_break, start_of_break};
use super::look::{ADDRESS, PRIVATE_KEY, USER, ends_a_user};
use super::rules::RULES;

/// A word shorter than this is none that is looked for, in bytes.
const LONG_WORD: usize = 15;
/// Before a word that may be a value, a name so far away may say what it is, in bytes.
const NAME: usize = 64;
/// So much of a value that is no long word is looked for, in bytes.
const OF_VALUE: usize = 8;
/// The end of a text may be the beginning of a secret, however short it is yet.
const END: usize = 64;
/// In a text that is no longer, everything is looked at.
const SHORT: usize = 256;

/// Knows where to look.
#[derive(Debug)]
pub(super) struct Gate {
    rare: Rare,
    /// Which bytes follow each other in what is rare, so that a break between them is known.
    pairs: Pairs,
    /// All of them follow what words are made of.
    follows_words: bool,
    /// The longest of what is rare, in bytes.
    longest: usize,
}

impl Gate {
    /// For these forms of values, and all that is always looked for.
    pub(super) fn of(forms: &[Vec<u8>]) -> Self {
        let is_word =
            |form: &&Vec<u8>| form.get(..LONG_WORD).is_some_and(|begin| begin.iter().all(|byte| is_of_word(*byte)));
        let values = forms.iter().filter(|form| !is_word(form)).map(|form| &form[..form.len().min(OF_VALUE)]);
        let of_rules = RULES.iter().flat_map(|rule| {
            let is_no_word = |prefix: &&&str| prefix.len() + rule.least < LONG_WORD || !prefix.bytes().all(is_of_word);
            rule.prefixes.iter().filter(is_no_word).map(|prefix| prefix.as_bytes())
        });
        let rare: Vec<&[u8]> = values.chain(of_rules).chain([PRIVATE_KEY.as_bytes()]).collect();
        let longest = rare.iter().map(|rare| rare.len()).max().unwrap_or(0);
        let pairs = Pairs::of(&rare);
        let follows_words =
            rare.iter().filter_map(|rare| rare.split_last()).all(|(_, all)| all.iter().all(|byte| is_of_word(*byte)));
        Self { rare: Rare::of(&rare), pairs, follows_words, longest }
    }

    /// The parts of the text in which something that is looked for may begin, in order of their beginnings.
    pub(super) fn regions(&self, text: &[u8]) -> Vec<Range<usize>> {
        let mut regions = Vec::new();
        if text.len() <= SHORT {
            regions.push(0..text.len());
            return regions;
        }
        self.words(text, &mut regions);
        regions.extend(self.rare.all(text));
        regions.extend(addresses(text));
        regions.push(back(text, text.len(), END)..text.len());
        // Runs of what is in order already.
        regions.sort_by_key(|region| region.start);
        regions
    }

    /// Adds long words, and those with breaks in them, and the same of what is rare.
    fn words(&self, text: &[u8], regions: &mut Vec<Range<usize>>) {
        let mut wraps = Wraps::default();
        let (mut last, mut end) = (0, 0);
        for (place, bits) in Bits::all(text) {
            // Within a word nothing else begins.
            let behind_word = |end: usize| {
                let seen = u32::try_from((end + BLOCK).saturating_sub(place)).unwrap_or(u32::MAX);
                u128::MAX.checked_shl(seen).unwrap_or(0)
            };
            let mut long = long_runs(u128::from(bits.words) << BLOCK | u128::from(last)) & behind_word(end);
            while long != 0 {
                let start = place + long.trailing_zeros() as usize - BLOCK;
                end = end_of_word(text, start + LONG_WORD);
                regions.push(of_long_word(text, start..end));
                long &= behind_word(end);
            }
            let behind = if self.follows_words { bits.words << 1 | last >> (BLOCK - 1) } else { u64::MAX };
            let mut breaks = bits.breaks & behind;
            while breaks != 0 {
                regions.extend(wraps.at(self, text, place + breaks.trailing_zeros() as usize));
                breaks &= breaks - 1;
            }
            last = bits.words;
        }
    }
}

/// What is wrapped, from break to break.
#[derive(Debug, Default)]
struct Wraps {
    /// Where the line begins.
    line: usize,
    /// How much of the end of the line before may belong to a word.
    carried: usize,
}

impl Wraps {
    /// What goes on behind the break that may begin at `start`.
    fn at(&mut self, gate: &Gate, text: &[u8], start: usize) -> Option<Range<usize>> {
        // A break may be longer than where it was first seen, and so may an escape that is none.
        let before = text.get(self.line..start).filter(|before| !before.ends_with(b"\\"))?;
        let end = end_of_break(text, start);
        let (last, next) = (*before.last()?, *text.get(end).filter(|_| end > start)?);
        self.line = end;
        let word = before.iter().rev().take(LONG_WORD).take_while(|byte| is_of_word(**byte)).count();
        self.carried = if word == before.len() { LONG_WORD.min(self.carried + word) } else { word };
        if is_of_word(last) && is_of_word(next) {
            let word_end = end_of_word(text, end);
            if self.carried + word_end - end >= LONG_WORD {
                return Some(back(text, end, self.carried + NAME)..word_end);
            }
        }
        gate.pairs.has(last, next).then(|| back(text, end, gate.longest)..end)
    }
}

/// The first bit of each run of as many as a long word has, and of the same within longer ones, unless it was seen before:
/// the lower half are those of the block before.
fn long_runs(bits: u128) -> u128 {
    let of_two = bits & bits >> 1;
    let of_four = of_two & of_two >> 2;
    let of_eight = of_four & of_four >> 4;
    of_eight & of_eight >> (LONG_WORD - 8) & u128::MAX << (BLOCK + 1 - LONG_WORD)
}

/// Where the word ends that `at` is in, or behind.
fn end_of_word(text: &[u8], at: usize) -> usize {
    at + text[at..].iter().take_while(|byte| is_of_word(**byte)).count()
}

/// Where something may begin in a long word, or before it.
fn of_long_word(text: &[u8], word: Range<usize>) -> Range<usize> {
    // A value that is drawn by lot holds digits, and no beginning is shorter than three bytes.
    let digits = text[word.clone()].iter().filter(|byte| byte.is_ascii_digit()).count();
    let start = if digits < 2 { word.start } else { back(text, word.start, NAME) };
    start..word.end - 2
}

/// Where `://` stands before a name and a password with an `@` behind them.
fn addresses(text: &[u8]) -> impl Iterator<Item = Range<usize>> {
    memchr::memchr_iter(b'@', text).filter_map(|at| {
        let end = start_of_break(text, at);
        let user = text[..end].iter().rev().take(USER).take_while(|byte| !ends_a_user(**byte)).count();
        let start = end - user;
        memchr::memchr(b':', &text[start..end])?;
        // Before it may also be a break, of which the last letter looks like the name's first.
        let is_address = matches!(text[..start].last(), Some(b'/' | b'\\')) || start_of_break(text, start) < start;
        is_address.then(|| back(text, start, ADDRESS.len())..start)
    })
}

/// The beginnings of what is not, or need not be, a long word.
#[derive(Debug)]
enum Rare {
    /// Where there are few of them, and this processor can look for all at once.
    Few(packed::Searcher),
    Many(AhoCorasick),
}

impl Rare {
    #[expect(clippy::expect_used, reason = "fails above 2^31 bytes of patterns, which no environment holds")]
    fn of(rare: &[&[u8]]) -> Self {
        if let Some(few) = packed::Searcher::new(rare) {
            return Self::Few(few);
        }
        let mut builder = AhoCorasick::builder();
        builder.match_kind(MatchKind::LeftmostFirst);
        Self::Many(builder.build(rare).expect("patterns of bounded size"))
    }

    fn all(&self, text: &[u8]) -> impl Iterator<Item = Range<usize>> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let found = match self {
                Self::Few(few) => few.find_in(text, (at..text.len()).into()),
                Self::Many(many) => many.find(Input::new(text).range(at..)),
            }?;
            at = found.end();
            Some(found.range())
        })
    }
}

/// A set of two bytes, one behind the other.
#[derive(Debug)]
struct Pairs(Box<[u64; 1 << 10]>);

impl Pairs {
    fn of(texts: &[&[u8]]) -> Self {
        let mut all = Box::new([0; 1 << 10]);
        for pair in texts.iter().flat_map(|text| text.windows(2)) {
            let number = Self::number(pair[0], pair[1]);
            all[number / 64] |= 1 << (number % 64);
        }
        Self(all)
    }

    fn has(&self, first: u8, second: u8) -> bool {
        let number = Self::number(first, second);
        self.0[number / 64] >> (number % 64) & 1 == 1
    }

    fn number(first: u8, second: u8) -> usize {
        usize::from(u16::from_be_bytes([first, second]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regions(text: &str) -> Vec<String> {
        let gate = Gate::of(&[b"a value of words".to_vec(), b"short-1!".to_vec(), b"0123456789abcdefghi".to_vec()]);
        let ground = "some words, and more (of them) ".repeat(20);
        let text = format!("{ground}{text}{ground}");
        let end = text.len() - END..text.len();
        let regions = gate.regions(text.as_bytes()).into_iter();
        regions.filter(|region| *region != end).map(|region| text[region].to_owned()).collect()
    }

    #[test]
    fn long_words_and_what_is_before_them_are_looked_at_wherever_they_stand() {
        assert_eq!(regions(""), Vec::<String>::new());
        for before in 0..8 {
            let blank = " ".repeat(before);
            for word in ["abcdefghijklmno", "0123456789abcdefghi", "https.//x-y_z~a+b="] {
                let seen = regions(&format!("{blank}{word}, and"));
                let begins = &word[..word.len() - 2];
                assert!(seen.len() == 1 && seen[0].ends_with(begins), "{before} {word}: {seen:?}");
            }
        }
    }

    #[test]
    fn what_is_no_long_word_is_known_by_its_beginning() {
        for text in ["a value of words", "short-1!", "Basic dXNlcjpw", "x://u:p@h", "-----BEGIN X"] {
            assert_eq!(regions(text).len(), 1, "{text}");
        }
    }

    #[test]
    fn what_is_wrapped_is_one_word_and_what_is_before_it_is_looked_at() {
        for (text, last) in [
            ("key:\n   abcdefgh\n\tijkl\\r\\nmnop\nqrst", "abcdefgh\n\tijkl\\r\\nmnop"),
            ("short-\n1!", "hort-\n"),
            ("-----BEG\\nIN X", "-----BEG\\n"),
            ("postgres:\n//\\n u:p\n@h", ":\n//\\n "),
        ] {
            let seen = regions(text);
            assert!(seen.iter().any(|region| region.ends_with(last)), "{text}: {seen:?}");
        }
    }
}
