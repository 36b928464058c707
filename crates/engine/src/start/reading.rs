//! The work as it is read at a start: once, for whoever judges the commands that it brings and for the run itself.

use std::collections::BTreeSet;

use ralphloop_core::graph;
use ralphloop_core::ids::StoryId;
use ralphloop_core::plan::{Check, Plan};
use ralphloop_spec::{Diagnostic, Reading, SpecFiles};

use super::StartError;
use crate::work::{self, WorkRef};

/// A work, read from its files.
#[derive(Debug, Clone)]
pub struct WorkReading {
    files: SpecFiles,
    reading: Reading,
}

impl WorkReading {
    /// Reads the work.
    ///
    /// # Errors
    /// It cannot be found, or is no work.
    pub fn of(work: &WorkRef) -> Result<Self, StartError> {
        Self::of_files(work::load(work)?)
    }

    fn of_files(files: SpecFiles) -> Result<Self, StartError> {
        let reading = ralphloop_spec::read(&files)?;
        Ok(Self { files, reading })
    }

    /// The stories and gates.
    pub fn plan(&self) -> &Plan {
        &self.reading.plan
    }

    /// The plan, if a run of these stories (of all, where none is named) can begin with it; and what is worth a warning.
    ///
    /// # Errors
    /// A story is named that it does not have, or its stories depend on each other in a circle.
    pub fn checked(self, only: &[StoryId]) -> Result<(Plan, Vec<Diagnostic>), StartError> {
        let Reading { plan, warnings, .. } = self.reading;
        let unknown: Vec<String> = only.iter().filter(|id| plan.story(id).is_none()).map(ToString::to_string).collect();
        if !unknown.is_empty() {
            let known = plan.stories.iter().map(|s| s.id.to_string()).collect();
            return Err(StartError::UnknownStory { work: plan.work.to_string(), unknown, known });
        }
        if let Some(cycle) = graph::cycle(&plan.stories) {
            let cycle = cycle.iter().map(ToString::to_string).collect();
            return Err(StartError::Cycle { work: plan.work.to_string(), cycle });
        }
        Ok((plan, warnings))
    }
}

/// The work as it is now: as it was `judged`, if its files are still the same; else read anew, and refused if it brings
/// commands that neither that reading nor the run that is gone on with (`earlier`) had.
pub(super) fn now(
    work: &WorkRef,
    judged: Option<WorkReading>,
    earlier: Option<&Plan>,
) -> Result<WorkReading, StartError> {
    let files = work::load(work)?;
    let judged = match judged {
        Some(judged) if judged.files == files => return Ok(judged),
        other => other,
    };
    let read = WorkReading::of_files(files)?;
    let known: BTreeSet<&str> = judged.iter().map(WorkReading::plan).chain(earlier).flat_map(commands).collect();
    if let Some(command) = commands(read.plan()).find(|command| !known.contains(command)) {
        return Err(StartError::OtherCommands { work: read.plan().work.to_string(), command: command.to_owned() });
    }
    Ok(read)
}

/// All commands for a shell that a plan brings.
fn commands(plan: &Plan) -> impl Iterator<Item = &str> {
    let checks = plan.stories.iter().flat_map(|story| &story.checks).filter_map(|check| match check {
        Check::Shell { command, .. } => Some(command.as_str()),
        _ => None,
    });
    plan.gates.iter().map(|gate| gate.command.as_str()).chain(checks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work_with(check: &str) -> (tempfile::TempDir, WorkRef) {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), check);
        let work = work::resolve(Some("prd.json"), dir.path()).unwrap();
        (dir, work)
    }

    fn write(folder: &std::path::Path, check: &str) {
        let text = format!(
            r#"{{"userStories":[{{"id":"S1","title":"Lamp","passes":false,"verification_steps":[{{"type":"shell","command":"{check}"}}]}}]}}"#
        );
        std::fs::write(folder.join("prd.json"), text).unwrap();
    }

    #[test]
    fn what_was_judged_is_what_is_run_and_a_command_that_came_since_is_refused() {
        let (dir, work) = work_with("./a.sh");
        let judged = WorkReading::of(&work).unwrap();
        assert_eq!(commands(judged.plan()).collect::<Vec<_>>(), ["./a.sh"]);
        assert!(now(&work, Some(judged.clone()), None).is_ok());
        write(dir.path(), "./b.sh");
        let refused = now(&work, Some(judged.clone()), None);
        assert!(
            matches!(&refused, Err(StartError::OtherCommands { command, .. }) if command == "./b.sh"),
            "{refused:?}"
        );
        assert!(matches!(now(&work, None, None), Err(StartError::OtherCommands { .. })));
        // A run that is gone on with began with it.
        let earlier = WorkReading::of(&work).unwrap();
        assert_eq!(now(&work, None, Some(earlier.plan())).unwrap().plan(), earlier.plan());
    }
}
