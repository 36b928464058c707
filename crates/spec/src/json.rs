//! JSON with positions, read strictly: what the next reader in line would refuse or read differently is refused here.

use std::collections::HashMap;

use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::errors::{ParseError, ParseErrorKind};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde::de::IgnoredAny;

use crate::error::{ErrorClass, SpecError};
use crate::text::Text;

/// The way out where nothing better is known.
const MEND: &str = "mend the file by hand or restore it from version control";

/// Up to so many keys of an object are compared with each other; more are looked up.
const FEW_KEYS: usize = 24;

/// Which JSON a file may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavour {
    /// JSON as everybody reads it.
    Strict,
    /// With comments and trailing commas (`.jsonc`).
    Comments,
}

impl Flavour {
    /// By the file's name.
    pub(crate) fn of(path: &str) -> Self {
        let jsonc = path.rsplit_once('.').is_some_and(|(_, end)| end.eq_ignore_ascii_case("jsonc"));
        if jsonc { Self::Comments } else { Self::Strict }
    }
}

/// Parses the whole text; no object may hold a key twice.
pub(crate) fn parse<'a>(text: &Text<'a>, flavour: Flavour) -> Result<Value<'a>, SpecError> {
    if flavour == Flavour::Strict {
        strict(text)?;
    }
    let comments = flavour == Flavour::Comments;
    let options = ParseOptions {
        allow_comments: comments,
        allow_loose_object_property_names: false,
        allow_trailing_commas: comments,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let parsed = parse_to_ast(text.body, &CollectOptions::default(), &options).map_err(|e| from_parser(text, &e))?;
    let Some(value) = parsed.value else {
        return Err(SpecError::new(ErrorClass::EmptyFile, text.file, "the file holds nothing but comments"));
    };
    refuse_double_keys(text, &value)?;
    Ok(value)
}

/// The reference for what is JSON; its errors name the token that should not be there.
fn strict(text: &Text<'_>) -> Result<(), SpecError> {
    let Err(error) = serde_json::from_str::<IgnoredAny>(text.body) else { return Ok(()) };
    let offset = text.offset(error.line(), error.column());
    let offset = (0..=offset).rev().find(|at| text.body.is_char_boundary(*at)).unwrap_or(0);
    let full = error.to_string();
    let cause = full.split(" at line ").next().unwrap_or(&full);
    let (what, help) = explain(text, offset, cause);
    Err(syntax(text, offset, what, help))
}

/// The faults that people and agents really make, in words; else the parser's own.
fn explain<'c>(text: &Text<'_>, offset: usize, cause: &'c str) -> (&'c str, &'static str) {
    let (before, rest) = text.body.split_at_checked(offset).unwrap_or((text.body, ""));
    let after_comma = before.trim_end().ends_with(',');
    if rest.starts_with('/') {
        ("a comment", "other readers of this file would fail; remove it, or name the file .jsonc")
    } else if after_comma && rest.starts_with([']', '}']) {
        ("a comma before the closing bracket", "remove the comma")
    } else if rest.starts_with("...") {
        ("dots in place of a value", "write out the items that the dots stand for")
    } else if cause.starts_with("expected `,`") {
        ("a comma is missing before this", "put it there, or look whether two objects were merged into one")
    } else if cause.contains("control character") {
        ("a line break or tab inside a text", r"write it as \n or \t")
    } else if cause.starts_with("EOF") {
        ("the file ends too early", "restore it from version control")
    } else if !text.body.trim_start().starts_with(['{', '[']) {
        (cause, "this is no JSON at all; is it a link that was saved as a file?")
    } else {
        (cause, MEND)
    }
}

fn from_parser(text: &Text<'_>, error: &ParseError) -> SpecError {
    let mut offset = error.range().start;
    if matches!(error.kind(), ParseErrorKind::ExpectedComma) {
        let rest = text.body.get(offset..).unwrap_or_default();
        offset += rest.len() - rest.trim_start().len();
    }
    let cause = error.kind().to_string().to_lowercase();
    syntax(text, offset, &cause, MEND)
}

fn syntax(text: &Text<'_>, offset: usize, cause: &str, help: &str) -> SpecError {
    SpecError::new(ErrorClass::JsonSyntax, text.file, format!("not valid JSON: {cause}"))
        .at(text.position(offset))
        .with_help(help)
}

