//! What an argument of the command line means.

use std::path::{Path, PathBuf};

use ralphloop_core::plan::{Scheme, WorkId};

use super::find::{Found, PRD_FOLDERS, bases, change_at, find, in_project, is_repository, prd_at};
use super::folders::TASKS;
use super::{WorkError, WorkRef, change, claims, folders, places, several, shown};
use crate::tracker;
use ralphloop_spec::NEXT_STEPS;

/// The work that `argument` names, seen from the folder `cwd` (absolute): a file, a folder, `scheme:name`,
/// `scheme:path`, or the bare name of something that [`find`] finds, be it a format. Without an argument: the only piece of work that
/// can be run, else the only one at all; plain task lists count where there is nothing else, since many of them are
/// the notes from which the other work was made.
pub fn resolve(argument: Option<&str>, cwd: &Path) -> Result<WorkRef, WorkError> {
    let Some(argument) = argument else { return only(&find(cwd), cwd, cwd) };
    let path = cwd.join(argument);
    if path.exists() {
        return at_path(&path, cwd);
    }
    match argument.split_once(':') {
        Some((word, rest)) => match Scheme::ALL.iter().find(|scheme| scheme.as_str() == word) {
            Some(scheme) => of_scheme(*scheme, rest, argument, cwd),
            None if is_word(word) => Err(WorkError::UnknownScheme { scheme: word.to_owned() }),
            None => Err(not_found(argument, &find(cwd), cwd)),
        },
        None => match Scheme::ALL.iter().find(|scheme| scheme.as_str() == argument) {
            Some(scheme) => of_format(*scheme, argument, find(cwd), cwd),
            None => named(argument, argument, find(cwd), cwd),
        },
    }
}

/// The only work of a format.
fn of_format(scheme: Scheme, argument: &str, mut found: Vec<Found>, cwd: &Path) -> Result<WorkRef, WorkError> {
    if found.iter().all(|found| found.work.id.scheme != scheme) {
        return Err(not_found(argument, &found, cwd));
    }
    found.retain(|found| found.work.id.scheme == scheme);
    // What is planned as a whole comes before single parts of it and the notes of a session.
    if scheme == Scheme::Flight
        && let Some(whole) = found.iter().find(|found| found.work.main.is_dir())
    {
        return Ok(whole.work.clone());
    }
    only(&found, Path::new(argument), cwd)
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

/// The only one that is meant of what was found in `folder`.
fn only(found: &[Found], folder: &Path, cwd: &Path) -> Result<WorkRef, WorkError> {
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
        several => Err(WorkError::Several { found: names(several, cwd) }),
    }
}

/// The one whose name is `name`.
fn named(name: &str, argument: &str, mut found: Vec<Found>, cwd: &Path) -> Result<WorkRef, WorkError> {
    let is_it = |found: &Found| found.work.id.id == name;
    match found.iter().filter(|found| is_it(found)).count() {
        0 => Err(not_found(argument, &found, cwd)),
        1 => {
            found.retain(is_it);
            only(&found, Path::new(name), cwd)
        }
        _ => Err(WorkError::Several {
            found: names(&found.iter().filter(|found| is_it(found)).collect::<Vec<_>>(), cwd),
        }),
    }
}

fn not_found(argument: &str, found: &[Found], cwd: &Path) -> WorkError {
    let found: Vec<&Found> = found.iter().filter(|found| !found.archived).collect();
    WorkError::NotFound { argument: argument.to_owned(), found: names(&found, cwd) }
}

/// How each is named from `cwd`: by its name, or with its path where that would mean something else or nothing.
fn names(found: &[&Found], cwd: &Path) -> Vec<String> {
    let here = find(cwd);
    let name = |found: &&Found| {
        let mut same = here.iter().filter(|other| other.work.id == found.work.id);
        match (same.next(), same.next()) {
            (Some(only), None) if is_same(&only.work.main, &found.work.main) => found.work.id.to_string(),
            _ => {
                let place = found.work.change.as_deref().unwrap_or(&found.work.main);
                let part = if found.work.is_next_steps() { NEXT_STEPS } else { "" };
                format!("{}:{}{part}", found.work.id.scheme.as_str(), shown(cwd, place))
            }
        }
    };
    found.iter().map(name).collect()
}

/// `scheme:rest`: a path, or a name that is found here.
fn of_scheme(scheme: Scheme, rest: &str, argument: &str, cwd: &Path) -> Result<WorkRef, WorkError> {
    let found: Vec<Found> = find(cwd).into_iter().filter(|found| found.work.id.scheme == scheme).collect();
    if found.iter().any(|found| found.work.id.id == rest) {
        return named(rest, argument, found, cwd);
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
        let path = path.ok_or_else(|| not_found(argument, &found, cwd))?;
        return Ok(several::next_steps_of(&path, &file_at(scheme, &path, cwd).project));
    }
    let path = bases(cwd).map(|base| base.join(rest)).find(|path| !rest.is_empty() && path.exists());
    let Some(path) = path else { return Err(not_found(argument, &found, cwd)) };
    if path.is_dir() {
        return folder_as(scheme, &path, cwd).unwrap_or_else(|| Err(not_found(argument, &found, cwd)));
    }
    match scheme {
        Scheme::OpenSpec => Ok(tasks_at(&path, cwd)),
        Scheme::Prd => Ok(prd_at(&path, &project_of_prd(&path, cwd))),
        Scheme::SpecKit | Scheme::Kiro if path.ends_with(TASKS) => {
            Ok(feature_at(scheme, path.parent().unwrap_or(cwd), cwd))
        }
        _ => Ok(file_at(scheme, &path, cwd)),
    }
}

