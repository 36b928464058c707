//! Prices of the user's own: `[prices."MODEL"]` tables of a file of settings.

use ralphloop_agent::prices::Price;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::table::{Fault, only_known, setting, table_of};
use super::value::Value;
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
    let tables = table_of(prices, "'prices' holds one table for each model", &example("MODEL"))?;
    tables.iter().map(|(name, value)| one(name, value)).collect()
}

fn example(model: &str) -> String {
    format!("[prices.\"{model}\"] and below it input = 1.25 and output = 10")
}

fn one(name: &Spanned<std::borrow::Cow<'_, str>>, value: &Spanned<DeValue<'_>>) -> Result<OwnPrice, Fault> {
    let model = name.get_ref();
    let table = table_of(value, &format!("the price of '{model}' is a table"), &example(model))?;
    only_known(table, KEYS, &format!("of the price of '{model}'"), &format!("a price has {}", KEYS.join(", ")))?;
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
    let hint = || Some("dollars for a million tokens, such as 1.25".to_owned());
    let read = setting::<Dollars>(table, key).map_err(|fault| Fault { hint: hint(), ..fault })?;
    Ok(read.map(|dollars| dollars.0))
}
