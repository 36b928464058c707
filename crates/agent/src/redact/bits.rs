//! What a text is made of, a bit for each of 64 bytes at once: without a branch for each byte, most of a text is passed over as
//! fast as it is read.

use super::rules::Class;

/// Which of 64 bytes are what; the lowest bit is the first byte's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bits {
    /// What words are made of.
    pub(super) words: u64,
    /// What breaks begin with, or go on with, and what escapes begin with that are none.
    pub(super) breaks: u64,
}

/// So many bytes at once.
pub(super) const BLOCK: usize = 64;

impl Bits {
    fn of(block: &[u8; BLOCK]) -> Self {
        let (mut words, mut breaks) = ([0; BLOCK], [0; BLOCK]);
        for (of_words, byte) in words.iter_mut().zip(block) {
            *of_words = of_word(*byte);
        }
        for (of_breaks, byte) in breaks.iter_mut().zip(block) {
            *of_breaks = u8::from(*byte == b'\n') | u8::from(*byte == b'\r') | u8::from(*byte == b'\\');
        }
        Self { words: packed(&words), breaks: packed(&breaks) }
    }

    /// Those of a text, each with the place of its first byte. Behind the end of the text is nothing.
    pub(super) fn all(text: &[u8]) -> impl Iterator<Item = (usize, Self)> {
        let (blocks, rest) = text.as_chunks::<BLOCK>();
        let mut last = [0; BLOCK];
        last[..rest.len()].copy_from_slice(rest);
        let bits = blocks.iter().map(Self::of).chain(std::iter::once_with(move || Self::of(&last)));
        (0..).step_by(BLOCK).zip(bits)
    }
}

/// 1 for a byte that words are made of, as [`Class::Header`] says. By ranges, so that many are compared at once.
fn of_word(byte: u8) -> u8 {
    u8::from(byte.wrapping_sub(b'-') <= b'9' - b'-')
        | u8::from((byte | 0x20).wrapping_sub(b'a') < 26)
        | u8::from(byte == b'_')
        | u8::from(byte == b'~')
        | u8::from(byte == b'+')
        | u8::from(byte == b'=')
}

/// The same for one byte, which is quicker looked up.
pub(super) fn is_of_word(byte: u8) -> bool {
    static ALL: [bool; 256] = {
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
    ALL[usize::from(byte)]
}

/// A bit for each byte, which is 0 or 1.
fn packed(bytes: &[u8; BLOCK]) -> u64 {
    // Moves the bit of each byte of eight to its place in the highest byte.
    const GATHERED: u64 = 0x0102_0408_1020_4080;
    let (eights, _) = bytes.as_chunks::<8>();
    let gathered = eights.iter().map(|eight| u64::from_le_bytes(*eight).wrapping_mul(GATHERED) >> 56);
    gathered.zip((0..BLOCK).step_by(8)).fold(0, |all, (bits, place)| all | bits << place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_its_bit() {
        for byte in 0..=u8::MAX {
            assert_eq!(is_of_word(byte), Class::Header.has(byte), "{byte}");
            let text = [&[b' '; 70][..], &[byte], &[b' '; 9]].concat();
            let all: Vec<_> = Bits::all(&text).collect();
            let of = |is: bool| if is { 1 << 6 } else { 0 };
            let bits = Bits { words: of(is_of_word(byte)), breaks: of(b"\n\r\\".contains(&byte)) };
            assert_eq!(all, [(0, Bits { words: 0, breaks: 0 }), (64, bits)], "{byte}");
        }
    }
}
