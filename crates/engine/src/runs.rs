//! What runs keep on the disk: a folder each, in the repository's common git directory, where no checkout, no `git
//! clean` and no agent's `git add` reaches it.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use ralphloop_core::ids::{AttemptId, CommitId, LaneId, RunId};
use ralphloop_core::run::{Activity, Run};
use serde::{Deserialize, Serialize};

use crate::files::{self, FileError};
use crate::fold::{self, Folded};
use crate::journal::JournalError;
use crate::process::{self, Leftover};

/// The state of ralphloop in one repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateFolder {
    root: PathBuf,
}

/// The folder of one run, a fault domain of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFolder {
    /// The run.
    pub id: RunId,
    path: PathBuf,
}

/// An attempt of which only files tell, not the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenAttempt {
    /// Which, the story as far as a file's name tells it.
    pub id: AttemptId,
    /// The name of its checkpoint.
    pub checkpoint: String,
    /// Where the spec's bytes at that checkpoint are.
    pub spec_before: PathBuf,
}

/// Why no run was found.
#[derive(Debug, thiserror::Error)]
pub enum RunsError {
    /// The folder cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// No run has that name or beginning.
    #[error("there is no run `{wanted}` in this repository: `ralphloop runs` lists them")]
    Unknown {
        /// What was asked for.
        wanted: String,
    },
    /// Several runs begin so.
    #[error("`{wanted}` fits several runs: {}", .ids.join(", "))]
    Ambiguous {
        /// What was asked for.
        wanted: String,
        /// The runs.
        ids: Vec<String>,
    },
    /// There is none at all.
    #[error("no run has been made in this repository yet: `ralphloop run` starts one")]
    None,
}

impl StateFolder {
    /// That of the repository with this common git directory.
    pub fn of(common_dir: &Path) -> Self {
        Self { root: common_dir.join("ralphloop") }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Where the folders of the runs are.
    pub(crate) fn runs_folder(&self) -> PathBuf {
        self.root.join("runs")
    }

    /// Makes the folder of a new run, named by the time in UTC to the millisecond, so that names sort by age.
    pub fn create_run(&self) -> Result<RunFolder, FileError> {
        let runs = self.runs_folder();
        files::create_private_dir(&runs)?;
        loop {
            let id = RunId(jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S-%3f").to_string());
            let path = runs.join(id.as_str());
            match std::fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(RunFolder { id, path }),
                // Another run began in this very millisecond.
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(FileError::new("create the folder", &path, e)),
            }
        }
    }

    /// All runs, newest first.
    pub fn runs(&self) -> Result<Vec<RunFolder>, FileError> {
        let path = self.runs_folder();
        let entries = match std::fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(FileError::new("read", &path, e)),
        };
        let mut runs = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|e| FileError::new("read", &path, e))?;
            if let Ok(name) = entry.file_name().into_string()
                && entry.path().is_dir()
            {
                runs.push(RunFolder { id: RunId(name), path: entry.path() });
            }
        }
        runs.sort_by(|a, b| b.id.cmp(&a.id));
        Ok(runs)
    }

    /// The run of that id or with the id that ends or begins so; the newest one without a name.
    pub fn find(&self, wanted: Option<&str>) -> Result<RunFolder, RunsError> {
        let runs = self.runs()?;
        let Some(wanted) = wanted else { return runs.into_iter().next().ok_or(RunsError::None) };
        let mut fitting: Vec<RunFolder> = runs
            .into_iter()
            .filter(|r| !wanted.is_empty() && (r.id.as_str().starts_with(wanted) || r.id.as_str().ends_with(wanted)))
            .collect();
        match (fitting.pop(), fitting.is_empty()) {
            (Some(run), true) => Ok(run),
            (None, _) => Err(RunsError::Unknown { wanted: wanted.to_owned() }),
            (Some(run), false) => {
                let ids = std::iter::once(run).chain(fitting).map(|r| r.id.to_string()).collect();
                Err(RunsError::Ambiguous { wanted: wanted.to_owned(), ids })
            }
        }
    }
}

