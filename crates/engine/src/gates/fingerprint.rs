//! When two failures are the same one.

use std::collections::BTreeSet;

use super::output::{clean, is_gap};

/// Equal for two outputs that report the same failure: lines count once and in any order, since tests run in parallel.
pub fn fingerprint(output: &str) -> String {
    let normal = normalise(output);
    let lines: BTreeSet<&str> = normal.lines().collect();
    let mut hasher = blake3::Hasher::new();
    for line in lines {
        hasher.update(line.as_bytes());
        hasher.update(b"\n");
    }
    hasher.finalize().to_hex().to_string()
}

/// The output without what differs from run to run: escape sequences, numbers, times, durations, hashes, addresses,
/// the folders of absolute paths, and the lines that a gap cut through. Codes like `E0308` stay: they say what failed.
pub fn normalise(output: &str) -> String {
    let text = clean(output.as_bytes());
    let lines: Vec<&str> = text.lines().collect();
    let gap_at = |i: usize| lines.get(i).is_some_and(|line| is_gap(line));
    let mut normal = String::with_capacity(text.len());
    for (i, line) in lines.iter().enumerate() {
        let cut = gap_at(i) || gap_at(i + 1) || (i > 0 && gap_at(i - 1));
        let words = line.split_whitespace().filter(|word| !is_date_word(word)).map(normal_word);
        let mut previous = String::new();
        let mut any = false;
        for word in words.filter(|_| !cut) {
            // `1 min 3 s` and `3 s` are both a number.
            if word == "#" && previous == "#" {
                continue;
            }
            if any {
                normal.push(' ');
            }
            normal.push_str(&word);
            any = true;
            previous = word;
        }
        if any {
            normal.push('\n');
        }
    }
    normal
}

/// Names of days and months, as `date` writes them.
fn is_date_word(word: &str) -> bool {
    const WORDS: &[&str] = &[
        "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun", "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep",
        "Oct", "Nov", "Dec", "UTC",
    ];
    WORDS.contains(&word.trim_end_matches(','))
}

fn normal_word(word: &str) -> String {
    let is_edge = |c: char| "()[]{}<>\"'`,;=|".contains(c);
    word.split_inclusive(is_edge)
        .map(|part| {
            let body = part.trim_end_matches(is_edge);
            let edge = &part[body.len()..];
            let body = if body.contains('/') { normal_path(body) } else { normal_token(body) };
            body + edge
        })
        .collect()
}

/// Absolute paths differ between working trees in all but their last part; those of temporary files in that too.
fn normal_path(path: &str) -> String {
    const TEMPORARY: &[&str] = &["/tmp/", "/var/tmp/", "/var/folders/", "/dev/shm/"];
    if TEMPORARY.iter().any(|folder| path.starts_with(folder)) {
        return "<path>".to_owned();
    }
    if path.starts_with('/') || path.starts_with("~/") {
        let last = path.rsplit('/').next().unwrap_or_default();
        return format!("<path>/{}", normal_token(last));
    }
    path.split('/').map(normal_token).collect::<Vec<_>>().join("/")
}

/// Replaces numbers, with their units, and hashes by `#`.
fn normal_token(token: &str) -> String {
    if token.len() == 36 && token.chars().all(|c| c.is_ascii_hexdigit() || c == '-') {
        return "#".to_owned();
    }
    let mut normal = String::with_capacity(token.len());
    let mut rest = token;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if !is_word(first) {
            normal.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let (word, after) = rest.split_at(rest.find(|c| !is_word(c)).unwrap_or(rest.len()));
        if is_hash(word) {
            normal.push('#');
            rest = after;
        } else if first.is_ascii_digit() {
            normal.push('#');
            rest = after_number(rest);
        } else {
            normal.push_str(&normal_name(word));
            rest = after;
        }
    }
    normal
}

