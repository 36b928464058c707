//! All that was said, kept within what the model can read: first the results of older calls are left out, and where that does
//! not suffice, the older part is summed up.

use genai::chat::{ChatMessage, ChatRole, ContentPart, MessageContent, ToolCall, ToolResponse};
use ralphloop_agent::builtin::Setup;

/// So many bytes are taken for a token where nobody has counted. A little few, so that an estimate is rather too high.
const BYTES: u64 = 3;
/// No more bytes than these are taken for a token, whatever was counted: some servers count only what they had not yet read.
const MOST_BYTES: u64 = 4;
/// How many of the last messages are never touched: the last answer with the results of its calls, and the one before.
const UNTOUCHED: usize = 4;
/// A result that is no longer than this stays, in bytes: a note in its place would be as long.
const SHORT: usize = 300;
/// What a model can read that nothing is known of, in tokens.
const USUAL_WINDOW: u64 = 128_000;
/// What is kept free for the answer, in tokens, but for small windows.
pub(crate) const ANSWER: u32 = 16_000;

/// How much models can read, by the beginnings of their names, in tokens. The longest beginning counts.
const WINDOWS: &[(&str, u64)] = &[
    ("claude", 200_000),
    ("gemini", 1_000_000),
    ("gpt-4.1", 1_000_000),
    ("gpt-4o", 128_000),
    ("gpt-5", 272_000),
    ("o3", 200_000),
    ("o4-mini", 200_000),
];

/// What the model is asked when the older part is to be summed up.
pub(crate) const SUM_UP: &str = "\
Stop here for a moment. What was said so far is about to be removed, to make room. Write down, for yourself, all that you need \
to go on: what you were asked for, what you found out and where (files, lines, names), what you changed, what you ran and what \
came of it, what is still to do. Call no tool. Write plain text, as short as it can be without losing anything.";
/// What stands before that summary.
const SUMMED_UP: &str = "Your own notes of the work so far; the earlier messages were removed to make room:";
/// What stands there if no summary could be had.
const REMOVED: &str =
    "The earlier messages were removed to make room. Look at the files, and at diff, for what is done.";

/// What has to be done before the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    /// Nothing.
    Enough,
    /// Results were left out; now it is enough.
    Made,
    /// The older part has to be summed up.
    Wanted,
}

/// The messages after the system's.
#[derive(Debug)]
pub(crate) struct Conversation {
    prompt: String,
    messages: Vec<ChatMessage>,
    /// What goes with every request: the system's message, the tools; in bytes.
    fixed: u64,
    /// Tokens that the provider has counted, and of how many messages.
    counted: Option<(u64, usize)>,
    /// How much may be sent, in tokens.
    room: u64,
}

impl Conversation {
    /// Begins with the prompt. `fixed` is what goes with every request, in bytes.
    pub(crate) fn new(prompt: &str, fixed: usize, setup: &Setup) -> Self {
        let window = setup.provider.context_window.unwrap_or_else(|| window_of(&setup.model));
        let answer = u64::from(setup.provider.max_output.unwrap_or(ANSWER)).min(window / 4);
        Self {
            prompt: prompt.to_owned(),
            messages: vec![ChatMessage::user(prompt)],
            fixed: bytes(fixed),
            counted: None,
            // A tenth for what an estimate is wrong by.
            room: (window - answer) / 10 * 9,
        }
    }

    /// What is to be sent.
    pub(crate) fn messages(&self) -> &[ChatMessage] {
        &self.messages
    }

    /// Takes an answer; `counted` are the tokens of the request and the answer, if the provider has told them.
    pub(crate) fn answered(&mut self, message: ChatMessage, counted: Option<u64>) {
        self.messages.push(message);
        self.counted = counted.map(|tokens| (tokens, self.messages.len())).or(self.counted);
    }

    /// Takes the results of the calls of the last answer, all of them.
    pub(crate) fn returned(&mut self, results: Vec<(ToolCall, String)>) {
        let responses = results.into_iter().map(|(call, text)| ToolResponse::from_tool_call(&call, text)).collect();
        self.messages.push(ChatMessage::tool(MessageContent::from_tool_responses(responses)));
    }

