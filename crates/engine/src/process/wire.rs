//! What an orchestrator and its supervisor say to each other over the control socket.
//!
//! First one [`Request`]: a byte that says whether the descriptor of the child's standard input travels with it, the
//! length of the rest (32 bits, little endian), and the rest: counted byte strings, since arguments, paths and variables
//! need not be text. From then on one JSON object a line: [`Command`]s one way, [`Status`] the other. The end of the
//! socket means that the other side is gone.
use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice, IoSliceMut, Read as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};

/// The longest request, in bytes; the kernel takes no more arguments than a few MiB either.
const LONGEST_REQUEST: usize = 64 * 1024 * 1024;

/// What to start. The whole environment is given, nothing is inherited.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) program: OsString,
    pub(super) args: Vec<OsString>,
    pub(super) cwd: PathBuf,
    pub(super) env: Vec<(OsString, OsString)>,
}

/// What the orchestrator wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub(super) enum Command {
    /// TERM to all, KILL to who is left after the grace.
    End { grace_ms: u64 },
    /// KILL to all.
    Kill,
}

/// What the supervisor has to tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub(super) enum Status {
    /// The program runs; `pid` is also its group and its session.
    Started { pid: i32, start_time: u64 },
    /// The system refused to start it, with this error number.
    Failed { errno: i32 },
    /// The signal to end has been sent.
    Ending,
    /// The program has ended; `raw` is its wait status.
    Exited { raw: i32 },
    /// The program has ended and this many of its descendants live.
    Leaking { count: usize },
    /// Some can't be ended: they wait uninterruptibly or belong to somebody else.
    Stuck { count: usize },
    /// Nobody is left; this many had to be ended after the program itself was gone.
    Gone { ended: usize },
}

impl Request {
    /// Everything after the first byte.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        let mut put = |bytes: &OsStr| {
            body.extend_from_slice(&length(bytes.len()));
            body.extend_from_slice(bytes.as_bytes());
        };
        put(&self.program);
        put(self.cwd.as_os_str());
        for (name, value) in &self.env {
            put(name);
            put(value);
        }
        // A variable has a name, so an empty one ends the list.
        put(OsStr::new(""));
        for arg in &self.args {
            put(arg);
        }
        let mut frame = length(body.len()).to_vec();
        frame.append(&mut body);
        frame
    }

    fn decode(body: &[u8]) -> Option<Self> {
        let mut rest = body;
        let mut next = || -> Option<OsString> {
            let (count, after) = rest.split_at_checked(4)?;
            let count = usize::try_from(u32::from_le_bytes(count.try_into().ok()?)).ok()?;
            let (bytes, after) = after.split_at_checked(count)?;
            rest = after;
            Some(OsString::from_vec(bytes.to_vec()))
        };
        let program = next()?;
        let cwd = next()?.into();
        let mut env = Vec::new();
        loop {
            let name = next()?;
            if name.is_empty() {
                break;
            }
            env.push((name, next()?));
        }
        let args = std::iter::from_fn(next).collect();
        Some(Self { program, args, cwd, env })
    }
}

/// More than 4 GiB in one string is cut here and refused by the other side as malformed.
fn length(count: usize) -> [u8; 4] {
    u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes()
}

/// Sends the first byte, and with it the child's standard input if it has one. Never blocks on a fresh socket.
pub(super) fn send_stdin(socket: BorrowedFd<'_>, stdin: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds = stdin.as_slice();
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::Error::other("no room for a descriptor"));
    }
    sendmsg(socket, &[IoSlice::new(&[u8::from(stdin.is_some())])], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Reads the whole request; `None` if the other side was gone before it was complete.
pub(super) fn receive(socket: &mut UnixStream) -> io::Result<Option<(Request, Option<OwnedFd>)>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut first = [0_u8];
    let received = recvmsg(socket.as_fd(), &mut [IoSliceMut::new(&mut first)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    if received.bytes == 0 {
        return Ok(None);
    }
    let stdin = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    let malformed = || io::Error::new(io::ErrorKind::InvalidData, "malformed request");
    if (first[0] == 1) != stdin.is_some() {
        return Err(malformed());
    }
    let mut count = [0; 4];
    socket.read_exact(&mut count)?;
    let count = usize::try_from(u32::from_le_bytes(count)).map_err(|_| malformed())?;
    if count > LONGEST_REQUEST {
        return Err(malformed());
    }
    let mut body = vec![0; count];
    socket.read_exact(&mut body)?;
    Ok(Some((Request::decode(&body).ok_or_else(malformed)?, stdin)))
}

/// One message as a line.
pub(super) fn line<M: Serialize>(message: &M) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

/// Takes the first whole line out of what has been read.
pub(super) fn take_line<M: serde::de::DeserializeOwned>(inbox: &mut Vec<u8>) -> Option<io::Result<M>> {
    let end = inbox.iter().position(|byte| *byte == b'\n')?;
    let line: Vec<u8> = inbox.drain(..=end).collect();
    Some(serde_json::from_slice(&line).map_err(io::Error::from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn a_request_of_any_bytes_arrives_as_it_was_sent_and_its_input_with_it() {
        let request = Request {
            program: OsString::from_vec(b"/bin/\xff".to_vec()),
            args: vec!["".into(), "a b\n".into(), OsString::from_vec(vec![0xfe])],
            cwd: "/tmp/日本".into(),
            env: vec![("EMPTY".into(), "".into()), ("A".into(), "b=c".into())],
        };
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        let (reader, mut writer) = io::pipe().unwrap();
        send_stdin(ours.as_fd(), Some(reader.as_fd())).unwrap();
        ours.write_all(&request.encode()).unwrap();
        let (received, stdin) = receive(&mut theirs).unwrap().unwrap();
        assert_eq!(received, request);
        writer.write_all(b"x").unwrap();
        let mut byte = [0];
        std::fs::File::from(stdin.unwrap()).read_exact(&mut byte).unwrap();
        assert_eq!(&byte, b"x");
    }

    #[test]
    fn a_cut_request_is_refused() {
        let request = Request { program: "a".into(), args: Vec::new(), cwd: "/".into(), env: Vec::new() };
        let frame = request.encode();
        for end in 4..frame.len() {
            assert_eq!(Request::decode(&frame[4..end]), None, "cut at {end}");
        }
        assert_eq!(Request::decode(&frame[4..]), Some(request));
    }

    #[test]
    fn lines_are_taken_one_by_one_however_they_arrive() {
        let mut inbox = line(&Status::Exited { raw: 9 }).unwrap();
        let second = line(&Status::Gone { ended: 2 }).unwrap();
        inbox.extend_from_slice(&second[..5]);
        assert_eq!(take_line::<Status>(&mut inbox).unwrap().unwrap(), Status::Exited { raw: 9 });
        assert!(take_line::<Status>(&mut inbox).is_none());
        inbox.extend_from_slice(&second[5..]);
        assert_eq!(take_line::<Status>(&mut inbox).unwrap().unwrap(), Status::Gone { ended: 2 });
    }
}
