//! Headings and the boxes that they own.

use std::ops::Range;

use ralphloop_core::plan::WorkState;

use crate::error::Code;
use crate::markdown::boxes::{self, BoxLine};
use crate::markdown::scan::{Kind, Line, Scan, scan};
use crate::text::Text;

/// A heading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Heading {
    /// From 1.
    pub line: u32,
    /// 1 to 6.
    pub level: usize,
    /// Without hashes and comments.
    pub text: String,
}

/// A box with its whole text.
#[derive(Debug)]
pub(crate) struct Item {
    /// From 1.
    pub line: u32,
    /// Columns before the list marker.
    pub indent: usize,
    /// Bytes between the brackets, in the body.
    pub mark: Range<usize>,
    /// What the mark means.
    pub state: WorkState,
    /// The text with its continuation lines, comments removed.
    pub text: String,
    /// The box that it is nested in: an index into the section's items.
    pub parent: Option<usize>,
    /// Lines below the item that belong to it and are no boxes.
    pub details: Vec<String>,
}

/// What stands under one heading, up to the next heading of any level.
#[derive(Debug, Default)]
pub(crate) struct Section {
    /// None before the first heading.
    pub heading: Option<Heading>,
    /// Its boxes.
    pub items: Vec<Item>,
    /// Its lines that belong to no box.
    pub prose: Vec<String>,
}

/// A file of headings and boxes.
#[derive(Debug)]
pub(crate) struct Outline {
    /// The first heading of level 1.
    pub title: Option<String>,
    /// All sections, those without boxes included.
    pub sections: Vec<Section>,
    /// Warnings with their lines.
    pub notes: Vec<(Code, u32)>,
    /// The line of the first box that is hidden in a fence, comment or quotation.
    pub hidden_box: Option<u32>,
    /// How often `x` and `X` tick a box.
    pub ticks: [usize; 2],
}

/// Reads a file into headings and boxes.
pub(crate) fn outline(text: &Text<'_>) -> Outline {
    let Scan { lines, notes, hidden_box } = scan(text);
    let mut builder = Builder {
        out: Outline { title: None, sections: vec![Section::default()], notes, hidden_box, ticks: [0; 2] },
        nest: Vec::new(),
        continues: false,
        after_blank: false,
    };
    for line in &lines {
        builder.take(line);
    }
    builder.out
}

struct Builder {
    out: Outline,
    /// Open boxes by indent: columns and index into the section's items.
    nest: Vec<(usize, usize)>,
    /// The next line may go on with the text of the last box.
    continues: bool,
    after_blank: bool,
}

impl Builder {
    fn take(&mut self, line: &Line<'_>) {
        match line.kind {
            Kind::FrontMatter | Kind::Comment => return,
            Kind::Fence | Kind::Quote => {
                self.continues = false;
                self.keep(line);
            }
            Kind::Text => self.take_text(line),
        }
        self.after_blank = line.raw.trim().is_empty();
    }

    fn take_text(&mut self, line: &Line<'_>) {
        let masked = line.masked();
        if masked.trim().is_empty() {
            self.continues = false;
            self.keep(line);
            return;
        }
        let (indent, _) = boxes::indentation(&masked);
        if self.continues && self.goes_on(&masked, indent) {
            if let Some(item) = self.section().items.last_mut() {
                push_joined(&mut item.text, &line.clean(0));
            }
            return;
        }
        self.continues = false;
        if let Some((level, start)) = heading_start(&masked) {
            let text = without_closing_hashes(&line.clean(start)).to_owned();
            if level == 1 && self.out.title.is_none() && !text.is_empty() {
                self.out.title = Some(text.clone());
            }
            self.nest.clear();
            let heading = Some(Heading { line: line.number, level, text });
            self.out.sections.push(Section { heading, ..Section::default() });
        } else if let Some(found) = boxes::parse(&masked) {
            self.take_box(line, &found);
        } else {
            let is_list = boxes::list_marker(masked.trim_start()).is_some();
            if is_list || self.after_blank {
                self.nest.retain(|(outer, _)| *outer < indent);
            }
            self.keep(line);
        }
    }

    /// A deeper line that starts no list, table or heading of its own goes on with the text of the box.
    fn goes_on(&mut self, masked: &str, indent: usize) -> bool {
        let text = masked.trim_start();
        let marker = boxes::list_marker(text).is_some_and(|length| {
            let rest = &text[length..];
            rest.is_empty() || rest.starts_with(char::is_whitespace)
        });
        let deeper = self.section().items.last().is_some_and(|item| indent > item.indent);
        deeper && !marker && !text.starts_with('|') && boxes::parse(masked).is_none()
    }

