//! YAML with positions. Aliases are read as nothing, since no list of tasks needs them and they can blow up.

use std::collections::HashSet;

use granit_parser::{Event, Marker, Parser, ScalarStyle};

use crate::error::{ErrorClass, SpecError};
use crate::text::Text;

/// Up to so many keys of a mapping are compared with each other; more are looked up.
const FEW_KEYS: usize = 24;

/// Lists and mappings inside each other, at most.
const MAX_DEPTH: usize = 100;

/// A value with its place.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub content: Content,
    /// Where it starts and ends in the body of its text.
    start: usize,
    end: usize,
    line: u32,
    column: usize,
}

/// What a value is.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    /// A text, a number, true or false, or nothing.
    Scalar {
        text: String,
        /// Written without quotes.
        plain: bool,
    },
    List(Vec<Node>),
    /// In the order of the file, with the keys' places.
    Map(Vec<(Node, Node)>),
}

impl Node {
    /// The line it starts on, from 1.
    pub(crate) fn line(&self) -> u32 {
        self.line
    }

    /// The column it starts in, in characters from 0.
    pub(crate) fn column(&self) -> usize {
        self.column
    }

    /// Where it starts in the body of its text.
    pub(crate) fn offset(&self) -> usize {
        self.start
    }

    /// The bytes that it is written with, blanks behind it left out.
    pub(crate) fn token<'a>(&self, text: &Text<'a>) -> &'a str {
        text.body.get(self.start..self.end).unwrap_or_default().trim_end()
    }

    /// It does not go on below: a text over several lines is no state, and whoever wrote it wants it back.
    pub(crate) fn is_one_line(&self, text: &Text<'_>) -> bool {
        !self.token(text).contains(['\n', '\r'])
    }

    /// Null, or nothing at all.
    pub(crate) fn is_null(&self) -> bool {
        matches!(&self.content, Content::Scalar { text, plain: true } if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }

    /// The text of a scalar, trimmed; none if it is blank or null.
    pub(crate) fn word(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar { text, .. } if !self.is_null() => Some(text.trim()).filter(|text| !text.is_empty()),
            _ => None,
        }
    }

    /// The scalars of a list, or one scalar as a list of itself.
    pub(crate) fn words(&self) -> Vec<String> {
        match &self.content {
            Content::List(list) => list.iter().filter_map(Self::word).map(str::to_owned).collect(),
            _ => self.word().map(str::to_owned).into_iter().collect(),
        }
    }

    /// A key of a mapping with its value; null counts as well.
    pub(crate) fn entry(&self, key: &str) -> Option<(&Node, &Node)> {
        let Content::Map(entries) = &self.content else { return None };
        let is_it = |node: &Node| matches!(&node.content, Content::Scalar { text, .. } if text == key);
        entries.iter().find(|(name, _)| is_it(name)).map(|(name, value)| (name, value))
    }

    /// The value of a key; null counts as absent.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|(_, value)| value).filter(|value| !value.is_null())
    }

    /// The first of the keys that holds more than null.
    pub(crate) fn first(&self, keys: &[&str]) -> Option<&Node> {
        keys.iter().find_map(|key| self.get(key))
    }

    /// The first of the keys that holds a text.
    pub(crate) fn first_word(&self, keys: &[&str]) -> Option<&str> {
        keys.iter().find_map(|key| self.get(key).and_then(Self::word))
    }

    /// The key is there and true.
    pub(crate) fn is_true(&self, key: &str) -> bool {
        self.get(key).and_then(Self::word).is_some_and(|word| word.eq_ignore_ascii_case("true"))
    }

    /// What it is, in words.
    pub(crate) fn kind(&self) -> &'static str {
        match self.content {
            Content::Scalar { .. } => "a text",
            Content::List(_) => "a list",
            Content::Map(_) => "a mapping",
        }
    }
}

/// Parses the first document of `source`, which stands at the offset `above` of the text's body. No mapping may hold a
/// key twice.
pub(crate) fn parse(text: &Text<'_>, source: &str, above: usize) -> Result<Option<Node>, SpecError> {
    // Of a text that it has whole, the parser knows every byte.
    let byte = |mark: Marker| above + mark.byte_offset().unwrap_or(source.len());
    let mut open: Vec<Open> = Vec::new();
    for event in Parser::new_from_str(source) {
        let (event, span) = event.map_err(|error| syntax(text, byte(*error.marker()), &error.info()))?;
        let node = |content: Content| {
            let (start, end) = (byte(span.start), byte(span.end));
            Node { content, start, end, line: text.line(start), column: span.start.col() }
        };
        let done = match event {
            Event::SequenceStart(..) | Event::MappingStart(..) if open.len() >= MAX_DEPTH => {
                return Err(syntax(
                    text,
                    node(Content::List(Vec::new())).start,
                    "lists and mappings are nested too deeply",
                ));
            }
            Event::SequenceStart(..) => {
                open.push(Open { node: node(Content::List(Vec::new())), map: false, values: Vec::new() });
                continue;
            }
            Event::MappingStart(..) => {
                open.push(Open { node: node(Content::List(Vec::new())), map: true, values: Vec::new() });
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(done) => done.close(text.file, byte(span.end))?,
                None => continue,
            },
            Event::Scalar(value, style, ..) => {
                node(Content::Scalar { text: value.into_owned(), plain: style == ScalarStyle::Plain })
            }
            Event::Alias(_) => node(Content::Scalar { text: String::new(), plain: true }),
            _ => continue,
        };
        match open.last_mut() {
            Some(parent) => parent.values.push(done),
            None => return Ok(Some(done)),
        }
    }
    Ok(None)
}

