//! The agents: which are here, their versions, and whether they look signed in.

use std::path::PathBuf;

use ralphloop_agent::client::{KNOWN, KnownClient};

use super::{Finding, Subject};
use crate::gates::find::on_path;
use crate::start::check_agent;

/// Where a client's sign-in shows without asking anybody.
struct SignIn {
    /// Variables of which any one is enough.
    variables: &'static [&'static str],
    /// Files below the home folder, likewise.
    files: &'static [&'static str],
    /// How to sign in.
    command: &'static str,
}

/// Of the client of that name, if it is known.
fn sign_in_of(client: &str) -> Option<SignIn> {
    match client {
        "claude" => Some(SignIn {
            variables: &[
                "ANTHROPIC_API_KEY",
                "ANTHROPIC_AUTH_TOKEN",
                "CLAUDE_CODE_OAUTH_TOKEN",
                "CLAUDE_CODE_USE_BEDROCK",
                "CLAUDE_CODE_USE_VERTEX",
            ],
            files: &[".claude/.credentials.json"],
            command: "claude, then /login; or set ANTHROPIC_API_KEY",
        }),
        "codex" => Some(SignIn {
            variables: &["OPENAI_API_KEY", "CODEX_API_KEY"],
            files: &[".codex/auth.json"],
            command: "codex login",
        }),
        "gemini" => Some(SignIn {
            variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
            files: &[".gemini/oauth_creds.json"],
            command: "gemini, and choose how to sign in; or set GEMINI_API_KEY",
        }),
        _ => None,
    }
}

/// The agent that a run would use, then the others that are here.
pub(super) async fn look(subject: &Subject) -> Vec<Finding> {
    let mut findings = Vec::new();
    let chosen = &subject.agent;
    let program = chosen.invocation().program;
    let known = KNOWN.iter().find(|client| client.name == chosen.name && client.program == program);
    match (check_agent(chosen), known) {
        (Err(error), Some(client)) => {
            let remedy = format!("{}; or name another with --agent or --agent-command", client.install);
            findings.push(Finding::error("agent", error.to_string(), remedy));
        }
        (Err(error), None) => {
            findings.push(Finding::error("agent", error.to_string(), "name another with --agent or --agent-command"));
        }
        (Ok(()), Some(client)) => findings.extend(client_here(subject, client).await),
        // A program of the user's own is not run to see what it says.
        (Ok(()), None) => findings.push(Finding::ok("agent", format!("`{program}` is here"))),
    }
    for client in KNOWN.iter().filter(|client| client.name != chosen.name && on_path(client.program)) {
        findings.extend(client_here(subject, client).await);
    }
    findings
}

async fn client_here(subject: &Subject, client: &KnownClient) -> Vec<Finding> {
    let name = client.name;
    let mut findings = vec![match subject.version(client.program).await {
        Some(version) => Finding::ok("agent", format!("{name}: {version}")),
        None => Finding::warn(
            "agent",
            format!("{name} does not tell its version"),
            format!("{} --version shows why; {} installs it anew", client.program, client.install),
        ),
    }];
    if let Some(sign_in) = sign_in_of(name) {
        findings.push(match sign_in.shows() {
            Some(by) => Finding::ok("sign-in", format!("{name}: by {by}")),
            None => Finding::warn(
                "sign-in",
                format!("{name} does not look signed in, as far as that can be told without asking"),
                sign_in.command,
            ),
        });
    }
    findings
}

impl SignIn {
    /// What it shows by.
    fn shows(&self) -> Option<String> {
        let is_set = |name: &&&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        if let Some(variable) = self.variables.iter().find(is_set) {
            return Some((*variable).to_owned());
        }
        let home = std::env::home_dir().unwrap_or_else(|| PathBuf::from("/"));
        self.files.iter().map(|file| home.join(file)).find(|file| file.is_file()).map(|file| file.display().to_string())
    }
}