    /// Says something to the model.
    pub(crate) fn said(&mut self, text: &str) {
        self.messages.push(ChatMessage::user(text));
    }

    /// How many tokens the next request has, most likely.
    fn estimate(&self) -> u64 {
        let of = |messages: &[ChatMessage]| messages.iter().map(|message| bytes(message.size())).sum::<u64>();
        let all = self.fixed + of(&self.messages);
        match self.counted {
            Some((tokens, messages)) => (tokens + of(&self.messages[messages..]) / BYTES).max(all / MOST_BYTES),
            None => all / BYTES,
        }
    }

    /// Sees that the next request fits. Results of older calls are left out as soon as it would not.
    pub(crate) fn make_room(&mut self) -> Room {
        let before = self.estimate();
        if before <= self.room {
            return Room::Enough;
        }
        let saved = self.leave_out() / BYTES;
        let after = before.saturating_sub(saved);
        // What was counted counted more than there is now.
        self.counted = Some((after, self.messages.len()));
        // With little gained, the same would have to be done again at once, and the provider's cache be lost each time.
        if after <= self.room / 10 * 7 { Room::Made } else { Room::Wanted }
    }

    /// The provider says that it does not fit, whatever was estimated: from now on less is sent.
    pub(crate) fn overflowed(&mut self) {
        self.room = self.room.min(self.estimate()) / 10 * 7;
    }

    /// Puts notes in the place of long results but for the last ones; how many bytes that saves.
    fn leave_out(&mut self) -> u64 {
        let touched = self.messages.len().saturating_sub(UNTOUCHED);
        let mut saved = 0;
        for message in &mut self.messages[..touched] {
            for part in &mut message.content {
                let ContentPart::ToolResponse(response) = part else { continue };
                if response.content.len() > SHORT {
                    let name = response.fn_name.as_deref().unwrap_or("the tool");
                    let length = response.content.len();
                    let note =
                        format!("[{length} bytes of {name} were removed to make room; call it again if you need them]");
                    saved += bytes(length - note.len());
                    response.content = note;
                }
            }
        }
        saved
    }

    /// The request for a summary of all that was said.
    pub(crate) fn for_summary(&self) -> Vec<ChatMessage> {
        self.messages.iter().cloned().chain([ChatMessage::user(SUM_UP)]).collect()
    }

    /// Puts a summary in the place of all but the prompt and the last answer with its results. Without one, a note.
    pub(crate) fn sum_up(&mut self, summary: Option<&str>) {
        let notes = match summary.map(str::trim).filter(|summary| !summary.is_empty()) {
            Some(summary) => format!("{SUMMED_UP}\n\n{summary}"),
            None => REMOVED.to_owned(),
        };
        let last = self.messages.iter().rposition(|message| message.role == ChatRole::Assistant);
        let last = last.unwrap_or(self.messages.len());
        let mut rest = self.messages.split_off(last);
        // Long as they are, these too: there may be one result that fills it all.
        let tail: u64 = rest.iter().map(|message| bytes(message.size())).sum();
        if tail / BYTES > self.room / 2 {
            rest.clear();
        }
        self.messages = vec![ChatMessage::user(format!("{}\n\n{notes}", self.prompt))];
        self.messages.append(&mut rest);
        self.counted = None;
    }
}

fn window_of(model: &str) -> u64 {
    let bare = model.rsplit('/').next().unwrap_or(model);
    let known = WINDOWS.iter().filter(|(beginning, _)| bare.starts_with(beginning));
    known.max_by_key(|(beginning, _)| beginning.len()).map_or(USUAL_WINDOW, |(_, window)| *window)
}

