//! What must hold for any bytes at all, said once for all targets.

use std::time::Duration;

use jiff::tz::TimeZone;
use ralphloop_agent::client::Format;
use ralphloop_agent::decoder::{Clock, Decoder, Ending, Errand, LOOP_AFTER, ProcessEnd};
use ralphloop_agent::event::{AgentEvent, Stream};
use ralphloop_core::evidence::AgentReport;
use ralphloop_core::ids::StoryId;
use ralphloop_core::plan::{Plan, Scheme, WorkState};
use ralphloop_core::signal::SignalGrammar;
use ralphloop_core::units::Timestamp;
use ralphloop_spec::{Reading, SpecFiles, SpecText, Written, apply, check, convert, mark_done, mend, read, reconcile};

/// Items of a file that are marked, at most: the first ones show what the others would.
const MARKED: usize = 6;

/// What an agent is asked.
const PROMPT: &str = "Do the task.\nSay <promise>COMPLETE</promise>.";

/// So many bytes of a stream come on the standard error too.
const ON_STDERR: usize = 64;

/// A reader of work: it reads or refuses, and what it reads can be marked and put back without touching anything else.
pub fn reader(scheme: Scheme, data: &[u8]) {
    let findings = check(&files(scheme, data));
    mended(scheme, data);
    let reading = match read(&files(scheme, data)) {
        Ok(reading) => reading,
        Err(error) => {
            assert!(findings.iter().any(|finding| finding.message == error.message), "{error}: {findings:?}");
            return;
        }
    };
    // One at a time: all of them in each run would cost nine tenths of the runs.
    converted(&reading, Scheme::ALL[data.len() % Scheme::ALL.len()]);
    let plan = &reading.plan;
    let ids = plan
        .stories
        .iter()
        .flat_map(|story| std::iter::once(story.id.as_str()).chain(story.tasks.iter().map(|task| task.id.as_str())));
    for id in ids.take(MARKED) {
        mark(scheme, data, id, plan);
    }
    for story in plan.stories.iter().take(MARKED) {
        landing(scheme, data, &story.id, plan);
    }
}

fn files(scheme: Scheme, data: &[u8]) -> SpecFiles {
    let mut files = SpecFiles::single(scheme, SpecText::new(main_file(scheme), data));
    if scheme == Scheme::OpenSpec {
        for path in ["specs/a/spec.md", "openspec/config.yaml", "proposal.md", "part/tasks.md"] {
            files.beside.push(SpecText::new(path, data));
        }
    }
    files
}

fn main_file(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::Prd => "prd.json",
        Scheme::Yaml => "tasks.yaml",
        Scheme::Beads => "issues.jsonl",
        Scheme::GitHub => "issues.json",
        _ => "work/tasks.md",
    }
}

fn again(scheme: Scheme, data: &[u8]) -> Reading {
    read(&SpecFiles::single(scheme, SpecText::new(main_file(scheme), data))).expect("what was written can be read")
}

/// What was mended reads as before, if it could be read before, and there is nothing more to mend.
fn mended(scheme: Scheme, data: &[u8]) {
    let before = files(scheme, data);
    let Some(mended) = mend(&before) else { return };
    let edits: Vec<_> = mended.mends.iter().map(|mend| mend.edit.clone()).collect();
    assert!(apply(data, &edits).as_deref() == Ok(&mended.bytes));
    let after = files(scheme, &mended.bytes);
    if let Ok(reading) = read(&before) {
        assert_eq!(reading.plan.stories, read(&after).expect("what could be read can be read").plan.stories);
    }
}

/// Another format has the same stories, done or not, or there is no file.
fn converted(before: &Reading, to: Scheme) {
    let Ok(converted) = convert(before, to) else { return };
    let after = match &converted.written {
        Written::File(text) => again(to, text.as_bytes()).plan,
        Written::Folder(files) => {
            let mut stories = files.iter().filter(|file| file.path.ends_with(".md")).cloned();
            let main = stories.next().expect("a folder with stories");
            let work = SpecFiles { more: stories.collect(), folder: Some("f".into()), ..SpecFiles::single(to, main) };
            read(&work).expect("what was written can be read").plan
        }
    };
    let done =
        |plan: &Plan| plan.stories.iter().filter(|story| story.state == WorkState::Done && !story.optional).count();
    assert!(done(&before.plan) >= done(&after));
    for loss in converted.losses {
        assert!(!loss.to_string().is_empty());
    }
}

