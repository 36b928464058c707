//! Formats in which a folder holds the tasks and what was planned beside them: Spec Kit and Kiro.

use std::path::Path;

use ralphloop_core::plan::{Scheme, WorkId};

use super::WorkRef;
use super::find::{Found, children};

/// The file with the tasks.
const TASKS: &str = "tasks.md";

/// Where folders of a format stand, below the project, and the file by which a folder without tasks is known.
struct Place {
    scheme: Scheme,
    folder: &'static str,
    known_by: &'static str,
}

/// `specs` comes last, as the others end with it.
const PLACES: &[Place] = &[
    Place { scheme: Scheme::SpecKit, folder: ".specify/specs", known_by: "spec.md" },
    Place { scheme: Scheme::Kiro, folder: ".kiro/specs", known_by: "requirements.md" },
    Place { scheme: Scheme::SpecKit, folder: "specs", known_by: "spec.md" },
];

/// The folders of the project `base` that hold tasks or are to hold some.
pub(super) fn in_project(base: &Path) -> Vec<Found> {
    let mut found = Vec::new();
    for place in PLACES {
        for folder in children(&base.join(place.folder)) {
            let has_tasks = folder.join(TASKS).is_file();
            if has_tasks || folder.join(place.known_by).is_file() {
                let missing = if has_tasks { Vec::new() } else { missing() };
                found.push(Found { work: work_at(place.scheme, &folder, base), missing, archived: false });
            }
        }
    }
    found
}

/// What a folder without tasks lacks.
pub(super) fn missing() -> Vec<String> {
    vec![format!("no {TASKS}")]
}

/// The work whose folder `path`, a file or folder in it or the folder itself, belongs to.
pub(super) fn around(path: &Path) -> Option<WorkRef> {
    path.ancestors().find_map(|folder| {
        let above = folder.parent()?;
        let place = PLACES.iter().find(|place| above.ends_with(place.folder))?;
        let base = above.ancestors().nth(Path::new(place.folder).components().count())?;
        folder.join(TASKS).is_file().then(|| work_at(place.scheme, folder, base))
    })
}

fn work_at(scheme: Scheme, folder: &Path, base: &Path) -> WorkRef {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    WorkRef {
        id: WorkId { scheme, id: name },
        main: folder.join(TASKS),
        project: base.to_owned(),
        change: Some(folder.to_owned()),
    }
}
