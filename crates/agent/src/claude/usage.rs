//! Tokens and money of a call: the final event's sums, and until it comes, what the messages tell.

use std::collections::HashMap;

use ralphloop_core::evidence::Usage;
use ralphloop_core::units::Usd;

use super::wire::{Line, Message, Tokens};
use crate::repeat::fingerprint;

/// How many messages are told apart at once; beyond that their sum is kept.
const MESSAGES: usize = 4096;

/// Sums that count each message once, though its events repeat its usage.
#[derive(Debug, Default)]
pub(super) struct UsageTally {
    messages: HashMap<u64, Usage>,
    earlier: Usage,
    sum: Usage,
    stated: Option<Usage>,
    /// The client has no key of the API, so that a subscription pays.
    without_key: bool,
}

impl UsageTally {
    /// Counts a message. True if that changed the sum.
    pub(super) fn message(&mut self, message: &Message<'_>) -> bool {
        let (Some(id), Some(tokens)) = (message.id.as_str(), message.usage.object()) else { return false };
        // Without a reason to stop the usage is that of the message's start, whose output is not yet known.
        let output_tokens = message.stop_reason.as_str().and_then(|_| tokens.output());
        let usage = Usage {
            input_tokens: tokens.input(),
            output_tokens,
            cache_read_tokens: tokens.cache_read(),
            cache_write_tokens: tokens.cache_written(),
            ..Usage::default()
        };
        if usage == Usage::default() {
            return false;
        }
        if self.messages.len() >= MESSAGES {
            self.earlier = self.sum;
            self.messages.clear();
        }
        let known = self.messages.insert(fingerprint(&id), usage);
        if known == Some(usage) {
            return false;
        }
        self.sum = match known {
            None => self.sum.plus(usage),
            Some(_) => self.messages.values().fold(self.earlier, |sum, one| sum.plus(*one)),
        };
        true
    }

    /// Whose account pays, by where the client says that its key is from.
    pub(super) fn paid_by(&mut self, key_source: Option<&str>) {
        self.without_key = key_source == Some("none");
    }

    /// The final event's own sums, which replace ours.
    pub(super) fn result(&mut self, event: &Line<'_>) {
        let tokens = event.usage.object();
        let stated = Usage {
            input_tokens: tokens.and_then(Tokens::input),
            output_tokens: tokens.and_then(Tokens::output),
            cost: event.total_cost_usd.0.map(Usd::from_dollars),
            cache_read_tokens: tokens.and_then(Tokens::cache_read),
            cache_write_tokens: tokens.and_then(Tokens::cache_written),
            ..Usage::default()
        };
        self.stated = Some(stated);
    }

    pub(super) fn total(&self) -> Usage {
        let stated = self.stated.unwrap_or_default();
        Usage {
            input_tokens: stated.input_tokens.or(self.sum.input_tokens),
            output_tokens: stated.output_tokens.or(self.sum.output_tokens),
            cost: stated.cost,
            cache_read_tokens: stated.cache_read_tokens.or(self.sum.cache_read_tokens),
            cache_write_tokens: stated.cache_write_tokens.or(self.sum.cache_write_tokens),
            covered: stated.cost.filter(|_| self.without_key),
            estimate: None,
        }
    }
}
