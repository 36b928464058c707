//! The front matter of a task file, with what real files get wrong in it.

use crate::error::{ErrorClass, SpecError};
use crate::text::Text;
use crate::yaml::{self, Content, Node};

/// The front matter with its place.
#[derive(Debug)]
pub(super) struct Front {
    pub root: Node,
    /// The line of the closing rule.
    pub end: u32,
    /// Where that line starts in the body.
    pub close: usize,
    /// Its lines end with a carriage return.
    pub crlf: bool,
    /// The first line with a name that is not quoted though it begins with an `@`.
    pub unquoted_at: Option<u32>,
}

/// Reads what stands between the rule in the first line and the next one.
pub(super) fn read(text: &Text<'_>) -> Result<Front, SpecError> {
    let is_rule = |line: &str| line.trim_end() == "---";
    let missing = |message: &str| {
        SpecError::new(ErrorClass::MissingFrontMatter, text.file, message)
            .at_line(1)
            .with_help("a task begins with ---, then id: and title:, then --- again")
    };
    let mut lines = text.numbered();
    if !lines.next().is_some_and(|(_, _, line)| is_rule(line)) {
        return Err(missing("the file has no front matter, so it is no task of Backlog.md"));
    }
    let Some((end, close, _)) = lines.find(|(_, _, line)| is_rule(line)) else {
        return Err(missing("the front matter is never closed"));
    };
    let (_, start, _) = text.numbered().nth(1).unwrap_or((2, close, ""));
    let source = text.body.get(start..close).unwrap_or_default();
    let (source, unquoted_at) = with_names(source);
    let root = yaml::parse(text, &source, start)?.filter(|root| matches!(root.content, Content::Map(_)));
    let root = root.ok_or_else(|| missing("the front matter holds no keys"))?;
    let crlf = source.contains("\r\n");
    Ok(Front { root, end, close, crlf, unquoted_at: unquoted_at.map(|line| line + 2) })
}

/// YAML keeps `@` for itself. Where a plain name begins with it, another letter takes its place, so that everything else
/// stays where it is. The number of the first such line is answered, from 0.
fn with_names(source: &str) -> (String, Option<u32>) {
    let mut out = String::with_capacity(source.len());
    let mut first = None;
    for (number, line) in (0..).zip(source.split_inclusive('\n')) {
        let mended = with_name(line);
        if mended != line {
            first.get_or_insert(number);
        }
        out.push_str(&mended);
    }
    (out, first)
}

fn with_name(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let (mut quote, mut flow) = (None, false);
    // A value starts behind `key: `, behind the dashes that begin a line, and in a list on one line.
    let (mut starts, mut dashes) = (false, true);
    for c in line.chars() {
        let mut written = c;
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') if starts => quote = Some(c),
            (None, '@') if starts => written = '_',
            (None, '[') if starts => flow = true,
            _ => {}
        }
        starts = match c {
            ' ' | '\t' => starts || out.ends_with(':') || dashes && out.ends_with('-'),
            '[' | ',' => flow && quote.is_none(),
            _ => false,
        };
        dashes &= matches!(c, ' ' | '\t' | '-');
        out.push(written);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_name_at_the_start_of_a_value_is_mended() {
        for (line, mended) in [
            ("assignee: @a", "assignee: _a"),
            ("  - @a", "  - _a"),
            ("x: [@a, '@b', @c]", "x: [_a, '@b', _c]"),
            ("title: mail a@b, @c - @d", "title: mail a@b, @c - @d"),
            ("  @a in a folded text", "  @a in a folded text"),
            ("title: '@a: @b'", "title: '@a: @b'"),
        ] {
            assert_eq!(with_name(line), mended);
        }
    }
}
