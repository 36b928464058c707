//! A long text of lines, such as a diff, seen through a window: only the chunks around the window are held, however long
//! it is. Lines are cut, not wrapped: a diff is read by its columns.

use std::collections::{BTreeMap, BTreeSet};

use ralphloop_core::units::Timestamp;

use crate::model::Tone;
use crate::port::{CHUNK, Request, SheetId, SheetMark};
use crate::text;

/// So many chunks are kept at most.
const KEPT: usize = 8;

/// The text and the window on it.
#[derive(Debug)]
pub(crate) struct Sheet {
    pub(crate) id: SheetId,
    /// When it was asked for last: that of an attempt under way grows old.
    pub(crate) as_of: Timestamp,
    /// `None` while it is made; an error in words.
    pub(crate) extent: Option<Result<u64, String>>,
    /// Where each file's part begins.
    pub(crate) marks: Vec<SheetMark>,
    /// Lines that list the files, before the parts.
    pub(crate) listed: u64,
    /// The first line that is seen.
    pub(crate) top: u64,
    height: u64,
    /// Which version of the text the chunks are of.
    version: u64,
    chunks: BTreeMap<u64, Vec<String>>,
    asked: BTreeSet<u64>,
}

impl Sheet {
    pub(crate) fn new(id: SheetId, now: Timestamp) -> Self {
        Self {
            id,
            as_of: now,
            extent: None,
            marks: Vec::new(),
            listed: 0,
            top: 0,
            height: 0,
            version: 0,
            chunks: BTreeMap::new(),
            asked: BTreeSet::new(),
        }
    }

    /// The text was made: so many lines, listed files, and where each begins.
    pub(crate) fn made(&mut self, version: u64, made: Result<(u64, u64, Vec<SheetMark>), String>) {
        self.version = version;
        self.chunks.clear();
        self.asked.clear();
        match made {
            Ok((lines, listed, marks)) => {
                (self.extent, self.listed, self.marks) = (Some(Ok(lines)), listed, marks);
                self.scroll(0);
            }
            Err(why) => self.extent = Some(Err(why)),
        }
    }

    pub(crate) fn lines(&mut self, version: u64, chunk: u64, lines: Vec<String>) {
        if version != self.version {
            return;
        }
        self.asked.remove(&chunk);
        self.chunks.insert(chunk, lines);
        while self.chunks.len() > KEPT {
            let here = self.top / CHUNK;
            let Some(far) = self.chunks.keys().copied().max_by_key(|chunk| chunk.abs_diff(here)) else { break };
            self.chunks.remove(&far);
        }
    }

    pub(crate) fn count(&self) -> u64 {
        match &self.extent {
            Some(Ok(lines)) => *lines,
            _ => 0,
        }
    }

    pub(crate) fn scroll(&mut self, by: i64) {
        let last = self.count().saturating_sub(self.height);
        self.top = self.top.min(last).saturating_add_signed(by).min(last);
    }

    /// To the part of the file after or before the one that is seen.
    pub(crate) fn file(&mut self, forward: bool) {
        let mut lines = self.marks.iter().map(|mark| mark.line);
        let next = if forward {
            lines.find(|line| *line > self.top)
        } else {
            lines.rfind(|line| *line < self.top).or(Some(0))
        };
        if let Some(line) = next {
            self.top = line.min(self.count().saturating_sub(1));
        }
    }

    /// Makes ready what is seen in so many rows: asks for what is missing.
    pub(crate) fn settle(&mut self, height: usize, requests: &mut Vec<Request>) {
        self.height = u64::try_from(height).unwrap_or(u64::MAX);
        let end = self.top.saturating_add(self.height).min(self.count());
        if end == 0 {
            return;
        }
        for chunk in self.top / CHUNK..=end.saturating_sub(1) / CHUNK {
            if !self.chunks.contains_key(&chunk) && self.asked.insert(chunk) {
                requests.push(Request::ReadSheet { id: self.id.clone(), version: self.version, chunk });
            }
        }
    }

    /// What is seen, cut to so many columns; lines that are still being read are empty.
    pub(crate) fn seen(&self, width: usize) -> Vec<(Tone, String)> {
        let end = self.top.saturating_add(self.height).min(self.count());
        let line = |at: u64| {
            let chunk = self.chunks.get(&(at / CHUNK));
            let line = chunk.and_then(|chunk| chunk.get(usize::try_from(at % CHUNK).ok()?)).map_or("", String::as_str);
            let tone = if at < self.listed { listed_tone(line) } else { tone(line) };
            (tone, text::cut(&text::harmless(line), width).into_owned())
        };
        (self.top..end).map(line).collect()
    }

    /// The lines around the window that are held, for the clipboard.
    pub(crate) fn held(&self) -> String {
        self.seen(usize::MAX).into_iter().map(|(_, line)| line + "\n").collect()
    }
}

/// How a line of a unified diff is meant.
fn tone(line: &str) -> Tone {
    match line.as_bytes() {
        [b'd', b'i', b'f', b'f', b' ', ..] | [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => Tone::Head,
        [b'+', ..] => Tone::Good,
        [b'-', ..] => Tone::Bad,
        [b'@', b'@', ..] => Tone::Active,
        _ => Tone::Plain,
    }
}

/// How a line of the list of files is meant.
fn listed_tone(line: &str) -> Tone {
    match line.as_bytes().first() {
        Some(b'A') => Tone::Good,
        Some(b'D') => Tone::Bad,
        Some(b'M' | b'R' | b'C' | b'T') => Tone::Warn,
        _ => Tone::Head,
    }
}
