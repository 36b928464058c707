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
}

impl UsageTally {
    /// Counts a message. True if that changed the sum.
    pub(super) fn message(&mut self, message: &Message<'_>) -> bool {
        let (Some(id), Some(tokens)) = (message.id.as_str(), message.usage.object()) else { return false };
        // Without a reason to stop the usage is that of the message's start, whose output is not yet known.
        let output_tokens = message.stop_reason.as_str().and_then(|_| tokens.output());
        let usage = Usage { input_tokens: tokens.input(), output_tokens, cost: None };
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

    /// The final event's own sums, which replace ours.
    pub(super) fn result(&mut self, event: &Line<'_>) {
        let tokens = event.usage.object();
        let stated = Usage {
            input_tokens: tokens.and_then(Tokens::input),
            output_tokens: tokens.and_then(Tokens::output),
            cost: event.total_cost_usd.0.map(Usd::from_dollars),
        };
        self.stated = Some(stated);
    }

    pub(super) fn total(&self) -> Usage {
        let stated = self.stated.unwrap_or_default();
        Usage {
            input_tokens: stated.input_tokens.or(self.sum.input_tokens),
            output_tokens: stated.output_tokens.or(self.sum.output_tokens),
            cost: stated.cost,
        }
    }
}