/// A folder that is to be read as that format; none if it holds nothing of it.
fn folder_as(scheme: Scheme, folder: &Path, cwd: &Path) -> Option<Result<WorkRef, WorkError>> {
    let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let has_tasks = real.join(TASKS).is_file();
    match scheme {
        Scheme::SpecKit | Scheme::Kiro if has_tasks => Some(Ok(feature_at(scheme, &real, cwd))),
        Scheme::OpenSpec if has_tasks && change::around(&real).is_none() => Some(Ok(tasks_at(&real.join(TASKS), cwd))),
        _ => match in_folder(folder, cwd) {
            Ok(work) if work.id.scheme == scheme => Some(Ok(work)),
            _ => {
                let mut found = in_project(&real);
                found.retain(|found| found.work.id.scheme == scheme);
                (!found.is_empty()).then(|| only(&found, folder, cwd))
            }
        },
    }
}

/// A folder with tasks and what was planned beside them, wherever it stands.
fn feature_at(scheme: Scheme, folder: &Path, cwd: &Path) -> WorkRef {
    let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    if let Some(work) = folders::around(&real).into_iter().find(|work| work.change.as_deref() == Some(&real)) {
        WorkRef { id: WorkId { scheme, ..work.id }, ..work }
    } else {
        let project = within_repository(real.parent().unwrap_or(&real), cwd);
        folders::work_at(scheme, &real, &project)
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
        return in_folder(path, cwd);
    }
    let around = folders::around(path);
    if !around.is_empty() {
        return only_one(around, path, cwd);
    }
    if change::around(path).is_some() {
        return Ok(tasks_at(path, cwd));
    }
    if path.ends_with(TASKS) {
        return tasks_in(path.parent().unwrap_or(cwd), cwd);
    }
    if let Some(scheme) = places::scheme_of(path).or_else(|| several::scheme_of(path)) {
        return Ok(file_at(scheme, path, cwd));
    }
    match claims::of_file(path).as_slice() {
        [] => Err(WorkError::NoFormat { path: path.to_owned() }),
        [Scheme::Prd] => Ok(prd_at(path, &project_of_prd(path, cwd))),
        [one] => Ok(file_at(*one, path, cwd)),
        several => Err(unclear(path, several.to_vec(), cwd)),
    }
}

/// The one way in which a path is work.
fn only_one(mut works: Vec<WorkRef>, path: &Path, cwd: &Path) -> Result<WorkRef, WorkError> {
    match (works.pop(), works.is_empty()) {
        (Some(work), true) => Ok(work),
        (last, _) => {
            let schemes = works.into_iter().chain(last).map(|work| work.id.scheme).collect();
            Err(unclear(path, schemes, cwd))
        }
    }
}

fn unclear(path: &Path, schemes: Vec<Scheme>, cwd: &Path) -> WorkError {
    WorkError::Unclear { shown: shown(cwd, path), schemes }
}

/// A folder: a change, one that holds a `tasks.md`, a project, or one of the folders of a project that hold work.
fn in_folder(path: &Path, cwd: &Path) -> Result<WorkRef, WorkError> {
    let folder = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if let Some(change) = change::around(&folder) {
        return Ok(change_at(change, change::project(change).unwrap_or(cwd)));
    }
    let around: Vec<WorkRef> = folders::around(&folder).into_iter().chain(several::around(&folder)).collect();
    if !around.is_empty() {
        return only_one(around, path, cwd);
    }
    let project = match folder.file_name() {
        Some(name) if name == "openspec" => folder.parent(),
        _ if folder.ends_with("openspec/changes") => folder.ancestors().nth(2),
        _ => None,
    };
    let project = project.unwrap_or(&folder);
    let found = in_project(project);
    let is_tasks = |found: &Found| found.work.main == folder.join(TASKS);
    let others =
        found.iter().any(|found| !is_tasks(found) && found.work.id.scheme != Scheme::Markdown && !found.archived);
    if !folder.join(TASKS).is_file() || others && claims::of_folder(&folder).is_empty() {
        return only(&found, path, cwd);
    }
    let tasks = tasks_in(&folder, cwd)?;
    if !others {
        return Ok(tasks);
    }
    let mut all: Vec<Found> = found.into_iter().filter(|found| !is_tasks(found)).collect();
    all.push(Found { work: tasks, missing: Vec::new(), archived: false });
    only(&all, path, cwd)
}

/// The folder of a `tasks.md`, by what stands beside it. One that stands alone is what `list` says, if it is there.
fn tasks_in(folder: &Path, cwd: &Path) -> Result<WorkRef, WorkError> {
    let tasks = folder.join(TASKS);
    match claims::of_folder(folder).as_slice() {
        [] => {
            let listed = find(cwd).into_iter().find(|found| is_same(&found.work.main, &tasks));
            Ok(listed.map_or_else(|| tasks_at(&tasks, cwd), |found| found.work))
        }
        [Scheme::OpenSpec] => Ok(tasks_at(&tasks, cwd)),
        [one] => Ok(feature_at(*one, folder, cwd)),
        several => Err(unclear(folder, several.to_vec(), cwd)),
    }
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
