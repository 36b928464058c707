//! What models cost by their providers' lists, so that the use of a client that tells tokens alone has a price, too.
//!
//! A list price is what the provider's API takes from everybody: no discount, no tier for long contexts, no batch. Who
//! pays by subscription pays something else, and who knows better says so in the settings.

use ralphloop_core::evidence::Usage;
use ralphloop_core::units::Usd;

/// Millionths of a dollar for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price {
    /// Tokens read that are in no cache.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// Tokens read from the provider's cache.
    pub cache_read: u64,
    /// Tokens read that are put into the cache.
    pub cache_write: u64,
}

/// A price of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed {
    /// How the names of the models begin.
    pub prefix: &'static str,
    /// What they cost.
    pub price: Price,
    /// Where the price is published.
    pub source: &'static str,
    /// When it was looked up: `YYYY-MM`.
    pub as_of: &'static str,
}

const ANTHROPIC: &str = "docs.anthropic.com/en/docs/about-claude/pricing";
const OPENAI: &str = "platform.openai.com/docs/pricing";
const GOOGLE: &str = "ai.google.dev/gemini-api/docs/pricing";

/// Dollars as they are published, in hundredths of a cent: input, output, cache read, cache write.
const fn listed(
    prefix: &'static str,
    [input, output, cache_read, cache_write]: [u64; 4],
    source: &'static str,
    as_of: &'static str,
) -> Listed {
    let price = Price {
        input: input * 100,
        output: output * 100,
        cache_read: cache_read * 100,
        cache_write: cache_write * 100,
    };
    Listed { prefix, price, source, as_of }
}

/// The list. The longest prefix counts; a model that is not in it has no price here.
pub const LIST: &[Listed] = &[
    listed("claude-opus-4", [150_000, 750_000, 15_000, 187_500], ANTHROPIC, "2026-03"),
    listed("claude-opus-4-5", [50_000, 250_000, 5_000, 62_500], ANTHROPIC, "2026-03"),
    listed("claude-opus-4-6", [50_000, 250_000, 5_000, 62_500], ANTHROPIC, "2026-03"),
    listed("claude-sonnet-4", [30_000, 150_000, 3_000, 37_500], ANTHROPIC, "2026-03"),
    listed("claude-3-7-sonnet", [30_000, 150_000, 3_000, 37_500], ANTHROPIC, "2026-03"),
    listed("claude-haiku-4-5", [10_000, 50_000, 1_000, 12_500], ANTHROPIC, "2026-03"),
    listed("claude-3-5-haiku", [8_000, 40_000, 800, 10_000], ANTHROPIC, "2026-03"),
    listed("gpt-5", [12_500, 100_000, 1_250, 12_500], OPENAI, "2025-11"),
    listed("gpt-5-mini", [2_500, 20_000, 250, 2_500], OPENAI, "2025-11"),
    listed("gpt-5-nano", [500, 4_000, 50, 500], OPENAI, "2025-11"),
    listed("gpt-5-pro", [150_000, 1_200_000, 150_000, 150_000], OPENAI, "2025-11"),
    listed("gpt-4.1", [20_000, 80_000, 5_000, 20_000], OPENAI, "2025-11"),
    listed("gpt-4.1-mini", [4_000, 16_000, 1_000, 4_000], OPENAI, "2025-11"),
    listed("gpt-4.1-nano", [1_000, 4_000, 250, 1_000], OPENAI, "2025-11"),
    listed("gpt-4o", [25_000, 100_000, 12_500, 25_000], OPENAI, "2025-11"),
    listed("gpt-4o-mini", [1_500, 6_000, 750, 1_500], OPENAI, "2025-11"),
    listed("gemini-2.5-pro", [12_500, 100_000, 1_250, 12_500], GOOGLE, "2025-11"),
    listed("gemini-2.5-flash", [3_000, 25_000, 300, 3_000], GOOGLE, "2025-11"),
    listed("gemini-2.5-flash-lite", [1_000, 4_000, 100, 1_000], GOOGLE, "2025-11"),
    listed("gemini-3-pro", [20_000, 120_000, 2_000, 20_000], GOOGLE, "2026-03"),
];

/// The list, and before it the user's own prices.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prices {
    own: Vec<(String, Price)>,
}

impl Prices {
    /// With prices of the user's own, by how the names of the models begin. They go before the list.
    pub fn with_own(own: Vec<(String, Price)>) -> Self {
        Self { own }
    }

    /// The price of a model by its client's name for it; `provider/model` counts as `model` too.
    pub fn of(&self, model: &str) -> Option<Price> {
        let bare = model.rsplit('/').next().unwrap_or(model);
        let names = [model, bare];
        let begins = |prefix: &str| names.iter().any(|name| starts(name, prefix));
        let own = self.own.iter().filter(|(prefix, _)| begins(prefix)).max_by_key(|(prefix, _)| prefix.len());
        own.map(|(_, price)| *price).or_else(|| {
            let listed = LIST.iter().filter(|listed| starts(bare, listed.prefix));
            listed.max_by_key(|listed| listed.prefix.len()).map(|listed| listed.price)
        })
    }