fn bytes(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use ralphloop_agent::builtin::{Limits, Provider};
    use serde_json::json;

    use super::*;

    fn conversation(window: u64) -> Conversation {
        let provider =
            Provider { context_window: Some(window), max_output: Some(100), ..Provider::known("openai").unwrap() };
        let setup = Setup { provider, model: "m".to_owned(), effort: None, limits: Limits::default() };
        Conversation::new("the prompt", 300, &setup)
    }

    fn step(talk: &mut Conversation, number: usize, result: &str, counted: Option<u64>) {
        let call = ToolCall {
            call_id: format!("call-{number}"),
            fn_name: "read".to_owned(),
            fn_arguments: json!({"path": "a"}),
            thought_signatures: None,
        };
        talk.answered(ChatMessage::assistant(vec![call.clone()]), counted);
        talk.returned(vec![(call, result.to_owned())]);
    }

    fn results(talk: &Conversation) -> Vec<String> {
        let responses = talk.messages().iter().flat_map(|message| message.content.tool_responses());
        responses.map(|response| response.content.clone()).collect()
    }

    #[test]
    fn results_of_older_calls_are_left_out_before_the_window_is_full_and_the_last_ones_stay() {
        let mut talk = conversation(10_000);
        for number in 0..4 {
            step(&mut talk, number, &"x".repeat(6000), None);
        }
        assert_eq!(talk.make_room(), Room::Enough, "{}", talk.estimate());
        step(&mut talk, 4, &"x".repeat(6000), None);
        assert_eq!(talk.make_room(), Room::Made, "{}", talk.estimate());
        let results = results(&talk);
        assert!(results[..3].iter().all(|text| text.starts_with("[6000 bytes of read were removed")), "{results:?}");
        assert!(results[3..].iter().all(|text| text.len() == 6000));
        assert!(talk.estimate() < 6500, "{}", talk.estimate());
        assert_eq!(talk.make_room(), Room::Enough);
    }

    #[test]
    fn what_the_provider_has_counted_counts_and_only_the_rest_is_estimated() {
        let mut talk = conversation(10_000);
        step(&mut talk, 0, &"x".repeat(300), Some(8700));
        assert_eq!(talk.estimate(), 8700 + u64::try_from(talk.messages()[2].size()).unwrap() / BYTES);
        assert_eq!(talk.make_room(), Room::Enough);
        step(&mut talk, 1, &"x".repeat(300), Some(8900));
        assert_eq!(talk.make_room(), Room::Wanted, "short results cannot be left out");
    }

    #[test]
    fn a_summary_takes_the_place_of_the_older_part_and_calls_keep_their_results() {
        let mut talk = conversation(10_000);
        for number in 0..6 {
            step(&mut talk, number, "short", Some(9000));
        }
        assert_eq!(talk.make_room(), Room::Wanted);
        let request = talk.for_summary();
        assert_eq!(request.len(), 14, "the prompt, six steps and the question");
        talk.sum_up(Some("NOTES"));
        let first = talk.messages()[0].content.first_text().unwrap();
        assert!(first.starts_with("the prompt") && first.ends_with("NOTES"), "{first}");
        assert_eq!(talk.messages().len(), 3);
        assert_eq!(talk.messages()[1].content.tool_calls()[0].call_id, "call-5");
        assert_eq!(talk.messages()[2].content.tool_responses()[0].call_id, "call-5");
        assert_eq!(talk.make_room(), Room::Enough);
    }

    #[test]
    fn one_result_that_fills_the_window_goes_too_and_without_a_summary_a_note_says_so() {
        let mut talk = conversation(10_000);
        step(&mut talk, 0, &"x".repeat(40_000), None);
        assert_eq!(talk.make_room(), Room::Wanted);
        talk.sum_up(None);
        assert_eq!(talk.messages().len(), 1);
        assert!(talk.messages()[0].content.first_text().unwrap().contains("removed to make room"));
    }

    #[test]
    fn what_a_provider_refuses_as_too_long_makes_the_room_smaller() {
        let mut talk = conversation(200_000);
        step(&mut talk, 0, &"x".repeat(30_000), None);
        assert_eq!(talk.make_room(), Room::Enough);
        talk.overflowed();
        assert_ne!(talk.make_room(), Room::Enough);
        for (model, window) in [
            ("claude-sonnet-4-5", 200_000),
            ("google/gemini-2.5-pro", 1_000_000),
            ("gpt-5-mini", 272_000),
            ("x", USUAL_WINDOW),
        ] {
            assert_eq!(window_of(model), window, "{model}");
        }
    }
}
