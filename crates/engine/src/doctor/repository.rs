//! Git and the repository.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use super::Finding;
use crate::git::{self, FindingKind, GitError, OpenError, Repository, Severity};

/// Hooks that run when a story lands.
const HOOKS: &[&str] =
    &["pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "reference-transaction", "post-index-change"];

/// Why there is no repository to work in.
pub(super) fn none(error: &OpenError) -> Option<Finding> {
    let finding = |area, remedy: &str| Some(Finding::error(area, error.to_string(), remedy));
    match error {
        OpenError::NoRepository { .. } => finding("repository", "git init && git add --all && git commit -m Start"),
        OpenError::Bare { .. } => finding("repository", "git clone it, and start in the clone"),
        OpenError::InsideGitDirectory { .. } => finding("repository", "cd to the working tree"),
        OpenError::TooOld { .. } => finding("git", "install a newer git"),
        OpenError::Refused { .. } => finding("repository", "git config --global --add safe.directory FOLDER"),
        OpenError::Unspeakable { .. } => finding("repository", "move it to a folder whose path is plain text"),
        OpenError::Git(GitError::Start { .. }) => finding("git", "install git"),
        OpenError::Git(_) => finding("git", "read what git says above"),
    }
}

/// What a run would look at before it starts, and what it would meet later.
pub(super) async fn look(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(version(repository).await);
    let stops = match repository.preflight().await {
        Ok(stops) => stops,
        Err(error) => {
            findings.push(Finding::error("repository", error.to_string(), "read what git says above"));
            return findings;
        }
    };
    let is_well = |area| !stops.iter().any(|stop| area_of(stop.kind) == area);
    for stop in &stops {
        let (area, message, remedy) = (area_of(stop.kind), stop.message.clone(), stop.remedy.clone());
        findings.push(match stop.severity {
            Severity::Refusal => Finding::error(area, message, remedy),
            Severity::Warning => Finding::warn(area, message, remedy),
        });
    }
    if is_well("repository") {
        findings.push(Finding::ok("repository", repository.places().top.display().to_string()));
    }
    if is_well("tree") {
        findings.push(Finding::ok("tree", "no uncommitted changes"));
    }
    if is_well("identity") {
        findings.extend(identity(repository).await);
    }
    if is_well("identity") && is_well("signing") {
        let signs = is_set(repository, "commit.gpgsign").await;
        let message = if signs { "commits are signed, and one could be just now" } else { "commits are not signed" };
        findings.push(Finding::ok("signing", message));
    }
    findings.extend(hooks(repository).await);
    findings.push(line_ends(repository).await);
    findings
}

fn area_of(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::Dirty | FindingKind::Unmerged => "tree",
        FindingKind::NoIdentity => "identity",
        FindingKind::Signing => "signing",
        FindingKind::DiskSpace => "disk",
        FindingKind::DetachedHead
        | FindingKind::NoCommits
        | FindingKind::OperationUnderWay
        | FindingKind::Locked
        | FindingKind::Unsupported => "repository",
    }
}

async fn version(repository: &Repository) -> Option<Finding> {
    let version = line(repository, &["version"]).await?;
    let (major, minor) = git::MINIMUM_VERSION;
    let number = version.strip_prefix("git version ").unwrap_or(&version);
    Some(Finding::ok("git", format!("{number} ({major}.{minor} or newer is needed)")))
}

async fn identity(repository: &Repository) -> Option<Finding> {
    let identity = line(repository, &["var", "GIT_COMMITTER_IDENT"]).await?;
    // Seconds and time zone follow.
    let who = identity.rfind('>').map_or(identity.as_str(), |end| &identity[..=end]);
    Some(Finding::ok("identity", who))
}

async fn hooks(repository: &Repository) -> Vec<Finding> {
    let Some(folder) = line(repository, &["rev-parse", "--path-format=absolute", "--git-path", "hooks"]).await else {
        return Vec::new();
    };
    let folder = PathBuf::from(folder);
    let mode = |name: &&&str| std::fs::metadata(folder.join(name)).ok().filter(std::fs::Metadata::is_file);
    let is_executable = |name: &&&str| mode(name).is_some_and(|meta| meta.permissions().mode() & 0o111 != 0);
    let (run, ignored): (Vec<_>, Vec<_>) = HOOKS.iter().filter(|name| mode(name).is_some()).partition(is_executable);
    let list = |names: &[&&str]| names.iter().map(|name| **name).collect::<Vec<_>>().join(", ");
    let mut findings = Vec::new();
    if run.is_empty() {
        findings.push(Finding::ok("hooks", "none runs when a story lands"));
    } else {
        findings.push(Finding::ok("hooks", format!("run when a story lands, and may refuse it: {}", list(&run))));
    }
    if let Some(first) = ignored.first() {
        findings.push(Finding::warn(
            "hooks",
            format!("git ignores these, since they are not executable: {}", list(&ignored)),
            format!("chmod +x '{}'", folder.join(first).display()),
        ));
    }
    findings
}

async fn line_ends(repository: &Repository) -> Finding {
    let value = line(repository, &["config", "--get", "core.autocrlf"]).await.unwrap_or_default();
    let safe = line(repository, &["config", "--get", "core.safecrlf"]).await.unwrap_or_default();
    if safe.eq_ignore_ascii_case("true") {
        return Finding::warn(
            "line ends",
            "core.safecrlf refuses files whose line ends it cannot restore, which an agent may write",
            "git config core.safecrlf warn",
        );
    }
    if value.eq_ignore_ascii_case("true") {
        return Finding::warn(
            "line ends",
            "core.autocrlf checks text out with CRLF, while agents write LF: whole files may seem changed to tools",
            "git config core.autocrlf input",
        );
    }
    Finding::ok(
        "line ends",
        if value.is_empty() { "as they are written".to_owned() } else { format!("core.autocrlf is {value}") },
    )
}

async fn is_set(repository: &Repository, name: &str) -> bool {
    line(repository, &["config", "--type=bool", "--get", name]).await.as_deref() == Some("true")
}

/// What git answers, if it answers with a line.
async fn line(repository: &Repository, args: &[&str]) -> Option<String> {
    let answer = repository.git().read(&repository.places().top).args(args).answer().await.ok()?;
    let line = answer.line().ok().filter(|_| answer.success())?;
    Some(line.to_owned()).filter(|line| !line.is_empty())
}
