//! Where secrets stand in a text: one pass for known values, and for the beginnings of well-known forms, which are then
//! looked at.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, Input, MatchKind, StartKind};

use super::gate::Gate;
use super::joined::Joined;
use super::rules::{Class, LONG, NAMED, RULES, Rule, is_placeholder, looks_random};

/// What a secret is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// The value of a variable.
    Value,
    /// A well-known form.
    Form(&'static Rule),
    /// A private key.
    PrivateKey,
    /// The password of an address.
    Address,
    /// What is assigned to a name that says so.
    Assigned,
}

impl Kind {
    /// With its article.
    pub(super) fn what(self) -> &'static str {
        match self {
            Self::Value => "the value of a secret variable of the environment",
            Self::Form(rule) => rule.what,
            Self::PrivateKey => "a private key",
            Self::Address => "the password of an address",
            Self::Assigned => "a value that its name calls secret",
        }
    }
}

/// A secret, by places in the joined text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) kind: Kind,
}

/// What was seen of a text.
pub(super) struct Seen {
    /// In order, none overlapping.
    pub(super) spans: Vec<Span>,
    /// Where a secret begins that the text may have only a part of.
    pub(super) open: Option<usize>,
}

/// What a pattern of the automaton stands for.
#[derive(Debug, Clone, Copy)]
enum Mark {
    Value,
    Form { rule: &'static Rule, prefix: usize },
    PrivateKey,
    Address,
    Named,
}

/// What came of looking at a place.
#[derive(Debug, Default)]
struct Look {
    secret: Option<Span>,
    /// More text could make it one, or a longer one.
    open: bool,
}

const NO: Look = Look { secret: None, open: false };

/// The values of a run and all forms.
pub(super) struct Finder {
    gate: Gate,
    doors: Doors,
    patterns: Patterns,
    marks: Vec<Mark>,
    forms: Vec<Vec<u8>>,
    /// Finds the first bytes of each form; none without forms.
    beginnings: Option<AhoCorasick>,
    longest: usize,
}

/// How a private key begins.
pub(super) const PRIVATE_KEY: &str = "-----BEGIN ";
/// What stands before a host, and before a name and a password.
pub(super) const ADDRESS: &str = "://";
/// Of a form that was cut off, so much has to be there to know it, in bytes.
const KNOWN_BY: usize = 6;
/// The same, where it is to be masked.
const MASKED_FROM: usize = 8;
/// Bytes in which a private key has to end.
const LONGEST_KEY: usize = 16 << 10;

static PLAIN: LazyLock<Finder> = LazyLock::new(|| Finder::new(BTreeSet::new()));

/// Whether a value, whatever its name, holds a key of a well-known form.
pub(super) fn is_of_a_form(value: &[u8]) -> bool {
    let spans = PLAIN.spans(&Joined::of(value)).spans;
    spans.iter().any(|span| matches!(span.kind, Kind::Form(_) | Kind::PrivateKey))
}

#[expect(clippy::expect_used, reason = "fails above 2^31 bytes of patterns, which no environment holds")]
fn automaton(patterns: impl IntoIterator<Item = impl AsRef<[u8]>>) -> AhoCorasick {
    let mut builder = AhoCorasick::builder();
    builder.match_kind(MatchKind::LeftmostLongest).start_kind(StartKind::Unanchored);
    builder.build(patterns).expect("patterns of bounded size")
}

/// Which pattern stands at a place. Where a door has opened this is asked, so it has to be quick to say none.
#[derive(Debug)]
struct Patterns {
    texts: Vec<Vec<u8>>,
    /// Of each hash of three bytes, those that begin with such: the longest first, of equals the earliest.
    by_hash: Vec<Box<[u32]>>,
}

impl Patterns {
    const BITS: u32 = 11;

    fn of(texts: Vec<Vec<u8>>) -> Self {
        let mut by_hash = vec![Vec::new(); 1 << Self::BITS];
        for (index, text) in (0..).zip(&texts) {
            if let Some(first) = text.first_chunk::<3>() {
                by_hash[Self::hash(*first)].push(index);
            }
        }
        let length = |index: u32| texts.get(index as usize).map_or(0, Vec::len);
        for some in &mut by_hash {
            some.sort_by_key(|index| std::cmp::Reverse(length(*index)));
        }
        Self { by_hash: by_hash.into_iter().map(Vec::into_boxed_slice).collect(), texts }
    }

