//! Formats in which a folder holds the tasks and what was planned beside them: Spec Kit and Kiro.

use std::path::Path;

use ralphloop_core::plan::{Scheme, WorkId};

use super::find::{Found, children, is_repository};
use super::{WorkRef, claims};

/// The file with the tasks.
pub(super) const TASKS: &str = "tasks.md";

/// Where folders of a format stand, below the project. Others keep theirs in `specs`, too.
struct Place {
    scheme: Scheme,
    folder: &'static str,
    is_shared: bool,
}

/// `specs` comes last, as the others end with it.
const PLACES: &[Place] = &[
    Place { scheme: Scheme::SpecKit, folder: ".specify/specs", is_shared: false },
    Place { scheme: Scheme::Kiro, folder: ".kiro/specs", is_shared: false },
    Place { scheme: Scheme::SpecKit, folder: "specs", is_shared: true },
];

impl Place {
    /// The formats that claim a folder here: both, where the other files of both stand in it.
    fn schemes(&self, folder: &Path) -> Vec<Scheme> {
        let claimed = if self.is_shared { claims::of_folder(folder) } else { Vec::new() };
        let ours: Vec<Scheme> = [Scheme::Kiro, Scheme::SpecKit].into_iter().filter(|s| claimed.contains(s)).collect();
        if ours.is_empty() { vec![self.scheme] } else { ours }
    }
}

/// The file by which a folder without tasks is known.
fn known_by(scheme: Scheme) -> &'static str {
    if scheme == Scheme::Kiro { "requirements.md" } else { "spec.md" }
}

/// The folders of the project `base` that hold tasks or are to hold some.
pub(super) fn in_project(base: &Path) -> Vec<Found> {
    let mut found = Vec::new();
    for place in PLACES {
        for folder in children(&base.join(place.folder)) {
            let has_tasks = folder.join(TASKS).is_file();
            for scheme in place.schemes(&folder) {
                if has_tasks || folder.join(known_by(scheme)).is_file() {
                    let missing = if has_tasks { Vec::new() } else { missing() };
                    found.push(Found { work: work_at(scheme, &folder, base), missing, archived: false });
                }
            }
        }
    }
    found
}

/// What a folder without tasks lacks.
pub(super) fn missing() -> Vec<String> {
    vec![format!("no {TASKS}")]
}

/// The work whose folder `path`, a file or folder in it or the folder itself, belongs to; in more than one way, if two
/// formats claim it. A repository is no such folder, wherever it stands.
pub(super) fn around(path: &Path) -> Vec<WorkRef> {
    let inside = path.ancestors().take_while(|folder| !is_repository(folder));
    let found = inside.filter_map(|folder| {
        let above = folder.parent()?;
        let place = PLACES.iter().find(|place| above.ends_with(place.folder))?;
        let base = above.ancestors().nth(Path::new(place.folder).components().count())?;
        let schemes = if folder.join(TASKS).is_file() { place.schemes(folder) } else { Vec::new() };
        let works: Vec<WorkRef> = schemes.into_iter().map(|scheme| work_at(scheme, folder, base)).collect();
        Some(works).filter(|works| !works.is_empty())
    });
    found.take(1).flatten().collect()
}

/// The folder of a feature as work of that format.
pub(super) fn work_at(scheme: Scheme, folder: &Path, base: &Path) -> WorkRef {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    WorkRef {
        id: WorkId { scheme, id: name },
        main: folder.join(TASKS),
        project: base.to_owned(),
        change: Some(folder.to_owned()),
    }
}
