//! Transcripts by window: an index of where each chunk of entries begins, and the entries of a chunk when asked for.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use ralphloop_agent::client::Format;
use ralphloop_agent::decoder::Decoder;
use ralphloop_agent::event::{AgentEvent, Stream};
use ralphloop_engine::transcript::frames::{Frame, Frames};
use ralphloop_engine::transcript::{self, Record, TranscriptError};
use ralphloop_tui::port::{CHUNK, CallId, Entry, EntryKind};
use ralphloop_tui::{Msg, Request};

/// How often a transcript that is looked at is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(150);
/// So long a transcript is read on before requests are looked at.
const BATCH: Duration = Duration::from_millis(40);
/// The longest text of one entry that the screen gets, in bytes. The transcript has all of it.
const LONGEST: usize = 64 << 10;

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
}

impl Transcript {
    fn open(path: &Path) -> Result<Self, TranscriptError> {
        let frames = Frames::open(path)?;
        Ok(Self { frames, format: None, chunks: Vec::new(), entries: 0, counted: 0, last: None })
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
        let mut decoder: Option<Decoder> = None;
        let mut events = Vec::new();
        for record in &frame.records {
            let Some(stream) = stream_of(record) else {
                let text = String::from_utf8_lossy(&record.bytes).into_owned();
                entries.push(Entry { at: record.at, kind: EntryKind::Note, text });
                continue;
            };
            let format = *self.format.get_or_insert_with(|| format_of(record));
            let decoder = decoder.get_or_insert_with(|| Decoder::new(format, "", 0));
            decoder.push(stream, &record.bytes, &mut events);
            entries.extend(events.drain(..).filter_map(|event| entry(record, event, format)));
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

/// How the output reads is not kept beside it; JSON lines tell themselves.
fn format_of(first: &Record) -> Format {
    let json = first.bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    if json { Format::Claude } else { Format::Text }
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

/// Answers requests about the transcripts in a run's folder until the other side is gone. Waits by blocking.
pub(super) fn serve(folder: &Path, cwd: &Path, asked: &Receiver<Request>, screen: &Sender<Msg>) {
    let mut looking: Option<(CallId, Option<Transcript>)> = None;
    let mut more = false;
    loop {
        let wait = if more { Duration::ZERO } else { LOOK_AGAIN };
        match asked.recv_timeout(wait) {
            Ok(request) => answer(request, folder, cwd, &mut looking, screen),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let Some((call, open)) = &mut looking else {
            more = false;
            continue;
        };
        if open.is_none() {
            // It is made when the agent begins to speak.
            *open = Transcript::open(&path(folder, call)).ok();
        }
        let Some(transcript) = open else { continue };
        let before = (transcript.entries, more);
        more = match transcript.read_on() {
            Ok(more) => more,
            Err(error) => {
                drop(screen.send(Msg::Note(error.to_string())));
                false
            }
        };
        if before != (transcript.entries, more) || before.0 == 0 {
            let extent = Msg::Extent { call: call.clone(), entries: transcript.entries, reading: more };
            if screen.send(extent).is_err() {
                return;
            }
        }
    }
}

fn path(folder: &Path, call: &CallId) -> PathBuf {
    transcript::path_of(folder, &call.attempt, call.call)
}

fn answer(
    request: Request,
    folder: &Path,
    cwd: &Path,
    looking: &mut Option<(CallId, Option<Transcript>)>,
    screen: &Sender<Msg>,
) {
    let open = |wanted: &CallId, looking: &mut Option<(CallId, Option<Transcript>)>| {
        looking.as_ref().is_some_and(|(call, open)| call == wanted && open.is_some())
    };
    let msg = match request {
        Request::Watch(call) => {
            *looking = Some((call, None));
            return;
        }
        Request::Read { call, chunk } if open(&call, looking) => {
            let Some((_, Some(transcript))) = looking else { return };
            match transcript.chunk(chunk) {
                Ok(entries) => Msg::Entries { call, chunk, entries },
                Err(error) => Msg::Note(error.to_string()),
            }
        }
        Request::Find { call, text, from, backwards } if open(&call, looking) => {
            let Some((_, Some(transcript))) = looking else { return };
            match transcript.find(&text, from, backwards) {
                Ok(entry) => Msg::Found { call, entry },
                Err(error) => Msg::Note(error.to_string()),
            }
        }
        Request::Export(call) => Msg::Said(match export(folder, cwd, &call) {
            Ok(path) => format!("written to {}", path.display()),
            Err(why) => format!("the transcript could not be written: {why}"),
        }),
        _ => return,
    };
    // Nobody looks any more.
    drop(screen.send(msg));
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
