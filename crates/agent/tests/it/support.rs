//! Runs a decoder over bytes.

use std::time::Duration;

use jiff::tz::TimeZone;
use ralphloop_agent::client::Format;
use ralphloop_agent::decoder::{Clock, Decoder, Ending, LOOP_AFTER, ProcessEnd};
use ralphloop_agent::event::{AgentEvent, Stream};
use ralphloop_core::evidence::AgentReport;
use ralphloop_core::ids::StoryId;
use ralphloop_core::signal::SignalGrammar;
use ralphloop_core::units::Timestamp;

/// 2026-11-27T12:00:00Z.
pub(crate) const NOW: Timestamp = Timestamp(1_795_780_800_000);

/// One call of an agent for story S1, as a test describes it.
#[derive(Clone)]
pub(crate) struct Call<'a> {
    pub(crate) format: Format,
    pub(crate) prompt: &'a str,
    pub(crate) stdout: &'a [u8],
    pub(crate) stderr: &'a [u8],
    pub(crate) process: ProcessEnd,
}

impl<'a> Call<'a> {
    pub(crate) fn claude(stdout: &'a str) -> Self {
        Self {
            format: Format::Claude,
            prompt: "",
            stdout: stdout.as_bytes(),
            stderr: b"",
            process: ProcessEnd::Exited { code: 0 },
        }
    }

    pub(crate) fn text(stdout: &'a str) -> Self {
        Self { format: Format::Text, ..Self::claude(stdout) }
    }

    pub(crate) fn exit(self, code: i32) -> Self {
        Self { process: ProcessEnd::Exited { code }, ..self }
    }

    pub(crate) fn ended(self, process: ProcessEnd) -> Self {
        Self { process, ..self }
    }

    pub(crate) fn stderr(self, stderr: &'a str) -> Self {
        Self { stderr: stderr.as_bytes(), ..self }
    }

    pub(crate) fn report(self) -> AgentReport {
        self.run(usize::MAX).1
    }

    /// Events and report, with stdout in pieces of at most `piece` bytes.
    pub(crate) fn run(self, piece: usize) -> (Vec<AgentEvent>, AgentReport) {
        let pieces: Vec<&[u8]> = self.stdout.chunks(piece).collect();
        self.run_in(&pieces)
    }

    /// Events and report, with these pieces as stdout.
    pub(crate) fn run_in(self, pieces: &[&[u8]]) -> (Vec<AgentEvent>, AgentReport) {
        let mut decoder = Decoder::new(self.format, self.prompt, LOOP_AFTER);
        let mut events = Vec::new();
        for bytes in pieces {
            decoder.push(Stream::Stdout, bytes, &mut events);
        }
        decoder.push(Stream::Stderr, self.stderr, &mut events);
        let report = decoder.finish(
            Ending {
                process: self.process,
                story: &StoryId::from("S1"),
                grammar: &SignalGrammar::default(),
                clock: &Clock { now: NOW, zone: TimeZone::UTC },
                took: Duration::from_secs(1),
                sign_in: None,
            },
            &mut events,
        );
        (events, report)
    }
}

/// A line that says `text` as the agent itself.
pub(crate) fn say(text: &str) -> String {
    format!(
        "{{\"type\":\"assistant\",\"message\":{{\"content\":[{{\"type\":\"text\",\"text\":{}}}]}}}}\n",
        serde_json::Value::from(text)
    )
}

/// The final line.
pub(crate) fn result(is_error: bool, text: &str) -> String {
    format!(
        "{{\"subtype\":\"success\",\"type\":\"result\",\"is_error\":{is_error},\"result\":{},\"total_cost_usd\":0.01}}\n",
        serde_json::Value::from(text)
    )
}

/// A tool call with its result.
pub(crate) fn tool(name: &str, input: &str, output: &str) -> String {
    format!(
        concat!(
            r#"{{"type":"assistant","message":{{"content":[{{"type":"tool_use","id":"t1","name":"{}","input":{{"command":{}}}}}]}}}}"#,
            "\n",
            r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","tool_use_id":"t1","content":{}}}]}}}}"#,
            "\n"
        ),
        name,
        serde_json::Value::from(input),
        serde_json::Value::from(output)
    )
}
