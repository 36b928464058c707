//! State files that are kept up to date while a run goes on: before and after each piece of work.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ralphloop_core::event::Event;
use ralphloop_engine::git::Repository;
use ralphloop_engine::journal::{self, Place};
use ralphloop_engine::runs::RunFolder;
use ralphloop_engine::scribe::Scribe;

use super::chronicle::Chronicle;
use super::{ExportError, write};
use crate::error::CliError;

/// The files of a run, whenever it began.
const FILES: [&str; 10] = [
    ".continuous-session-state.json",
    ".task-loop-state.json",
    ".ralph-loop-state.json",
    "prd-status.json",
    "progress.md",
    "progress.txt",
    "critical-learnings.md",
    "session_logs/00000000_0000_session.md",
    "ralph_logs/00000000_0000_ralph.md",
    "ralph_logs/00000000_0000_ralph.json",
];
/// How many of them are for the loops alone, and never a person's.
const STATES: usize = 3;

/// Writes the files of one run.
#[derive(Debug)]
pub(crate) struct Live {
    folder: PathBuf,
    chronicle: Option<Chronicle>,
    /// Those of [`FILES`] that would be changes of the working tree.
    seen: Vec<&'static str>,
    /// Why some are not written, as far as that was said.
    left: BTreeSet<String>,
}

impl Live {
    /// For a run in this repository, with what a person should know. Refuses a folder in which git would see changes.
    pub(crate) async fn open(folder: PathBuf, repository: &Repository) -> Result<(Self, Option<String>), CliError> {
        let folder = real(&folder);
        let places = repository.places();
        let seen = match folder.strip_prefix(&places.top) {
            Ok(below) if !folder.starts_with(&places.common_dir) => not_ignored(below, repository).await?,
            _ => Vec::new(),
        };
        let shown = folder.strip_prefix(&places.top).unwrap_or(&folder).display().to_string();
        let states: Vec<String> = FILES
            .iter()
            .take(STATES)
            .filter(|name| seen.contains(name))
            .map(|name| format!("/{shown}/{name}"))
            .collect();
        if !states.is_empty() {
            return Err(CliError::usage(format!(
                "state files in {shown} would be changes of the working tree, since git does not ignore them"
            ))
            .hint(format!("add to .gitignore, and commit that: {}", states.join(" ")))
            .hint("or name a folder that git ignores, or one outside of the working tree"));
        }
        let said = (!seen.is_empty()).then(|| {
            format!(
                "{} in {shown} would be changes of the working tree, so that the run leaves them alone; \
                 `ralphloop export --to {shown}` writes them too",
                seen.iter().map(|name| name.split('/').next().unwrap_or(name)).collect::<Vec<_>>().join(", "),
            )
        });
        Ok((Self { folder, chronicle: None, seen, left: BTreeSet::new() }, said))
    }

    fn write(&mut self) -> Result<Vec<String>, String> {
        let Some(chronicle) = &self.chronicle else { return Ok(Vec::new()) };
        if real(&self.folder) != self.folder {
            let why = ExportError::Linked(self.folder.clone()).to_string();
            return Ok(Some(why).filter(|why| self.left.insert(why.clone())).into_iter().collect());
        }
        let written = write(chronicle, &self.folder, |path| !self.seen.contains(&kind_of(path)));
        let (_, left) = written.map_err(|error| format!("state files are not kept up to date any more: {error}"))?;
        // Once is enough.
        Ok(left.into_iter().filter(|why| self.left.insert(why.clone())).collect())
    }
}

/// Which of [`FILES`] it is.
fn kind_of(path: &str) -> &'static str {
    let (folder, end) = (path.split_once('/').map(|(folder, _)| folder), path.rsplit('.').next());
    let same = |known: &&&'static str| {
        **known == path
            || folder.is_some_and(|f| known.split_once('/').is_some_and(|(k, _)| k == f))
                && known.rsplit('.').next() == end
    };
    FILES.iter().find(same).copied().unwrap_or_default()
}

/// The folder without links, as far as it is there.
fn real(folder: &Path) -> PathBuf {
    let mut missing = Vec::new();
    for above in folder.ancestors() {
        if let Ok(found) = above.canonicalize() {
            return missing.iter().rev().fold(found, |path, name| path.join(name));
        }
        missing.extend(above.file_name());
    }
    folder.to_owned()
}

/// Those of the files in the folder `below` the top that git looks at.
async fn not_ignored(below: &Path, repository: &Repository) -> Result<Vec<&'static str>, CliError> {
    let paths: Vec<Vec<u8>> = FILES.iter().map(|name| below.join(name).into_os_string().into_encoded_bytes()).collect();
    let asked = repository.git().read(&repository.places().top).args(["check-ignore", "--stdin", "-z"]);
    // It takes paths alone, and refuses to be told so.
    let answer = asked.env("GIT_LITERAL_PATHSPECS", "0").stdin(paths.join(&0)).answer().await;
    let answer = answer.map_err(|error| CliError::environment(error.to_string()))?;
    // 1 says that none is ignored.
    if !matches!(answer.code, Some(0 | 1)) {
        return Err(CliError::environment(answer.unexpected().to_string()));
    }
    let ignored: Vec<&[u8]> = answer.items().collect();
    Ok(FILES
        .iter()
        .zip(&paths)
        .filter(|(_, path)| !ignored.contains(&path.as_slice()))
        .map(|(name, _)| *name)
        .collect())
}

impl Scribe for Live {
    fn begin(&mut self, folder: &RunFolder) -> Result<Vec<String>, String> {
        let events =
            journal::read_after(&folder.journal(), &mut Place::default()).map_err(|error| error.to_string())?;
        self.chronicle = Some(Chronicle::of(&events).map_err(|_| "the journal does not begin a run".to_owned())?);
        self.write()
    }

    fn take_in(&mut self, event: &Event) -> Result<Vec<String>, String> {
        let Some(chronicle) = &mut self.chronicle else { return Ok(Vec::new()) };
        chronicle.take_in(event);
        if chronicle.turns(event) { self.write() } else { Ok(Vec::new()) }
    }
}
