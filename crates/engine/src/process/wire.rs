//! What an orchestrator, its cradle and a supervisor say to each other.
//!
//! To the cradle goes one byte a call, which says how firmly the child is held, and with it the descriptors that whoever
//! holds it is given: a control socket, and the child's streams. On the control socket comes first one [`Request`]: the length of the rest (32 bits, little endian), and
//! the rest: counted byte strings, since arguments, paths and variables need not be text. From then on one JSON object a
//! line: [`Command`]s one way, [`Status`] the other. The end of a socket means that the other side is gone.
use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;

use rustix::process::Pid;
use serde::{Deserialize, Serialize};

use super::tree;
use super::{Excess, Ownership, Resources};
use crate::descriptors;
use crate::sandbox::Way;

/// The longest request, in bytes; the kernel takes no more arguments than a few MiB either.
const LONGEST_REQUEST: usize = 64 * 1024 * 1024;

/// What to start. The whole environment is given, nothing is inherited.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) program: OsString,
    pub(super) args: Vec<OsString>,
    pub(super) cwd: PathBuf,
    pub(super) env: Vec<(OsString, OsString)>,
    /// How much of the machine it may use.
    pub(super) resources: Resources,
    /// Where it is confined, and who sees to that.
    pub(super) way: Way,
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub(super) enum Status {
    /// The first word of a supervisor: its own number.
    Here { pid: i32 },
    /// The program runs; `pid` is also its group.
    Started { pid: i32, start_time: u64 },
    /// The system refused to start it, with this error number.
    Failed { errno: i32 },
    /// It could not be confined, and was not started.
    NotConfined { why: String },
    /// It uses too much of the machine, and is being ended.
    Exceeded { excess: Excess },
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

impl Status {
    /// The program runs.
    pub(super) fn started(child: Pid) -> Self {
        let start_time = tree::look(child).map_or(0, |row| row.start_time);
        Self::Started { pid: child.as_raw_nonzero().get(), start_time }
    }

    /// It does not.
    pub(super) fn failed(error: &io::Error) -> Self {
        Self::Failed { errno: error.raw_os_error().unwrap_or(rustix::io::Errno::IO.raw_os_error()) }
    }
}

impl Request {
    /// The program with its arguments and its environment, in its folder.
    pub(super) fn command(&self) -> std::process::Command {
        let mut command = std::process::Command::new(self.found().as_deref().unwrap_or(&self.program));
        command.arg0(&self.program).args(&self.args).current_dir(&self.cwd);
        command.env_clear().envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Where a program is that is named without a path. The system would try to start it in one folder after the other;
    /// nothing where it is left to say what is wrong.
    fn found(&self) -> Option<OsString> {
        if self.program.as_bytes().contains(&b'/') {
            return None;
        }
        let (_, path) = self.env.iter().find(|(name, _)| name == "PATH")?;
        for folder in std::env::split_paths(path) {
            // A relative one counts from where the program is to run.
            let file = folder.is_absolute().then(|| folder.join(&self.program))?;
            if file.is_file() && rustix::fs::access(&file, rustix::fs::Access::EXEC_OK).is_ok() {
                return Some(file.into_os_string());
            }
        }
        None
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        let mut put = |bytes: &OsStr| {
            body.extend_from_slice(&length(bytes.len()));
            body.extend_from_slice(bytes.as_bytes());
        };
        // One that could not be written is malformed there, and nothing is started.
        put(OsStr::from_bytes(&self.way.encode().unwrap_or_default()));
        put(OsStr::from_bytes(&serde_json::to_vec(&self.resources).unwrap_or_default()));
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
        let way = Way::decode(next()?.as_bytes())?;
        let resources = serde_json::from_slice(next()?.as_bytes()).ok()?;
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
        Some(Self { program, args, cwd, env, resources, way })
    }
}

/// More than 4 GiB in one string is cut here and refused by the other side as malformed.
fn length(count: usize) -> [u8; 4] {
    u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes()
}

/// What whoever holds a child is given: how firmly, the control socket, and the streams that the child will have.
#[derive(Debug)]
pub(super) struct Ends {
    pub(super) ownership: Ownership,
    pub(super) control: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
    /// `None`: the child reads nothing.
    pub(super) stdin: Option<OwnedFd>,
    /// Where the doors of the child's network are handed to; `None` if it has none.
    pub(super) doors: Option<OwnedFd>,
}

/// Bits of the byte that goes with [`Ends`]: which of the last two there are, and how firmly the child is held.
const WITH_STDIN: u8 = 1;
const WITH_DOORS: u8 = 2;
const SUPERVISED: u8 = 4;

impl Ends {
    /// Asks the cradle to hold a child with these.
    pub(super) fn send(&self, cradle: BorrowedFd<'_>) -> io::Result<()> {
        let streams = [&self.control, &self.stdout, &self.stderr].into_iter().chain(&self.stdin).chain(&self.doors);
        let fds: Vec<BorrowedFd<'_>> = streams.map(OwnedFd::as_fd).collect();
        let bit = |is_so: bool, bit: u8| if is_so { bit } else { 0 };
        let byte = bit(self.stdin.is_some(), WITH_STDIN)
            | bit(self.doors.is_some(), WITH_DOORS)
            | bit(self.ownership == Ownership::Supervised, SUPERVISED);
        descriptors::send(cradle, byte, &fds)
    }

    /// What the cradle is asked for; `None` once nobody is there to ask.
    pub(super) fn receive(asked: BorrowedFd<'_>) -> io::Result<Option<Self>> {
        let Some((byte, fds)) = descriptors::receive(asked)? else { return Ok(None) };
        let ownership = if byte & SUPERVISED == 0 { Ownership::Light } else { Ownership::Supervised };
        let mut fds = fds.into_iter();
        let (Some(control), Some(stdout), Some(stderr)) = (fds.next(), fds.next(), fds.next()) else {
            return Err(malformed());
        };
        let mut optional = |bit: u8| (byte & bit != 0).then(|| fds.next().ok_or_else(malformed)).transpose();
        let (stdin, doors) = (optional(WITH_STDIN)?, optional(WITH_DOORS)?);
        Ok(Some(Self { ownership, control, stdout, stderr, stdin, doors }))
    }
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "malformed request")
}

/// Reads the whole request; `None` if the other side was gone before it was complete.
pub(super) fn receive(socket: &mut UnixStream) -> io::Result<Option<Request>> {
    let mut count = [0; 4];
    match socket.read_exact(&mut count) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let count = usize::try_from(u32::from_le_bytes(count)).map_err(|_| malformed())?;
    if count > LONGEST_REQUEST {
        return Err(malformed());
    }
    let mut body = vec![0; count];
    match socket.read_exact(&mut body) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    Request::decode(&body).map(Some).ok_or_else(malformed)
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
    use crate::sandbox::{Confinement, Network, Placed, What};
    use std::io::Write as _;

    #[test]
    fn a_request_of_any_bytes_arrives_as_it_was_sent_and_the_streams_with_it() {
        let request = Request {
            program: OsString::from_vec(b"/bin/\xff".to_vec()),
            args: vec!["".into(), "a b\n".into(), OsString::from_vec(vec![0xfe])],
            cwd: "/tmp/日本".into(),
            env: vec![("EMPTY".into(), "".into()), ("A".into(), "b=c".into())],
            resources: Resources { memory: Some(1 << 40), ..Resources::default() },
            way: Way::GoesIn(Confinement {
                placed: vec![Placed {
                    path: OsString::from_vec(b"/a\xff".to_vec()),
                    what: What::From { source: "/b".into(), writable: true },
                }],
                network: Network::Own,
            }),
        };
        let (asking, asked) = UnixStream::pair().unwrap();
        for (fed, ownership) in [(true, Ownership::Light), (false, Ownership::Supervised)] {
            let (mut ours, theirs) = UnixStream::pair().unwrap();
            let (mut out, stdout) = io::pipe().unwrap();
            let (mut err, stderr) = io::pipe().unwrap();
            let (reader, mut writer) = io::pipe().unwrap();
            let stdin = fed.then(|| OwnedFd::from(reader));
            let (mut outside, door) = io::pipe().unwrap();
            let doors = (!fed).then(|| OwnedFd::from(door));
            let ends =
                Ends { ownership, control: theirs.into(), stdout: stdout.into(), stderr: stderr.into(), stdin, doors };
            ends.send(asking.as_fd()).unwrap();
            drop(ends);
            ours.write_all(&request.encode()).unwrap();
            let there = Ends::receive(asked.as_fd()).unwrap().unwrap();
            assert_eq!(there.ownership, ownership);
            assert_eq!(receive(&mut UnixStream::from(there.control)).unwrap().unwrap(), request);
            std::fs::File::from(there.stdout).write_all(b"out").unwrap();
            std::fs::File::from(there.stderr).write_all(b"err").unwrap();
            let mut read = (String::new(), String::new());
            out.read_to_string(&mut read.0).unwrap();
            err.read_to_string(&mut read.1).unwrap();
            assert_eq!(read, ("out".to_owned(), "err".to_owned()));
            assert_eq!(there.stdin.is_some(), fed);
            assert_eq!(there.doors.is_some(), !fed);
            if let Some(doors) = there.doors {
                std::fs::File::from(doors).write_all(b"door").unwrap();
                let mut read = String::new();
                outside.read_to_string(&mut read).unwrap();
                assert_eq!(read, "door");
            }
            if let Some(stdin) = there.stdin {
                writer.write_all(b"x").unwrap();
                let mut byte = [0];
                std::fs::File::from(stdin).read_exact(&mut byte).unwrap();
                assert_eq!(&byte, b"x");
            }
        }
        drop(asking);
        assert!(Ends::receive(asked.as_fd()).unwrap().is_none());
    }

    #[test]
    fn a_cut_request_is_refused() {
        let request = Request {
            program: "a".into(),
            args: Vec::new(),
            cwd: "/".into(),
            env: Vec::new(),
            resources: Resources::default(),
            way: Way::Free,
        };
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