/// `0x7f3a`, `1a2b3c4d5e`.
fn is_hash(word: &str) -> bool {
    let hex = |text: &str| text.chars().all(|c| c.is_ascii_hexdigit());
    let prefixed = word.strip_prefix("0x").is_some_and(hex);
    prefixed || (word.len() >= 7 && hex(word) && word.contains(|c: char| c.is_ascii_digit()))
}

/// What follows a number with its inner signs (`1.5`, `14:00:00`, `2026-01-17T14:00:00Z`) and its units (`1m30s`).
fn after_number(text: &str) -> &str {
    const UNITS: &[&str] = &[
        "ns", "us", "µs", "ms", "s", "sec", "secs", "m", "min", "mins", "h", "d", "B", "kB", "KB", "MB", "GB", "KiB",
        "MiB", "GiB", "Z",
    ];
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let mut chars = rest.chars();
        let sign = chars.next().is_some_and(|c| ".:,_-+T".contains(c));
        if sign && chars.as_str().starts_with(|c: char| c.is_ascii_digit()) {
            rest = chars.as_str();
            continue;
        }
        let letters = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
        if letters == 0 || !UNITS.contains(&&rest[..letters]) {
            return rest;
        }
        rest = &rest[letters..];
        if !rest.starts_with(|c: char| c.is_ascii_digit()) {
            return rest;
        }
    }
}

/// A name keeps short numbers (`E0308`, `utf8`, `test_2`) and loses long ones (`worker_81234`).
fn normal_name(word: &str) -> String {
    let mut normal = String::with_capacity(word.len());
    for part in word.split_inclusive(|c: char| !c.is_ascii_digit()) {
        let digits = part.trim_end_matches(|c: char| !c.is_ascii_digit());
        normal.push_str(if digits.len() > 4 { "#" } else { digits });
        normal.push_str(&part[digits.len()..]);
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_from_run_to_run_does_not_make_another_failure() {
        for (one, other) in [
            ("test result: FAILED. finished in 1.32s", "test result: FAILED. finished in 0.07s"),
            ("took 1m30s", "took 450ms"),
            ("[2026-01-17T14:00:00Z] boom", "[2025-11-02T04:10:59.123Z] boom"),
            ("Fri Nov 27 23:38:41 2026 boom", "Sat Jan 3 01:02:03 2027 boom"),
            ("panicked at /home/a/x/src/lib.rs:10:5:", "panicked at /srv/wt-7/src/lib.rs:1210:15:"),
            ("cannot open /tmp/tmp.Xy1/a: no", "cannot open /tmp/.k2Z/b: no"),
            ("thread 'main' (81234) at 0x7ffe12", "thread 'main' (9) at 0x55d0aa"),
            ("running target/debug/deps/a-1f2e3d4c5b6a7980", "running target/debug/deps/a-00ff3d4c5b6a7911"),
            ("id 6fa459ea-ee8a-3ca4-894e-db77e160355e", "id 16fd2706-8baf-433b-82eb-8c7fada847da"),
            ("\x1b[31merror\x1b[0m: x", "error: x"),
            ("listening on http://127.0.0.1:5123/x", "listening on http://127.0.0.1:60001/x"),
            ("a ok\nb failed\n", "b failed\na ok\n"),
            ("aa\nb 1\n… 100 bytes left out …\nc\ndd", "aa\nb\n… 7 bytes left out …\n\ndd"),
        ] {
            assert_eq!(fingerprint(one), fingerprint(other), "{} / {}", normalise(one), normalise(other));
        }
    }

    #[test]
    fn another_failure_is_another_one() {
        for (one, other) in [
            ("error[E0308]: mismatched types", "error[E0382]: mismatched types"),
            ("src/a.rs: failed", "src/b.rs: failed"),
            ("/x/src/a.rs: failed", "/x/src/b.rs: failed"),
            ("test one ... FAILED", "test two ... FAILED"),
            ("", "error"),
        ] {
            assert_ne!(fingerprint(one), fingerprint(other), "{}", normalise(one));
        }
    }
}
