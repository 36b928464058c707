//! Transcripts by window: an index of where each chunk of entries begins, and the entries of a chunk when asked for.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ralphloop_agent::client::Format;
use ralphloop_agent::decoder::Decoder;
use ralphloop_agent::event::{AgentEvent, Stream};
use ralphloop_agent::plan;
use ralphloop_engine::follow::Changes;
use ralphloop_engine::transcript::frames::{Frame, Frames};
use ralphloop_engine::transcript::{self, Record, TranscriptError};
use ralphloop_tui::mailbox::Sender;
use ralphloop_tui::port::{CHUNK, CallId, Entry, EntryKind};
use ralphloop_tui::{Msg, Request};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Interval, MissedTickBehavior};

/// A transcript that is written all the time is read this often.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// So long a transcript is read on before requests are looked at.
const BATCH: Duration = Duration::from_millis(40);
/// The longest text of one entry that the screen gets, in bytes. The transcript has all of it.
const LONGEST: usize = 64 << 10;
/// So much of a transcript tells how it reads, in bytes.
const BEGINNING: usize = 64 << 10;

/// What is known of one call's transcript.
struct Transcript {
    frames: Frames,
    format: Option<Format>,
    /// Where each chunk begins: a frame, and how many of its entries belong to chunks before.
    chunks: Vec<(u64, u64)>,
    entries: u64,
    /// Up to here frames were counted.
    counted: u64,
    /// The frame that was read last: neighbouring chunks often lie in one.
    last: Option<(u64, u64, Vec<Entry>)>,
    /// What was told of it: how many entries, and whether more are being read.
    told: Option<(u64, bool)>,
}

impl Transcript {
    fn open(path: &Path) -> Result<Self, TranscriptError> {
        let frames = Frames::open(path)?;
        Ok(Self { frames, format: None, chunks: Vec::new(), entries: 0, counted: 0, last: None, told: None })
    }

    /// Counts what has come since, for a moment; true if there may be more.
    fn read_on(&mut self) -> Result<bool, TranscriptError> {
        let began = Instant::now();
        while began.elapsed() < BATCH {
            let at = self.counted;
            let Some(frame) = self.frames.at(at)? else { return Ok(false) };
            let (end, entries) = self.decode(&frame);
            for number in 0..entries.len() as u64 {
                if (self.entries + number).is_multiple_of(CHUNK) {
                    self.chunks.push((at, number));
                }
            }
            self.entries += entries.len() as u64;
            self.counted = end;
            self.last = Some((at, end, entries));
        }
        Ok(true)
    }

    /// The entries of a frame, each frame decoded for itself: the same whoever asks for it, and whenever.
    fn decode(&mut self, frame: &Frame) -> (u64, Vec<Entry>) {
        let mut entries = Vec::new();
        self.format = self.format.or_else(|| format_of(&frame.records));
        // As long as there is nothing on the standard output, it makes no difference.
        let format = self.format.unwrap_or(Format::Text);
        let mut decoder = Decoder::new(format, "", 0);
        let mut events = Vec::new();
        for record in &frame.records {
            let Some(stream) = stream_of(record) else {
                let text = String::from_utf8_lossy(&record.bytes).into_owned();
                entries.push(Entry { at: record.at, kind: EntryKind::Note, text });
                continue;
            };
            decoder.push(stream, &record.bytes, &mut events);
            entries.extend(events.drain(..).filter_map(|event| entry(record, event, format)));
        }
        // What comes in pieces is not told before its end, which another frame may have.
        decoder.pause(&mut events);
        if let Some(last) = frame.records.last() {
            entries.extend(events.drain(..).filter_map(|event| entry(last, event, format)));
        }
        (frame.end, entries)
    }

