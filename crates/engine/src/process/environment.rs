//! What a child is given of our environment: one list of variables that no child sees, applied in one place.
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use ralphloop_agent::redact;

/// Variables that tie git to one repository, as `git rev-parse --local-env-vars` lists them, and the two that git adds
/// while a hook or a transport runs. Inherited, each would make the child work on another repository than the one in
/// which it stands.
const REPOSITORY_LOCAL: &[&str] = &[
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_NAMESPACE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// A decision about a child's environment: ours, less what is removed, plus what is set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Environment {
    removed: Vec<OsString>,
    set: Vec<(OsString, OsString)>,
}

impl Environment {
    /// Ours without the variables that tie git to one repository.
    pub fn inherited() -> Self {
        Self::default()
    }

    /// Takes a variable away. A variable that is also set is set.
    #[must_use]
    pub fn remove(mut self, name: impl Into<OsString>) -> Self {
        self.removed.push(name.into());
        self
    }

    /// Sets a variable, also one that is otherwise removed. The last value counts.
    #[must_use]
    pub fn set(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.set.push((name.into(), value.into()));
        self
    }

    /// The child's whole environment.
    pub(super) fn resolve(&self) -> BTreeMap<OsString, OsString> {
        self.applied_to(std::env::vars_os())
    }

    fn applied_to(&self, ours: impl IntoIterator<Item = (OsString, OsString)>) -> BTreeMap<OsString, OsString> {
        let mut all: BTreeMap<_, _> = ours.into_iter().collect();
        for name in REPOSITORY_LOCAL {
            all.remove(OsStr::new(name));
        }
        all.retain(|name, value| !is_own_secret(name, value));
        for name in &self.removed {
            all.remove(name);
        }
        all.extend(self.set.iter().cloned());
        all
    }
}

/// Settings of ours that are nobody else's business: who is told of a run, and with which key.
fn is_own_secret(name: &OsStr, value: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.strip_prefix("RALPHLOOP_")
        .is_some_and(|setting| setting == "NOTIFY" || redact::is_secret(setting, value.as_encoded_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(environment: &Environment, ours: &[&str]) -> Vec<String> {
        environment
            .applied_to(ours.iter().map(|name| ((*name).into(), "outer".into())))
            .into_iter()
            .map(|(name, value)| format!("{}={}", name.to_string_lossy(), value.to_string_lossy()))
            .collect()
    }

    #[test]
    fn every_variable_that_git_calls_local_is_removed() {
        let listed = std::process::Command::new("git").args(["rev-parse", "--local-env-vars"]).output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        assert!(listed.lines().count() > 10, "git lists its variables: {listed:?}");
        for name in listed.lines() {
            assert!(REPOSITORY_LOCAL.contains(&name), "{name} would reach a child");
        }
    }

    #[test]
    fn settings_of_ours_that_are_secret_reach_nobody() {
        let ours = ["RALPHLOOP_NOTIFY", "RALPHLOOP_NOTIFY_SECRET", "RALPHLOOP_AGENT", "MY_SECRET"];
        assert_eq!(names(&Environment::inherited(), &ours), ["MY_SECRET=outer", "RALPHLOOP_AGENT=outer"]);
    }

    #[test]
    fn what_nobody_decided_about_passes_and_what_is_set_beats_what_is_removed() {
        let environment = Environment::inherited().remove("MARKER").set("GIT_INDEX_FILE", "ours").set("CI", "1");
        assert_eq!(
            names(&environment, &["GIT_DIR", "GIT_INDEX_FILE", "GIT_AUTHOR_NAME", "MARKER", "MY_OWN"]),
            ["CI=1", "GIT_AUTHOR_NAME=outer", "GIT_INDEX_FILE=ours", "MY_OWN=outer"]
        );
    }
}
