//! Nothing of a secret is left, whatever its shape, wherever it stands and however it is written; what only looks like one
//! stays.

use std::fmt::Write as _;

use ralphloop_agent::redact::Redactor;
use ralphloop_testkit::secrets::{Sample, corpus, look_alikes};

/// So many characters of a secret in a row are a leak.
const LEAK: usize = 12;

fn nothing_known() -> Redactor {
    Redactor::new::<&str, &str>([])
}

/// The first piece of the secret that can be read.
fn leaked<'c>(seen: &str, core: &'c str) -> Option<&'c str> {
    let length = LEAK.min(core.len());
    (0..=core.len() - length).map(|at| &core[at..at + length]).find(|piece| seen.contains(piece))
}

fn hides(redactor: &Redactor, how: &str, sample: &Sample, text: &str) {
    let seen = redactor.redact_text(text);
    let piece = leaked(&seen, &sample.core);
    assert!(piece.is_none(), "{}, {how}: {piece:?} is left of {text}\n{seen}", sample.shape);
}

fn json(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

/// Wrapped after so many characters.
fn wrapped(text: &str, width: usize, between: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(width).map(|line| line.iter().collect::<String>()).collect::<Vec<_>>().join(between)
}

#[test]
fn a_corpus_of_secrets_is_masked_wherever_it_stands() {
    let redactor = nothing_known();
    let corpus = corpus();
    assert!(corpus.len() >= 200, "{}", corpus.len());
    for sample in &corpus {
        let text = &sample.text;
        hides(&redactor, "alone", sample, text);
        hides(&redactor, "in a sentence", sample, &format!("it is {text}, and no other. Next"));
        hides(&redactor, "in quotes", sample, &format!("x('{text}')"));
        hides(&redactor, "coloured", sample, &format!("\u{1b}[1;32m{text}\u{1b}[0m"));
        let line = json(&format!("a line\n{text}\nand\tanother"));
        hides(&redactor, "in JSON", sample, &format!("{{\"text\":{line}}}"));
        hides(&redactor, "in JSON in JSON", sample, &format!("{{\"text\":{}}}", json(&format!("{{\"t\":{line}}}"))));
    }
}

#[test]
fn a_corpus_of_secrets_is_masked_where_it_is_cut_by_lines() {
    let redactor = nothing_known();
    for sample in corpus().iter().filter(|sample| !sample.text.contains(['\n', ' ', '"'])) {
        if ["address", "assigned in a shell"].contains(&sample.shape) {
            // The name and its value stand on one line.
            continue;
        }
        let beginning = sample.text.len() - sample.core.len();
        for cut in [2, sample.core.len() / 3, sample.core.len() / 2] {
            let (first, second) = sample.text.split_at(beginning + cut);
            for with in ["\n", "\r\n", "\n    ", "\\\n", "\\n"] {
                let text = format!("see {first}{with}{second}\nand more of it");
                hides(&redactor, &format!("cut by {with:?}"), sample, &text);
            }
        }
    }
}

#[test]
fn a_corpus_of_secrets_is_masked_in_streams_of_any_pieces() {
    let redactor = nothing_known();
    for sample in corpus() {
        let text = format!("one\nkey {}\nend {}\n", sample.text, sample.text);
        for size in [1, 7, 33, 64] {
            let mut stream = redactor.stream();
            let mut seen = Vec::new();
            text.as_bytes().chunks(size).for_each(|piece| stream.push(piece, &mut seen));
            stream.finish(&mut seen);
            let seen = String::from_utf8(seen).unwrap();
            assert_eq!(leaked(&seen, &sample.core), None, "{} in pieces of {size}: {seen}", sample.shape);
            assert!(seen.starts_with("one\n") && seen.ends_with('\n'), "{seen}");
        }
    }
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[test]
fn known_values_are_masked_in_every_writing() {
    // Values that no rule knows.
    let samples: Vec<Sample> = corpus()
        .into_iter()
        .filter(|sample| sample.core.len() >= 16)
        .map(|sample| Sample { text: format!("{}/\"?&= {}", &sample.core[..8], &sample.core[8..]), ..sample })
        .collect();
    assert!(samples.len() >= 200, "{}", samples.len());
    for sample in samples {
        let value = &sample.text;
        let redactor = Redactor::new([("LAMP_API_KEY", value.as_str())]);
        let percent: String = value.bytes().fold(String::new(), |mut text, byte| {
            if byte.is_ascii_alphanumeric() {
                text.push(char::from(byte));
            } else {
                write!(text, "%{byte:02X}").unwrap();
            }
            text
        });
        let hex: String = value.bytes().map(|byte| format!("{byte:02x}")).collect();
        let with_name = base64(format!("user:{value}").as_bytes());
        for (how, written) in [
            ("plain", value.clone()),
            ("JSON", json(value)),
            ("JSON in JSON", json(&json(value))),
            ("address", percent),
            ("hex", hex),
            ("base64", base64(value.as_bytes())),
            ("base64 with a name", with_name),
        ] {
            for text in [
                format!("see {written} there"),
                format!("see {}", wrapped(&written, 20, "\n")),
                format!("see {}", wrapped(&written, 16, "\\n")),
                format!("{{\"a\":{}}}", json(&format!("x\n{}", wrapped(&written, 24, "\n  ")))),
            ] {
                let seen = redactor.redact_text(&text);
                assert_eq!(leaked(&seen, &written), None, "{how} of {value}: {text}\n{seen}");
                hides(&redactor, how, &sample, &text);
            }
            for size in [1, 9, 40] {
                let (text, mut seen) = (format!("{}\n", wrapped(&written, 20, "\n")), Vec::new());
                let mut stream = redactor.stream();
                text.as_bytes().chunks(size).for_each(|piece| stream.push(piece, &mut seen));
                stream.finish(&mut seen);
                let seen = String::from_utf8(seen).unwrap();
                // Lines are masked one by one, so none may hold much of it.
                assert_eq!(leaked(&seen, &written), None, "{how} of {value} in pieces of {size}: {seen}");
            }
        }
        let cut = format!("the head of {}…", &value[..value.len() - 3]);
        assert_eq!(leaked(&redactor.redact_text(&cut), value), None, "{cut}");
    }
}

#[test]
fn what_only_looks_like_a_secret_stays() {
    let redactor = nothing_known();
    for (what, text) in look_alikes() {
        assert_eq!(redactor.redact_text(&text), text, "{what}");
        let line = json(&text);
        assert_eq!(redactor.redact_text(&line), line, "{what} in JSON");
        assert_eq!(redactor.find(text.as_bytes()), [], "{what}");
    }
}

#[test]
fn what_was_masked_once_stays_as_it_is() {
    let redactor = nothing_known();
    for sample in corpus() {
        let once = redactor.redact_text(&format!("a {} b", sample.text));
        assert_eq!(redactor.redact_text(&once), once, "{}", sample.shape);
    }
}
