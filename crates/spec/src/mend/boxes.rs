//! Boxes with blanks missing or to spare, brought into the form that every tool reads.

use super::Mend;
use crate::edit::Edit;
use crate::error::Code;
use crate::markdown::boxes::{self, BoxLine};
use crate::markdown::outline::outline;
use crate::text::Text;

/// The mends of the boxes that the reader warns of.
pub(super) fn mends(text: &Text<'_>) -> Vec<Mend> {
    let outline = outline(text);
    let warned: std::collections::HashSet<u32> =
        outline.notes.iter().filter(|(code, _)| *code == Code::MalformedCheckbox).map(|(_, line)| *line).collect();
    let lines = text.numbered().filter(|(number, _, _)| warned.contains(number));
    lines
        .filter_map(|(number, start, line)| Some((number, start, line, boxes::parse(line)?)))
        .flat_map(|(number, start, line, found)| {
            let mend = |(at, remove, insert): (usize, &str, &str)| Mend {
                line: number,
                what: "a box was written as every tool reads it".to_owned(),
                edit: Edit { offset: text.base + start + at, remove: remove.to_owned(), insert: insert.to_owned() },
            };
            parts(line, &found).into_iter().map(mend).collect::<Vec<_>>()
        })
        .collect()
}

/// The bytes at fault: what they are, and what they are to be.
fn parts<'l>(line: &'l str, found: &BoxLine) -> Vec<(usize, &'l str, &'static str)> {
    let mut parts = Vec::new();
    let open = found.mark.start - 1;
    if line[..open].ends_with(|c: char| !c.is_whitespace()) {
        parts.push((open, "", " "));
    }
    let content = &line[found.mark.clone()];
    let mark = content.trim();
    if mark.is_empty() && content != " " {
        parts.push((found.mark.start, content, " "));
    } else if mark.len() != content.len() {
        let lead = content.len() - content.trim_start().len();
        parts.push((found.mark.start, &content[..lead], ""));
        parts.push((found.mark.start + lead + mark.len(), &content[lead + mark.len()..], ""));
    }
    let rest = &line[found.text..];
    if !rest.is_empty() && !rest.starts_with(|c: char| c.is_whitespace() || matches!(c, '*' | '\\')) {
        parts.push((found.text, "", " "));
    }
    parts.retain(|(_, remove, insert)| remove != insert);
    parts
}
