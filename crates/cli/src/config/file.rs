//! A file of settings: TOML, flat, every mistake named with its line and column.

use std::path::Path;

use toml::de::DeTable;

use super::generate;
use super::keys::{KEYS, Key, Layer, SCREEN};
use super::origin::{Given, Origin};
use super::own_agents;
use super::own_prices;
use super::own_providers;
use super::own_retries;
use super::own_roles;
use super::screen;
use super::table::Fault;
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
    let table = DeTable::parse(text).map_err(|error| {
        fault("the configuration is no valid TOML".to_owned(), error.span().unwrap_or(0..0), error.message())
    })?;
    let faulty = |Fault { message, span, label, hint }: Fault| {
        let error = fault(message, span, &label);
        if let Some(hint) = hint { error.hint(hint) } else { error }
    };
    let line = |at: usize| origin(path.to_owned(), text[..at].matches('\n').count() + 1);
    let unknown = |name: &str, written: String, span| {
        let error = fault(format!("unknown setting '{written}'"), span, "unknown");
        match closest(&name.replace('-', "_"), KEYS.iter().map(|key| key.name)) {
            Some(meant) => {
                let meant = KEYS.iter().find(|key| key.name == meant).map_or_else(String::new, Key::written);
                error.hint(format!("did you mean {meant}?"))
            }
            None => error.hint("run `ralphloop config` for all settings"),
        }
    };
    let mut layer = Layer::default();
    for (name, value) in table.get_ref() {
        if name.get_ref() == "agents" {
            layer.agents = own_agents::read(value, line).map_err(faulty)?;
            continue;
        }
        if name.get_ref() == "generate" {
            let value_of = generate::read(value).map_err(faulty)?;
            layer.generate = Some(Given { value: value_of, origin: line(name.span().start) });
            continue;
        }
        if name.get_ref() == "prices" {
            layer.prices = own_prices::read(value).map_err(faulty)?;
            continue;
        }
        if name.get_ref() == "retry" {
            layer.retries = own_retries::read(value).map_err(faulty)?;
            continue;
        }
        if name.get_ref() == "providers" {
            layer.providers = own_providers::read(value, line).map_err(faulty)?;
            continue;
        }
        if name.get_ref() == "roles" {
            layer.roles = own_roles::read(value).map_err(faulty)?;
            continue;
        }
        // A table of settings, or one that stands by itself.
        let within = (name.get_ref() == SCREEN).then(|| screen::table(value).map_err(faulty)).transpose()?;
        let settings: Vec<_> = within.map_or_else(|| vec![(name, value)], |table| table.iter().collect());
        for (name, value) in settings {
            let written = within.map_or_else(String::new, |_| format!("{SCREEN}.")) + name.get_ref();
            let key =
                if within.is_some() { format!("{SCREEN}_{}", name.get_ref()) } else { name.get_ref().to_string() };
            let Some(key) = key_of(&key).filter(|key| key.table().is_some() == within.is_some()) else {
                return Err(unknown(&key, written, name.span()));
            };
            let origin = line(name.span().start);
            if key.name == "screen_keys" {
                let value = screen::keys(value).map_err(faulty)?;
                layer.screen_keys = Some(Given { value, origin });
                continue;
            }
            layer
                .set(key.name, Raw::Toml(value.get_ref()), origin)
                .map_err(|problem| fault(format!("invalid value of {written}"), value.span(), &problem))?;
        }
    }
    Ok(layer)
}

/// The setting of that name, which may also be written like the flag, with dashes.
fn key_of(name: &str) -> Option<&'static Key> {
    let name = name.replace('-', "_");
    KEYS.iter().find(|key| key.name == name)
}