    /// The longest that stands at `place`: which it is, and where it ends.
    fn at(&self, text: &[u8], place: usize) -> Option<(usize, usize)> {
        let rest = text.get(place..)?;
        let some = &self.by_hash[Self::hash(*rest.first_chunk::<3>()?)];
        let mut some = some.iter().map(|index| *index as usize);
        some.find(|index| rest.starts_with(&self.texts[*index])).map(|index| (index, place + self.texts[index].len()))
    }

    fn hash([a, b, c]: [u8; 3]) -> usize {
        Threes::hash(u32::from_le_bytes([0, a, b, c]), Self::BITS)
    }
}

/// Sets of three bytes, which may hold others too: nearly every place of a text is passed over by them, many times as fast as
/// by an automaton of so many patterns.
#[derive(Debug)]
struct Doors {
    /// How a pattern begins.
    first: Threes,
    /// How a pattern goes on from its first byte, or from its second: of two places one behind the other, it is enough to
    /// look at the second.
    either: Threes,
}

/// What a pattern of three bytes can be followed by and still mean something, beside letters and digits. Behind the `://` of
/// an address that is anything.
const FOLLOWS: &[u8] = b"_-.+/=~ \"'`\\]:>@%";

impl Doors {
    fn of(patterns: &[Vec<u8>]) -> Self {
        let (mut first, mut either) = (Threes::new(), Threes::new());
        for pattern in patterns {
            let [a, b, c, rest @ ..] = &pattern[..] else { continue };
            first.add([*a, *b, *c]);
            either.add([*a, *b, *c]);
            if let Some(next) = rest.first() {
                either.add([*b, *c, *next]);
            } else {
                let may = |byte: &u8| byte.is_ascii_alphanumeric() || FOLLOWS.contains(byte) || *c == b'/';
                for next in (0..=u8::MAX).filter(may) {
                    either.add([*b, *c, next]);
                }
            }
        }
        Self { first, either }
    }

    /// The next place from `at` on where a pattern may begin.
    fn next(&self, text: &[u8], at: usize) -> Option<usize> {
        let is_first = |place: usize| matches!(text.get(place..), Some([a, b, c, ..]) if self.first.has([*a, *b, *c]));
        let mut block = at;
        while let Some(eight) = text.get(block..).and_then(<[u8]>::first_chunk::<8>).copied().map(u64::from_le_bytes) {
            // At the second, fourth and sixth place; what begins at the seventh is the next block's.
            let (second, fourth, sixth) = (lower(eight), lower(eight >> 16), lower(eight >> 32));
            if self.either.after(second) | self.either.after(fourth) | self.either.after(sixth)
                && let Some(found) = (block..block + 6).find(|place| is_first(*place))
            {
                return Some(found);
            }
            block += 6;
        }
        (block..text.len().saturating_sub(2)).find(|place| is_first(*place))
    }
}

/// The lower half.
#[expect(clippy::cast_possible_truncation, reason = "the upper half is what is left out")]
fn lower(eight: u64) -> u32 {
    eight as u32
}

/// A set of three bytes, by their hash.
#[derive(Debug)]
struct Threes(Box<[u8; 1 << (Self::BITS - 3)]>);

impl Threes {
    const BITS: u32 = 17;

    fn new() -> Self {
        Self(Box::new([0; 1 << (Self::BITS - 3)]))
    }

    fn add(&mut self, [a, b, c]: [u8; 3]) {
        let number = Self::number(u32::from_le_bytes([0, a, b, c]));
        self.0[number >> 3] |= 1 << (number & 7);
    }

    fn has(&self, [a, b, c]: [u8; 3]) -> bool {
        self.after(u32::from_le_bytes([0, a, b, c]))
    }

    /// Whether the last three of these are in it: four are read at once.
    fn after(&self, four: u32) -> bool {
        let number = Self::number(four);
        self.0[number >> 3] >> (number & 7) & 1 == 1
    }

    fn number(four: u32) -> usize {
        Self::hash(four, Self::BITS)
    }

