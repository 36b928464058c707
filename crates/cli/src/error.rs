//! The one error of the program's edge: what happened, why, where, what to do next, and the exit code that follows.

use std::ops::Range;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::exit::Exit;
use crate::output::harmless;

/// A place in a file, with the text around it.
#[derive(Debug, Clone)]
pub(crate) struct Excerpt {
    path: String,
    /// The lines around the place.
    text: String,
    /// The number of the first of these lines.
    first_line: usize,
    /// The place, in bytes of `text`.
    span: Range<usize>,
    label: String,
}

/// Longer lines are cut around the place.
const WIDEST: usize = 400;

impl Excerpt {
    /// The place `span` (bytes) of the file `path` whose content is `text`; `label` says what is wrong there.
    pub(crate) fn new(path: &str, text: &str, span: Range<usize>, label: &str) -> Self {
        let at = |offset: usize| {
            let mut offset = offset.min(text.len());
            while !text.is_char_boundary(offset) {
                offset -= 1;
            }
            offset
        };
        let (start, end) = (at(span.start), at(span.end.max(span.start)));
        let first = text[..start].rfind('\n').map_or(0, |newline| newline + 1).max(at(start.saturating_sub(WIDEST)));
        let last = text[start..].find('\n').map_or(text.len(), |newline| start + newline).min(at(start + WIDEST));
        let line = text[first..last].trim_end_matches('\r');
        let (from, to) = ((start - first).min(line.len()), (end.clamp(start, last) - first).min(line.len()));
        // Every character is made harmless by one character, so that places are found again by counting them.
        let shown = |text: &str| harmless(text).len();
        Self {
            path: harmless(path).into_owned(),
            first_line: text[..start].matches('\n').count() + 1,
            span: shown(&line[..from])..shown(&line[..to]),
            text: harmless(line).into_owned(),
            label: harmless(label).into_owned(),
        }
    }

    /// The place at `line` and `column` (1-based, in characters) of a file; the whole line if the column is not known.
    pub(crate) fn at(path: &str, text: &str, line: usize, column: Option<usize>, label: &str) -> Self {
        let start = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum::<usize>();
        let content = text[start..].lines().next().unwrap_or("");
        let span = match column {
            Some(column) => {
                let mut places = content.char_indices().map(|(place, _)| place).skip(column.saturating_sub(1));
                let from = places.next().unwrap_or(content.len());
                from..places.next().unwrap_or(content.len())
            }
            None => content.len() - content.trim_start().len()..content.trim_end().len(),
        };
        Self::new(path, text, start + span.start..start + span.end.max(span.start), label)
    }

    fn snippet(&self) -> Snippet<'_, annotate_snippets::Annotation<'_>> {
        Snippet::source(self.text.as_str())
            .path(self.path.as_str())
            .line_start(self.first_line)
            .annotation(AnnotationKind::Primary.span(self.span.clone()).label(self.label.as_str()))
    }
}

/// A failure, as it is told to the user.
#[derive(Debug)]
pub(crate) struct CliError {
    /// The code that the program ends with.
    pub(crate) exit: Exit,
    /// Nothing is to be printed: there is nobody to read it, or it was said already.
    pub(crate) silent: bool,
    said: Box<Said>,
}

/// What is told.
#[derive(Debug, Default)]
struct Said {
    message: String,
    causes: Vec<String>,
    excerpts: Vec<Excerpt>,
    hints: Vec<String>,
}

impl CliError {
    /// A failure that ends the program with `exit`.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, silent: false, said: Box::new(Said { message: message.into(), ..Said::default() }) }
    }

    /// The call, the configuration or the work is wrong.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::USAGE, message)
    }

    /// Something around the program is missing or broken.
    pub(crate) fn environment(message: impl Into<String>) -> Self {
        Self::new(Exit::ENVIRONMENT, message)
    }

    /// Ends the program with `exit` without a word.
    pub(crate) fn silent(exit: Exit) -> Self {
        Self { silent: true, ..Self::new(exit, "") }
    }

    /// Adds why, with all that is behind it.
    #[must_use]
    pub(crate) fn cause(mut self, error: &dyn std::error::Error) -> Self {
        self.said.causes.push(error.to_string());
        let mut behind = error.source();
        while let Some(error) = behind {
            let text = error.to_string();
            if self.said.causes.last().is_none_or(|last| !last.contains(&text)) {
                self.said.causes.push(text);
            }
            behind = error.source();
        }
        self
    }

    /// Adds a place in a file.
    #[must_use]
    pub(crate) fn excerpt(mut self, excerpt: Excerpt) -> Self {
        self.said.excerpts.push(excerpt);
        self
    }

    /// Adds what to do next; best a command.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.said.hints.push(hint.into());
        self
    }

    /// The message and its causes on one line.
    pub(crate) fn one_line(&self) -> String {
        std::iter::once(&self.said.message).chain(&self.said.causes).map(String::as_str).collect::<Vec<_>>().join(": ")
    }

    /// What happened and what to do next, without colours and without the lines of files.
    pub(crate) fn plain(&self) -> String {
        let said = &self.said;
        let lines = std::iter::once(&said.message).chain(&said.causes).chain(&said.hints);
        lines.map(|line| harmless(line).into_owned()).collect::<Vec<_>>().join("\n")
    }

    /// The whole text, with colours, for the standard error.
    pub(crate) fn render(&self) -> String {
        render(Level::ERROR, &self.said.message, &self.said.causes, &self.said.excerpts, &self.said.hints)
    }
}

