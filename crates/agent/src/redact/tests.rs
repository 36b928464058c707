use proptest::prelude::*;

use super::stream::HELD;
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
        "AKIAIOSFODNN7ABCDEFG",
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
    let mut lines = redactor.stream();
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
        let mut lines = redactor.stream();
        let mut out = Vec::new();
        for pair in cuts.windows(2) {
            lines.push(&text[pair[0]..pair[1]], &mut out);
        }
        lines.finish(&mut out);
        prop_assert_eq!(out, redactor.redact(text).into_owned());
    }

    #[test]
    fn a_secret_is_found_however_it_is_wrapped_and_whatever_is_around_it(
        which in 0usize..4,
        width in 1usize..30,
        ends in r"(\n|\r\n|\\\\n|\\\\r\\\\n|\\\n) {0,90}",
        before in 0usize..20,
        after in 0usize..20,
    ) {
        let secret = [
            "sk-FAKE-env-90210-abcdef",
            "plain-value-of-a-token",
            "pw-FAKE-77",
            "AKIAIOSFODNN7ABCDEFG",
        ][which];
        let pieces: Vec<&str> = secret.split_inclusive(|_| true).collect();
        let lines: Vec<String> = pieces.chunks(width).map(<[&str]>::concat).collect();
        let around = |times: usize| "some words, and more (of them) ".repeat(times);
        let text = format!("{}{}, {}", around(before), lines.join(&ends), around(after));
        let masked = clean(&text);
        let left = masked.replace(MASK, "").replace(&ends, "");
        prop_assert_eq!(left, format!("{}, {}", around(before), around(after)), "{}", masked);
    }
}
