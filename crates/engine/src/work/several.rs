//! Work that is a folder with a file a story (Backlog.md, the task groups of Flight Rules), or several files that belong
//! together (the PRD of Flight Rules and its state).

use std::path::{Path, PathBuf};

use ralphloop_core::plan::{Scheme, WorkId};
use ralphloop_spec::NEXT_STEPS;

use super::find::{Found, children, is_repository};
use super::{WorkRef, shown};

/// What a backlog's folder may be called, below the project.
const BACKLOGS: &[&str] = &["backlog", ".backlog"];
/// Where Flight Rules keeps its documents, below the project; the older place last.
const DOCS: &[&str] = &["docs", ".flight-rules/docs", ".flight-rules"];
/// Below the documents.
const IMPLEMENTATION: &str = "implementation";
const SESSION_LOGS: &str = "session_logs";
const PRD: &str = "prd.md";
const PRD_STATUS: &str = "prd-status.json";

/// What is read beside the tasks of a backlog: its settings, and the folders of tasks that were put aside.
const SETTINGS: &[&str] = &["config.yml", "config.yaml"];
const ASIDE: &[&str] = &["completed", "archive/tasks"];

/// The work of these kinds that stands directly in the project `base`.
pub(super) fn in_project(base: &Path) -> Vec<Found> {
    let mut found: Vec<Found> = backlog(base).into_iter().collect();
    if let Some(implementation) = implementation(base) {
        let work = folder_at(Scheme::Flight, &implementation, base);
        if groups(&implementation).iter().any(|path| is_group(path)) {
            found.push(Found { work, missing: Vec::new(), archived: false });
        }
    }
    if let Some(work) = next_steps(base).filter(has_stories) {
        found.push(Found { work, missing: Vec::new(), archived: false });
    }
    if let Some(work) = prd(base).filter(has_stories) {
        found.push(Found { work, missing: Vec::new(), archived: false });
    }
    found
}

fn has_stories(work: &WorkRef) -> bool {
    super::load(work).is_ok_and(|files| ralphloop_spec::read(&files).is_ok())
}

fn backlog(base: &Path) -> Option<Found> {
    let folder = BACKLOGS.iter().map(|name| base.join(name)).find(|folder| is_backlog(folder))?;
    let missing =
        if tasks(&folder).is_empty() { vec![format!("no task in {}/tasks", shown(base, &folder))] } else { Vec::new() };
    Some(Found { work: folder_at(Scheme::Backlog, &folder, base), missing, archived: false })
}

/// A folder with tasks that is called so, or that has the settings of the tool.
fn is_backlog(folder: &Path) -> bool {
    let named = folder.file_name().is_some_and(|name| BACKLOGS.iter().any(|known| name == *known));
    let settings = SETTINGS.iter().any(|name| folder.join(name).is_file());
    folder.join("tasks").is_dir() && (settings || named)
}

/// The task files of a backlog.
fn tasks(folder: &Path) -> Vec<PathBuf> {
    markdown(&folder.join("tasks"))
}

fn markdown(folder: &Path) -> Vec<PathBuf> {
    let is_markdown = |path: &PathBuf| path.extension().is_some_and(|end| end == "md") && path.is_file();
    children(folder).into_iter().filter(is_markdown).collect()
}

/// The folder with the areas, if the project has one.
fn implementation(base: &Path) -> Option<PathBuf> {
    DOCS.iter().map(|docs| base.join(docs).join(IMPLEMENTATION)).find(|folder| folder.is_dir())
}

/// The files of an implementation folder, or of one of its areas, in which task groups may stand.
fn groups(folder: &Path) -> Vec<PathBuf> {
    let mut found = markdown(folder);
    for area in children(folder).into_iter().filter(|path| path.is_dir()) {
        found.extend(markdown(&area));
    }
    found.retain(|path| !path.file_name().is_some_and(|name| name == "index.md" || name == "overview.md"));
    found
}

/// `4.2-topic.md`.
fn is_group(path: &Path) -> bool {
    number_of(path).is_some_and(|number| number.contains('.'))
}

/// The number at the start of a name: `4` of `4-sync`, `4.2` of `4.2-topic.md`.
fn number_of(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let end = name.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(name.len());
    let number = name[..end].trim_end_matches('.');
    (!number.is_empty() && number.starts_with(|c: char| c.is_ascii_digit())).then(|| number.to_owned())
}

/// The next steps of the newest session log.
fn next_steps(base: &Path) -> Option<WorkRef> {
    let logs = DOCS.iter().map(|docs| base.join(docs).join(SESSION_LOGS)).find(|folder| folder.is_dir())?;
    let is_log = |path: &PathBuf| path.file_stem().is_some_and(|stem| stem.to_string_lossy().contains("session"));
    // Their names begin with their date.
    let newest = markdown(&logs).into_iter().rfind(is_log)?;
    Some(next_steps_of(&newest, base))
}

/// The next steps of a session log, as work of the project `base`.
pub(super) fn next_steps_of(log: &Path, base: &Path) -> WorkRef {
    let id = WorkId { scheme: Scheme::Flight, id: format!("{}{NEXT_STEPS}", shown(base, log)) };
    WorkRef { id, main: log.to_owned(), project: base.to_owned(), change: None }
}