/// An error or a warning about a place in a file, with colours.
pub(crate) fn render_finding(is_error: bool, message: &str, place: Option<Excerpt>, hints: &[String]) -> String {
    let excerpts: Vec<Excerpt> = place.into_iter().collect();
    render(if is_error { Level::ERROR } else { Level::WARNING }, message, &[], &excerpts, hints)
}

fn render(level: Level<'_>, message: &str, causes: &[String], excerpts: &[Excerpt], hints: &[String]) -> String {
    let message = harmless(message);
    let causes: Vec<_> = causes.iter().map(|cause| harmless(cause)).collect();
    let hints: Vec<_> = hints.iter().map(|hint| harmless(hint)).collect();
    let mut group = Group::with_title(level.primary_title(message.as_ref()));
    for excerpt in excerpts {
        group = group.element(excerpt.snippet());
    }
    for cause in &causes {
        group = group.element(Level::NOTE.message(cause.as_ref()));
    }
    for hint in &hints {
        group = group.element(Level::HELP.message(hint.as_ref()));
    }
    let mut text = Renderer::styled().decor_style(DecorStyle::Ascii).render(&[group]);
    text.push('\n');
    text
}

/// Of `known`, the word that `word` was probably meant to be.
pub(crate) fn closest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let scored = known.into_iter().map(|name| (name, strsim::jaro_winkler(word, name)));
    scored.filter(|(_, score)| *score > 0.85).max_by(|a, b| a.1.total_cmp(&b.1)).map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(error: &CliError) -> String {
        crate::output::plain(&error.render())
    }

    #[test]
    fn an_error_shows_the_line_with_a_caret_below_the_place() {
        let text = "max_retries = 3\ngate_timeout = \"soon\"\n";
        let excerpt = Excerpt::new("ralphloop.toml", text, 31..37, "write a duration");
        let shown = plain(&CliError::usage("invalid value of gate_timeout").excerpt(excerpt).hint("try 10m"));
        assert!(shown.contains("ralphloop.toml:2:16"), "{shown}");
        let lines: Vec<&str> = shown.lines().collect();
        let row = lines.iter().position(|line| line.contains("gate_timeout = \"soon\"")).unwrap();
        assert_eq!(lines[row].find("\"soon\""), lines[row + 1].find("^^^^^^"), "{shown}");
        assert!(shown.contains("help: try 10m"), "{shown}");
    }

    #[test]
    fn places_beyond_the_text_and_between_the_bytes_of_a_character_do_not_panic() {
        for (text, span) in [("", 0..5), ("ä", 1..1), ("a\r\nb", 1..9), ("x", 9..12), ("line\n", 5..5)] {
            let error = CliError::usage("x").excerpt(Excerpt::new("f", text, span, "here"));
            assert!(plain(&error).contains("error"));
        }
        for (line, column) in [(0, None), (1, Some(0)), (1, Some(99)), (99, Some(1)), (2, None)] {
            let error = CliError::usage("x").excerpt(Excerpt::at("f", "äö\nb", line, column, "here"));
            assert!(plain(&error).contains("error"));
        }
    }

    #[test]
    fn a_long_line_is_cut_around_the_place() {
        let text = format!("{}HERE{}", "x".repeat(100_000), "y".repeat(100_000));
        let shown = plain(&CliError::usage("x").excerpt(Excerpt::new("f", &text, 100_000..100_004, "this")));
        assert!(shown.len() < 5_000 && shown.contains("HERE"), "{}", shown.len());
    }

    #[test]
    fn what_a_file_says_cannot_reach_the_terminal_as_a_command() {
        let text = "a = \u{1b}[2J\u{9b}1m\n";
        let error = CliError::usage("bad \u{1b}]0;owned\u{7}").excerpt(Excerpt::new("f", text, 4..5, "\u{1b}here"));
        let shown = error.render();
        assert!(!shown.contains("\u{1b}]") && !shown.contains("\u{1b}[2J") && !shown.contains('\u{9b}'), "{shown:?}");
    }

    #[test]
    fn the_word_that_was_meant_is_found_and_a_strange_one_is_not() {
        assert_eq!(closest("max_itertions", ["max_retries", "max_iterations"]), Some("max_iterations"));
        assert_eq!(closest("colour", ["max_retries", "max_iterations"]), None);
    }
}
