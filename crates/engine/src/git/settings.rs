//! What the user's configuration means for a checkpoint and for a commit.
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::answers::Watched;
use super::{GitError, Repository, path};

/// Where git looks for attributes that hold for a whole system.
const SYSTEM_ATTRIBUTES: &[&str] =
    &["/etc/gitattributes", "/usr/local/etc/gitattributes", "/opt/homebrew/etc/gitattributes"];

/// Where git looks for the configuration of a whole system.
const SYSTEM_CONFIGURATION: &[&str] =
    &["/etc/gitconfig", "/usr/local/etc/gitconfig", "/opt/homebrew/etc/gitconfig", "/opt/local/etc/gitconfig"];

/// Hooks that run when a commit is made; the last one only looks on.
const COMMIT_HOOKS: &[&str] =
    &["pre-commit", "prepare-commit-msg", "commit-msg", "reference-transaction", "post-index-change", "post-commit"];

/// Settings that matter here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Settings {
    /// The settings alone make git convert files: line ends, or attributes outside the repository.
    pub(super) converts: bool,
    /// Where the hooks are.
    pub(super) hooks: PathBuf,
    /// Commits are signed.
    pub(super) signs: bool,
}

impl Settings {
    /// A hook is there that git would run for a commit.
    pub(super) fn has_hooks(&self) -> bool {
        self.hooks_of(COMMIT_HOOKS)
    }

    /// A hook is there that could refuse a commit.
    pub(super) fn has_refusing_hooks(&self) -> bool {
        self.hooks_of(COMMIT_HOOKS.get(..4).unwrap_or_default())
    }

    fn hooks_of(&self, names: &[&str]) -> bool {
        names.iter().any(|name| {
            std::fs::metadata(self.hooks.join(name))
                .is_ok_and(|hook| hook.is_file() && hook.permissions().mode() & 0o111 != 0)
        })
    }
}

impl Repository {
    /// Asks git for the settings, the last of each. Also says which files outside the repository they, and what git ignores,
    /// depend on, as they were before.
    pub(super) async fn settings(&self) -> Result<(Settings, Watched), GitError> {
        let home = PathBuf::from(self.git().variable("HOME").unwrap_or_default());
        let configuration = self.git().variable("XDG_CONFIG_HOME").map_or_else(|| home.join(".config"), PathBuf::from);
        let mut watched = Watched::now(self.outside(&home, &configuration));
        let wanted =
            r"^(core\.(autocrlf|attributesfile|hookspath|excludesfile)|commit\.gpgsign|include(if\..*)?\.path)$";
        let answer = self.read().args(["config", "-z", "--get-regexp", wanted]).answer().await?;
        let mut autocrlf = false;
        let mut attributes = None;
        let mut settings = Settings { converts: false, hooks: self.places().common_dir.join("hooks"), signs: false };
        for item in answer.items() {
            let (name, value) = item.split_at(item.iter().position(|byte| *byte == b'\n').unwrap_or(item.len()));
            let value = value.get(1..).unwrap_or(b"true");
            match name {
                b"core.autocrlf" => autocrlf = is_true(value),
                b"core.attributesfile" => attributes = Some(expand(value, &home, &self.places().top)),
                b"core.hookspath" => settings.hooks = expand(value, &home, &self.places().top),
                b"core.excludesfile" => watched.add(expand(value, &home, &self.places().top)),
                b"commit.gpgsign" => settings.signs = is_true(value),
                // Which files are included from where is for git to know: nothing is relied on.
                _ => watched.everything(),
            }
        }
        let attributes = attributes.unwrap_or_else(|| configuration.join("git/attributes"));
        settings.converts =
            autocrlf || attributes.exists() || SYSTEM_ATTRIBUTES.iter().any(|file| Path::new(file).exists());
        Ok((settings, watched))
    }

    /// Where git keeps configuration and patterns for the user and the system.
    fn outside(&self, home: &Path, configuration: &Path) -> Vec<PathBuf> {
        let named = ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"].into_iter().filter_map(|name| self.git().variable(name));
        let own = [home.join(".gitconfig"), configuration.join("git/config"), configuration.join("git/ignore")];
        named.map(PathBuf::from).chain(own).chain(SYSTEM_CONFIGURATION.iter().map(PathBuf::from)).collect()
    }
}

/// A truth value as git reads it; `autocrlf=input` converts too.
pub(super) fn is_true(value: &[u8]) -> bool {
    !matches!(value.to_ascii_lowercase().as_slice(), b"false" | b"no" | b"off" | b"0" | b"")
}

fn expand(value: &[u8], home: &Path, top: &Path) -> PathBuf {
    match value.strip_prefix(b"~/") {
        Some(rest) => home.join(path(rest)),
        None => top.join(path(value)),
    }
}
