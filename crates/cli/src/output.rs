//! What the program prints: data on the standard output, talk on the standard error, colour only for a terminal, and
//! nothing that text from outside could make a terminal do.

use std::borrow::Cow;
use std::io::{self, Write as _};

use anstyle::{AnsiColor, Style};
use unicode_width::UnicodeWidthStr as _;

use crate::error::CliError;
use crate::exit::Exit;

/// Something went well.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// Something went wrong.
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
/// Something deserves a look.
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default();
/// A heading.
pub(crate) const HEAD: Style = Style::new().bold();
/// What matters less.
pub(crate) const DIM: Style = Style::new().dimmed();

/// `text` in `style`. The stream that it is written to drops the style where it does not belong.
pub(crate) fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// `text` without its styles, for a reader that is no terminal.
pub(crate) fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

/// Writes to the standard output, at once. A reader that went away ends the program quietly with 141.
pub(crate) fn data(text: &str) -> Result<(), CliError> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| unwritable(&error))
}

/// Writes JSON to the standard output: one value, indented, and a newline.
pub(crate) fn json(value: &serde_json::Value) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    writeln!(out, "{value:#}").and_then(|()| out.flush()).map_err(|error| unwritable(&error))
}

/// A value as JSON.
pub(crate) fn value(value: &impl serde::Serialize) -> Result<serde_json::Value, CliError> {
    serde_json::to_value(value).map_err(|error| CliError::environment("could not be written as JSON").cause(&error))
}

/// Writes one value as a line of JSON to the standard output, at once.
pub(crate) fn json_line(value: &impl serde::Serialize) -> Result<(), CliError> {
    let mut line = serde_json::to_string(value)
        .map_err(|error| CliError::environment("could not write an event").cause(&error))?;
    line.push('\n');
    let mut out = io::stdout().lock();
    out.write_all(line.as_bytes()).and_then(|()| out.flush()).map_err(|error| unwritable(&error))
}

fn unwritable(error: &io::Error) -> CliError {
    if error.kind() == io::ErrorKind::BrokenPipe {
        CliError::silent(Exit::CLOSED)
    } else {
        CliError::environment("could not write to the standard output").cause(error)
    }
}

/// Writes to the standard error. If nobody can read it any more, that is no reason to stop.
pub(crate) fn talk(text: &str) {
    let mut err = anstream::stderr().lock();
    drop(err.write_all(text.as_bytes()).and_then(|()| err.flush()));
}

/// A warning on the standard error.
pub(crate) fn warn(message: &str) {
    talk(&crate::error::render_finding(false, message, None, &[]));
}

/// Text from outside for people to read: control characters, and those that turn the direction of writing, become
/// symbols, one character each. Newlines and tabs stay.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_harmful) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(symbol).collect())
}

/// [`harmless`], and on one line: newlines and tabs become blanks.
pub(crate) fn one_line(text: &str) -> String {
    harmless(text.trim()).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `1 story`, `2 stories`.
pub(crate) fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Newlines and tabs do no harm where lines are printed one below the other.
fn is_harmful(c: char) -> bool {
    !matches!(c, '\n' | '\t') && ralphloop_tui::text::is_harmful(c)
}

fn symbol(c: char) -> char {
    if is_harmful(c) { ralphloop_tui::text::symbol(c) } else { c }
}

/// `text` cut to `width` columns, with an ellipsis if something is missing.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    for c in text.chars() {
        let mut longer = kept.clone();
        longer.push(c);
        if longer.width() + 1 > width {
            break;
        }
        kept = longer;
    }
    kept + "…"
}

/// Rows as columns that line up, two blanks between them; the first row is the heading. Cells are plain text, made
/// harmless here.
pub(crate) fn table(heading: &[&str], rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(|cell| one_line(cell)).collect()).collect();
    let mut widths: Vec<usize> = heading.iter().map(|cell| cell.width()).collect();
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.width());
        }
    }
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let mut line = String::new();
        for (cell, width) in cells.zip(&widths) {
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', width - cell.width() + 2));
        }
        line.trim_end().to_owned()
    };
    let mut text = styled(HEAD, &line(&mut heading.iter().copied())) + "\n";
    for row in &rows {
        text.push_str(&line(&mut row.iter().map(String::as_str)));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_become_symbols_and_other_text_stays() {
        assert_eq!(harmless("plain äöü 漢字 🎉\n\ttext"), "plain äöü 漢字 🎉\n\ttext");
        assert_eq!(harmless("\u{1b}[2J\u{7}\r\u{7f}"), "␛[2J␇␍␡");
        assert_eq!(harmless("\u{9b}31m\u{202e}gnp"), "\u{fffd}31m\u{fffd}gnp");
    }

    #[test]
    fn columns_line_up_by_width_and_not_by_bytes() {
        let rows = vec![vec!["漢字".to_owned(), "x".to_owned()], vec!["äb".to_owned(), "y\nz".to_owned()]];
        let text = anstream::adapter::strip_str(&table(&["ID", "TITLE"], &rows)).to_string();
        assert_eq!(text, "ID    TITLE\n漢字  x\näb    y z\n");
    }

    #[test]
    fn a_long_text_is_cut_to_its_width() {
        assert_eq!(cut("short", 10), "short");
        assert_eq!(cut("漢字漢字", 5), "漢字…");
    }
}
