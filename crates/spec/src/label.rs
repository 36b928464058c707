//! Numbers and keys at the start of headings and tasks: `1.2`, `1a.`, `US-001:`, `**T-10**`, `Phase 2:`, `第3章`.

/// Words that may stand before the number of a heading, lower case.
const HEADING_WORDS: &[&str] = &[
    "phase",
    "stage",
    "step",
    "section",
    "part",
    "group",
    "task",
    "milestone",
    "iteration",
    "sprint",
    "阶段",
    "階段",
    "步骤",
    "フェーズ",
    "ステップ",
];

/// What may stand between a label and the text.
const SEPARATORS: &[char] = &['.', ')', ':', '：', '、', '-', '–', '—'];

/// What makes a bare integer a label.
const PUNCTUATION: &[char] = &['.', ')', ':', '：', '、'];

/// Pairs around a label, one inside the other, at most.
const MAX_PAIRS: usize = 4;

/// A label and the text behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Labelled {
    pub id: String,
    pub text: String,
}

/// The label of a heading. The text is the whole heading where nothing else is left.
pub(crate) fn heading(text: &str) -> Option<Labelled> {
    let text = text.trim();
    let found = in_pair(text, &plain_heading, MAX_PAIRS)?;
    let rest = if found.text.is_empty() { text.to_owned() } else { found.text };
    Some(Labelled { id: found.id, text: rest })
}

/// The label of a task.
pub(crate) fn task(text: &str) -> Option<Labelled> {
    in_pair(text.trim(), &plain_task, MAX_PAIRS)
}

/// Also looks behind an opening `**`, `~~`, `__` or backquote; that pair is removed if a label is there.
fn in_pair(text: &str, parse: &dyn Fn(&str) -> Option<Labelled>, depth: usize) -> Option<Labelled> {
    for mark in ["**", "__", "~~", "`"] {
        if depth > 0
            && let Some(inner) = text.strip_prefix(mark)
            && let Some(close) = inner.find(mark)
        {
            let without = format!("{}{}", &inner[..close], &inner[close + mark.len()..]);
            return in_pair(&without, parse, depth - 1);
        }
    }
    parse(text)
}

fn plain_heading(text: &str) -> Option<Labelled> {
    if let Some(found) = chapter(text) {
        return Some(found);
    }
    let behind_word = HEADING_WORDS.iter().find_map(|word| after_word(text, word));
    let (id, rest) = label(behind_word.unwrap_or(text))?;
    Some(Labelled { id: id.to_owned(), text: strip_separators(rest).to_owned() })
}

fn plain_task(text: &str) -> Option<Labelled> {
    let behind_word = after_word(text, "task");
    let (id, rest) = label(behind_word.unwrap_or(text))?;
    let bare = id.chars().all(|c| c.is_ascii_digit());
    if (bare || behind_word.is_some()) && !rest.starts_with(PUNCTUATION) {
        return None;
    }
    Some(Labelled { id: id.to_owned(), text: strip_separators(rest).to_owned() })
}

/// `第3章 Title`.
fn chapter(text: &str) -> Option<Labelled> {
    let (id, rest) = number(text.strip_prefix('第')?.trim_start())?;
    let mut rest = rest.trim_start().chars();
    matches!(rest.next()?, '章' | '节' | '節' | '部' | '步' | '回')
        .then(|| Labelled { id: id.to_owned(), text: strip_separators(rest.as_str()).to_owned() })
}

/// The text behind a word, in any case; a word of letters needs a blank behind it.
fn after_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let head = text.get(..word.len())?;
    if !head.eq_ignore_ascii_case(word) {
        return None;
    }
    let rest = &text[word.len()..];
    (!word.is_ascii() || rest.starts_with(char::is_whitespace)).then(|| rest.trim_start())
}

/// A number or a key, where the text goes on with something that ends it.
fn label(text: &str) -> Option<(&str, &str)> {
    let (id, rest) = number(text).or_else(|| key(text))?;
    ends_label(rest).then_some((id, rest))
}

/// A blank, the end, or punctuation that is not part of a longer token (`1:30`, `3.5%`).
fn ends_label(rest: &str) -> bool {
    let mut chars = rest.chars();
    match (chars.next(), chars.next()) {
        (None, _) => true,
        (Some(first), _) if first.is_whitespace() => true,
        (Some(first), next) => {
            (PUNCTUATION.contains(&first) && next.is_none_or(|c| !c.is_ascii_digit() && c != '/'))
                || matches!(first, '–' | '—')
                || first == '-' && next.is_some_and(char::is_whitespace)
        }
    }
}

/// `1`, `1.2.3`, `1a`, `1a.1`, `1.6a`.
fn number(text: &str) -> Option<(&str, &str)> {
    let mut end = digits(text);
    if end == 0 {
        return None;
    }
    let mut lettered = false;
    loop {
        let rest = &text[end..];
        let after_dot = rest.strip_prefix('.').map_or(0, digits);
        if after_dot > 0 {
            end += 1 + after_dot;
        } else if !lettered && rest.starts_with(|c: char| c.is_ascii_lowercase()) && !letter_follows(&rest[1..]) {
            lettered = true;
            end += 1;
        } else {
            return Some(text.split_at(end));
        }
    }
}