    /// The entries of a chunk.
    fn chunk(&mut self, chunk: u64) -> Result<Vec<Entry>, TranscriptError> {
        let found = usize::try_from(chunk).ok().and_then(|chunk| self.chunks.get(chunk)).copied();
        let Some((mut at, mut skip)) = found else { return Ok(Vec::new()) };
        let mut wanted = Vec::new();
        while (wanted.len() as u64) < CHUNK && at < self.counted {
            if self.last.as_ref().is_none_or(|(known, ..)| *known != at) {
                let Some(frame) = self.frames.at(at)? else { break };
                let (end, entries) = self.decode(&frame);
                self.last = Some((at, end, entries));
            }
            let Some((_, end, entries)) = &self.last else { break };
            let room = usize::try_from(CHUNK).unwrap_or(usize::MAX) - wanted.len();
            wanted.extend(entries.iter().skip(usize::try_from(skip).unwrap_or(usize::MAX)).take(room).cloned());
            (at, skip) = (*end, 0);
        }
        Ok(wanted)
    }

    /// The first entry from `from` on with that text in it, whatever its case.
    fn find(&mut self, text: &str, from: u64, backwards: bool) -> Result<Option<u64>, TranscriptError> {
        let needle = text.to_lowercase();
        let mut chunk = from / CHUNK;
        loop {
            let entries = self.chunk(chunk)?;
            let first = chunk * CHUNK;
            let mut fitting = entries.iter().zip(first..).filter(|(entry, number)| {
                let after = if backwards { *number <= from } else { *number >= from };
                after && entry.text.to_lowercase().contains(&needle)
            });
            let found = if backwards { fitting.last() } else { fitting.next() };
            if let Some((_, number)) = found {
                return Ok(Some(number));
            }
            chunk = match backwards {
                true if chunk == 0 => return Ok(None),
                true => chunk - 1,
                false if (chunk + 1) * CHUNK >= self.entries => return Ok(None),
                false => chunk + 1,
            };
        }
    }
}

fn stream_of(record: &Record) -> Option<Stream> {
    match record.stream {
        transcript::Stream::Out => Some(Stream::Stdout),
        transcript::Stream::Err => Some(Stream::Stderr),
        transcript::Stream::Note => None,
    }
}

/// How the output reads is not kept beside it; what stands first on the standard output tells.
fn format_of(records: &[Record]) -> Option<Format> {
    let said = records.iter().filter(|record| matches!(record.stream, transcript::Stream::Out));
    let beginning: Vec<u8> = said.flat_map(|record| record.bytes.iter().copied()).take(BEGINNING).collect();
    (!beginning.is_empty()).then(|| Format::of_stream(&beginning))
}

fn entry(record: &Record, event: AgentEvent, format: Format) -> Option<Entry> {
    let (kind, mut text) = match event {
        AgentEvent::Said { text } if format == Format::Text => (EntryKind::Output, text),
        AgentEvent::Said { text } => (EntryKind::Agent, text),
        AgentEvent::SubAgentSaid { text } => (EntryKind::SubAgent, text),
        AgentEvent::Thought { text } => (EntryKind::Thought, text),
        AgentEvent::ToolStarted { name, input, .. } => (EntryKind::Tool, format!("{name}  {input}")),
        AgentEvent::ToolFinished { ok: true, output, .. } => (EntryKind::ToolOutput, output),
        AgentEvent::ToolFinished { ok: false, output, .. } => (EntryKind::ToolFailed, output),
        AgentEvent::Plan { steps } => (EntryKind::Plan, plan::in_full(&steps)),
        AgentEvent::Repeating { call, times } => (EntryKind::Note, format!("the same call {times} times: {call}")),
        AgentEvent::Retrying { attempt, of, why, .. } => {
            (EntryKind::Note, format!("tries again ({attempt} of {of}): {why}"))
        }
        AgentEvent::PermissionDenied { tool } => (EntryKind::Note, format!("permission denied: {tool}")),
        AgentEvent::Notice { text } => (EntryKind::Note, text),
        AgentEvent::Raw { text, .. } => (EntryKind::Output, text),
        AgentEvent::SessionStarted { model: Some(model), .. } => (EntryKind::Note, format!("model {model}")),
        AgentEvent::SessionStarted { model: None, .. }
        | AgentEvent::Usage { .. }
        | AgentEvent::RateLimited { .. }
        | AgentEvent::Ended { .. } => return None,
    };
    if text.len() > LONGEST {
        let end = text.char_indices().map(|(at, _)| at).take_while(|at| *at <= LONGEST).last().unwrap_or(0);
        text.truncate(end);
    }
    Some(Entry { at: record.at, kind, text })
}

