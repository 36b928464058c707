//! How much of a tool's result the model gets.

/// The most, in bytes: about eight thousand tokens.
pub(super) const MOST: usize = 30_000;

/// The beginning and the end of a text that is too long, with a note of what is left out between them.
pub(super) fn bounded(text: &str) -> String {
    if text.len() <= MOST {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(MOST / 2);
    let tail = text.ceil_char_boundary(text.len() - MOST / 2);
    format!("{}\n… {} bytes left out …\n{}", &text[..head], tail - head, &text[tail..])
}

/// The first lines of a list that may be long, with a note of how many are left out.
pub(super) fn first(mut lines: Vec<String>, most: usize, hint: &str) -> String {
    let more = lines.len().saturating_sub(most);
    lines.truncate(most);
    let mut text = lines.join("\n");
    if more > 0 {
        text.push_str(&format!("\n… {more} more are left out; {hint}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_text_both_ends_are_kept_and_it_is_said_how_much_is_missing() {
        let text = format!("BEGIN{}END", "ä".repeat(MOST));
        let short = bounded(&text);
        assert!(short.len() < MOST + 100 && short.starts_with("BEGIN") && short.ends_with("END"));
        let left_out = text.len() - (short.len() - short[short.find('\n').unwrap()..=short.rfind('\n').unwrap()].len());
        assert!(short.contains(&format!("{left_out} bytes left out")), "{left_out}");
        assert_eq!(bounded("short"), "short");
    }
}