impl RunFolder {
    /// The run whose folder this is.
    pub fn at(path: &Path) -> Self {
        let id = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Self { id: RunId(id), path: path.to_owned() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the worktree of a lane is, if it has one.
    pub fn worktree(&self, lane: LaneId) -> PathBuf {
        self.path.join("worktrees").join(format!("lane-{}", lane.0.saturating_add(1)))
    }

    /// Where confined programs of the checkout keep temporary files.
    pub(crate) fn temporary(&self) -> PathBuf {
        self.path.join("tmp")
    }

    /// The journal.
    pub fn journal(&self) -> PathBuf {
        self.path.join("journal.jsonl")
    }

    /// Attempts that were neither put back nor finished: their checkpoint may still be there.
    pub fn open_attempts(&self) -> Vec<OpenAttempt> {
        let entries = std::fs::read_dir(self.path.join("attempts")).into_iter().flatten().filter_map(Result::ok);
        let mut attempts: Vec<OpenAttempt> = entries
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                let stem = name.strip_suffix(".spec")?;
                let (story, number) = stem.rsplit_once('-')?;
                Some(OpenAttempt {
                    id: AttemptId { story: story.into(), number: number.parse().ok()? },
                    checkpoint: format!("{}-{stem}", self.id),
                    spec_before: entry.path(),
                })
            })
            .collect();
        attempts.sort_by(|a, b| a.id.cmp(&b.id));
        attempts
    }

    /// The spec's bytes at the checkpoint of an attempt.
    pub fn spec_before(&self, attempt: &AttemptId) -> PathBuf {
        self.path.join("attempts").join(format!("{}-{}.spec", files::safe_name(attempt.story.as_str()), attempt.number))
    }

    /// Where it is noted which tree the agent of an attempt was given to resolve conflicts in.
    pub(crate) fn merged_tree(&self, attempt: &AttemptId) -> PathBuf {
        self.spec_before(attempt).with_extension("merged")
    }

    /// The name under which an attempt's checkpoint is kept.
    pub fn checkpoint_name(&self, attempt: &AttemptId) -> String {
        format!("{}-{}-{}", self.id, files::safe_name(attempt.story.as_str()), attempt.number)
    }

    fn advance_file(&self) -> PathBuf {
        self.path.join("advance.json")
    }

    /// Notes that a branch, and the checkout with it, is about to move.
    pub(crate) fn note_advance(&self, branch: &str, old: &CommitId, new: &CommitId) -> Result<(), FileError> {
        let path = self.advance_file();
        let note = (branch, old, new);
        let bytes = serde_json::to_vec(&note).map_err(|e| FileError::new("encode", &path, std::io::Error::other(e)))?;
        files::write_atomic(&path, &bytes, files::Access::Private)
    }

    /// The move that was under way when the run died: the branch, and the commits it was to move from and to.
    pub(crate) fn half_advance(&self) -> Option<(String, CommitId, CommitId)> {
        serde_json::from_slice(&std::fs::read(self.advance_file()).ok()?).ok()
    }

    /// The run is dead, and may have left an attempt or a move of the checkout half done.
    pub(crate) fn died_in_the_middle(&self) -> bool {
        self.live_process().is_none() && (self.half_advance().is_some() || !self.open_attempts().is_empty())
    }

    /// Forgets that a branch was about to move.
    pub(crate) fn forget_advance(&self) {
        // One that stays is looked at once more at the next start, and changes nothing then.
        drop(std::fs::remove_file(self.advance_file()));
    }

    fn launch_file(&self) -> PathBuf {
        self.path.join("launch.json")
    }

    /// Notes how the run was called.
    pub fn write_launch(&self, launch: &[u8]) -> Result<(), FileError> {
        files::write_atomic(&self.launch_file(), launch, files::Access::Private)
    }

    /// How the run was called, if that is still known.
    pub fn launch(&self) -> Option<Vec<u8>> {
        std::fs::read(self.launch_file()).ok()
    }

    fn project_file(&self) -> PathBuf {
        self.path.join("project")
    }

    /// Notes in which project the run works: work of the same name may stand in several, and in other working trees.
    pub fn write_project(&self, project: &Path) -> Result<(), FileError> {
        files::write_atomic(&self.project_file(), project.as_os_str().as_bytes(), files::Access::Private)
    }

    /// Whether the run worked in that project, as far as it is known.
    pub fn is_of_project(&self, project: &Path) -> bool {
        std::fs::read(self.project_file()).map_or(true, |noted| noted == project.as_os_str().as_bytes())
    }