fn refuse_double_keys(text: &Text<'_>, value: &Value<'_>) -> Result<(), SpecError> {
    match value {
        Value::Object(object) => {
            let mut seen: HashMap<&str, usize> = HashMap::new();
            for (index, property) in object.properties.iter().enumerate() {
                let name = property.name.as_str();
                let first = if object.properties.len() <= FEW_KEYS {
                    let before = object.properties.iter().take(index);
                    before.rev().find(|other| other.name.as_str() == name).map(|other| other.range.start)
                } else {
                    seen.insert(name, property.range.start)
                };
                if let Some(first) = first {
                    let message = format!("the key {name:?} is there twice, first in line {}", text.line(first));
                    return Err(SpecError::new(ErrorClass::DuplicateKey, text.file, message)
                        .at(text.position(property.range.start))
                        .with_help("some readers keep the first value and some the last; remove one of them"));
                }
                refuse_double_keys(text, &property.value)?;
            }
            Ok(())
        }
        Value::Array(array) => array.elements.iter().try_for_each(|element| refuse_double_keys(text, element)),
        _ => Ok(()),
    }
}

/// The value of a key; null counts as absent.
pub(crate) fn get<'v, 'a>(object: &'v Object<'a>, key: &str) -> Option<&'v Value<'a>> {
    present(object, key).filter(|value| !matches!(value, Value::NullKeyword(_)))
}

/// The value of a key, null included.
pub(crate) fn present<'v, 'a>(object: &'v Object<'a>, key: &str) -> Option<&'v Value<'a>> {
    object.properties.iter().find(|property| property.name.as_str() == key).map(|property| &property.value)
}

/// The first of the keys that holds more than null, with its value.
pub(crate) fn first<'v, 'a, 'k>(object: &'v Object<'a>, keys: &[&'k str]) -> Option<(&'k str, &'v Value<'a>)> {
    keys.iter().find_map(|key| get(object, key).map(|value| (*key, value)))
}

/// The key is there and true.
pub(crate) fn is_true(object: &Object<'_>, key: &str) -> bool {
    get(object, key).and_then(Value::as_boolean_lit).is_some_and(|lit| lit.value)
}

/// A text that is not blank, trimmed.
pub(crate) fn text_of(value: &Value<'_>) -> Option<String> {
    let text = value.as_string_lit()?.value.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The first of the keys that holds a text that is not blank.
pub(crate) fn first_text(object: &Object<'_>, keys: &[&str]) -> Option<String> {
    keys.iter().find_map(|key| get(object, key).and_then(text_of))
}

/// A text, or a number as it is written.
pub(crate) fn word_of(value: &Value<'_>) -> Option<String> {
    match value {
        Value::NumberLit(number) => Some(number.value.to_owned()),
        other => text_of(other),
    }
}

/// The texts of a list, or one text as a list of itself; what is neither is left out.
pub(crate) fn texts_of(value: &Value<'_>) -> Vec<String> {
    match value {
        Value::Array(array) => array.elements.iter().filter_map(word_of).collect(),
        other => word_of(other).into_iter().collect(),
    }
}

/// What the value is, in words.
pub(crate) fn kind_of(value: &Value<'_>) -> &'static str {
    match value {
        Value::StringLit(_) => "a text",
        Value::NumberLit(_) => "a number",
        Value::BooleanLit(_) => "true or false",
        Value::Object(_) => "an object",
        Value::Array(_) => "a list",
        Value::NullKeyword(_) => "null",
    }
}

/// Where the value starts.
pub(crate) fn start(value: &Value<'_>) -> usize {
    value.start()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(source: &str, flavour: Flavour) -> SpecError {
        parse(&Text::decode("prd.json", source.as_bytes()).unwrap(), flavour).unwrap_err()
    }

    #[test]
    fn a_missing_comma_is_reported_at_the_key_that_it_should_precede() {
        for flavour in [Flavour::Strict, Flavour::Comments] {
            let error = error("{\n \"ä\": 1\n  \"b\": 2}", flavour);
            assert_eq!((error.class, error.line, error.column), (ErrorClass::JsonSyntax, Some(3), Some(3)));
        }
    }

    #[test]
    fn comments_and_trailing_commas_are_for_jsonc_only() {
        let source = "{ // c\n \"a\": [1,],\n}";
        assert_eq!(error(source, Flavour::Strict).line, Some(1));
        assert!(error(source, Flavour::Strict).to_string().contains("a comment"));
        assert!(parse(&Text::decode("a", source.as_bytes()).unwrap(), Flavour::Comments).is_ok());
    }

    #[test]
    fn double_keys_are_found_at_any_depth() {
        let found = error("{\"a\": [{\n\"b\": 1,\n\"b\": 2}]}", Flavour::Strict);
        assert_eq!((found.class, found.line, found.column), (ErrorClass::DuplicateKey, Some(3), Some(1)));
        assert!(found.message.contains("line 2"));
    }

    #[test]
    fn deep_nesting_is_an_error_and_no_crash() {
        let deep = "[".repeat(100_000);
        assert_eq!(error(&deep, Flavour::Comments).class, ErrorClass::JsonSyntax);
        assert_eq!(error(&deep, Flavour::Strict).class, ErrorClass::JsonSyntax);
        let closed = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(error(&closed, Flavour::Strict).class, ErrorClass::JsonSyntax);
    }
}
