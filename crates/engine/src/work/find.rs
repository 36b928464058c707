//! What is written down in a project.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ralphloop_core::plan::{Scheme, WorkId};

use super::{WorkRef, change, folders, places, several, shown};

/// Where a `prd.json` may stand, below the project.
pub(super) const PRD_FOLDERS: &[&str] = &["", "scripts/ralph", "tasks", ".ralph", "ralph"];

/// A piece of work that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The work.
    pub work: WorkRef,
    /// What its plan still lacks; empty if it is complete.
    pub missing: Vec<String>,
    /// It was put aside as finished.
    pub archived: bool,
}

/// All work of the project that `folder` is in: looked for there, then in each folder above, up to the root of the
/// repository, until there is some. In the order of formats and names, what is archived last.
pub fn find(folder: &Path) -> Vec<Found> {
    bases(folder).map(in_project).find(|found| !found.is_empty()).unwrap_or_default()
}

/// The folders that may be the project: `folder` and those above it, up to the root of the repository. Outside of a
/// repository only `folder`.
pub(super) fn bases(folder: &Path) -> impl Iterator<Item = &Path> {
    let depth = folder.ancestors().position(is_repository).unwrap_or(0);
    folder.ancestors().take(depth + 1)
}

/// A repository begins here.
pub(super) fn is_repository(folder: &Path) -> bool {
    folder.join(".git").exists()
}

/// The work that stands directly in the project `base`.
pub(super) fn in_project(base: &Path) -> Vec<Found> {
    let mut found: Vec<Found> = changes(base);
    found.extend(prds(base));
    found.extend(folders::in_project(base));
    found.extend(several::in_project(base));
    found.extend(places::in_project(base));
    found.sort_by_key(|found| found.archived);
    found
}

fn changes(base: &Path) -> Vec<Found> {
    let folders = children(&base.join("openspec/changes"));
    let changes = folders.into_iter().filter(|path| path.is_dir() && !is_hidden(path) && !path.ends_with("archive"));
    changes
        .map(|folder| Found { missing: change::missing(&folder), work: change_at(&folder, base), archived: false })
        .collect()
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// The change in `folder`, a change's folder below `base`.
pub(super) fn change_at(folder: &Path, base: &Path) -> WorkRef {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    WorkRef {
        id: WorkId { scheme: Scheme::OpenSpec, id: name },
        main: change::tasks_file(folder),
        project: base.to_owned(),
        change: Some(folder.to_owned()),
    }
}

/// The `prd.json` files of `base`. One that is also found through a link is named once, by the shorter name.
fn prds(base: &Path) -> Vec<Found> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for folder in PRD_FOLDERS.iter().map(|folder| base.join(folder)) {
        let mut files: Vec<PathBuf> = children(&folder).into_iter().filter(|path| is_prd(path)).collect();
        files.sort_by_key(|path| (!path.ends_with("prd.json"), path.clone()));
        found.extend(files.into_iter().map(|path| (path, false)));
    }
    for folder in PRD_FOLDERS.iter().map(|folder| base.join(folder)) {
        let archived = children(&folder.join("archive")).into_iter().map(|folder| folder.join("prd.json"));
        found.extend(archived.filter(|path| path.is_file()).map(|path| (path, true)));
    }
    found.retain(|(path, _)| path.canonicalize().is_ok_and(|real| seen.insert(real)));
    let found =
        found.into_iter().map(|(path, archived)| Found { work: prd_at(&path, base), missing: Vec::new(), archived });
    found.collect()
}

/// The work in the file `path` of the project `base`.
pub(super) fn prd_at(path: &Path, base: &Path) -> WorkRef {
    let id = WorkId { scheme: Scheme::Prd, id: shown(base, path) };
    WorkRef { id, main: path.to_owned(), project: base.to_owned(), change: None }
}

fn is_prd(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.strip_suffix(".json").unwrap_or_default();
    (stem == "prd" || stem.starts_with("prd-") || stem.starts_with("prd_")) && path.is_file()
}

/// What is in a folder, by name; nothing if it cannot be read.
pub(super) fn children(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    paths.sort();
    paths
}
