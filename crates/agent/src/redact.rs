//! Secrets masked where bytes enter: values of variables whose names look secret, passwords in addresses, and keys of
//! well-known forms. Every sink (transcript, journal, events, reports, commit messages, notifications) gets only what
//! went through here.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ffi::OsString;

use aho_corasick::{AhoCorasick, MatchKind};
use regex::bytes::{Captures, Regex};

/// What stands in the place of a secret.
pub const MASK: &str = "[redacted]";
/// Values shorter than this are no secrets: they stand in too many other places.
const SHORTEST: usize = 8;

/// Knows the secrets of one run.
#[derive(Clone)]
pub struct Redactor {
    values: Option<AhoCorasick>,
    forms: Regex,
    addresses: Regex,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let values = self.values.as_ref().map_or(0, AhoCorasick::patterns_len);
        write!(f, "Redactor({values} values)")
    }
}

impl Redactor {
    /// Takes the secrets out of `variables`, as [`std::env::vars_os`] gives them.
    pub fn new<N: Into<OsString>, V: Into<OsString>>(variables: impl IntoIterator<Item = (N, V)>) -> Self {
        let mut values = BTreeSet::new();
        for (name, value) in variables {
            let (name, value) = (name.into(), value.into());
            let name = name.to_string_lossy();
            let value = value.into_encoded_bytes();
            if names_a_secret(&name) && !is_ordinary(&value) {
                add(&value, &mut values);
            }
            if let Some(password) = password_in(&value) {
                add(password, &mut values);
            }
        }
        Self { values: matcher(&values), forms: pattern(FORMS), addresses: pattern(ADDRESS) }
    }

    /// `bytes` with every secret masked. A secret must not be cut in two: pass whole lines (see [`Lines`]); a private
    /// key of several lines is masked if it comes in one piece, and line by line otherwise.
    pub fn redact<'t>(&self, bytes: &'t [u8]) -> Cow<'t, [u8]> {
        let mut clean = Cow::Borrowed(bytes);
        if let Some(values) = self.values.as_ref().filter(|values| values.is_match(bytes)) {
            let mut masked = Vec::with_capacity(bytes.len());
            values.replace_all_with_bytes(bytes, &mut masked, |_, _, out| {
                out.extend_from_slice(MASK.as_bytes());
                true
            });
            clean = Cow::Owned(masked);
        }
        clean = replaced(&self.forms, clean, |found, out| {
            out.extend_from_slice(found.name("lead").map_or(b"".as_slice(), |lead| lead.as_bytes()));
            out.extend_from_slice(MASK.as_bytes());
        });
        replaced(&self.addresses, clean, |found, out| {
            out.extend_from_slice(&found[1]);
            out.extend_from_slice(MASK.as_bytes());
            out.push(b'@');
        })
    }

    /// The same for text.
    pub fn redact_text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.redact(text.as_bytes())).into_owned()
    }

    /// Redacts a stream that comes in pieces.
    pub fn lines(&self) -> Lines<'_> {
        Lines { redactor: self, held: Vec::new() }
    }
}

/// A stream under redaction: what is not yet a whole line is held back, so that a secret that was cut in two is found.
#[derive(Debug)]
pub struct Lines<'r> {
    redactor: &'r Redactor,
    held: Vec<u8>,
}

/// So much of a line without an end is held back at most, in bytes.
const HELD: usize = 1 << 20;
/// When a line is longer, so much of its end stays behind, in bytes: no known secret is longer.
const OVERLAP: usize = 16 << 10;

impl Lines<'_> {
    /// Takes the next piece and adds what is safe to pass on to `out`.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.held.extend_from_slice(bytes);
        let ready = match memchr::memrchr(b'\n', &self.held) {
            Some(at) => at + 1,
            None if self.held.len() > HELD => self.end_between_words(),
            None => return,
        };
        out.extend_from_slice(&self.redactor.redact(&self.held[..ready]));
        self.held.drain(..ready);
    }

    /// Adds the rest of the stream to `out`.
    pub fn finish(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.redactor.redact(&self.held));
    }

    /// A place to cut an endless line at, where most likely no secret stands.
    fn end_between_words(&self) -> usize {
        let limit = self.held.len() - OVERLAP;
        let blank = self.held[limit..].iter().position(|byte| matches!(byte, b' ' | b'\t' | b',' | b'"'));
        blank.map_or(limit, |at| limit + at)
    }
}