    /// Whether the run works at or below that folder, as far as it is known.
    pub fn is_below(&self, top: &Path) -> bool {
        let noted = std::fs::read(self.project_file());
        noted.map_or(true, |noted| Path::new(std::ffi::OsStr::from_bytes(&noted)).starts_with(top))
    }

    /// The run that the journal makes.
    pub fn fold(&self) -> Result<Folded, JournalError> {
        fold::fold(&self.journal(), &self.kept_state())
    }

    /// Where the state of the run is kept, so that a long journal need not be read from its beginning.
    pub(crate) fn kept_state(&self) -> PathBuf {
        self.path.join("state.json")
    }

    fn process_file(&self) -> PathBuf {
        self.path.join("process.json")
    }

    /// Notes which process works on the run.
    pub fn write_process(&self, process: &ProcessMark) -> Result<(), FileError> {
        let path = self.process_file();
        let bytes =
            serde_json::to_vec(process).map_err(|e| FileError::new("encode", &path, std::io::Error::other(e)))?;
        files::write_atomic(&path, &bytes, files::Access::Private)
    }

    /// The live process that works on the run.
    pub fn live_process(&self) -> Option<ProcessMark> {
        let bytes = std::fs::read(self.process_file()).ok()?;
        let process: ProcessMark = serde_json::from_slice(&bytes).ok()?;
        process.is_alive().then_some(process)
    }

    /// Notes that the process is still at work.
    pub fn beat(&self) {
        // A beat that is missed makes the last sign of life older, which is the careful side.
        let file = std::fs::OpenOptions::new().write(true).open(self.process_file());
        drop(file.and_then(|file| file.set_modified(std::time::SystemTime::now())));
    }

    /// When a process at work on the run last gave a sign of life.
    pub fn last_beat(&self) -> Option<std::time::SystemTime> {
        let modified = |path: PathBuf| std::fs::metadata(path).and_then(|meta| meta.modified()).ok();
        modified(self.process_file()).max(modified(self.journal()))
    }

    fn children_file(&self) -> PathBuf {
        self.path.join("children.jsonl")
    }

    /// Notes a program that was started for the run, so that it can be ended if this process dies with its supervisor.
    pub fn note_child(&self, child: &Leftover) -> Result<(), FileError> {
        let path = self.children_file();
        let mut bytes =
            serde_json::to_vec(child).map_err(|e| FileError::new("encode", &path, std::io::Error::other(e)))?;
        bytes.push(b'\n');
        files::append(&path, &bytes, files::Access::Private)
    }

    /// The programs that were noted; those of them that have ended are no longer found alive.
    pub fn children(&self) -> Vec<Leftover> {
        let text = std::fs::read_to_string(self.children_file()).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Forgets the programs that were noted, once none of them is alive.
    pub fn forget_children(&self) {
        // Kept records cost a look at the next start, no more.
        drop(std::fs::remove_file(self.children_file()));
    }
}

/// What tells a process from a later one with the same number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessMark {
    /// Its number.
    pub pid: u32,
    /// When it started, in ticks since the machine did.
    pub start_time: u64,
    /// Which start of the machine that was.
    pub boot_id: String,
}

impl ProcessMark {
    /// That of this process.
    pub fn of_this_process() -> Self {
        let pid = std::process::id();
        Self { pid, start_time: process::start_time(pid).unwrap_or_default(), boot_id: process::boot_id() }
    }

    /// Whether it is this very process that runs now.
    pub fn is_alive(&self) -> bool {
        self.boot_id == process::boot_id() && process::start_time(self.pid) == Some(self.start_time)
    }
}

/// Whether a new start of the same work goes on with this run: it has not ended, or it ended early without a verdict on
/// every story.
pub fn unfinished(run: &Run) -> bool {
    use ralphloop_core::outcome::Outcome;
    match run.activity() {
        Activity::Ended(outcome) => match outcome {
            Outcome::Paused { .. }
            | Outcome::Stopped { .. }
            | Outcome::BoundReached { .. }
            | Outcome::Environment { .. } => true,
            Outcome::Complete | Outcome::Failed | Outcome::NothingToDo { .. } => false,
        },
        Activity::CheckingPlan | Activity::Working | Activity::Waiting(_) | Activity::Ending(_) => true,
    }
}
