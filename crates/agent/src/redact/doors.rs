//! Where the patterns may stand that are looked for: nearly every place is passed over by a look into a table.

use super::joined::Joined;

/// Which pattern stands at a place. Where a door has opened this is asked, so it has to be quick to say none.
#[derive(Debug)]
pub(super) struct Patterns {
    texts: Vec<Vec<u8>>,
    /// Of each hash of three bytes, those that begin with such: the longest first, of equals the earliest.
    by_hash: Vec<Box<[u32]>>,
}

impl Patterns {
    const BITS: u32 = 11;

    pub(super) fn of(texts: Vec<Vec<u8>>) -> Self {
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

    /// Whether one may stand at `start`, as far as the text goes.
    pub(super) fn may_be_at(&self, text: &[u8], start: usize) -> bool {
        let rest = &text[start..];
        let Some(first) = rest.first_chunk::<3>() else { return false };
        let mut some = self.by_hash[Self::hash(*first)].iter().map(|index| &self.texts[*index as usize]);
        some.any(|pattern| pattern.iter().zip(rest).all(|(of_pattern, of_text)| of_pattern == of_text))
    }

    /// The longest that stands at `start`: which it is, and where it ends.
    pub(super) fn at(&self, joined: &mut Joined<'_>, start: usize) -> Option<(usize, usize)> {
        let [a, b, c] = *joined.reach(start + 3).get(start..)?.first_chunk::<3>()?;
        let some = &self.by_hash[Self::hash([a, b, c])];
        some.iter().map(|index| *index as usize).find_map(|index| {
            let text = &self.texts[index];
            let end = start + text.len();
            joined.reach(end)[start..].starts_with(text).then_some((index, end))
        })
    }

    fn hash([a, b, c]: [u8; 3]) -> usize {
        Threes::hash(u32::from_le_bytes([0, a, b, c]), Self::BITS)
    }
}

/// Sets of three bytes, which may hold others too: nearly every place of a text is passed over by them, many times as fast as
/// by an automaton of so many patterns.
#[derive(Debug)]
pub(super) struct Doors {
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
    pub(super) fn of(patterns: &[Vec<u8>]) -> Self {
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
    pub(super) fn next(&self, text: &[u8], at: usize) -> Option<usize> {
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
