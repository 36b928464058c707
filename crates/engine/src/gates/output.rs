//! What of a command's output is kept and shown.

use std::collections::VecDeque;
use std::time::Duration;

/// How much of the beginning of an output is kept, in bytes: where the command says what it does, and first fails.
const HEAD: usize = 8 << 10;
/// How much of its end: where summaries stand.
const TAIL: usize = 24 << 10;

const GAP_BEGIN: &str = "… ";
const GAP_END: &str = " bytes left out …";

/// The line stands for bytes that are not kept.
pub(super) fn is_gap(line: &str) -> bool {
    line.starts_with(GAP_BEGIN) && line.ends_with(GAP_END)
}

/// Both outputs of a command in the order in which they came, as much as is kept.
#[derive(Debug, Default)]
pub(super) struct Kept {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    left_out: u64,
}

impl Kept {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let (first, rest) = bytes.split_at(bytes.len().min(HEAD - self.head.len()));
        self.head.extend_from_slice(first);
        let surplus = (self.tail.len() + rest.len()).saturating_sub(TAIL);
        let from_tail = surplus.min(self.tail.len());
        self.tail.drain(..from_tail);
        self.tail.extend(&rest[surplus - from_tail..]);
        self.left_out += surplus as u64;
    }

    /// Head and tail, with a mark between them if bytes are missing there.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        let mut bytes = self.head;
        if self.left_out > 0 {
            bytes.extend_from_slice(format!("\n{GAP_BEGIN}{}{GAP_END}\n", self.left_out).as_bytes());
        }
        bytes.extend(self.tail);
        bytes
    }
}

/// Output as text that is safe to show: no escape sequences, no control characters but line ends and tabs, nothing
/// that turns the writing direction; bytes that are not UTF-8 become `U+FFFD`.
pub fn clean(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let text = anstream::adapter::strip_str(&text).to_string().replace("\r\n", "\n");
    let shown = |c: char| match c {
        // A lone carriage return begins a line again, as progress bars do.
        '\r' => Some('\n'),
        '\n' | '\t' => Some(c),
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' => None,
        c if c.is_control() => None,
        c => Some(c),
    };
    text.chars().filter_map(shown).collect()
}

/// A time limit as it is written on the command line: `4s`, `10m`, `1h30m`.
pub(crate) fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    if span.subsec_nanos() > 0 {
        return if seconds == 0 { format!("{}ms", span.as_millis()) } else { format!("{:.1}s", span.as_secs_f64()) };
    }
    let parts = [(seconds / 3600, "h"), (seconds % 3600 / 60, "m"), (seconds % 60, "s")];
    let parts: Vec<String> = parts.iter().filter(|(n, _)| *n > 0).map(|(n, unit)| format!("{n}{unit}")).collect();
    if parts.is_empty() { "0s".to_owned() } else { parts.concat() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_output_keeps_its_head_and_its_tail_and_says_how_much_is_missing() {
        let mut kept = Kept::default();
        kept.push(b"BEGIN\n");
        for _ in 0..1000 {
            kept.push(&[b'z'; 400]);
        }
        kept.push(b"\nEND\n");
        let text = clean(&kept.into_bytes());
        let left_out = 6 + 400_000 + 5 - HEAD - TAIL;
        assert!(text.starts_with("BEGIN\nzz") && text.ends_with("zz\nEND\n"));
        assert!(text.contains(&format!("\n… {left_out} bytes left out …\n")));
        assert!(text.len() < HEAD + TAIL + 100);
    }

    #[test]
    fn short_output_is_whole() {
        let mut kept = Kept::default();
        kept.push(&[b'a'; HEAD]);
        kept.push(&vec![b'b'; TAIL]);
        assert_eq!(kept.into_bytes().len(), HEAD + TAIL);
    }

    #[test]
    fn b31_control_characters_are_kept_out() {
        let bytes = b"\x1b[31mred\x1b[0m\x07 \x1b]0;title\x07\ta\r\nb\rc \xff\0 caf\xc3\xa9 \xe2\x80\xae \xc2\x9b1m";
        assert_eq!(clean(bytes), "red \ta\nb\nc \u{fffd} café  1m");
    }

    #[test]
    fn limits_read_as_they_are_written() {
        let texts = [4, 600, 5400, 3661, 0].map(|s| span(Duration::from_secs(s)));
        assert_eq!(texts, ["4s", "10m", "1h30m", "1h1m1s", "0s"]);
        assert_eq!(span(Duration::from_millis(250)), "250ms");
        assert_eq!(span(Duration::from_millis(1500)), "1.5s");
    }
}