/// Keys of well-known forms. What is named `lead` stays.
const FORMS: &str = concat!(
    r"(?-u)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)",
    r"|\bsk-[A-Za-z0-9_-]{16,}",
    r"|\b(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,}",
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}",
    r"|\bgithub_pat_[A-Za-z0-9_]{20,}",
    r"|\bglpat-[A-Za-z0-9_-]{16,}",
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    r"|\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
    r"|\bAIza[A-Za-z0-9_-]{35}",
    r"|\bnpm_[A-Za-z0-9]{36}\b",
    r"|\bhf_[A-Za-z0-9]{30,}",
    r"|\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
    r"|(?P<lead>(?i:\bbearer )\s*)[A-Za-z0-9._~+/-]{20,}=*",
);

/// The password of an address.
const ADDRESS: &str = r#"(?-u)([A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s:@/'"\\]{0,128}:)[^\s@/'"\\]{1,256}@"#;

#[expect(clippy::expect_used, reason = "constant patterns, all of them used by the tests")]
fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a constant pattern")
}

/// Finds the longest value first, so that a secret that contains another one is masked whole.
#[expect(clippy::expect_used, reason = "fails above 2^31 bytes of values, which no environment holds")]
fn matcher(values: &BTreeSet<Vec<u8>>) -> Option<AhoCorasick> {
    let builder = || AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(values);
    (!values.is_empty()).then(|| builder().expect("values of bounded size"))
}

fn replaced<'t>(
    pattern: &Regex,
    bytes: Cow<'t, [u8]>,
    mut mask: impl FnMut(&Captures<'_>, &mut Vec<u8>),
) -> Cow<'t, [u8]> {
    if !pattern.is_match(&bytes) {
        return bytes;
    }
    let mut clean = Vec::with_capacity(bytes.len());
    let mut end = 0;
    for found in pattern.captures_iter(&bytes) {
        let Some(whole) = found.get(0) else { continue };
        clean.extend_from_slice(&bytes[end..whole.start()]);
        mask(&found, &mut clean);
        end = whole.end();
    }
    clean.extend_from_slice(&bytes[end..]);
    Cow::Owned(clean)
}

/// Whether a variable is kept from programs that need no secrets: its name looks secret, or its value is an address with a
/// password in it.
pub fn is_secret(name: &str, value: &[u8]) -> bool {
    names_a_secret(name) || password_in(value).is_some_and(|password| !password.is_empty())
}

/// `GITHUB_TOKEN`, `apiKey`, `DB_PASSWORD`; not `MAX_TOKENS`, `KEYBOARD`, `SSH_KEY_PATH`.
fn names_a_secret(name: &str) -> bool {
    const WORDS: [&str; 12] = [
        "KEY",
        "TOKEN",
        "SECRET",
        "SECRETS",
        "PASSWORD",
        "PASSWD",
        "PASSPHRASE",
        "PASS",
        "CREDENTIAL",
        "CREDENTIALS",
        "PAT",
        "APIKEY",
    ];
    const ENDINGS: [&str; 6] = ["TOKEN", "SECRET", "PASSWORD", "APIKEY", "ACCESSKEY", "PRIVATEKEY"];
    const PLACES: [&str; 8] = ["PATH", "FILE", "DIR", "SOCK", "HOME", "URL", "NAME", "COMMAND"];
    let name = name.to_ascii_uppercase();
    let parts: Vec<&str> = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty()).collect();
    let is_place = parts.last().is_some_and(|last| PLACES.contains(last));
    !is_place && parts.iter().any(|part| WORDS.contains(part) || ENDINGS.iter().any(|ending| part.ends_with(ending)))
}

/// Too short, a plain number, or a path: masking it would spoil the log and hide nothing.
fn is_ordinary(value: &[u8]) -> bool {
    let is_number = value.iter().all(u8::is_ascii_digit) && value.len() < 16;
    value.trim_ascii().len() < SHORTEST || is_number || value.starts_with(b"/") || value.starts_with(b"~/")
}

/// The password in `scheme://user:password@host`.
fn password_in(value: &[u8]) -> Option<&[u8]> {
    let after_scheme = memchr::memmem::find(value, b"://")? + 3;
    let rest = &value[after_scheme..];
    let authority = &rest[..rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len())];
    let user = &authority[..memchr::memrchr(b'@', authority)?];
    let colon = memchr::memchr(b':', user)?;
    Some(&user[colon + 1..])
}

