//! Prices of the user's own: `[prices."MODEL"]` tables of a file of settings.

use ralphloop_agent::prices::Price;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::own_agents::Fault;
use super::value::{Raw, Value};
use crate::error::closest;
use crate::money;

/// What may stand in a table: dollars for a million tokens.
const KEYS: &[&str] = &["input", "output", "cache_read", "cache_write"];

/// A price of the user's own, and of which models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnPrice {
    /// How the names of the models begin.
    pub(crate) prefix: String,
    /// What they cost.
    pub(crate) price: Price,
}

/// Reads the value of `prices`.
pub(super) fn read(prices: &Spanned<DeValue<'_>>) -> Result<Vec<OwnPrice>, Fault> {
    let DeValue::Table(tables) = prices.get_ref() else {
        return Err(Fault {
            message: "'prices' holds one table for each model".to_owned(),
            span: prices.span(),
            label: "no table".to_owned(),
            hint: Some("write [prices.\"MODEL\"] and below it input = 1.25 and output = 10".to_owned()),
        });
    };
    tables.iter().map(|(name, value)| one(name, value)).collect()
}

fn one(name: &Spanned<std::borrow::Cow<'_, str>>, value: &Spanned<DeValue<'_>>) -> Result<OwnPrice, Fault> {
    let model = name.get_ref();
    let DeValue::Table(table) = value.get_ref() else {
        return Err(Fault {
            message: format!("the price of '{model}' is a table"),
            span: value.span(),
            label: "no table".to_owned(),
            hint: Some(format!("write [prices.\"{model}\"] and below it input = 1.25 and output = 10")),
        });
    };
    for key in table.keys() {
        if !KEYS.contains(&key.get_ref().as_ref()) {
            return Err(Fault {
                message: format!("unknown key '{}' of the price of '{model}'", key.get_ref()),
                span: key.span(),
                label: "unknown".to_owned(),
                hint: Some(match closest(key.get_ref(), KEYS.iter().copied()) {
                    Some(meant) => format!("did you mean {meant}?"),
                    None => format!("a price has {}", KEYS.join(", ")),
                }),
            });
        }
    }
    let needed = |key: &str| {
        dollars(table, key)?.ok_or_else(|| Fault {
            message: format!("the price of '{model}' has no {key}"),
            span: name.span(),
            label: format!("{key} is missing"),
            hint: Some("dollars for a million tokens, such as 1.25".to_owned()),
        })
    };
    let (input, output) = (needed("input")?, needed("output")?);
    // Where a cache has no price of its own, its tokens cost what all others do.
    let cache_read = dollars(table, "cache_read")?.unwrap_or(input);
    let cache_write = dollars(table, "cache_write")?.unwrap_or(input);
    Ok(OwnPrice { prefix: model.to_string(), price: Price { input, output, cache_read, cache_write } })
}

/// Millionths of a dollar; zero is a price, too: a model of one's own machine.
fn dollars(table: &DeTable<'_>, key: &str) -> Result<Option<u64>, Fault> {
    struct Dollars(u64);
    impl Value for Dollars {
        fn parse(text: &str) -> Result<Self, String> {
            let is_zero = text.parse().is_ok_and(|number: f64| number == 0.0);
            if is_zero { Ok(Self(0)) } else { money::parse(text).map(|amount| Self(amount.0)) }
        }
        fn show(&self) -> String {
            money::show(ralphloop_core::units::Usd(self.0))
        }
    }
    let Some(value) = table.get(key) else { return Ok(None) };
    Dollars::read(Raw::Toml(value.get_ref())).map(|dollars| Some(dollars.0)).map_err(|problem| Fault {
        message: format!("invalid value of {key}"),
        span: value.span(),
        label: problem,
        hint: Some("dollars for a million tokens, such as 1.25".to_owned()),
    })
}
