//! Whether what stands at a place, where it may, is a secret: each kind is looked at in its own way.

use super::joined::Joined;
use super::rules::{Class, LONG, Rule, is_placeholder, looks_random};

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

/// A secret, by indices of the joined text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Secret {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) kind: Kind,
}

/// What came of looking at a place.
#[derive(Debug, Default)]
pub(super) struct Look {
    pub(super) secret: Option<Secret>,
    /// More text could make it one, or a longer one.
    pub(super) open: bool,
}

const NO: Look = Look { secret: None, open: false };

/// How a private key begins.
pub(super) const PRIVATE_KEY: &str = "-----BEGIN ";
/// What stands before a host, and before a name and a password.
pub(super) const ADDRESS: &str = "://";
/// The longest name and password in an address, in bytes.
pub(super) const USER: usize = 400;
/// Bytes in which a private key has to end.
const LONGEST_KEY: usize = 16 << 10;

/// Whether a word can begin here.
fn begins_a_word(joined: &mut Joined<'_>, at: usize, rule: &Rule, is_alphanumeric: bool) -> bool {
    let before = &joined.bytes()[..at];
    let is_behind_another = match before {
        [.., b'\\', b't' | b'b' | b'f' | b'0' | b'v'] => false,
        // An escaped byte of an address, and the end of a colour.
        [.., b'%', high, low] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => false,
        [.., b'm'] if ends_a_colour(&before[..at - 1]) => false,
        [.., last] if last.is_ascii_alphanumeric() || *last == b'_' => true,
        // In the middle of base64.
        [.., b'+' | b'/'] => is_alphanumeric,
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
pub(super) fn form(joined: &mut Joined<'_>, start: usize, end: usize, rule: &'static Rule) -> Look {
    let is_alphanumeric = joined.bytes()[start..end].iter().all(u8::is_ascii_alphanumeric);
    if !begins_a_word(joined, start, rule, is_alphanumeric) {
        return NO;
    }
    let mut at = end;
    while at - end < rule.most && joined.byte(at).is_some_and(|byte| rule.tail.has(byte)) {
        if at - end >= rule.least && at > end && joined.is_break(at) && !goes_on(joined, at, rule, at - end) {
            break;
        }
        at += 1;
    }
    let next = joined.byte(at);
    let is_break = joined.is_break(at);
    let ends_here = !next.is_some_and(|byte| rule.tail.has(byte)) || is_break;
    // At the end of the text it may be longer yet, or is not whole.
    let open = next.is_none() && at - end < rule.most;
    let text = joined.bytes();
    // Dots and dashes end a sentence.
    let mut secret_end = at;
    while secret_end > end && matches!(text[secret_end - 1], b'.' | b'-') {
        secret_end -= 1;
    }
    let tail = &text[end..secret_end];
    let in_base64 = matches!(next, Some(b'+' | b'/')) && is_alphanumeric;
    let is_secret = tail.len() >= rule.least
        && ends_here
        && (!in_base64 || is_break)
        && rule.demand.is_met(tail)
        && !is_placeholder(tail);
    let from = if rule.keeps_prefix { end } else { start };
    Look { secret: is_secret.then_some(Secret { start: from, end: secret_end, kind: Kind::Form(rule) }), open }
}

/// Whether a key that could end at a line's end goes on in the next: what stands there is one word of that kind, alone on
/// its line or quoted to its end, and looks drawn by lot.
fn goes_on(joined: &mut Joined<'_>, at: usize, rule: &Rule, so_far: usize) -> bool {
    let mut end = at;
    while end - at < LONG
        && joined.byte(end).is_some_and(|byte| rule.tail.has(byte))
        && !(end > at && joined.is_break(end))
    {
        end += 1;
    }
    let is_alone = joined.is_break(end) || matches!(joined.byte(end), Some(b'"' | b'\'' | b'\\' | b'`'));
    let word = &joined.bytes()[at..end];
    is_alone && so_far + word.len() <= rule.most && word.len() >= 4 && looks_like_more(word)
}

/// No word: it holds digits, or small letters and capitals behind its first letter.
fn looks_like_more(word: &[u8]) -> bool {
    let inner = word.get(1..).unwrap_or_default();
    word.iter().any(u8::is_ascii_digit)
        || inner.iter().any(u8::is_ascii_uppercase) && inner.iter().any(u8::is_ascii_lowercase)
}

/// A private key, whose first line begins from `start` to `end`.
pub(super) fn private_key(joined: &mut Joined<'_>, start: usize, end: usize) -> Look {
    let window = &joined.reach(end + 80)[end..];
    let Some(dashes) = memchr::memmem::find(window, b"-----") else {
        return Look { secret: None, open: window.len() < 80 };
    };
    let title = &window[..dashes];
    if !(title.ends_with(b"PRIVATE KEY") || title.ends_with(b"PRIVATE KEY BLOCK")) {
        return NO;
    }
    let body = end + dashes + 5;
    let may_hold =
        |byte: u8| Class::Base64.has(byte) || matches!(byte, b' ' | b':' | b',' | b'.' | b'\\' | b'(' | b')');
    let held_end = joined.run(body, LONGEST_KEY, may_hold);
    let text = joined.reach(body + LONGEST_KEY);
    let (limit, held) = (text.len(), &text[body..held_end]);
    // Less than that is all there is.
    let is_all = limit < body + LONGEST_KEY;
    let key = |end: usize| Some(Secret { start, end, kind: Kind::PrivateKey });
    if let Some(at) = memchr::memmem::find(held, b"-----END ") {
        let last = body + at + 9;
        let close = memchr::memmem::find(&text[last..], b"-----");
        let is_empty = at < 8;
        return match close {
            Some(close) if !is_empty => Look { secret: key(last + close + 5), open: false },
            Some(_) => NO,
            None => Look { secret: key(limit), open: is_all },
        };
    }
    // The end is missing: as much of it as there is, but no prose after a mere mention.
    let word = held.iter().take_while(|byte| Class::Base64.has(**byte)).count();
    let open = is_all && (body + word == limit || held_end == limit);
    Look { secret: (word >= 40).then(|| key(body + word)).flatten(), open }
}

/// What ends the name and the password in an address.
pub(super) fn ends_a_user(byte: u8) -> bool {
    byte.is_ascii_whitespace() || b"@/'\"\\<>`".contains(&byte)
}

/// The password of an address, whose `://` stands from `start` to `end`.
pub(super) fn address(joined: &mut Joined<'_>, start: usize, end: usize) -> Look {
    let user_end = joined.run(end, USER, |byte| !ends_a_user(byte));
    let next = joined.byte(user_end);
    let text = joined.bytes();
    let of_scheme = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+.-".contains(byte);
    let scheme = text[..start].iter().rev().take_while(of_scheme).count();
    let Some(colon) = memchr::memchr(b':', &text[end..user_end]).map(|at| end + at) else { return NO };
    let password = colon + 1;
    // A colon before the host's port has no @ behind it.
    let is_whole = next == Some(b'@') && user_end > password && scheme >= 2 && colon - end <= 128;
    let is_one_line = joined.breaks_within(end, user_end).next().is_none();
    if !is_whole || !is_one_line || matches!(text[password], b'$' | b'<' | b'{' | b'[' | b'*' | b'%') {
        return NO;
    }
    Look { secret: Some(Secret { start: password, end: user_end, kind: Kind::Address }), open: false }
}

/// What is assigned to a name of which a telling part ends at `end`: `API_KEY=…`, `"clientSecret": "…"`.
pub(super) fn assigned(joined: &mut Joined<'_>, end: usize) -> Look {
    let quote = |byte: u8| matches!(byte, b'"' | b'\'' | b'`' | b'\\');
    let name_end = joined.run(end, 24, |byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    let at = joined.run(name_end, 4, quote);
    let at = joined.run(at, 4, |byte| byte == b' ' || byte == b']');
    let sign_end = joined.run(at, 3, |byte| matches!(byte, b'=' | b':' | b'>'));
    if sign_end == at {
        return NO;
    }
    let at = joined.run(sign_end, 4, |byte| byte == b' ');
    let value = joined.run(at, 4, quote);
    let is_quoted = value > at;
    let mut value_end = value;
    while value_end - value < 220
        && joined.byte(value_end).is_some_and(|byte| Class::Header.has(byte))
        && !(value_end > value && joined.is_break(value_end))
    {
        value_end += 1;
    }
    // A call, a type, a path: code goes on.
    let closes =
        !joined.byte(value_end).is_some_and(|byte| b"([<{!?:#@$%".contains(&byte)) || joined.is_break(value_end);
    let is_one_line = joined.breaks_within(end, value_end).next().is_none();
    let text = joined.bytes();
    let is_shell = text[end - 1].is_ascii_uppercase() && sign_end == name_end + 1;
    let held = &text[value..value_end];
    let is_secret = (16..=200).contains(&held.len())
        && is_one_line
        && closes
        && (is_quoted || is_shell)
        && looks_random(held)
        && !is_placeholder(held);
    Look { secret: is_secret.then_some(Secret { start: value, end: value_end, kind: Kind::Assigned }), open: false }
}