    fn take_box(&mut self, line: &Line<'_>, found: &BoxLine) {
        let mark = &line.raw[found.mark.clone()];
        match mark.trim() {
            "x" => self.out.ticks[0] += 1,
            "X" => self.out.ticks[1] += 1,
            _ => {}
        }
        if found.malformed {
            self.out.notes.push((Code::MalformedCheckbox, line.number));
        }
        if found.nonstandard {
            self.out.notes.push((Code::NonstandardMark, line.number));
        }
        self.nest.retain(|(outer, _)| *outer < found.indent);
        let item = Item {
            line: line.number,
            indent: found.indent,
            mark: line.offset + found.mark.start..line.offset + found.mark.end,
            state: found.state,
            text: line.clean(found.text),
            parent: self.nest.last().map(|(_, index)| *index),
            details: Vec::new(),
        };
        let index = self.section().items.len();
        self.nest.push((found.indent, index));
        self.section().items.push(item);
        self.continues = true;
    }

    /// Keeps a line for its section, or for the box above it if it is indented below that.
    fn keep(&mut self, line: &Line<'_>) {
        let (indent, _) = boxes::indentation(line.raw);
        let raw = line.raw.trim_end();
        let blank = raw.is_empty();
        let section = self.section();
        match section.items.last_mut() {
            Some(item) if blank || indent > item.indent => {
                let is_text = |(at, c): &(usize, char)| *at >= item.indent + 2 || !c.is_whitespace();
                let cut = raw.char_indices().find(is_text).map_or(raw.len(), |(at, _)| at);
                item.details.push(raw[cut..].to_owned());
            }
            _ => section.prose.push(raw.to_owned()),
        }
    }

    #[expect(clippy::expect_used, reason = "the list of sections starts with one and never shrinks")]
    fn section(&mut self) -> &mut Section {
        self.out.sections.last_mut().expect("at least the section before the first heading")
    }
}

/// Level and start of the text of an ATX heading.
pub(crate) fn heading_start(line: &str) -> Option<(usize, usize)> {
    let (columns, start) = boxes::indentation(line);
    let hashes = line[start..].find(|c| c != '#').unwrap_or(line.len() - start);
    let text = start + hashes;
    let heading = columns <= 3 && (1..=6).contains(&hashes);
    (heading && line[text..].chars().next().is_none_or(char::is_whitespace)).then_some((hashes, text))
}

/// The text of a heading without the hashes that may close it.
pub(crate) fn without_closing_hashes(text: &str) -> &str {
    let cut = text.trim_end_matches('#');
    if cut.is_empty() || cut.ends_with(char::is_whitespace) { cut.trim_end() } else { text }
}

fn push_joined(text: &mut String, more: &str) {
    if !text.is_empty() && !more.is_empty() {
        text.push(' ');
    }
    text.push_str(more);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(source: &str) -> Outline {
        outline(&Text::decode("t", source.as_bytes()).unwrap())
    }

    #[test]
    fn a_wrapped_line_that_begins_with_a_hash_is_text() {
        let out = read("- [ ] see issue\n  # 12 in the list\n- [ ] b");
        assert_eq!(out.sections.len(), 1);
        assert_eq!(out.sections[0].items[0].text, "see issue # 12 in the list");
    }

    #[test]
    fn a_plain_bullet_between_ends_the_nesting() {
        let out = read("- [ ] a\n- plain\n  - [ ] b\n- [ ] c\n  - plain\n    - [ ] d");
        let parents: Vec<_> = out.sections[0].items.iter().map(|item| item.parent).collect();
        assert_eq!(parents, [None, None, None, Some(2)]);
    }

    #[test]
    fn closing_hashes_go_and_others_stay() {
        let titles = |source| read(source).sections[1].heading.clone().unwrap().text;
        assert_eq!(titles("## Alerts ##"), "Alerts");
        assert_eq!(titles("## About C#"), "About C#");
        assert_eq!(titles("##\tTab"), "Tab");
        assert_eq!(read("###No blank").sections.len(), 1);
        assert_eq!(titles("#"), "");
    }

    #[test]
    fn lines_below_a_box_are_its_details() {
        let out = read("intro\n- [ ] a\n  - detail\n\n  more\noutside");
        let section = &out.sections[0];
        assert_eq!(section.items[0].details, ["- detail", "", "more"]);
        assert_eq!(section.prose, ["intro", "outside"]);
    }
}