/// Answers requests about the transcripts in a run's folder until the other side is gone. It reads files, so that it needs
/// a thread of its own.
pub(super) async fn serve(folder: &Path, cwd: &Path, mut asked: UnboundedReceiver<Request>, screen: &Sender<Msg>) {
    let mut desk = Desk { folder, cwd, screen, looking: None, written: Changes::new() };
    let mut pace = tokio::time::interval(LOOK_AGAIN);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let more = desk.read_on();
        tokio::select! {
            biased;
            request = asked.recv() => match request {
                Some(request) => desk.answer(request),
                None => return,
            },
            () = std::future::ready(()), if more => {}
            () = desk.written(&mut pace), if !more && desk.looking.is_some() => {}
        }
    }
}

/// The transcript that is looked at.
struct Looking {
    call: CallId,
    /// It is made when the agent begins to speak.
    open: Option<Transcript>,
}

struct Desk<'a> {
    folder: &'a Path,
    cwd: &'a Path,
    screen: &'a Sender<Msg>,
    looking: Option<Looking>,
    written: Changes,
}

impl Desk<'_> {
    /// Waits until a transcript was written to, but not as often as it may be. A system that cannot tell any more leaves the
    /// screen with what it has.
    async fn written(&self, pace: &mut Interval) {
        match self.written.next().await {
            Ok(()) => drop(pace.tick().await),
            Err(_) => std::future::pending().await,
        }
    }

    /// Takes in what has come since, for a moment; true if there may be more.
    fn read_on(&mut self) -> bool {
        let Some(Looking { call, open }) = &mut self.looking else { return false };
        if open.is_none() {
            // Watched before it is looked for; the folder of all of them comes with the first.
            drop(self.written.watch(&transcript::folder_of(self.folder)).or_else(|_| self.written.watch(self.folder)));
            *open = Transcript::open(&path(self.folder, call)).ok();
        }
        let Some(transcript) = open else { return false };
        let more = transcript.read_on().unwrap_or_else(|error| {
            drop(self.screen.send(Msg::Note(error.to_string())));
            false
        });
        let extent = Msg::Extent { call: call.clone(), entries: transcript.entries, reading: more };
        if transcript.told != Some((transcript.entries, more)) {
            transcript.told = Some((transcript.entries, more));
            // Nobody looks any more.
            drop(self.screen.send(extent));
        }
        more
    }

    fn open(&mut self, wanted: &CallId) -> Option<&mut Transcript> {
        self.looking.as_mut().filter(|looking| looking.call == *wanted)?.open.as_mut()
    }

    fn answer(&mut self, request: Request) {
        let msg = match request {
            Request::Watch(call) => {
                self.looking = Some(Looking { call, open: None });
                return;
            }
            Request::Read { call, chunk } => {
                let Some(transcript) = self.open(&call) else { return };
                match transcript.chunk(chunk) {
                    Ok(entries) => Msg::Entries { call, chunk, entries },
                    Err(error) => Msg::Note(error.to_string()),
                }
            }
            Request::Find { call, text, from, backwards } => {
                let Some(transcript) = self.open(&call) else { return };
                match transcript.find(&text, from, backwards) {
                    Ok(entry) => Msg::Found { call, entry },
                    Err(error) => Msg::Note(error.to_string()),
                }
            }
            Request::Export(call) => Msg::Said(match export(self.folder, self.cwd, &call) {
                Ok(path) => format!("written to {}", path.display()),
                Err(why) => format!("the transcript could not be written: {why}"),
            }),
            _ => return,
        };
        drop(self.screen.send(msg));
    }
}