fn prd(base: &Path) -> Option<WorkRef> {
    let main = DOCS.iter().map(|docs| base.join(docs).join(PRD)).find(|path| path.is_file())?;
    Some(file_at(&main, base))
}

/// A file of Flight Rules as work of the project `base`.
fn file_at(path: &Path, base: &Path) -> WorkRef {
    let id = WorkId { scheme: Scheme::Flight, id: shown(base, path) };
    WorkRef { id, main: path.to_owned(), project: base.to_owned(), change: None }
}

fn folder_at(scheme: Scheme, folder: &Path, base: &Path) -> WorkRef {
    let id = WorkId { scheme, id: shown(base, folder) };
    WorkRef { id, main: folder.to_owned(), project: base.to_owned(), change: None }
}

/// What `name` means to Flight Rules in the project `base`: nothing for all task groups, `next-steps`, `prd`, the number
/// or name of an area, the number of a group.
pub(super) fn named(name: &str, base: &Path) -> Option<WorkRef> {
    match name {
        "next-steps" => return next_steps(base),
        "prd" => return prd(base),
        _ => {}
    }
    let implementation = implementation(base)?;
    if name.is_empty() {
        return Some(folder_at(Scheme::Flight, &implementation, base));
    }
    let areas = children(&implementation).into_iter().filter(|path| path.is_dir());
    let area = areas.into_iter().find(|path| {
        path.file_name().is_some_and(|found| found == name) || number_of(path).is_some_and(|number| number == name)
    });
    if let Some(area) = area {
        return Some(folder_at(Scheme::Flight, &area, base));
    }
    let group =
        groups(&implementation).into_iter().find(|path| number_of(path).is_some_and(|number| number == name))?;
    Some(file_at(&group, base))
}

/// The folder of the work that `folder` is or lies in, and its project. A repository is no such folder, wherever it
/// stands.
pub(super) fn around(folder: &Path) -> Option<WorkRef> {
    let mut inside = folder.ancestors().take_while(|folder| !is_repository(folder));
    inside.find_map(|folder| {
        if is_backlog(folder) {
            return Some(folder_at(Scheme::Backlog, folder, folder.parent()?));
        }
        let docs = folder.ancestors().find(|above| above.file_name().is_some_and(|name| name == IMPLEMENTATION))?;
        let base = project_of_docs(docs.parent()?)?;
        folder.is_dir().then(|| folder_at(Scheme::Flight, folder, base))
    })
}

/// The project of the folder with the documents of Flight Rules.
fn project_of_docs(docs: &Path) -> Option<&Path> {
    let place = DOCS.iter().filter(|place| docs.ends_with(place)).max_by_key(|place| place.len())?;
    docs.ancestors().nth(Path::new(place).components().count())
}

/// The format of a file at one of these places.
pub(super) fn scheme_of(path: &Path) -> Option<Scheme> {
    [Scheme::Backlog, Scheme::Flight].into_iter().find(|scheme| project_of(*scheme, path).is_some() && is_meant(path))
}

/// A task, a task group, a session log or a PRD, and no other document beside them.
fn is_meant(path: &Path) -> bool {
    let below = |name: &str| path.parent().is_some_and(|folder| folder.ends_with(name));
    let markdown = path.extension().is_some_and(|end| end == "md");
    markdown && (is_group(path) || below("tasks") || below(SESSION_LOGS) || path.ends_with(PRD))
}

/// The project of a file of one of these formats, where it stands at its usual place.
pub(super) fn project_of(scheme: Scheme, path: &Path) -> Option<&Path> {
    match scheme {
        Scheme::Backlog => path.ancestors().skip(1).find(|folder| is_backlog(folder))?.parent(),
        Scheme::Flight => path.ancestors().skip(1).find_map(project_of_docs),
        _ => None,
    }
}

impl WorkRef {
    /// The folder whose files these are, by its name; none if the work is not a folder with a file a story.
    pub(crate) fn folder(&self) -> Option<String> {
        let several = matches!(self.id.scheme, Scheme::Backlog | Scheme::Flight) && self.main.is_dir();
        several.then(|| self.id.id.clone())
    }

    /// The files that hold stories or their state, as they are there now; absolute, links not followed. None where the
    /// state is kept elsewhere.
    pub fn story_files(&self) -> Vec<PathBuf> {
        match self.id.scheme {
            Scheme::Backlog if self.main.is_dir() => tasks(&self.main),
            Scheme::Flight if self.main.is_dir() => groups(&self.main),
            Scheme::Flight if self.is_next_steps() => Vec::new(),
            Scheme::GitHub if self.query().is_some() => Vec::new(),
            Scheme::Flight if self.main.ends_with(PRD) => {
                let status = self.main.with_file_name(PRD_STATUS);
                std::iter::once(self.main.clone()).chain(Some(status).filter(|path| path.is_file())).collect()
            }
            _ => vec![self.main.clone()],
        }
    }

    /// Only the next steps of a session log are the work.
    pub(crate) fn is_next_steps(&self) -> bool {
        self.id.id.ends_with(NEXT_STEPS)
    }
}

/// What is read beside the tasks of a backlog; those that were put aside are only named.
pub(super) fn beside(folder: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let settings = SETTINGS.iter().map(|name| folder.join(name)).filter(|path| path.is_file()).collect();
    let aside = ASIDE.iter().flat_map(|name| markdown(&folder.join(name))).collect();
    (settings, aside)
}
