//! What every table of a file of settings is read with: its keys, its values, and what is wrong with them.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::value::{Raw, Value};
use crate::error::closest;

/// What is wrong with a table, and where.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) message: String,
    pub(super) span: Range<usize>,
    pub(super) label: String,
    pub(super) hint: Option<String>,
}

/// The table that a value has to be. `what` says so ("the agent 'x' is described by a table"), `example` how it is written.
pub(super) fn table_of<'v>(
    value: &'v Spanned<DeValue<'v>>,
    what: &str,
    example: &str,
) -> Result<&'v DeTable<'v>, Fault> {
    match value.get_ref() {
        DeValue::Table(table) => Ok(table),
        _ => Err(Fault {
            message: what.to_owned(),
            span: value.span(),
            label: "no table".to_owned(),
            hint: Some(format!("write {example}")),
        }),
    }
}

/// Refuses a key that is none of `known`. `whose` says whose it is ("of the agent 'x'"), `has` names those that there are.
pub(super) fn only_known(table: &DeTable<'_>, known: &[&str], whose: &str, has: &str) -> Result<(), Fault> {
    let Some(key) = table.keys().find(|key| !known.contains(&key.get_ref().as_ref())) else { return Ok(()) };
    Err(Fault {
        message: format!("unknown key '{}' {whose}", key.get_ref()),
        span: key.span(),
        label: "unknown".to_owned(),
        hint: Some(match closest(key.get_ref(), known.iter().copied()) {
            Some(meant) => format!("did you mean {meant}?"),
            None => has.to_owned(),
        }),
    })
}

/// The value of a key, if it is there.
pub(super) fn setting<T: Value>(table: &DeTable<'_>, key: &str) -> Result<Option<T>, Fault> {
    table.get(key).map(|value| value_of(key, value)).transpose()
}

fn value_of<T: Value>(key: &str, value: &Spanned<DeValue<'_>>) -> Result<T, Fault> {
    T::read(Raw::Toml(value.get_ref())).map_err(|problem| Fault {
        message: format!("invalid value of {key}"),
        span: value.span(),
        label: problem,
        hint: None,
    })
}
