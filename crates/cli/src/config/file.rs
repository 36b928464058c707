//! A file of settings: TOML, flat, every mistake named with its line and column.

use std::path::Path;

use toml::de::DeTable;

use super::generate;
use super::keys::{KEYS, Key, Layer};
use super::origin::Origin;
use super::own_agents::{self, Fault};
use super::own_prices;
use super::value::Raw;
use crate::error::{CliError, Excerpt, closest};

/// Reads the file at `path`; `origin` makes the origin of a value from the path and the line it stands on.
pub(super) fn read(path: &Path, origin: impl Fn(String, usize) -> Origin) -> Result<Layer, CliError> {
    let shown = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| CliError::usage(format!("could not read the configuration {shown}")).cause(&error))?;
    parse(&text, &shown, origin)
}

fn parse(text: &str, path: &str, origin: impl Fn(String, usize) -> Origin) -> Result<Layer, CliError> {
    let fault = |message: String, span: std::ops::Range<usize>, label: &str| {
        CliError::usage(message).excerpt(Excerpt::new(path, text, span, label))
    };
    let described = |Fault { message, span, label, hint }: Fault| {
        let error = fault(message, span, &label);
        if let Some(hint) = hint { error.hint(hint) } else { error }
    };
    let table = DeTable::parse(text).map_err(|error| {
        fault("the configuration is no valid TOML".to_owned(), error.span().unwrap_or(0..0), error.message())
    })?;
    let mut layer = Layer::default();
    for (name, value) in table.get_ref() {
        if name.get_ref() == "agents" {
            let line = |at: usize| origin(path.to_owned(), text[..at].matches('\n').count() + 1);
            layer.agents = own_agents::read(value, line).map_err(described)?;
            continue;
        }
        if name.get_ref() == "generate" {
            layer.generate = Some(generate::read(value).map_err(described)?);
            continue;
        }
        if name.get_ref() == "prices" {
            layer.prices = own_prices::read(value).map_err(|Fault { message, span, label, hint }| {
                let error = fault(message, span, &label);
                if let Some(hint) = hint { error.hint(hint) } else { error }
            })?;
            continue;
        }
        let Some(key) = key_of(name.get_ref()) else {
            let error = fault(format!("unknown setting '{}'", name.get_ref()), name.span(), "unknown");
            return Err(match closest(&name.get_ref().replace('-', "_"), KEYS.iter().map(|key| key.name)) {
                Some(meant) => error.hint(format!("did you mean {meant}?")),
                None => error.hint("run `ralphloop config` for all settings"),
            });
        };
        let line = text[..name.span().start].matches('\n').count() + 1;
        layer
            .set(key.name, Raw::Toml(value.get_ref()), origin(path.to_owned(), line))
            .map_err(|problem| fault(format!("invalid value of {}", key.name), value.span(), &problem))?;
    }
    Ok(layer)
}

/// The setting of that name, which may also be written like the flag, with dashes.
fn key_of(name: &str) -> Option<&'static Key> {
    let name = name.replace('-', "_");
    KEYS.iter().find(|key| key.name == name)
}
