//! The forms in which a known value may be printed: as it is, line by line, in JSON, in addresses, in base64, in hex.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use super::joined::without_breaks;
use super::names::SHORTEST;

/// Adds every form of `value` to `forms`, without line breaks.
pub(super) fn add(value: &[u8], forms: &mut BTreeSet<Vec<u8>>) {
    let whole = value.trim_ascii();
    let mut insert = |form: &[u8]| {
        let joined = without_breaks(form);
        if joined.len() >= SHORTEST {
            forms.insert(joined);
        }
    };
    let lines: Vec<&[u8]> = whole.split(|byte| matches!(byte, b'\n' | b'\r')).map(<[u8]>::trim_ascii).collect();
    for part in lines.iter().chain([&whole]).filter(|part| part.len() >= SHORTEST) {
        insert(part);
        if let Ok(text) = std::str::from_utf8(part) {
            // Also JSON within JSON.
            let once = json(text);
            insert(json(&json(&once)).as_bytes());
            insert(json(&once).as_bytes());
            insert(once.as_bytes());
        }
        insert(percent(part, b"0123456789ABCDEF").as_bytes());
        insert(percent(part, b"0123456789abcdef").as_bytes());
        insert(hex(part, b"0123456789abcdef").as_bytes());
        insert(hex(part, b"0123456789ABCDEF").as_bytes());
        for shift in 0..3 {
            insert(base64_of(part, shift, &STANDARD_NO_PAD).as_bytes());
            insert(base64_of(part, shift, &URL_SAFE_NO_PAD).as_bytes());
        }
    }
}

/// As JSON writes it, without the quotes around it.
fn json(text: &str) -> String {
    let written = serde_json::to_string(text).unwrap_or_default();
    written.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or_default().to_owned()
}

/// As it stands in an address.
fn percent(value: &[u8], digits: &[u8; 16]) -> String {
    let mut text = String::with_capacity(value.len() * 3);
    for byte in value {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(byte) {
            text.push(char::from(*byte));
        } else {
            text.push('%');
            text.push_str(&hex(&[*byte], digits));
        }
    }
    text
}

fn hex(value: &[u8], digits: &[u8; 16]) -> String {
    let digit = |nibble: u8| char::from(digits[usize::from(nibble & 15)]);
    value.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
}

/// The part of its base64 that is the same whatever stands before and after it, where `shift` bytes stand before it in its
/// group of three.
fn base64_of(value: &[u8], shift: usize, engine: &impl Engine) -> String {
    let mut bytes = vec![0; shift];
    bytes.extend_from_slice(value);
    let text = engine.encode(&bytes);
    // Characters that hold bits of what stands before, and after.
    let first = (shift * 4).div_ceil(3);
    let last = bytes.len() * 4 / 3;
    text.get(first..last.min(text.len())).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base64_of_anything_that_holds_a_value_holds_one_of_its_forms() {
        let secret = b"a-secret-of-some-length?>";
        let mut forms = BTreeSet::new();
        add(secret, &mut forms);
        for before in 0..7 {
            for after in 0..4 {
                let whole = [&vec![b'u'; before][..], secret, &vec![b'v'; after]].concat();
                for text in [STANDARD_NO_PAD.encode(&whole), URL_SAFE_NO_PAD.encode(&whole)] {
                    let held = forms.iter().find(|form| memchr::memmem::find(text.as_bytes(), form).is_some());
                    // All but what the edges share with others is in the form.
                    assert!(held.is_some_and(|form| form.len() + 4 >= secret.len() * 4 / 3), "{before} {after} {text}");
                }
            }
        }
    }

    #[test]
    fn a_value_in_an_address_in_json_and_in_hex_is_one_of_its_forms() {
        let mut forms = BTreeSet::new();
        add(b"pass \"word\"/1", &mut forms);
        for form in
            ["pass%20%22word%22%2F1", r#"pass \"word\"/1"#, r#"pass \\\"word\\\"/1"#, "706173732022776f7264222f31"]
        {
            assert!(forms.contains(form.as_bytes()), "{form}");
        }
    }
}