/// `US-001`, `P0-1.2`, `SEAM-CAP-3a`, `T001`, `C1.1`; capital letters, then digits.
fn key(text: &str) -> Option<(&str, &str)> {
    let prefix = text.find(|c: char| !c.is_ascii_uppercase()).unwrap_or(text.len());
    if prefix == 0 {
        return None;
    }
    let mut end = prefix + digits(&text[prefix..]);
    let (mut dashed, mut numbered) = (false, end > prefix);
    while let Some(part) = text[end..].strip_prefix('-') {
        let length = part.find(|c: char| !c.is_ascii_uppercase() && !c.is_ascii_digit()).unwrap_or(part.len());
        if length == 0 {
            break;
        }
        dashed = true;
        numbered = part[..length].ends_with(|c: char| c.is_ascii_digit());
        end += 1 + length;
    }
    if !numbered {
        return None;
    }
    let rest = &text[end..];
    let lettered = rest.starts_with(|c: char| c.is_ascii_lowercase()) && !letter_follows(&rest[1..]);
    if lettered {
        end += 1;
    }
    let plain = end;
    loop {
        let after_dot = text[end..].strip_prefix('.').map_or(0, digits);
        if after_dot == 0 {
            break;
        }
        end += 1 + after_dot;
    }
    let dotted = end > plain;
    let (id, rest) = text.split_at(end);
    // `S3 bucket`, `MP3 player` and `K8s pod` are words, `T1`, `T001`, `T020a`, `B12` and `S3:` are labels.
    let short = !dashed && !dotted && !rest.starts_with(PUNCTUATION);
    (!short || prefix == 1 && (id.starts_with('T') || !lettered && id.len() > 2)).then_some((id, rest))
}

fn digits(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())
}

fn letter_follows(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
}

fn strip_separators(rest: &str) -> &str {
    rest.trim_start_matches(|c: char| c.is_whitespace() || SEPARATORS.contains(&c)).trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(found: Option<Labelled>, expected: Option<(&str, &str)>, text: &str) {
        let found = found.map(|l| (l.id, l.text));
        assert_eq!(found.as_ref().map(|(i, t)| (i.as_str(), t.as_str())), expected, "{text}");
    }

    #[test]
    fn headings_carry_numbers_in_many_spellings() {
        for (text, expected) in [
            ("1. Storage", Some(("1", "Storage"))),
            ("1a. Follow-ups", Some(("1a", "Follow-ups"))),
            ("5) Announce", Some(("5", "Announce"))),
            ("PHASE 2: Build", Some(("2", "Build"))),
            ("Task 3.1: Package", Some(("3.1", "Package"))),
            ("Section 4 - Release", Some(("4", "Release"))),
            ("Sprint 7 — Ship", Some(("7", "Ship"))),
            ("3- Ship", Some(("3", "Ship"))),
            ("Phase 0", Some(("0", "Phase 0"))),
            ("6.2.1 Deep heading", Some(("6.2.1", "Deep heading"))),
            ("US-001: Title", Some(("US-001", "Title"))),
            ("P0-1 登录", Some(("P0-1", "登录"))),
            ("阶段 2：点单", Some(("2", "点单"))),
            ("フェーズ 2: 画面", Some(("2", "画面"))),
            ("第3章 仕上げ", Some(("3", "仕上げ"))),
            ("**1. Bold**", Some(("1", "Bold"))),
            ("1-2 days", None),
            ("三、收尾", None),
            ("Phase A: Text", None),
            ("Step by step", None),
            ("2nd try", None),
            ("Appendix", None),
        ] {
            check(heading(text), expected, text);
        }
    }

    #[test]
    fn tasks_carry_ids_alone_or_in_a_pair_that_goes_away() {
        for (text, expected) in [
            ("1.2 Add", Some(("1.2", "Add"))),
            ("**1.4: Bold start** of a text", Some(("1.4", "Bold start of a text"))),
            ("~~1.1 Carve~~ replaced", Some(("1.1", "Carve replaced"))),
            ("`1.5` Code id", Some(("1.5", "Code id"))),
            ("1.6a Letter", Some(("1.6a", "Letter"))),
            ("1a.1 Rename", Some(("1a.1", "Rename"))),
            ("1.7 / 1.8 Two", Some(("1.7", "/ 1.8 Two"))),
            ("T-10: Letter dash", Some(("T-10", "Letter dash"))),
            ("TAP-7 Pour", Some(("TAP-7", "Pour"))),
            ("T020a Do", Some(("T020a", "Do"))),
            ("P0-1.2 回调", Some(("P0-1.2", "回调"))),
            ("Task 11: With", Some(("11", "With"))),
            ("3. Integer", Some(("3", "Integer"))),
            ("2.5 litres", Some(("2.5", "litres"))),
            ("12 monkeys", None),
            ("2026-03-04 09:12 - Bell", None),
            ("9:30 meeting", None),
            ("0.5% faster", None),
            ("S3 bucket", None),
            ("I18n of the labels", None),
            ("K8s: probes", Some(("K8s", "probes"))),
            ("MP3 player", None),
            ("**Turn the arrow** now", None),
            ("**12** monkeys", None),
        ] {
            check(task(text), expected, text);
        }
    }
}
