//! State files of other systems, made from the journal of a run: those of the three loops of Flight Rules, a PRD's status,
//! progress, a session log, a failure log. They are exports: whoever deletes one loses nothing.

pub(crate) mod back;
pub(crate) mod chronicle;
mod design;
pub(crate) mod failures;
pub(crate) mod live;
pub(crate) mod prd_status;
mod progress;
mod session_log;
pub(crate) mod states;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use ralphloop_core::graph;
use ralphloop_core::ids::RunId;
use ralphloop_core::plan::Story;
use ralphloop_core::run::StoryState;
use ralphloop_engine::files::{self, Access, FileError};

use crate::view::rfc3339;
use chronicle::Chronicle;
use failures::FailureLog;
use prd_status::PrdStatus;
use states::{ContinuousSession, RalphLoop, TaskLoop};

const PRD_STATUS: &str = "prd-status.json";
/// The name of the part of a file that holds what was learned.
const LEARNINGS: &str = "learnings";

/// What all files of a run are told from.
#[derive(Debug, Clone, Copy)]
struct Telling<'a> {
    chronicle: &'a Chronicle,
}

impl<'a> Telling<'a> {
    /// `20260117_1400`, when the run began.
    fn stamp(self) -> String {
        let time = rfc3339(self.chronicle.run.started_at());
        let digits: String = time.chars().filter(char::is_ascii_digit).collect();
        format!("{}_{}", digits.get(..8).unwrap_or_default(), digits.get(8..12).unwrap_or_default())
    }

    /// Where the session log is, beside the other files.
    fn session_log(self) -> String {
        format!("session_logs/{}_session.md", self.stamp())
    }

    fn failure_log(self, end: &str) -> String {
        format!("ralph_logs/{}_ralph.{end}", self.stamp())
    }

    /// The stories that are left to do, in the order in which they would be taken.
    fn open(self) -> impl Iterator<Item = &'a Story> {
        let run = &self.chronicle.run;
        graph::in_rank(run.plan()).into_iter().filter(|story| {
            run.record(&story.id)
                .is_some_and(|r| r.selected && !r.state.is_on_branch() && r.state != StoryState::Skipped)
        })
    }

    fn learnings(self) -> impl Iterator<Item = &'a str> {
        self.chronicle.run.learnings().ranked(None).into_iter()
    }
}

/// How much of a file is ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ours {
    /// All of it.
    Whole,
    /// All of it, where our mark is in it; one without that is somebody's.
    Marked,
    /// The part between our marks, which stands on top of others where there was none.
    Top,
    /// The part between our marks, which stands at the end where there was none.
    End,
    /// What it says of the stories of this run.
    Stories,
}

/// One file, or the parts of one.
#[derive(Debug)]
struct StateFile {
    path: String,
    /// The first line of a new file.
    heading: &'static str,
    /// The name of its part, if only a part is ours.
    part: String,
    ours: Ours,
    text: String,
}

/// Why a file was not written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExportError {
    /// The system refuses.
    #[error(transparent)]
    File(#[from] FileError),
    /// It is somebody's, or that of another run.
    #[error(
        "{} is there and does not tell of this run: somebody else wrote it, or a run that began in the same minute; it \
         stays as it is",
        .0.display()
    )]
    Foreign(PathBuf),
    /// It, or a folder between it and the folder of state files, is a link.
    #[error("{} is a link, or lies behind one, so that nothing is written there; take it away, then export again", .0.display())]
    Linked(PathBuf),
    /// It cannot be read as what it is.
    #[error("{} cannot be read ({why}); mend it or move it away, then export again", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The text cannot be made.
    #[error("a state file could not be made: {0}")]
    Json(#[from] serde_json::Error),
}

/// The mark that says of which run a text tells.
fn mark_of(run: &RunId) -> String {
    format!("<!-- ralphloop: {run} -->")
}

fn pretty(value: &impl serde::Serialize) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(value).map(|text| text + "\n")
}

/// All files of a run, by their paths below the folder of state files.
fn files_of(chronicle: &Chronicle) -> Result<Vec<StateFile>, ExportError> {
    let told = Telling { chronicle };
    let run = chronicle.run.id();
    let whole = |path: &str, text| StateFile {
        path: path.to_owned(),
        heading: "",
        part: String::new(),
        ours: Ours::Whole,
        text,
    };
    let part = |path: &str, heading, part: &str, ours, text| StateFile {
        path: path.to_owned(),
        heading,
        part: part.to_owned(),
        ours,
        text,
    };
    let log = FailureLog::of(told);
    Ok(vec![
        whole(".continuous-session-state.json", pretty(&ContinuousSession::of(told))?),
        whole(".task-loop-state.json", pretty(&TaskLoop::of(told))?),
        whole(".ralph-loop-state.json", pretty(&RalphLoop::of(&chronicle.run))?),
        StateFile { ours: Ours::Stories, ..whole(PRD_STATUS, pretty(&PrdStatus::of(told))?) },
        part("progress.md", "# Progress", run.as_str(), Ours::End, progress::markdown(told)),
        part("progress.txt", "# Ralph Progress Log", LEARNINGS, Ours::Top, progress::patterns(told)),
        part("progress.txt", "# Ralph Progress Log", run.as_str(), Ours::End, progress::text(told)),
        part("critical-learnings.md", "# Critical Learnings", LEARNINGS, Ours::End, progress::list(told)),
        StateFile { ours: Ours::Marked, part: mark_of(run), ..whole(&told.session_log(), session_log::text(told)) },
        whole(&told.failure_log("md"), log.markdown()),
        whole(&told.failure_log("json"), pretty(&log)?),
    ])
}

