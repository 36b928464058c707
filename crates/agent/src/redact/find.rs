//! Where secrets stand in a text: known values, and the beginnings of well-known forms, which are then looked at.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, Input, MatchKind, StartKind};

use super::doors::{Doors, Patterns};
use super::gate::Gate;
use super::joined::{Joined, may_hold_a_break};
use super::look::{ADDRESS, Kind, Look, PRIVATE_KEY, Secret, address, assigned, form, private_key};
use super::rules::{NAMED, RULES, Rule};

/// A secret, by places of the text.
#[derive(Debug)]
pub(super) struct Span {
    /// Never empty; several of one that is wrapped, of which what is between stays.
    pub(super) pieces: Vec<Range<usize>>,
    pub(super) kind: Kind,
}

impl Span {
    fn of(secret: Secret, joined: &Joined<'_>) -> Self {
        let Secret { start, end, kind } = secret;
        let breaks = joined.breaks_within(start, end).filter(|_| !matches!(kind, Kind::PrivateKey));
        let mut from = start;
        let piece = |until| joined.place(std::mem::replace(&mut from, until))..joined.place(until - 1) + 1;
        let pieces = breaks.chain([end]).map(piece);
        Self { pieces: pieces.collect(), kind }
    }

    pub(super) fn start(&self) -> usize {
        self.pieces.first().map_or(0, |piece| piece.start)
    }

    pub(super) fn end(&self) -> usize {
        self.pieces.last().map_or(0, |piece| piece.end)
    }
}

/// What was seen of a text.
#[derive(Debug, Default)]
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

/// Of a form that was cut off, so much has to be there to know it, in bytes.
const KNOWN_BY: usize = 6;
/// The same, where it is to be masked.
const MASKED_FROM: usize = 8;
/// Before a place so much is seen of what it stands behind, in bytes.
const AHEAD: usize = 32;

static PLAIN: LazyLock<Finder> = LazyLock::new(|| Finder::new(BTreeSet::new()));

/// Whether a value, whatever its name, holds a key of a well-known form.
pub(super) fn is_of_a_form(value: &[u8]) -> bool {
    PLAIN.spans(value).spans.iter().any(|span| matches!(span.kind, Kind::Form(_) | Kind::PrivateKey))
}

#[expect(clippy::expect_used, reason = "fails above 2^31 bytes of patterns, which no environment holds")]
fn automaton(patterns: impl IntoIterator<Item = impl AsRef<[u8]>>) -> AhoCorasick {
    let mut builder = AhoCorasick::builder();
    builder.match_kind(MatchKind::LeftmostLongest).start_kind(StartKind::Unanchored);
    builder.build(patterns).expect("patterns of bounded size")
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
    pub(super) fn spans(&self, text: &[u8]) -> Seen {
        let mut seen = Seen::default();
        let mut joined = Joined::of(text);
        let mut at = 0;
        for region in self.gate.regions(text) {
            let region = at.max(region.start)..region.end;
            if !region.is_empty() {
                at = self.look_at(&mut joined, &region, &mut seen);
            }
        }
        seen
    }

    /// Looks at the places of a region; where to go on.
    fn look_at(&self, joined: &mut Joined<'_>, region: &Range<usize>, seen: &mut Seen) -> usize {
        let Some(first) = self.first_door(joined.text(), region) else { return region.end };
        let mut at = joined.go_to(first, AHEAD);
        let until = joined.take_until(region.end);
        while let Some(start) = self.doors.next(joined.reach(until + 2), at) {
            let Some((pattern, end)) = self.patterns.at(joined, start) else {
                at = start + 1;
                continue;
            };
            let look = match self.marks[pattern] {
                Mark::Value => Look { secret: Some(Secret { start, end, kind: Kind::Value }), open: false },
                Mark::Form { rule, prefix } => form(joined, start, start + prefix, rule),
                Mark::PrivateKey => private_key(joined, start, end),
                Mark::Address => address(joined, start, end),
                Mark::Named => assigned(joined, end),
            };
            if look.open && seen.open.is_none() {
                seen.open = Some(joined.place(start));
            }
            // What is left out of one form may be the beginning of another.
            at = match look.secret {
                Some(secret) => {
                    seen.spans.push(Span::of(secret, joined));
                    secret.end
                }
                None => start + 1,
            };
        }
        if at > until { joined.place(at - 1) + 1 } else { region.end }
    }

    /// The first place of a region where a pattern may begin. Without breaks in it this is known without joining anything.
    fn first_door(&self, text: &[u8], region: &Range<usize>) -> Option<usize> {
        // A pattern is known by three bytes.
        let bare = &text[region.start..text.len().min(region.end + 2)];
        if may_hold_a_break(bare) {
            return Some(region.start);
        }
        let mut doors = std::iter::successors(self.doors.next(bare, 0), |at| self.doors.next(bare, at + 1));
        doors.find(|at| self.patterns.may_be_at(bare, *at)).map(|first| region.start + first)
    }

    /// Where the text ends with the beginning of a known value.
    pub(super) fn begun(&self, text: &[u8]) -> Option<usize> {
        let joined = self.end_of(text);
        let start = self.begun_by(joined.bytes(), KNOWN_BY)?;
        Some(joined.place(start))
    }

    /// What a text that was cut off has of a known value at its end, as far as it begins behind `from`.
    pub(super) fn cut_off(&self, text: &[u8], from: usize) -> Option<Span> {
        let joined = self.end_of(text);
        let bare = joined.bytes().strip_suffix("…".as_bytes()).unwrap_or(joined.bytes());
        let start = self.begun_by(bare, MASKED_FROM).filter(|start| joined.place(*start) >= from)?;
        Some(Span::of(Secret { start, end: bare.len(), kind: Kind::Value }, &joined))
    }

    /// As much of a text as may be the beginning of a value.
    fn end_of<'t>(&self, text: &'t [u8]) -> Joined<'t> {
        let mut joined = Joined::of(text);
        joined.go_to(text.len(), self.longest + "…".len());
        joined
    }

    fn begun_by(&self, text: &[u8], least: usize) -> Option<usize> {
        let beginnings = self.beginnings.as_ref()?;
        let mut at = text.len().saturating_sub(self.longest);
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
