//! A transcript frame by frame: any frame can be read alone, so that a long one is seen through a window.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::{Record, TranscriptError, parse};
use crate::files::FileError;

/// Most frames are smaller than this, in bytes of the file.
const USUAL: usize = 256 << 10;

/// Reads frames at any place of a transcript, also while it is being written.
#[derive(Debug)]
pub struct Frames {
    file: File,
    path: PathBuf,
}

/// One frame.
#[derive(Debug)]
pub struct Frame {
    /// What it holds.
    pub records: Vec<Record>,
    /// Where the next one begins.
    pub end: u64,
}

impl Frames {
    /// Opens the transcript at `path`.
    pub fn open(path: &Path) -> Result<Self, TranscriptError> {
        let file = File::open(path).map_err(|e| FileError::new("read", path, e))?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// The size of the file so far.
    pub fn size(&self) -> Result<u64, TranscriptError> {
        Ok(self.file.metadata().map_err(|e| FileError::new("read", &self.path, e))?.len())
    }

    /// The frame that begins at `offset`; `None` if there is none, or only a part of one yet.
    pub fn at(&self, offset: u64) -> Result<Option<Frame>, TranscriptError> {
        let fail = |e| TranscriptError::from(FileError::new("read", &self.path, e));
        let mut bytes = Vec::new();
        loop {
            let wanted = (bytes.len() * 2).max(USUAL);
            let before = bytes.len();
            bytes.resize(wanted, 0);
            let read = self.fill(&mut bytes, before, offset).map_err(fail)?;
            bytes.truncate(read);
            if read == 0 {
                return Ok(None);
            }
            if let Ok(length) = zstd::zstd_safe::find_frame_compressed_size(&bytes)
                && let Some(frame) = bytes.get(..length)
            {
                let json = zstd::stream::decode_all(frame).map_err(fail)?;
                return Ok(Some(Frame { records: self.records(&json)?, end: offset + length as u64 }));
            }
            if read < wanted {
                // The file ends inside the frame.
                return Ok(None);
            }
        }
    }

    /// Reads on into `bytes` from `have`; returns how much there is then.
    fn fill(&self, bytes: &mut [u8], mut have: usize, offset: u64) -> io::Result<usize> {
        while have < bytes.len() {
            match self.file.read_at(&mut bytes[have..], offset + have as u64) {
                Ok(0) => break,
                Ok(read) => have += read,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(have)
    }

    fn records(&self, json: &[u8]) -> Result<Vec<Record>, TranscriptError> {
        let lines = json.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.enumerate().map(|(number, line)| parse(&self.path, number as u64 + 1, line)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use ralphloop_core::units::Timestamp;

    use super::super::{DEFAULT_MAX_BYTES, Stream, Writer};
    use super::*;

    #[test]
    fn frames_are_read_in_any_order_and_one_that_is_torn_is_not_there_yet() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t");
        let keep: super::super::Redact<'_> = &|bytes| Cow::Borrowed(bytes);
        let mut writer = Writer::create(path.clone(), keep, DEFAULT_MAX_BYTES).unwrap();
        for at in 0..5_i64 {
            writer.write(Stream::Out, format!("line {at}\n").as_bytes(), Timestamp(at)).unwrap();
            writer.flush(Timestamp(at)).unwrap();
        }
        writer.finish(Timestamp(9)).unwrap();
        let frames = Frames::open(&path).unwrap();
        let mut starts = vec![0];
        while let Some(frame) = frames.at(*starts.last().unwrap()).unwrap() {
            starts.push(frame.end);
        }
        assert_eq!((starts.len(), *starts.last().unwrap()), (6, frames.size().unwrap()));
        for at in (0..5).rev() {
            let frame = frames.at(starts[at]).unwrap().unwrap();
            assert_eq!(frame.records[0].bytes, format!("line {at}\n").into_bytes());
        }
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        assert!(Frames::open(&path).unwrap().at(starts[4]).unwrap().is_none());
    }
}
