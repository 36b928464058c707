//! Files that a command makes: `[[generate]]` tables of a file of settings.

use std::ops::Range;

use ralphloop_engine::lane::Generated;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::table::{Fault, only_known, setting};
use super::value::Value;

/// What may stand in a table.
const KEYS: &[&str] = &["files", "command"];

/// Reads the value of `generate`.
pub(super) fn read(value: &Spanned<DeValue<'_>>) -> Result<Generated, Fault> {
    let shape = |span: Range<usize>| Fault {
        message: "'generate' is a list of tables, each of which says how some files are made".to_owned(),
        span,
        label: "no list of tables".to_owned(),
        hint: Some("write [[generate]] and below it files = [\"…\"] and command = \"…\"".to_owned()),
    };
    let DeValue::Array(tables) = value.get_ref() else { return Err(shape(value.span())) };
    let mut rules = Generated::default();
    for item in tables {
        let DeValue::Table(table) = item.get_ref() else { return Err(shape(item.span())) };
        only_known(table, KEYS, "of a [[generate]] table", &format!("it has {}", KEYS.join(" and ")))?;
        let files: Vec<String> = needed(table, "files", item.span())?;
        let command: String = needed(table, "command", item.span())?;
        rules.add(&files, &command).map_err(|error| Fault {
            message: "invalid value of files".to_owned(),
            span: table.get("files").map_or(item.span(), Spanned::span),
            label: error.to_string(),
            hint: None,
        })?;
    }
    Ok(rules)
}

fn needed<T: Value + Emptiness>(table: &DeTable<'_>, key: &str, all: Range<usize>) -> Result<T, Fault> {
    setting::<T>(table, key)?.filter(|read| !read.is_nothing()).ok_or_else(|| Fault {
        message: format!("a [[generate]] table without {key}"),
        span: table.get(key).map_or(all, Spanned::span),
        label: format!("{key} is missing"),
        hint: Some("files = [\"Cargo.lock\"] names the files, command = \"…\" makes them anew".to_owned()),
    })
}

/// A value that may say nothing.
trait Emptiness {
    fn is_nothing(&self) -> bool;
}

impl Emptiness for Vec<String> {
    fn is_nothing(&self) -> bool {
        self.is_empty()
    }
}

impl Emptiness for String {
    fn is_nothing(&self) -> bool {
        self.trim().is_empty()
    }
}