/// A list or mapping whose end is not read yet; keys and values of a mapping take turns.
struct Open {
    node: Node,
    map: bool,
    values: Vec<Node>,
}

impl Open {
    fn close(self, file: &str, end: usize) -> Result<Node, SpecError> {
        let content = if self.map { Content::Map(pairs(file, self.values)?) } else { Content::List(self.values) };
        Ok(Node { content, end, ..self.node })
    }
}

fn pairs(file: &str, values: Vec<Node>) -> Result<Vec<(Node, Node)>, SpecError> {
    let mut pairs: Vec<(Node, Node)> = Vec::new();
    let mut seen: HashSet<String> = HashSet::new();
    let many = values.len() > 2 * FEW_KEYS;
    let mut values = values.into_iter();
    while let (Some(key), Some(value)) = (values.next(), values.next()) {
        let mut is_new = |word: &str| {
            if many { seen.insert(word.to_owned()) } else { pairs.iter().all(|(other, _)| other.word() != Some(word)) }
        };
        if let Some(word) = key.word()
            && !is_new(word)
        {
            let message = format!("the key {word:?} is there twice in one mapping");
            return Err(SpecError::new(ErrorClass::DuplicateKey, file, message)
                .at_line(key.line())
                .with_help("some readers keep the first value and some the last; remove one of them"));
        }
        pairs.push((key, value));
    }
    Ok(pairs)
}

fn syntax(text: &Text<'_>, offset: usize, cause: &str) -> SpecError {
    SpecError::new(ErrorClass::YamlSyntax, text.file, format!("not valid YAML: {cause}"))
        .at(text.position(offset))
        .with_help("put a text that holds a colon or a symbol into quotes, and indent with blanks")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_found_behind_wide_letters_comments_and_line_ends() {
        let source = "ä:\r\n  - 'é': no   # not yet\r\n    b: \"x\"\r\n    c: a\r\n      b\r\n";
        let text = Text::decode("t", source.as_bytes()).unwrap_or_else(|e| panic!("{e}"));
        let root = parse(&text, text.body, 0).unwrap_or_else(|e| panic!("{e}")).unwrap_or_else(|| panic!());
        let Some(Content::List(list)) = root.get("ä").map(|node| &node.content) else { panic!("{root:?}") };
        let token = |key| list[0].get(key).map(|node| node.token(&text));
        assert_eq!((token("é"), token("b"), token("c")), (Some("no"), Some("\"x\""), Some("a\r\n      b")));
        assert_eq!(list[0].line(), 2);
    }

    #[test]
    fn places_hold_on_one_long_line_and_behind_lone_carriage_returns() {
        let source = "a: {b: 'é', c: [ü, x]}\rd: y\n";
        let text = Text::decode("t", source.as_bytes()).unwrap_or_else(|e| panic!("{e}"));
        let root = parse(&text, text.body, 0).unwrap_or_else(|e| panic!("{e}")).unwrap_or_else(|| panic!());
        let a = root.get("a").unwrap_or_else(|| panic!());
        assert_eq!((a.token(&text), root.get("d").map(|d| d.token(&text))), ("{b: 'é', c: [ü, x]}", Some("y")));
        assert_eq!(a.get("c").map(|c| (c.token(&text), c.column())), Some(("[ü, x]", 15)));
    }

    #[test]
    fn double_keys_deep_nesting_and_aliases_do_no_harm() {
        let class = |source: &str| {
            let text = Text::decode("t", source.as_bytes()).unwrap_or_else(|e| panic!("{e}"));
            parse(&text, source, 0).err().map(|error| (error.class, error.line))
        };
        assert_eq!(class("a: 1\na: 2\n"), Some((ErrorClass::DuplicateKey, Some(2))));
        assert_eq!(class(&"[".repeat(10_000)).map(|(class, _)| class), Some(ErrorClass::YamlSyntax));
        assert_eq!(class("a: &x [1]\nb: *x\n"), None);
    }
}