    /// So many bits that the last three of four bytes come to.
    fn hash(four: u32, bits: u32) -> usize {
        ((four & 0xffff_ff00).wrapping_mul(0x9e37_79b1) >> (32 - bits)) as usize
    }
}

impl Finder {
    pub(super) fn new(forms: BTreeSet<Vec<u8>>) -> Self {
        let forms: Vec<Vec<u8>> = forms.into_iter().collect();
        let mut patterns: Vec<Vec<u8>> = forms.clone();
        let mut marks = vec![Mark::Value; forms.len()];
        let mut add = |text: String, mark| {
            patterns.push(text.into_bytes());
            marks.push(mark);
        };
        for rule in RULES {
            for prefix in rule.prefixes {
                let mark = Mark::Form { rule, prefix: prefix.len() };
                if prefix.len() > 2 {
                    add((*prefix).to_owned(), mark);
                    continue;
                }
                // Doors are three bytes wide.
                let next = (0..=u8::MAX).filter(|byte| byte.is_ascii() && rule.tail.has(*byte));
                next.for_each(|byte| add(format!("{prefix}{}", char::from(byte)), mark));
            }
        }
        for name in NAMED {
            let capital = name[..1].to_uppercase() + &name[1..];
            for name in [(*name).to_owned(), name.to_uppercase(), capital] {
                add(name, Mark::Named);
            }
        }
        add(PRIVATE_KEY.to_owned(), Mark::PrivateKey);
        add(ADDRESS.to_owned(), Mark::Address);
        let longest = forms.iter().map(Vec::len).max().unwrap_or(0);
        let beginnings = (!forms.is_empty()).then(|| automaton(forms.iter().map(|form| &form[..KNOWN_BY])));
        let (gate, doors) = (Gate::of(&forms), Doors::of(&patterns));
        Self { gate, doors, patterns: Patterns::of(patterns), marks, forms, beginnings, longest }
    }

    pub(super) fn values(&self) -> usize {
        self.forms.len()
    }

    /// The secrets of a text.
    pub(super) fn spans(&self, joined: &Joined<'_>) -> Seen {
        let text: &[u8] = &joined.bytes;
        let mut seen = Seen { spans: Vec::new(), open: None };
        let mut at = 0;
        for region in self.gate.regions(text) {
            at = self.look_at(joined, at.max(region.start), region.end, &mut seen);
        }
        seen
    }

    /// Looks at the places from `at` to `until`; where to go on.
    fn look_at(&self, joined: &Joined<'_>, mut at: usize, until: usize, seen: &mut Seen) -> usize {
        let text: &[u8] = &joined.bytes;
        // A pattern is known by three bytes.
        let reach = &text[..text.len().min(until + 2)];
        while let Some(place) = self.doors.next(reach, at) {
            let Some((pattern, end)) = self.patterns.at(text, place) else {
                at = place + 1;
                continue;
            };
            let start = place;
            let look = match self.marks[pattern] {
                Mark::Value => Look { secret: Some(Span { start, end, kind: Kind::Value }), open: false },
                Mark::Form { rule, prefix } => form(joined, start, start + prefix, rule),
                Mark::PrivateKey => private_key(joined, start, end),
                Mark::Address => address(joined, start, end),
                Mark::Named => assigned(joined, end),
            };
            if look.open && seen.open.is_none() {
                seen.open = Some(start);
            }
            // What is left out of one form may be the beginning of another.
            at = match look.secret {
                Some(secret) => {
                    seen.spans.push(secret);
                    secret.end
                }
                None => start + 1,
            };
        }
        at
    }

    /// Where the text ends with the beginning of a known value.
    pub(super) fn begun(&self, joined: &Joined<'_>) -> Option<usize> {
        self.begun_by(joined, joined.bytes.len(), KNOWN_BY)
    }

    /// What a text that was cut off has of a known value at its end, as far as it begins behind `from`.
    pub(super) fn cut_off(&self, joined: &Joined<'_>, from: usize) -> Option<Span> {
        let bare = joined.bytes.strip_suffix("…".as_bytes()).unwrap_or(&joined.bytes).len();
        let start = self.begun_by(joined, bare, MASKED_FROM).filter(|start| *start >= from)?;
        Some(Span { start, end: bare, kind: Kind::Value })
    }