/// Adds a value in the forms in which it may be printed: as it is, line by line, and as JSON writes it.
fn add(value: &[u8], values: &mut BTreeSet<Vec<u8>>) {
    for line in value.split(|byte| matches!(byte, b'\n' | b'\r')).map(<[u8]>::trim_ascii) {
        if line.len() < SHORTEST {
            continue;
        }
        if let Ok(text) = std::str::from_utf8(line)
            && let Ok(json) = serde_json::to_string(text)
        {
            values.insert(json.trim_matches('"').as_bytes().to_vec());
        }
        values.insert(line.to_vec());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn redactor() -> Redactor {
        Redactor::new([
            ("FAKE_API_KEY", "sk-FAKE-env-90210-abcdef"),
            ("DATABASE_URL", "postgres://u:pw-FAKE-77@h/db"),
            ("GITHUB_TOKEN", "plain-value-of-a-token"),
            ("MULTI_SECRET", "first line of it\nsecond line of it"),
            ("QUOTED_PASSWORD", "with \"quotes\" inside"),
            ("SHORT_KEY", "true"),
            ("MAX_OUTPUT_TOKENS", "200000000"),
            ("SSH_KEY_PATH", "/home/u/.ssh/id_ed25519"),
            ("EDITOR", "an-ordinary-value"),
        ])
    }

    fn clean(text: &str) -> String {
        redactor().redact_text(text)
    }

    #[test]
    fn values_of_secret_variables_and_passwords_of_addresses_are_masked() {
        let text = "My key is sk-FAKE-env-90210-abcdef, DATABASE_URL=postgres://u:pw-FAKE-77@h/db, pw-FAKE-77, plain-value-of-a-token";
        let seen = clean(text);
        for secret in ["sk-FAKE-env-90210", "pw-FAKE-77", "plain-value-of-a-token"] {
            assert!(!seen.contains(secret), "{seen}");
        }
        assert!(seen.starts_with("My key is [redacted], DATABASE_URL=postgres://u:[redacted]@h/db"), "{seen}");
        assert_eq!(clean("second line of it"), MASK);
        assert_eq!(clean(r#"{"a":"with \"quotes\" inside"}"#), r#"{"a":"[redacted]"}"#);
    }

    #[test]
    fn well_known_forms_are_masked_without_knowing_their_value() {
        for secret in [
            "sk-ant-api03-abcdefghijklmnop",
            "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
            "github_pat_11ABCDEFG0abcdefghijkl",
            "AKIAIOSFODNN7EXAMPLE",
            "xoxb-1234567890-abcdef",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
        ] {
            assert_eq!(clean(&format!("x={secret};")), "x=[redacted];", "{secret}");
        }
        assert_eq!(clean("Authorization: Bearer abcdefghijklmnopqrstuvwxyz"), "Authorization: Bearer [redacted]");
        assert_eq!(clean("https://me:tiny@example.org/x"), "https://me:[redacted]@example.org/x");
        let key = "a\n-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNz\nAAAA\n-----END OPENSSH PRIVATE KEY-----\nb";
        assert_eq!(clean(key), "a\n[redacted]\nb");
    }

    #[test]
    fn ordinary_text_stays_as_it_is() {
        for text in [
            "true 200000000 /home/u/.ssh/id_ed25519 an-ordinary-value",
            "task-skeleton and sk-short, http://localhost:8080/a@b, 12:30@noon",
            "",
        ] {
            assert_eq!(clean(text), text);
        }
        assert!(matches!(redactor().redact(b"\xff nothing"), Cow::Borrowed(_)));
    }

    #[test]
    fn an_endless_line_is_passed_on_in_bounded_memory() {
        let redactor = redactor();
        let mut lines = redactor.lines();
        let mut out = Vec::new();
        for _ in 0..40 {
            lines.push(&vec![b'x'; 100_000], &mut out);
            assert!(lines.held.len() <= HELD + 100_000);
        }
        lines.finish(&mut out);
        assert_eq!(out.len(), 4_000_000);
    }

    proptest! {
        #[test]
        fn a_secret_is_found_however_the_stream_is_cut(cuts in prop::collection::vec(0usize..120, 0..8)) {
            let text: &[u8] = b"key sk-FAKE-env-90210-abcdef end\nurl postgres://u:pw-FAKE-77@h/db\nplain-value-of-a-token";
            let redactor = redactor();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let mut lines = redactor.lines();
            let mut out = Vec::new();
            for pair in cuts.windows(2) {
                lines.push(&text[pair[0]..pair[1]], &mut out);
            }
            lines.finish(&mut out);
            prop_assert_eq!(out, redactor.redact(text).into_owned());
        }
    }
}