/// Writes those files of the run that `wanted` takes, each in one step. What is somebody's stays; the second list says of
/// what was not written why.
pub(crate) fn write(
    chronicle: &Chronicle,
    folder: &Path,
    wanted: impl Fn(&str) -> bool,
) -> Result<(Vec<PathBuf>, Vec<String>), ExportError> {
    let (mut written, mut left) = (Vec::new(), Vec::new());
    for file in files_of(chronicle)?.into_iter().filter(|file| wanted(&file.path)) {
        let path = folder.join(&file.path);
        match write_one(&file, folder, &path) {
            Ok(()) if written.last() != Some(&path) => written.push(path),
            Ok(()) => {}
            Err(error @ (ExportError::Foreign(_) | ExportError::Linked(_) | ExportError::Unreadable { .. })) => {
                left.push(error.to_string());
            }
            Err(error) => return Err(error),
        }
    }
    Ok((written, left))
}

/// Writes what the run has learned into a `design.md`; whether it has learned anything.
pub(crate) fn write_design(chronicle: &Chronicle, path: &Path) -> Result<bool, ExportError> {
    let old = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(FileError::new("read", path, error).into()),
    };
    let Some(new) = design::with_learnings(&old, Telling { chronicle }) else { return Ok(false) };
    if new != old {
        files::write_atomic(path, new.as_bytes(), Access::Usual)?;
    }
    Ok(true)
}

fn write_one(file: &StateFile, folder: &Path, path: &Path) -> Result<(), ExportError> {
    let is_link = |path: &Path| std::fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
    // The folder may lie in a working tree, where an agent can put links.
    if path.ancestors().take_while(|above| *above != folder).any(is_link) {
        return Err(ExportError::Linked(path.to_owned()));
    }
    let old = match std::fs::read(path) {
        Ok(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(FileError::new("read", path, error).into()),
    };
    let new = match (file.ours, old.as_deref()) {
        (Ours::Marked, Some(old)) if !old.contains(&file.part) => return Err(ExportError::Foreign(path.to_owned())),
        (Ours::Whole | Ours::Marked, _) | (Ours::Stories, None) => file.text.clone(),
        (Ours::Stories, Some(old)) => {
            let status: PrdStatus = serde_json::from_str(&file.text)?;
            let merged = status.over(old);
            pretty(&merged.map_err(|why| ExportError::Unreadable { path: path.to_owned(), why })?)?
        }
        (Ours::Top | Ours::End, old) => with_part(old.unwrap_or_default(), file),
    };
    if old.as_ref() == Some(&new) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| FileError::new("create the folder", folder, error))?;
    }
    // What is lost of it can be made again.
    files::write_derived(path, new.as_bytes(), Access::Usual)?;
    Ok(())
}

/// The text with what stands between the marks of `part` anew; nothing if they are not in it.
fn replaced(old: &str, part: &str, text: &str) -> Option<String> {
    let (begin, end) = marks(part);
    let from = old.find(&begin)?;
    let length = old[from..].find(&end)?;
    Some(format!("{}{}{}", &old[..from], marked(part, text), &old[from + length + end.len()..]))
}

/// A text between the marks of `part`.
fn marked(part: &str, text: &str) -> String {
    let (begin, end) = marks(part);
    format!("{begin}{text}{end}")
}

/// The lines that our part of a file begins and ends with.
fn marks(part: &str) -> (String, String) {
    (format!("<!-- ralphloop: {part} -->\n"), format!("<!-- ralphloop: end of {part} -->\n"))
}

/// The text with our part anew; all else as it was.
fn with_part(old: &str, file: &StateFile) -> String {
    if let Some(text) = replaced(old, &file.part, &file.text) {
        return text;
    }
    let part = marked(&file.part, &file.text);
    if old.is_empty() {
        return format!("{}\n\n{part}", file.heading);
    }
    if file.ours == Ours::End {
        let gap = if old.ends_with('\n') { "\n" } else { "\n\n" };
        return format!("{old}{gap}{part}");
    }
    // Below the first heading, if the file begins with one.
    let at = if old.starts_with('#') { old.find('\n').map_or(old.len(), |end| end + 1) } else { 0 };
    let (before, after) = old.split_at(at);
    let gap = if before.is_empty() { "" } else { "\n" };
    format!("{before}{gap}{part}\n{}", after.trim_start_matches('\n'))
}