fn path(folder: &Path, call: &CallId) -> PathBuf {
    transcript::path_of(folder, &call.attempt, call.call)
}

/// Writes what the agent said and did as text beside where the program was called.
fn export(folder: &Path, cwd: &Path, call: &CallId) -> Result<PathBuf, String> {
    use std::io::Write as _;
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let from = path(folder, call);
    let name = from.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let run = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let to = cwd.join(format!("ralphloop-{run}-{}.txt", name.trim_end_matches(".jsonl.zst")));
    let mut transcript = Transcript::open(&from).map_err(|e| text(&e))?;
    let file = std::fs::File::create(&to).map_err(|e| text(&e))?;
    let mut out = std::io::BufWriter::new(file);
    while let Some(frame) = transcript.frames.at(transcript.counted).map_err(|e| text(&e))? {
        let (end, entries) = transcript.decode(&frame);
        transcript.counted = end;
        for entry in entries {
            writeln!(out, "{}", crate::output::harmless(&entry.text)).map_err(|e| text(&e))?;
        }
    }
    out.flush().map_err(|e| text(&e))?;
    Ok(to)
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use ralphloop_core::units::Timestamp;
    use ralphloop_engine::transcript::{DEFAULT_MAX_BYTES, Redact, Stream as Of, Writer};

    use super::*;

    /// What the screen gets of a transcript whose frames hold these lines.
    fn seen(frames: &[(Of, &str)]) -> Vec<(EntryKind, String)> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t");
        let keep: Redact<'_> = &|bytes| Cow::Borrowed(bytes);
        let mut writer = Writer::create(path.clone(), keep, DEFAULT_MAX_BYTES).unwrap();
        for (of, lines) in frames {
            writer.write(*of, lines.as_bytes(), Timestamp(1)).unwrap();
            writer.flush(Timestamp(1)).unwrap();
        }
        writer.finish(Timestamp(2)).unwrap();
        let mut transcript = Transcript::open(&path).unwrap();
        while transcript.read_on().unwrap() {}
        transcript.chunk(0).unwrap().into_iter().map(|entry| (entry.kind, entry.text)).collect()
    }

    #[test]
    fn every_clients_lines_read_as_its_own_also_behind_remarks_on_the_standard_error() {
        let plan = r#"{"type":"item.started","item":{"id":"p","type":"todo_list","items":[{"text":"Look","completed":true}]}}"#;
        let codex = format!("{{\"type\":\"thread.started\",\"thread_id\":\"t\"}}\n{plan}\n");
        let said = "{\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\",\"text\":\"Done.\"}}\n";
        assert_eq!(
            seen(&[(Of::Err, "warming up\n"), (Of::Out, &codex), (Of::Out, said)]),
            [
                (EntryKind::Output, "warming up".to_owned()),
                (EntryKind::Plan, "[x] Look".to_owned()),
                (EntryKind::Agent, "Done.".to_owned())
            ]
        );
        let words = seen(&[(Of::Out, "just words\n")]);
        assert_eq!(words, [(EntryKind::Output, "just words".to_owned())]);
    }

    #[test]
    fn a_message_in_pieces_is_seen_as_far_as_it_has_come() {
        let piece = |text: &str| {
            format!(
                "{{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{{\"update\":{{\"sessionUpdate\":\
                 \"agent_message_chunk\",\"content\":{{\"type\":\"text\",\"text\":\"{text}\"}}}}}}}}\n"
            )
        };
        let first = piece("I look ") + &piece("around.");
        let entries = seen(&[(Of::Out, &first), (Of::Out, &piece(" And go."))]);
        assert_eq!(
            entries,
            [(EntryKind::Agent, "I look around.".to_owned()), (EntryKind::Agent, " And go.".to_owned())]
        );
    }
}
