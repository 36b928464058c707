//! Formats that are one file: where the files usually stand, and what they are called.

use std::collections::BTreeSet;
use std::path::Path;

use ralphloop_core::plan::{Scheme, WorkId};
use ralphloop_spec::{ErrorClass, SpecFiles, SpecText};

use super::find::{Found, children};
use super::{WorkRef, read, shown};

/// A usual place of a format, below the project.
struct Place {
    scheme: Scheme,
    folder: &'static str,
    /// Whether a file of this name, lower case, is meant.
    named: fn(&str) -> bool,
}

const PLACES: &[Place] = &[
    Place { scheme: Scheme::Yaml, folder: "", named: is_yaml },
    Place { scheme: Scheme::Yaml, folder: ".gitreins", named: is_yaml },
    Place { scheme: Scheme::Beads, folder: ".beads", named: is_issues },
    Place { scheme: Scheme::FixPlan, folder: "", named: is_fix_plan },
    Place { scheme: Scheme::FixPlan, folder: ".ralph", named: is_fix_plan },
    Place { scheme: Scheme::Markdown, folder: "", named: is_task_list },
    Place { scheme: Scheme::Markdown, folder: "tasks", named: is_prd_text },
    Place { scheme: Scheme::Markdown, folder: "docs/plans", named: is_markdown },
];

fn is_yaml(name: &str) -> bool {
    matches!(name, "tasks.yaml" | "tasks.yml" | "prd.yaml" | "prd.yml")
}

fn is_issues(name: &str) -> bool {
    name == "issues.jsonl"
}

fn is_fix_plan(name: &str) -> bool {
    matches!(name, "@fix_plan.md" | "fix_plan.md" | "implementation_plan.md")
}

fn is_task_list(name: &str) -> bool {
    matches!(name, "prd.md" | "todo.md" | "tasks.md") || is_prd_text(name)
}

fn is_prd_text(name: &str) -> bool {
    name.starts_with("prd-") && Path::new(name).extension().is_some_and(|end| end == "md")
}

fn is_markdown(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|end| end == "md")
}

impl Place {
    fn holds(&self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        (self.named)(&name) && path.is_file()
    }

    /// The project of a file that stands here.
    fn project<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        let folder = path.parent().filter(|folder| folder.ends_with(self.folder))?;
        folder.ancestors().nth(Path::new(self.folder).components().count())
    }
}

/// The files of the project `base` that hold tasks. One that is also found through a link is named once.
pub(super) fn in_project(base: &Path) -> Vec<Found> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for place in PLACES {
        for path in children(&base.join(place.folder)).into_iter().filter(|path| place.holds(path)) {
            if path.canonicalize().is_ok_and(|real| seen.insert(real)) && holds_tasks(place.scheme, &path) {
                let work = work_at(place.scheme, &path, base);
                found.push(Found { work, missing: Vec::new(), archived: false });
            }
        }
    }
    found
}

/// A file that holds no task is not work, whatever it is called; one that is broken is listed with what is wrong.
fn holds_tasks(scheme: Scheme, path: &Path) -> bool {
    let Ok(bytes) = read(path) else { return false };
    match ralphloop_spec::read(&SpecFiles::single(scheme, SpecText::new("", bytes))) {
        Ok(_) => true,
        // Most files of these names belong to other tools.
        Err(error) if scheme == Scheme::Yaml => {
            matches!(error.class, ErrorClass::DuplicateId | ErrorClass::UnknownDependency | ErrorClass::DependencyCycle)
        }
        Err(error) => !matches!(
            error.class,
            ErrorClass::NoTasks | ErrorClass::EmptyFile | ErrorClass::NotUtf8 | ErrorClass::UnrecognisedShape
        ),
    }
}

/// The format that a file at this place has.
pub(super) fn scheme_of(path: &Path) -> Option<Scheme> {
    PLACES.iter().find(|place| place.holds(path) && place.project(path).is_some()).map(|place| place.scheme)
}

/// The project of a file that is to be read as `scheme`, if it stands at a usual place of that format.
pub(super) fn project_of(scheme: Scheme, path: &Path) -> Option<&Path> {
    let places = PLACES.iter().filter(|place| place.scheme == scheme && place.holds(path));
    let projects = places.filter_map(|place| Some((place.folder.len(), place.project(path)?)));
    projects.max_by_key(|(depth, _)| *depth).map(|(_, project)| project)
}

/// The work in the file `path` of the project `base`.
pub(super) fn work_at(scheme: Scheme, path: &Path, base: &Path) -> WorkRef {
    let id = WorkId { scheme, id: shown(base, path) };
    WorkRef { id, main: path.to_owned(), project: base.to_owned(), change: None }
}
