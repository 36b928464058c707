//! What this program does when it is started under another name: the agent, and a `git` that notes the time it takes.

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;

/// Where the agent notes when it began, and how long it worked: a line `nanoseconds nanoseconds` a call.
pub(crate) const AGENT_NOTES: &str = "SPEED_AGENT_NOTES";
/// Where `git` notes its processor time: a line of microseconds a call.
pub(crate) const GIT_NOTES: &str = "SPEED_GIT_NOTES";
/// The git that is meant.
pub(crate) const REAL_GIT: &str = "SPEED_REAL_GIT";

/// Plays the role that the name stands for, if it is one.
pub(crate) fn play(name: &str) -> bool {
    match Path::new(name).file_name().and_then(|name| name.to_str()) {
        Some("agent") => agent(&std::env::args().skip(1).collect::<Vec<_>>()),
        Some("git") => git(),
        _ => return false,
    }
    true
}

/// Processor time, in microseconds.
pub(crate) fn used(who: UsageWho) -> i64 {
    getrusage(who).map_or(0, |usage| usage.user_time().num_microseconds() + usage.system_time().num_microseconds())
}

fn now() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos()
}

fn note(variable: &str, line: &str) {
    let Some(file) = std::env::var_os(variable) else { return };
    let mut file = OpenOptions::new().append(true).create(true).open(file).unwrap();
    file.write_all(line.as_bytes()).unwrap();
}

fn agent(arguments: &[String]) {
    let began = now();
    io::copy(&mut io::stdin(), &mut io::sink()).unwrap();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["work"] => {
            let mut text = String::new();
            fs::File::open("d0/f0").unwrap().read_to_string(&mut text).unwrap();
            fs::write("d0/f0", text + "one line more\n").unwrap();
            fs::write(format!("d1/new-{}", std::process::id()), "new\n").unwrap();
        }
        ["second"] => {
            std::thread::sleep(std::time::Duration::from_secs(1));
            fs::write(format!("new-{}", std::process::id()), "new\n").unwrap();
        }
        ["write", kind, bytes] => write_much(kind, bytes.parse().unwrap()),
        _ => panic!("unknown work for the agent: {arguments:?}"),
    }
    io::stdout().write_all(b"<promise>COMPLETE</promise>\n").unwrap();
    note(AGENT_NOTES, &format!("{began} {}\n", now() - began));
}

/// Writes so many bytes: `lines` of a stream, one `endless` line, or lines on `stderr`.
fn write_much(kind: &str, bytes: usize) {
    let block = match kind {
        "endless" => vec![b'x'; 1 << 20],
        "claude" => claude_lines(),
        _ => text_lines(),
    };
    let mut out: Box<dyn io::Write> = if kind == "stderr" { Box::new(io::stderr()) } else { Box::new(io::stdout()) };
    let mut written = 0;
    while written < bytes {
        out.write_all(&block).unwrap();
        written += block.len();
    }
    out.write_all(b"\n").unwrap();
}

/// About a mebibyte of words that compress as prose does.
fn text_lines() -> Vec<u8> {
    let mut text = Vec::new();
    let mut words = Words(7);
    while text.len() < 1 << 20 {
        text.extend_from_slice(words.line(12).as_bytes());
        text.push(b'\n');
    }
    text
}

/// The same as the messages of an agent's stream.
fn claude_lines() -> Vec<u8> {
    let mut text = Vec::new();
    let mut words = Words(7);
    while text.len() < 1 << 20 {
        let line = serde_json::json!({
            "type": "assistant",
            "message": {"id": "m", "role": "assistant", "content": [{"type": "text", "text": words.line(60)}]},
            "session_id": "s",
        });
        text.extend_from_slice(line.to_string().as_bytes());
        text.push(b'\n');
    }
    text
}

struct Words(u64);

impl Words {
    fn line(&mut self, words: usize) -> String {
        (0..words).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }

    fn word(&mut self) -> String {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        format!("w{:x}", (self.0 >> 33) % 5000)
    }
}

fn git() {
    let real = std::env::var_os(REAL_GIT).unwrap();
    let status = Command::new(real).arg0("git").args(std::env::args_os().skip(1)).status().unwrap();
    note(GIT_NOTES, &format!("{}\n", used(UsageWho::RUSAGE_SELF) + used(UsageWho::RUSAGE_CHILDREN)));
    #[expect(clippy::exit, reason = "it stands for the program that it ran")]
    std::process::exit(status.code().unwrap_or(128));
}
