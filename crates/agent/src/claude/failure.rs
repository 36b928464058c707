//! What kind of failure a call of Claude Code ended with, from the fields that it has for that.

use ralphloop_core::units::Timestamp;

use super::wire::Line;
use crate::classify::{Class, class_of_failure};
use crate::trace::Terminal;

/// What the stream told of a failure beside its words.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// The code of the failure that the client made up a message for (`rate_limit`).
    pub(super) code: Option<String>,
    /// The provider rejected a request for a limit.
    pub(super) rejected: bool,
    /// When that limit ends.
    pub(super) resets_at: Option<Timestamp>,
    reason: Option<String>,
    stop_reason: Option<String>,
    status: Option<u32>,
    api_error: Option<String>,
}

impl Told {
    /// Takes the fields of the final event.
    pub(super) fn result(&mut self, event: &Line<'_>) {
        self.reason = event.terminal_reason.owned();
        self.stop_reason = event.stop_reason.owned();
        self.status = event.api_error_status.small();
        self.api_error = event.api_error.owned();
    }

    /// The end that follows is another client's, which has none of these fields.
    pub(super) fn forget_all_but_the_rejection(&mut self) {
        *self = Self { rejected: self.rejected, resets_at: self.resets_at, ..Self::default() };
    }

    /// Puts the class of the failure into `terminal`, and the reset that was told.
    pub(super) fn classify(&self, terminal: &mut Terminal) {
        terminal.class = self.class(&terminal.text);
        terminal.resets_at = self.resets_at;
    }

    fn class(&self, words: &str) -> Option<Class> {
        match (self.reason.as_deref(), self.stop_reason.as_deref(), self.api_error.as_deref()) {
            (Some("prompt_too_long"), _, _) => return Some(Class::PromptTooLong),
            (Some("max_turns" | "budget_exhausted"), _, _)
            | (_, Some("refusal"), _)
            | (_, _, Some("max_output_tokens")) => return None,
            _ => {}
        }
        if self.rejected && self.status.is_none_or(|status| status == 429) {
            return Some(Class::Limit);
        }
        let by_code = match self.code.as_deref() {
            Some("rate_limit") => Some(Class::Limit),
            Some("overloaded") => Some(Class::Overloaded),
            Some("authentication_failed") => Some(Class::SignIn),
            Some("billing_error") => Some(Class::NoCredit),
            Some("model_not_found") => Some(Class::ModelUnknown),
            _ => None,
        };
        let unanswered = self.reason.as_deref() == Some("api_error")
            && self.status.is_none()
            && matches!(self.code.as_deref(), Some("unknown" | "server_error"));
        by_code
            .or_else(|| self.status.and_then(Class::of_status))
            .or_else(|| class_of_failure(words))
            .or_else(|| unanswered.then_some(Class::Network))
    }
}
