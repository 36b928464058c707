//! What masking adds to the reading of a stream: the same messages decoded and written to a transcript, with and without.

use std::borrow::Cow;
use std::time::Instant;

use ralphloop_agent::client::Format;
use ralphloop_agent::decoder::{Decoder, LOOP_AFTER};
use ralphloop_agent::event::Stream as AgentStream;
use ralphloop_agent::redact::Redactor;
use ralphloop_core::units::Timestamp;
use ralphloop_engine::transcript::{Stream, Writer};
use serde_json::json;

use crate::table::{Table, median};

/// As much as a pipe gives at once.
const PIECE: usize = 64 << 10;
/// Messages of the stream.
const MESSAGES: usize = 20_000;
/// What stands in them: code, prose, and a word that secrets are named by.
const TEXT: &str = "fn lamp(token: &Token) -> Result<Lamp, Error> {\n    let path = folder.join(\"lamp.rs\");\n    read(&path)?\n}\n\
                    The bulb is in, and its switch works; https://lamp.example/docs says how it is wired.\n";

pub(crate) fn measure(table: &mut Table) {
    let stream = stream();
    let redactor = Redactor::new([
        ("LAMP_TOKEN", "ghp_abcdefghijklmnopqrstuvwxyz0123456789"),
        ("LAMP_PASSWORD", "correct horse battery staple"),
    ]);
    let folder = tempfile::tempdir().unwrap();
    let ratios = (0..9).map(|round| {
        let at = |name: &str| folder.path().join(format!("{name}-{round}"));
        let plain = Writer::create(at("plain"), |bytes| Cow::Borrowed(bytes), u64::MAX).unwrap();
        let plain = read(&stream, plain);
        read(&stream, Writer::masked(at("masked"), redactor.clone(), u64::MAX).unwrap()) / plain
    });
    table.at_most("reading a stream with masking, against without", median(ratios.collect()), 1.10, "times");
}

/// Seconds that it takes to decode the stream and to write it down.
fn read(stream: &[u8], mut writer: Writer) -> f64 {
    let began = Instant::now();
    let mut decoder = Decoder::new(Format::Claude, "", LOOP_AFTER);
    let mut events = Vec::new();
    for piece in stream.chunks(PIECE) {
        decoder.push(AgentStream::Stdout, piece, &mut events);
        events.clear();
        writer.write(Stream::Out, piece, Timestamp::default()).unwrap();
    }
    writer.finish(Timestamp::default()).unwrap();
    began.elapsed().as_secs_f64()
}

fn stream() -> Vec<u8> {
    let mut stream = Vec::new();
    for number in 0..MESSAGES {
        let message = if number % 2 == 0 {
            json!({"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": TEXT}]}})
        } else {
            let result = json!({"type": "tool_result", "tool_use_id": format!("t{number}"), "content": TEXT});
            json!({"type": "user", "message": {"role": "user", "content": [result]}})
        };
        stream.extend(serde_json::to_vec(&message).unwrap());
        stream.push(b'\n');
    }
    stream
}