    /// What so many tokens come to, rounded up to a millionth of a dollar; nothing if the model has no price or its tokens
    /// are not known in full.
    pub fn cost(&self, model: Option<&str>, usage: &Usage) -> Option<Usd> {
        (usage.input_tokens.is_some() && usage.output_tokens.is_some()).then(|| self.at_least(model, usage))?
    }

    /// What the tokens that are known come to at least, while a call goes on; nothing if the model has no price.
    pub fn at_least(&self, model: Option<&str>, usage: &Usage) -> Option<Usd> {
        let price = self.of(model?)?;
        let (input, output) = (usage.input_tokens.unwrap_or(0), usage.output_tokens.unwrap_or(0));
        let (read, written) = (usage.cache_read_tokens.unwrap_or(0), usage.cache_write_tokens.unwrap_or(0));
        // The tokens read include those of the cache.
        let fresh = input.saturating_sub(read).saturating_sub(written);
        let parts =
            [(fresh, price.input), (read, price.cache_read), (written, price.cache_write), (output, price.output)];
        let millionths = parts.iter().map(|(tokens, each)| u128::from(*tokens) * u128::from(*each)).sum::<u128>();
        Some(Usd(u64::try_from(millionths.div_ceil(1_000_000)).unwrap_or(u64::MAX)))
    }
}

/// `claude-opus-4` begins `claude-opus-4` and `claude-opus-4-20250514`, and no `claude-opus-40`.
fn starts(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(input: u64, output: u64, read: u64, written: u64) -> Usage {
        Usage {
            input_tokens: Some(input),
            output_tokens: Some(output),
            cache_read_tokens: Some(read),
            cache_write_tokens: Some(written),
            ..Usage::default()
        }
    }

    #[test]
    fn a_call_costs_what_its_parts_cost_to_the_millionth() {
        let prices = Prices::default();
        // 3000 × 1.25 + 150 × 10, for a million each.
        assert_eq!(prices.cost(Some("gpt-5-codex"), &used(3000, 150, 0, 0)), Some(Usd(5_250)));
        // 1000 fresh, 5000 from the cache, 2000 into it: 1000×3 + 5000×0.3 + 2000×3.75 + 100×15.
        assert_eq!(prices.cost(Some("claude-sonnet-4-5"), &used(8000, 100, 5000, 2000)), Some(Usd(13_500)));
        // A fraction of a millionth is rounded up: nothing that was used is free.
        assert_eq!(prices.cost(Some("gpt-5-nano"), &used(1, 0, 0, 0)), Some(Usd(1)));
    }

    #[test]
    fn the_longest_beginning_counts_and_another_model_is_not_taken_for_it() {
        let prices = Prices::default();
        assert_eq!(prices.of("claude-opus-4-5-20251101").unwrap().input, 5_000_000);
        assert_eq!(prices.of("claude-opus-4-20250514").unwrap().input, 15_000_000);
        assert_eq!(prices.of("openrouter/openai/gpt-4.1-mini").unwrap().output, 1_600_000);
        for unknown in ["claude-opus-40", "opus", "qwen3-coder", "gpt-50", ""] {
            assert_eq!(prices.of(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn what_is_not_known_has_no_price_and_never_costs_nothing() {
        let prices = Prices::default();
        assert_eq!(prices.cost(None, &used(1, 1, 0, 0)), None);
        assert_eq!(prices.cost(Some("gpt-5"), &Usage { output_tokens: None, ..used(1, 1, 0, 0) }), None);
        assert_eq!(prices.cost(Some("unheard-of"), &used(1, 1, 0, 0)), None);
    }

    #[test]
    fn a_price_of_the_users_own_goes_before_the_list() {
        let price = Price { input: 1_000_000, output: 2_000_000, cache_read: 1_000_000, cache_write: 1_000_000 };
        let prices = Prices::with_own(vec![("gpt-5".to_owned(), price), ("local/tiny".to_owned(), price)]);
        assert_eq!(prices.of("gpt-5-codex"), Some(price));
        assert_eq!(prices.of("gpt-5-mini"), Some(price), "whoever says gpt-5 means all that begins so");
        assert_eq!(prices.of("local/tiny-7b"), Some(price));
        assert_eq!(prices.of("gpt-4.1").unwrap().input, 2_000_000);
    }

    #[test]
    fn every_price_of_the_list_says_whence_and_when_and_no_beginning_stands_twice() {
        let mut seen = std::collections::BTreeSet::new();
        for one in LIST {
            assert!(seen.insert(one.prefix), "{}", one.prefix);
            assert!(one.as_of.len() == 7 && one.source.contains('.'), "{}", one.prefix);
            assert!(one.price.output >= one.price.input && one.price.cache_read <= one.price.input, "{}", one.prefix);
        }
    }
}
