//! How failures of one kind are answered: `[retry.KIND]` tables of a file of settings.

use std::time::Duration;

use ralphloop_core::policy::{FailureKind, Retry};
use toml::Spanned;
use toml::de::DeValue;

use super::table::{Fault, only_known, setting, table_of};
use super::value::Value as _;
use crate::error::closest;

/// What may stand in a table.
const KEYS: &[&str] = &["attempts", "backoff"];

/// How failures of that kind are answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnRetry {
    pub(crate) kind: FailureKind,
    pub(crate) retry: Retry,
}

impl OwnRetry {
    /// As it would be written, on one line.
    pub(crate) fn shown(&self) -> String {
        let attempts = self.retry.attempts.map(|attempts| format!("attempts = {attempts}"));
        let waits = (!self.retry.backoff.is_empty()).then(|| {
            let each: Vec<String> = self.retry.backoff.iter().map(|wait| format!("\"{}\"", wait.show())).collect();
            format!("backoff = [{}]", each.join(", "))
        });
        let said: Vec<String> = attempts.into_iter().chain(waits).collect();
        format!("[retry.{}] {}", self.kind.as_str(), said.join(", "))
    }
}

/// Reads the value of `retry`.
pub(super) fn read(retry: &Spanned<DeValue<'_>>) -> Result<Vec<OwnRetry>, Fault> {
    let tables = table_of(retry, "'retry' holds one table for each kind of failure", &example("timeout"))?;
    tables.iter().map(|(name, value)| one(name, value)).collect()
}

fn example(kind: &str) -> String {
    format!("[retry.{kind}] and below it attempts = 1")
}

fn one(name: &Spanned<std::borrow::Cow<'_, str>>, value: &Spanned<DeValue<'_>>) -> Result<OwnRetry, Fault> {
    let written = name.get_ref();
    let kinds = || FailureKind::ALL.iter().map(|kind| kind.as_str());
    let Some(kind) = FailureKind::ALL.iter().copied().find(|kind| kind.as_str() == written.as_ref()) else {
        return Err(Fault {
            message: format!("unknown kind of failure '{written}'"),
            span: name.span(),
            label: "unknown".to_owned(),
            hint: Some(match (written.as_ref(), closest(written, kinds())) {
                ("network", _) => "that one has settings of its own: provider_retries and provider_backoff".to_owned(),
                (_, Some(meant)) => format!("did you mean {meant}?"),
                (_, None) => format!("there are {}", kinds().collect::<Vec<_>>().join(", ")),
            }),
        });
    };
    let what = format!("the answer to failures of the kind '{written}' is a table");
    let table = table_of(value, &what, &example(written))?;
    only_known(table, KEYS, &format!("of [retry.{written}]"), "it has attempts and backoff")?;
    let attempts = setting::<u32>(table, "attempts")?;
    let backoff = setting::<Vec<Duration>>(table, "backoff")?.unwrap_or_default();
    Ok(OwnRetry { kind, retry: Retry { attempts, backoff } })
}
