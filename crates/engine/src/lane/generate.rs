//! Files that a command makes: in conflict, they are made anew and not merged.

use std::path::{Path, PathBuf};

use ralphloop_core::evidence::CheckResult;
use ralphloop_core::ids::CommitId;
use ralphloop_core::policy::Gate;
use tokio_util::sync::CancellationToken;

use super::Parts;
use crate::gates::run::Runner;
use crate::git::Trial;
use crate::patterns::{FilePatterns, NoPattern};
use crate::sandbox::Role;

/// The rules by which files are made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Generated(Vec<Rule>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    files: FilePatterns,
    command: String,
}

impl Generated {
    /// Files of these patterns are made by that command.
    pub fn add(&mut self, patterns: &[String], command: &str) -> Result<(), NoPattern> {
        self.0.push(Rule { files: FilePatterns::of(patterns)?, command: command.to_owned() });
        Ok(())
    }

    /// Each rule: the patterns and the command.
    pub fn rules(&self) -> impl Iterator<Item = (&[String], &str)> {
        self.0.iter().map(|rule| (rule.files.written(), rule.command.as_str()))
    }

    fn rule_of(&self, file: &Path) -> Option<&Rule> {
        self.0.iter().find(|rule| rule.files.has(file))
    }

    /// Every one of the files is made by some command.
    pub(super) fn all_made(&self, files: &[PathBuf]) -> bool {
        files.iter().all(|file| self.rule_of(file).is_some())
    }

    /// The commands that make them, each once, in the order of the rules.
    fn commands(&self, files: &[PathBuf]) -> Vec<&str> {
        let mut commands: Vec<&str> = Vec::new();
        for rule in self.0.iter().filter(|rule| files.iter().any(|file| rule.files.has(file))) {
            if !commands.contains(&rule.command.as_str()) {
                commands.push(&rule.command);
            }
        }
        commands
    }
}

/// What came of making files anew.
pub(super) enum Regenerated {
    /// The lane holds them.
    Made {
        /// The merged tree with them.
        tree: String,
        /// What was done, in words.
        how: String,
    },
    /// The lane holds the conflicts, marked.
    Failed {
        /// Why, in words.
        why: String,
    },
}

/// Makes the files in conflict anew in a lane that was given their merge: as the newer commit has them, and then by their
/// commands.
pub(super) async fn regenerate(
    parts: &Parts,
    onto: &CommitId,
    trial: &Trial,
    cancel: CancellationToken,
) -> Result<Regenerated, String> {
    let files = &trial.conflicts;
    let shared = &parts.shared;
    parts.repository.take_from(onto, files).await.map_err(|e| e.to_string())?;
    let commands = shared.settings.generated.commands(files);
    for command in &commands {
        let runner = Runner {
            spawner: &shared.spawner,
            project: &parts.work.project,
            timeout: shared.settings.times.gate,
            cancel: cancel.clone(),
            environment: &parts.environment,
            sees: &shared.settings.passing.gates,
            redactor: &shared.redactor,
            inside: &|call| parts.confined(call, Role::Gate),
        };
        let gate = Gate { name: "generate".to_owned(), command: (*command).to_owned() };
        let why = match runner.run_gate(&gate).await.map(|ran| ran.result) {
            Ok(CheckResult::Passed) => continue,
            Ok(CheckResult::Failed { why, output }) => {
                let last = output.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
                format!("failed: {why}: {last}")
            }
            Ok(CheckResult::CouldNotRun { why } | CheckResult::NoRoom { why }) => format!("could not run: {why}"),
            Ok(CheckResult::Stopped) | Err(_) => "was stopped".to_owned(),
        };
        parts.repository.take_tree(&trial.tree).await.map_err(|e| e.to_string())?;
        return Ok(Regenerated::Failed { why: format!("`{command}`, which is to make them anew, {why}") });
    }
    let tree = parts.repository.tree_of(files).await.map_err(|e| e.to_string())?;
    let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    let how = format!("{} made anew by `{}`", names.join(", "), commands.join("`, `"));
    Ok(Regenerated::Made { tree, how })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_without_a_folder_names_files_in_any_and_one_with_a_folder_those_there() {
        let mut rules = Generated::default();
        rules.add(&["Cargo.lock".to_owned()], "lock").expect("it is a pattern");
        rules.add(&["ui/*.snap".to_owned()], "snap").expect("it is a pattern");
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert!(rules.all_made(&paths(&["Cargo.lock", "a/b/Cargo.lock", "ui/x.snap"])));
        assert!(!rules.all_made(&paths(&["Cargo.lock", "src/lib.rs"])));
        assert!(!rules.all_made(&paths(&["ui/deep/x.snap"])));
        assert_eq!(rules.commands(&paths(&["ui/x.snap", "Cargo.lock", "b/Cargo.lock"])), ["lock", "snap"]);
    }
}
