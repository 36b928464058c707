//! The folder of an OpenSpec change: `openspec/changes/<name>/`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// How deep capabilities may be nested.
const MAX_DEPTH: usize = 12;

/// The change that `path`, a file or folder in it or the folder itself, belongs to.
pub(super) fn around(path: &Path) -> Option<&Path> {
    path.ancestors().find(|folder| {
        let mut above = folder.ancestors().skip(1).map(|folder| folder.file_name().unwrap_or_default());
        let name = folder.file_name().unwrap_or_default();
        name != "archive"
            && above.next().is_some_and(|n| n == "changes")
            && above.next().is_some_and(|n| n == "openspec")
            || above_is_archive(folder)
    })
}

fn above_is_archive(folder: &Path) -> bool {
    folder.parent().is_some_and(|archive| archive.ends_with("openspec/changes/archive"))
}

/// The folder that holds `openspec/`, for a change in it.
pub(super) fn project(change: &Path) -> Option<&Path> {
    let openspec = change.ancestors().find(|folder| folder.ends_with("openspec/changes"))?.parent()?;
    openspec.parent()
}

/// The file with the tasks: `tasks.md`, or the only one of that name in a sub-folder.
pub(super) fn tasks_file(change: &Path) -> PathBuf {
    let usual = change.join("tasks.md");
    if usual.exists() {
        return usual;
    }
    let mut deeper = files(change).into_iter().filter(|path| path.ends_with("tasks.md"));
    match (deeper.next(), deeper.next()) {
        (Some(only), None) => only,
        _ => usual,
    }
}

/// What the plan of a change still lacks.
pub(super) fn missing(change: &Path) -> Vec<String> {
    let mut missing = Vec::new();
    if !change.join("proposal.md").exists() {
        missing.push("no proposal.md".to_owned());
    }
    if !tasks_file(change).exists() {
        missing.push("no tasks.md".to_owned());
    }
    missing
}

/// What is read beside the tasks file: the change's other texts, and what the project says to every change.
pub(super) fn companions(change: &Path, main: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = files(change).into_iter().filter(|path| path != main).collect();
    if let Some(project) = project(change) {
        let openspec = project.join("openspec");
        let texts = ["config.yaml", "config.yml", "project.md"].map(|name| openspec.join(name));
        found.extend(texts.into_iter().filter(|path| path.is_file()));
    }
    found
}

/// The texts in a change's folder, by name. Every folder is visited once, however links lead to it.
fn files(change: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    visit(change, MAX_DEPTH, &mut seen, &mut found);
    found.sort();
    found
}

fn visit(folder: &Path, depth: usize, seen: &mut BTreeSet<PathBuf>, found: &mut Vec<PathBuf>) {
    let new = folder.canonicalize().is_ok_and(|real| seen.insert(real));
    let Some(entries) = std::fs::read_dir(folder).ok().filter(|_| new && depth > 0) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            visit(&path, depth - 1, seen, found);
        } else if path.is_file()
            && (path.extension().is_some_and(|e| e == "md") || path.file_name().is_some_and(|n| n == ".openspec.yaml"))
        {
            found.push(path);
        }
    }
}
