//! The program `scripted-claude`: takes a prompt as Claude Code does, records how it was called and plays a script.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::script::{AgentScript, Call, SESSION, Step, assistant};

/// The version it claims to be.
const VERSION: &str = "2.1.332 (Claude Code)";
/// How often a file that somebody else makes is looked for.
const LOOK: Duration = Duration::from_millis(10);

/// How one call came in.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Recorded {
    /// Which call of all, from 1.
    pub number: usize,
    /// The text of the script that its prompt named; empty if none.
    pub story: String,
    /// The arguments, without the program.
    pub argv: Vec<String>,
    /// All of stdin.
    pub stdin: String,
    /// The environment.
    pub env: BTreeMap<String, String>,
    /// The working directory.
    pub cwd: PathBuf,
    /// The process id.
    pub pid: u32,
}

impl Recorded {
    /// What the agent was told, by arguments and stdin.
    pub fn prompt(&self) -> String {
        format!("{}\n{}", self.argv.join("\n"), self.stdin)
    }
}

/// Where a call's record lies below the folder of calls.
pub(crate) fn record_path(calls: &Path, number: usize) -> PathBuf {
    calls.join(number.to_string()).join("record.json")
}

/// The whole program. Its arguments are the script's file, the folder for records, and then those of the agent.
pub fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(script), Some(calls)) = (arguments.next(), arguments.next()) else {
        return complain("usage: scripted-claude SCRIPT CALLS-FOLDER [ARGUMENT…]");
    };
    let argv: Vec<String> = arguments.collect();
    if argv.iter().any(|a| a == "--version" || a == "-v") {
        return if writeln!(io::stdout(), "{VERSION}").is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    match play(Path::new(&script), Path::new(&calls), argv) {
        Ok(code) => code,
        Err(error) => complain(&format!("scripted-claude: {error}")),
    }
}

fn complain(message: &str) -> ExitCode {
    drop(writeln!(io::stderr(), "{message}"));
    ExitCode::from(97)
}

fn play(script: &Path, calls: &Path, argv: Vec<String>) -> io::Result<ExitCode> {
    let mut stdin = String::new();
    io::stdin().read_to_string(&mut stdin)?;
    let script: AgentScript = serde_json::from_slice(&fs::read(script)?)?;
    let chosen = script.select(&format!("{}\n{stdin}", argv.join("\n")));

    let (number, folder) = claim_number(calls)?;
    let record = Recorded {
        number,
        story: chosen.when.clone(),
        argv,
        stdin,
        env: std::env::vars_os().map(|(k, v)| (lossy(&k), lossy(&v))).collect(),
        cwd: std::env::current_dir()?,
        pid: std::process::id(),
    };
    // Which call of its story this is, is read before the own record is there.
    let earlier = (1..number).filter(|&n| story_of(calls, n).as_deref() == Some(&chosen.when)).count();
    let draft = folder.join("draft.json");
    fs::write(&draft, serde_json::to_vec_pretty(&record)?)?;
    fs::rename(&draft, record_path(calls, number))?;

    Player::default().play(&chosen.call(earlier + 1))
}

fn lossy(text: &std::ffi::OsStr) -> String {
    text.to_string_lossy().into_owned()
}

/// The next free number; making its folder is what takes it.
fn claim_number(calls: &Path) -> io::Result<(usize, PathBuf)> {
    let mut number = 1;
    loop {
        let folder = calls.join(number.to_string());
        match fs::create_dir(&folder) {
            Ok(()) => return Ok((number, folder)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
        }
    }
}

fn story_of(calls: &Path, number: usize) -> Option<String> {
    let record: Recorded = serde_json::from_slice(&fs::read(record_path(calls, number)).ok()?).ok()?;
    Some(record.story)
}

#[derive(Default)]
struct Player {
    spoke: bool,
}

impl Player {
    fn play(mut self, call: &Call) -> io::Result<ExitCode> {
        for step in &call.steps {
            match step {
                Step::Write { path, text } => {
                    if let Some(parent) = Path::new(path).parent() {
                        fs::create_dir_all(parent)?;
                    }
                    fs::write(path, text)?;
                }
                Step::Remove { path } => fs::remove_file(path)?,
                Step::Tick { path, text } => tick(Path::new(path), text)?,
                Step::Shell { command } => {
                    Command::new("sh").args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::null()).status()?;
                }
                Step::Emit { event } => self.say(&event.to_string())?,
                Step::Raw { line } => line_out(line)?,
                Step::Stderr { text } => writeln!(io::stderr(), "{text}")?,
                Step::Flood { bytes } => self.flood(*bytes)?,
                Step::Touch { path } => fs::write(path, "")?,
                Step::WaitFor { path } => wait_for(Path::new(path)),
                Step::IgnoreTerm => ignore_term()?,
                Step::LeaveChild { holds_stdout } => leave_child(*holds_stdout)?,
                Step::Hang => loop {
                    thread::park();
                },
                Step::Exit { code } => return Ok(ExitCode::from(*code)),
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Writes an event, before the first one the client's greeting.
    fn say(&mut self, event: &str) -> io::Result<()> {
        if !self.spoke {
            self.spoke = true;
            let cwd = std::env::current_dir()?;
            let init = json!({
                "type": "system", "subtype": "init", "cwd": cwd, "session_id": SESSION, "tools": ["Bash", "Write"],
                "mcp_servers": [], "model": "scripted-model", "permissionMode": "bypassPermissions", "apiKeySource": "none",
                "claude_code_version": "2.1.332",
            });
            line_out(&init.to_string())?;
        }
        line_out(event)
    }

    fn flood(&mut self, bytes: usize) -> io::Result<()> {
        const PIECE: usize = 64 * 1024;
        let event = assistant(&json!({"type": "text", "text": "x".repeat(PIECE)})).to_string();
        (0..bytes.div_ceil(PIECE)).try_for_each(|_| self.say(&event))
    }
}

fn line_out(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

fn tick(path: &Path, text: &str) -> io::Result<()> {
    let old = fs::read_to_string(path)?;
    let new: String = old
        .split_inclusive('\n')
        .map(|line| if line.contains(text) { line.replacen("[ ]", "[x]", 1) } else { line.to_owned() })
        .collect();
    fs::write(path, new)
}

fn wait_for(path: &Path) {
    while !path.exists() {
        thread::sleep(LOOK);
    }
}

/// A handler that only sets a flag nobody reads is how a signal is ignored without unsafe code.
fn ignore_term() -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    Ok(())
}

fn leave_child(holds_stdout: bool) -> io::Result<()> {
    let out = if holds_stdout { Stdio::inherit() } else { Stdio::null() };
    let mut child = Command::new("setsid");
    child.args(["sleep", "1000000"]).stdin(Stdio::null()).stdout(out).stderr(Stdio::null());
    // Left behind on purpose: whoever started this agent has to find it.
    drop(child.spawn()?);
    Ok(())
}
