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

/// Which of our variables a child gets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Passing {
    /// All of them.
    #[default]
    All,
    /// Those that every program needs, and those of these names; `*` stands for any characters at the end of one.
    Named(Vec<String>),
}

/// What every program needs: where it is, who it is for, how to write text, and the way to the network.
const NEEDED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "PWD",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "TZ",
    "TMPDIR",
    "TMP",
    "TEMP",
    "XDG_*",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "RALPHLOOP_*",
    "GIT_AUTHOR_*",
    "GIT_COMMITTER_*",
];

impl Passing {
    /// These names; a lone `*` is all.
    pub fn of(names: &[String]) -> Self {
        if names.iter().any(|name| name == "*") { Self::All } else { Self::Named(names.to_vec()) }
    }

    /// With these too.
    #[must_use]
    pub fn and(self, more: impl IntoIterator<Item = String>) -> Self {
        match self {
            Self::All => Self::All,
            Self::Named(names) => Self::Named(names.into_iter().chain(more).collect()),
        }
    }

    fn has(&self, name: &OsStr) -> bool {
        let Self::Named(names) = self else { return true };
        let name = name.as_encoded_bytes();
        let fits = |pattern: &str| match pattern.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning.as_bytes()),
            None => name == pattern.as_bytes(),
        };
        names.iter().any(|pattern| fits(pattern)) || NEEDED.iter().any(|pattern| fits(pattern))
    }
}

/// A decision about a child's environment: ours, less what is removed, plus what is set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Environment {
    passing: Passing,
    removed: Vec<OsString>,
    set: Vec<(OsString, OsString)>,
}

impl Environment {
    /// Ours without the variables that tie git to one repository.
    pub fn inherited() -> Self {
        Self::default()
    }

    /// Of ours only those that may pass.
    #[must_use]
    pub fn only(mut self, passing: Passing) -> Self {
        self.passing = passing;
        self
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
        all.retain(|name, value| !is_own_secret(name, value) && self.passing.has(name));
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
    fn of_named_variables_a_child_gets_those_and_what_every_program_needs() {
        let passing = Passing::of(&["CARGO_*".to_owned(), "MY_KEY".to_owned()]);
        let environment = Environment::inherited().only(passing).set("CI", "1");
        assert_eq!(
            names(&environment, &["PATH", "LC_ALL", "MY_KEY", "MY_KEY_2", "CARGO_HOME", "AWS_SECRET_ACCESS_KEY"]),
            ["CARGO_HOME=outer", "CI=1", "LC_ALL=outer", "MY_KEY=outer", "PATH=outer"]
        );
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
