//! Secrets masked where bytes enter: values of variables whose names look secret, passwords in addresses, and keys of
//! well-known forms, also where they are wrapped, escaped or encoded. Every sink (transcript, journal, events, reports,
//! commit messages, notifications) gets only what went through here.

mod bits;
mod doors;
mod find;
mod gate;
mod joined;
mod look;
mod names;
mod rules;
mod stream;
mod values;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::ops::Range;
use std::sync::Arc;

use find::{Finder, Span};
use look::Kind;

pub use names::is_secret;
pub use stream::Stream;

/// What stands in the place of a secret.
pub const MASK: &str = "[redacted]";

/// Knows the secrets of one run.
#[derive(Clone)]
pub struct Redactor {
    finder: Arc<Finder>,
}

/// A secret in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// What it is, with its article. Never the secret itself.
    pub what: &'static str,
    /// The line that it begins in, from 1.
    pub line: usize,
    /// Where it stands.
    pub range: Range<usize>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} forms of values)", self.finder.values())
    }
}

impl Redactor {
    /// Takes the secrets out of `variables`, as [`std::env::vars_os`] gives them.
    pub fn new<N: Into<OsString>, V: Into<OsString>>(variables: impl IntoIterator<Item = (N, V)>) -> Self {
        let mut forms = BTreeSet::new();
        for (name, value) in variables {
            let (name, value) = (name.into(), value.into());
            let name = name.to_string_lossy();
            let value = value.into_encoded_bytes();
            let secret = names::names_a_secret(&name) && !names::is_ordinary(&value);
            if secret || find::is_of_a_form(&value) {
                values::add(&value, &mut forms);
            }
            if let Some(password) = names::password_in(&value) {
                values::add(password, &mut forms);
            }
        }
        Self { finder: Arc::new(Finder::new(forms)) }
    }

    /// `bytes` with every secret masked. A secret must not be cut in two: pass whole texts, or a [`Stream`] of pieces.
    pub fn redact<'t>(&self, bytes: &'t [u8]) -> Cow<'t, [u8]> {
        masked(bytes, &self.finder.spans(bytes).spans)
    }

    /// The same for text. What is left of a known value at the end of a text that was cut off there is masked too.
    pub fn redact_text(&self, text: &str) -> String {
        let bytes = text.as_bytes();
        let mut spans = self.finder.spans(bytes).spans;
        spans.extend(self.finder.cut_off(bytes, spans.last().map_or(0, Span::end)));
        String::from_utf8_lossy(&masked(bytes, &spans)).into_owned()
    }

    /// What is secret in a text. Passwords of addresses are left out: those of tests look the same.
    pub fn find(&self, bytes: &[u8]) -> Vec<Found> {
        let spans = self.finder.spans(bytes).spans;
        let mut found = Vec::new();
        let (mut line, mut counted) = (1, 0);
        for span in spans.iter().filter(|span| !matches!(span.kind, Kind::Address)) {
            line += memchr::memchr_iter(b'\n', &bytes[counted..span.start()]).count();
            counted = span.start();
            found.push(Found { what: span.kind.what(), line, range: span.start()..span.end() });
        }
        found
    }

    /// Redacts a stream that comes in pieces.
    pub fn stream(&self) -> Stream {
        Stream::new(self.clone())
    }

    /// The beginning of `bytes` without secrets, and its length: the rest may be part of a secret of which more is to
    /// come. That rest begins at the beginning of a line.
    pub fn redact_settled<'t>(&self, bytes: &'t [u8]) -> (Cow<'t, [u8]>, usize) {
        let seen = self.finder.spans(bytes);
        let Some(open) = seen.open.into_iter().chain(self.finder.begun(bytes)).min() else {
            return (masked(bytes, &seen.spans), bytes.len());
        };
        let settled = memchr::memrchr(b'\n', &bytes[..open]).map_or(0, |end| end + 1);
        (self.redact(&bytes[..settled]), settled)
    }
}

/// The text with those parts masked, each piece of a wrapped one on its own line.
fn masked<'t>(bytes: &'t [u8], spans: &[Span]) -> Cow<'t, [u8]> {
    if spans.is_empty() {
        return Cow::Borrowed(bytes);
    }
    let mut clean = Vec::with_capacity(bytes.len());
    let mut end = 0;
    for piece in spans.iter().flat_map(|span| &span.pieces) {
        clean.extend_from_slice(&bytes[end..piece.start]);
        clean.extend_from_slice(MASK.as_bytes());
        end = piece.end;
    }
    clean.extend_from_slice(&bytes[end..]);
    Cow::Owned(clean)
}

#[cfg(test)]
mod tests;