    fn begun_by(&self, joined: &Joined<'_>, end: usize, least: usize) -> Option<usize> {
        let beginnings = self.beginnings.as_ref()?;
        let text = &joined.bytes[..end];
        let mut at = end.saturating_sub(self.longest);
        while let Some(found) = beginnings.find(Input::new(text).range(at..)) {
            let rest = &text[found.start()..];
            if rest.len() >= least && self.forms.iter().any(|form| form.len() > rest.len() && form.starts_with(rest)) {
                return Some(found.start());
            }
            at = found.start() + 1;
        }
        None
    }
}

/// Whether a word can begin here.
fn begins_a_word(joined: &Joined<'_>, at: usize, rule: &Rule, prefix: &[u8]) -> bool {
    let before = &joined.bytes[..at];
    let is_behind_another = match before {
        [.., b'\\', b't' | b'b' | b'f' | b'0' | b'v'] => false,
        // An escaped byte of an address, and the end of a colour.
        [.., b'%', high, low] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => false,
        [.., b'm'] if ends_a_colour(&before[..at - 1]) => false,
        [.., last] if last.is_ascii_alphanumeric() || *last == b'_' => true,
        // In the middle of base64.
        [.., b'+' | b'/'] => prefix.iter().all(u8::is_ascii_alphanumeric),
        _ => false,
    };
    !is_behind_another || rule.anywhere || joined.is_break(at)
}

/// Whether `ESC[1;31` stands at the end, but for the first character, which may have been taken out.
fn ends_a_colour(text: &[u8]) -> bool {
    let digits = text.iter().rev().take_while(|byte| byte.is_ascii_digit() || **byte == b';').count();
    text[..text.len() - digits].ends_with(b"[")
}

/// A key of a well-known form, whose beginning stands from `start` to `end`.
fn form(joined: &Joined<'_>, start: usize, end: usize, rule: &'static Rule) -> Look {
    let text: &[u8] = &joined.bytes;
    let prefix = &text[start..end];
    if !begins_a_word(joined, start, rule, prefix) {
        return NO;
    }
    let mut at = end;
    while at - end < rule.most && text.get(at).is_some_and(|byte| rule.tail.has(*byte)) {
        if at - end >= rule.least && at > end && joined.is_break(at) && !goes_on(joined, at, rule, at - end) {
            break;
        }
        at += 1;
    }
    let ends_here = !text.get(at).is_some_and(|byte| rule.tail.has(*byte)) || joined.is_break(at);
    // At the end of the text it may be longer yet, or is not whole.
    let open = at == text.len() && at - end < rule.most;
    // Dots and dashes end a sentence.
    let mut secret_end = at;
    while secret_end > end && matches!(text[secret_end - 1], b'.' | b'-') {
        secret_end -= 1;
    }
    let tail = &text[end..secret_end];
    let in_base64 = matches!(text.get(at), Some(b'+' | b'/')) && prefix.iter().all(u8::is_ascii_alphanumeric);
    let is_secret = tail.len() >= rule.least
        && ends_here
        && (!in_base64 || joined.is_break(at))
        && rule.demand.is_met(tail)
        && !is_placeholder(tail);
    let from = if rule.keeps_prefix { end } else { start };
    Look { secret: is_secret.then_some(Span { start: from, end: secret_end, kind: Kind::Form(rule) }), open }
}

/// Whether a key that could end at a line's end goes on in the next: what stands there is one word of that kind, alone on
/// its line or quoted to its end, and looks drawn by lot.
fn goes_on(joined: &Joined<'_>, at: usize, rule: &Rule, so_far: usize) -> bool {
    let text: &[u8] = &joined.bytes;
    let mut end = at;
    while end - at < LONG
        && text.get(end).is_some_and(|byte| rule.tail.has(*byte))
        && !(end > at && joined.is_break(end))
    {
        end += 1;
    }
    let is_alone = joined.is_break(end) || matches!(text.get(end), Some(b'"' | b'\'' | b'\\' | b'`'));
    let word = &text[at..end];
    is_alone && so_far + word.len() <= rule.most && word.len() >= 4 && looks_like_more(word)
}

/// No word: it holds digits, or small letters and capitals behind its first letter.
fn looks_like_more(word: &[u8]) -> bool {
    let inner = word.get(1..).unwrap_or_default();
    word.iter().any(u8::is_ascii_digit)
        || inner.iter().any(u8::is_ascii_uppercase) && inner.iter().any(u8::is_ascii_lowercase)
}

/// A private key, whose first line begins from `start` to `end`.
fn private_key(joined: &Joined<'_>, start: usize, end: usize) -> Look {
    let text: &[u8] = &joined.bytes;
    let rest = &text[end..];
    let window = &rest[..rest.len().min(80)];
    let Some(dashes) = memchr::memmem::find(window, b"-----") else {
        return Look { secret: None, open: window.len() < 80 };
    };
    let title = &window[..dashes];
    if !(title.ends_with(b"PRIVATE KEY") || title.ends_with(b"PRIVATE KEY BLOCK")) {
        return NO;
    }
    let body = end + dashes + 5;
    let limit = text.len().min(body + LONGEST_KEY);
    let may_hold =
        |byte: u8| Class::Base64.has(byte) || matches!(byte, b' ' | b':' | b',' | b'.' | b'\\' | b'(' | b')');
    let length = text[body..limit].iter().take_while(|byte| may_hold(**byte)).count();
    let held = &text[body..body + length];
    let key = |end: usize| Some(Span { start, end, kind: Kind::PrivateKey });
    if let Some(at) = memchr::memmem::find(held, b"-----END ") {
        let last = body + at + 9;
        let close = memchr::memmem::find(&text[last..limit], b"-----");
        let is_empty = at < 8;
        return match close {
            Some(close) if !is_empty => Look { secret: key(last + close + 5), open: false },
            Some(_) => NO,
            None => Look { secret: key(limit), open: limit == text.len() },
        };
    }
    // The end is missing: as much of it as there is, but no prose after a mere mention.
    let word = held.iter().take_while(|byte| Class::Base64.has(**byte)).count();
    let open = body + word == text.len() && word < LONGEST_KEY || body + length == text.len() && length < LONGEST_KEY;
    Look { secret: (word >= 40).then(|| key(body + word)).flatten(), open }
}

/// The password of an address, whose `://` stands from `start` to `end`.
fn address(joined: &Joined<'_>, start: usize, end: usize) -> Look {
    let text: &[u8] = &joined.bytes;
    let scheme =
        text[..start].iter().rev().take_while(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(byte)).count();
    let ends = |byte: &u8| byte.is_ascii_whitespace() || b"@/'\"\\<>`".contains(byte);
    let word = |from: usize, most: usize| -> usize {
        let until = text[from..].iter().take(most).position(ends).unwrap_or(most.min(text.len() - from));
        from + until
    };
    let user_end = word(end, 400);
    let Some(colon) = text[end..user_end].iter().position(|byte| *byte == b':').map(|at| end + at) else { return NO };
    let password = colon + 1;
    // A colon before the host's port has no @ behind it.
    let is_whole = text.get(user_end) == Some(&b'@') && user_end > password && scheme >= 2 && colon - end <= 128;
    let is_one_line = joined.breaks_within(end, user_end).next().is_none();
    if !is_whole || !is_one_line || matches!(text[password], b'$' | b'<' | b'{' | b'[' | b'*' | b'%') {
        return NO;
    }
    Look { secret: Some(Span { start: password, end: user_end, kind: Kind::Address }), open: false }
}

/// What is assigned to a name of which a telling part ends at `end`: `API_KEY=…`, `"clientSecret": "…"`.
fn assigned(joined: &Joined<'_>, end: usize) -> Look {
    let text: &[u8] = &joined.bytes;
    let skip = |from: usize, most: usize, may: &dyn Fn(u8) -> bool| -> usize {
        from + text[from..].iter().take(most).take_while(|byte| may(**byte)).count()
    };
    let name_end = skip(end, 24, &|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    let quote = |byte: u8| matches!(byte, b'"' | b'\'' | b'`' | b'\\');
    let at = skip(name_end, 4, &quote);
    let at = skip(at, 4, &|byte| byte == b' ' || byte == b']');
    let sign_end = skip(at, 3, &|byte| matches!(byte, b'=' | b':' | b'>'));
    if sign_end == at {
        return NO;
    }
    let at = skip(sign_end, 4, &|byte| byte == b' ');
    let value = skip(at, 4, &quote);
    let is_quoted = value > at;
    let mut value_end = value;
    while value_end - value < 220
        && text.get(value_end).is_some_and(|byte| Class::Header.has(*byte))
        && !(value_end > value && joined.is_break(value_end))
    {
        value_end += 1;
    }
    let is_shell = text[end - 1].is_ascii_uppercase() && sign_end == name_end + 1;
    let held = &text[value..value_end];
    if !(16..=200).contains(&held.len()) {
        return NO;
    }
    // A call, a type, a path: code goes on.
    let closes = !text.get(value_end).is_some_and(|byte| b"([<{!?:#@$%".contains(byte)) || joined.is_break(value_end);
    let is_one_line = joined.breaks_within(end, value_end).next().is_none();
    if is_one_line && closes && (is_quoted || is_shell) && looks_random(held) && !is_placeholder(held) {
        return Look { secret: Some(Span { start: value, end: value_end, kind: Kind::Assigned }), open: false };
    }
    NO
}