/// A mark changes the bytes of its token only, and marking again changes nothing.
fn mark(scheme: Scheme, data: &[u8], id: &str, before: &Plan) {
    let Ok(edits) = mark_done(scheme, data, id) else { return };
    let marked = apply(data, &edits).expect("edits fit the bytes they were made for");
    // A text in quotes may go on over blank lines.
    let words = |text: &str| text.split_whitespace().map(str::len).sum::<usize>();
    assert!(edits.iter().all(|edit| words(&edit.remove) <= 64 || !edit.remove.contains('\n')), "{edits:?}");
    assert_eq!(mark_done(scheme, &marked, id).expect("a marked item can be marked"), Vec::new());
    let after = again(scheme, &marked).plan;
    assert_eq!(before.stories.len(), after.stories.len());
    for (old, new) in before.stories.iter().zip(&after.stories) {
        assert_eq!((&old.id, &old.title, &old.deps), (&new.id, &new.title, &new.deps));
    }
}

/// What an agent ticks of other stories does not count, and a story that landed is done.
fn landing(scheme: Scheme, data: &[u8], own: &StoryId, before: &Plan) {
    let mut now = data.to_vec();
    for story in before.stories.iter().filter(|story| story.id != *own).take(2) {
        if let Ok(edits) = mark_done(scheme, &now, story.id.as_str()) {
            now = apply(&now, &edits).expect("edits fit the bytes they were made for");
        }
    }
    for landed in [false, true] {
        let out = reconcile(scheme, data, Some(&now), own, landed);
        let after = again(scheme, &out.bytes).plan;
        for (old, new) in before.stories.iter().zip(&after.stories) {
            let may_change = landed && old.id == *own;
            assert!(may_change || (old.state == WorkState::Done) == (new.state == WorkState::Done), "{}", old.id);
        }
    }
    let kept = reconcile(scheme, data, Some(data), own, false);
    assert!(kept.bytes == data, "nothing happened and something was changed");
}

/// A decoder of an agent's output: the same however the stream is cut, and bounded.
pub fn stream(format: Format, data: &[u8]) {
    read_twice(data, || Decoder::new(format, PROMPT, LOOP_AFTER));
}

/// The same of an agent that is talked with, whatever it says: it is answered in whole messages, and no more often than it spoke.
pub fn conversation(data: &[u8]) {
    stream(Format::Acp, data);
    let errand = || Errand { prompt: PROMPT.to_owned(), folder: "/work".to_owned() };
    let replies = read_twice(data, || Decoder::talking(errand(), LOOP_AFTER));
    let lines = replies.split_inclusive(|byte| *byte == b'\n');
    assert!(lines.clone().all(|line| line.ends_with(b"\n")), "half a message");
    let lines_of_data = data.iter().filter(|byte| **byte == b'\n').count() + 1;
    assert!(lines.count() <= 1 + lines_of_data, "more answers than questions");
}

/// Reads a stream whole and in pieces; what is to be said to the agent is the same, too.
fn read_twice(data: &[u8], decoder: impl Fn() -> Decoder) -> Vec<u8> {
    let whole = decoded(decoder(), data, data.len().max(1));
    let pieces = decoded(decoder(), data, 1 + data.first().copied().unwrap_or(0) as usize % 7);
    assert_eq!(whole, pieces);
    let (_, replies, report) = whole;
    assert!(report.last_words.len() <= 1100, "{} bytes of last words", report.last_words.len());
    replies
}

fn decoded(mut decoder: Decoder, data: &[u8], piece: usize) -> (Vec<AgentEvent>, Vec<u8>, AgentReport) {
    let mut events = Vec::new();
    let mut replies = decoder.replies();
    decoder.push(Stream::Stderr, &data[..data.len().min(ON_STDERR)], &mut events);
    for bytes in data.chunks(piece) {
        decoder.push(Stream::Stdout, bytes, &mut events);
        replies.extend(decoder.replies());
        assert!(decoder.farewell().is_empty() || decoder.farewell().ends_with(b"\n"), "half a farewell");
    }
    let clock = Clock { now: Timestamp(1_760_000_000_000), zone: TimeZone::UTC };
    let ending = Ending {
        process: ProcessEnd::Exited { code: i32::from(data.len() % 2 == 1) },
        story: &StoryId::from("s1"),
        grammar: &SignalGrammar::default(),
        clock: &clock,
        took: Duration::from_secs(1),
        sign_in: None,
    };
    let report = decoder.finish(ending, &mut events);
    (events, replies, report)
}
