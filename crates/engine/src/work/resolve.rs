//! What an argument of the command line means.

use std::path::{Path, PathBuf};

use ralphloop_core::plan::{Scheme, WorkId};

use super::find::{Found, PRD_FOLDERS, bases, change_at, find, in_project, is_repository, prd_at};
use super::{WorkError, WorkRef, change, folders, places, several, shown};
use crate::tracker;
use ralphloop_spec::NEXT_STEPS;

/// The work that `argument` names, seen from the folder `cwd` (absolute): a file, a folder, `scheme:name`,
/// `scheme:path`, or the bare name of something that [`find`] finds, be it a format. Without an argument: the only piece of work that
/// can be run, else the only one at all; plain task lists count where there is nothing else, since many of them are
/// the notes from which the other work was made.
pub fn resolve(argument: Option<&str>, cwd: &Path) -> Result<WorkRef, WorkError> {
    let Some(argument) = argument else { return only(&find(cwd), cwd) };
    let path = cwd.join(argument);
    if path.exists() {
        return at_path(&path, cwd);
    }
    match argument.split_once(':') {
        Some((word, rest)) => match Scheme::ALL.iter().find(|scheme| scheme.as_str() == word) {
            Some(scheme) => of_scheme(*scheme, rest, argument, cwd),
            None if is_word(word) => Err(WorkError::UnknownScheme { scheme: word.to_owned() }),
            None => Err(not_found(argument, find(cwd))),
        },
        None => match Scheme::ALL.iter().find(|scheme| scheme.as_str() == argument) {
            Some(scheme) => of_format(*scheme, argument, find(cwd)),
            None => named(argument, argument, find(cwd)),
        },
    }
}

/// The only work of a format.
fn of_format(scheme: Scheme, argument: &str, mut found: Vec<Found>) -> Result<WorkRef, WorkError> {
    if found.iter().all(|found| found.work.id.scheme != scheme) {
        return Err(not_found(argument, found));
    }
    found.retain(|found| found.work.id.scheme == scheme);
    // What is planned as a whole comes before single parts of it and the notes of a session.
    if scheme == Scheme::Flight
        && let Some(whole) = found.iter().find(|found| found.work.main.is_dir())
    {
        return Ok(whole.work.clone());
    }
    only(&found, Path::new(argument))
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

/// The only one that is meant.
fn only(found: &[Found], folder: &Path) -> Result<WorkRef, WorkError> {
    let can_run = |found: &&Found| found.work.main.exists() && !found.archived;
    let mut candidates: Vec<&Found> = found.iter().filter(can_run).collect();
    if candidates.is_empty() {
        candidates = found.iter().filter(|found| !found.archived).collect();
    }
    if candidates.iter().any(|found| found.work.id.scheme != Scheme::Markdown) {
        candidates.retain(|found| found.work.id.scheme != Scheme::Markdown);
    }
    match candidates.as_slice() {
        [] => Err(WorkError::NoneFound { folder: folder.to_owned() }),
        [one] => Ok(one.work.clone()),
        several => Err(WorkError::Several { found: several.iter().map(|found| found.work.id.clone()).collect() }),
    }
}

/// The one whose name is `name`.
fn named(name: &str, argument: &str, mut found: Vec<Found>) -> Result<WorkRef, WorkError> {
    let is_it = |found: &Found| found.work.id.id == name;
    match found.iter().filter(|found| is_it(found)).count() {
        0 => Err(not_found(argument, found)),
        1 => {
            found.retain(is_it);
            only(&found, Path::new(name))
        }
        _ => Err(WorkError::Several { found: ids(found.into_iter().filter(is_it)) }),
    }
}

fn not_found(argument: &str, found: Vec<Found>) -> WorkError {
    WorkError::NotFound { argument: argument.to_owned(), found: ids(found.into_iter().filter(|found| !found.archived)) }
}

fn ids(found: impl Iterator<Item = Found>) -> Vec<WorkId> {
    found.map(|found| found.work.id).collect()
}

/// `scheme:rest`: a path, or a name that is found here.
fn of_scheme(scheme: Scheme, rest: &str, argument: &str, cwd: &Path) -> Result<WorkRef, WorkError> {
    let found: Vec<Found> = find(cwd).into_iter().filter(|found| found.work.id.scheme == scheme).collect();
    if found.iter().any(|found| found.work.id.id == rest) {
        return named(rest, argument, found);
    }
    if scheme == Scheme::GitHub
        && tracker::filters(rest).is_some()
        && let Some(work) = asked_for(rest, cwd)
    {
        return Ok(work);
    }
    if scheme == Scheme::Flight
        && let Some(work) = bases(cwd).find_map(|base| several::named(rest, base))
    {
        return Ok(work);
    }
    if let Some(log) = rest.strip_suffix(NEXT_STEPS).filter(|_| scheme == Scheme::Flight) {
        let path = bases(cwd).map(|base| base.join(log)).find(|path| path.is_file());
        let path = path.ok_or_else(|| not_found(argument, found))?;
        return Ok(several::next_steps_of(&path, &file_at(scheme, &path, cwd).project));
    }
    let path = bases(cwd).map(|base| base.join(rest)).find(|path| !rest.is_empty() && path.exists());
    let Some(path) = path else { return Err(not_found(argument, found)) };
    if path.is_dir() {
        let work = in_folder(&path, cwd)?;
        return if work.id.scheme == scheme { Ok(work) } else { Err(not_found(argument, found)) };
    }
    match scheme {
        Scheme::OpenSpec => Ok(tasks_at(&path, cwd)),
        Scheme::Prd => Ok(prd_at(&path, &project_of_prd(&path, cwd))),
        _ => match folders::around(&path).filter(|work| work.id.scheme == scheme && is_same(&work.main, &path)) {
            Some(work) => Ok(work),
            None => Ok(file_at(scheme, &path, cwd)),
        },
    }
}

/// Issues on GitHub, by a query; they are kept in the repository that `cwd` is in.
fn asked_for(query: &str, cwd: &Path) -> Option<WorkRef> {
    let root = cwd.ancestors().find(|folder| is_repository(folder))?;
    let id = WorkId { scheme: Scheme::GitHub, id: query.to_owned() };
    Some(WorkRef { id, main: tracker::kept_at(root, query)?, project: root.to_owned(), change: None })
}

fn is_same(one: &Path, other: &Path) -> bool {
    one == other || one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}

/// A file that is all of its work.
fn file_at(scheme: Scheme, path: &Path, cwd: &Path) -> WorkRef {
    let project = places::project_of(scheme, path).or_else(|| several::project_of(scheme, path));
    let folder = project.or(path.parent()).unwrap_or(cwd);
    places::work_at(scheme, path, &within_repository(folder, cwd))
}

/// A path without a format.
fn at_path(path: &Path, cwd: &Path) -> Result<WorkRef, WorkError> {
    if path.is_dir() {
        in_folder(path, cwd)
    } else if path.extension().is_some_and(|extension| extension == "json" || extension == "jsonc") {
        Ok(prd_at(path, &project_of_prd(path, cwd)))
    } else if let Some(work) = folders::around(path) {
        Ok(work)
    } else if path.ends_with("tasks.md") || change::around(path).is_some() {
        Ok(tasks_at(path, cwd))
    } else if let Some(scheme) = places::scheme_of(path).or_else(|| several::scheme_of(path)) {
        Ok(file_at(scheme, path, cwd))
    } else {
        Err(WorkError::NoFormat { path: path.to_owned() })
    }
}

/// A folder: a change, one that holds a `tasks.md`, a project, or one of the folders of a project that hold work.
fn in_folder(folder: &Path, cwd: &Path) -> Result<WorkRef, WorkError> {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    if let Some(change) = change::around(&folder) {
        return Ok(change_at(change, change::project(change).unwrap_or(cwd)));
    }
    if let Some(work) = folders::around(&folder).or_else(|| several::around(&folder)) {
        return Ok(work);
    }
    if folder.join("tasks.md").is_file() {
        return Ok(tasks_at(&folder.join("tasks.md"), cwd));
    }
    let project = match folder.file_name() {
        Some(name) if name == "openspec" => folder.parent(),
        _ if folder.ends_with("openspec/changes") => folder.ancestors().nth(2),
        _ => None,
    };
    only(&in_project(project.unwrap_or(&folder)), &folder)
}

/// A file with tasks: a change's, or one that stands for itself.
fn tasks_at(path: &Path, cwd: &Path) -> WorkRef {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if let Some(folder) = change::around(&real)
        && let Some(project) = change::project(folder)
    {
        let work = change_at(folder, project);
        let is_tasks = real.ends_with("tasks.md");
        return if is_tasks { WorkRef { main: real, ..work } } else { work };
    }
    let folder = path.parent().unwrap_or(cwd);
    let project = within_repository(folder, cwd);
    let id = WorkId { scheme: Scheme::OpenSpec, id: shown(&project, path) };
    let change = path.ends_with("tasks.md").then(|| folder.to_owned());
    WorkRef { id, main: path.to_owned(), project, change }
}

/// The project of a `prd.json`: what is above the usual place that it stands in.
fn project_of_prd(path: &Path, cwd: &Path) -> PathBuf {
    let folder = path.parent().unwrap_or(cwd);
    let folder = match folder.parent() {
        Some(archive) if archive.ends_with("archive") => archive.parent().unwrap_or(folder),
        _ => folder,
    };
    let place = PRD_FOLDERS.iter().filter(|place| !place.is_empty()).find(|place| folder.ends_with(place));
    let project = place.and_then(|place| folder.ancestors().nth(Path::new(place).components().count()));
    within_repository(project.unwrap_or(folder), cwd)
}

/// `folder`, unless it is outside of any repository while `cwd` is in one: work that is kept elsewhere is about the
/// project that one stands in.
fn within_repository(folder: &Path, cwd: &Path) -> PathBuf {
    let in_repository = |folder: &Path| folder.ancestors().any(is_repository);
    let folder = if in_repository(folder) || !in_repository(cwd) { folder } else { cwd };
    folder.to_owned()
}
