//! The agents: which are here, their versions, and whether they look signed in.

use ralphloop_agent::client::KnownClient;

use super::{Finding, Subject};
use crate::agents::{Found, look as look_for, signed_in_by};
use crate::start::check_agent;

/// The agent that a run would use, then the others that are here.
pub(super) async fn look(subject: &Subject) -> Vec<Finding> {
    let mut findings = Vec::new();
    let chosen = &subject.agent;
    let program = chosen.invocation().program;
    match (check_agent(chosen), chosen.client()) {
        (Err(error), Some(client)) => {
            let remedy = format!("{}; or name another with --agent or --agent-command", client.install);
            findings.push(Finding::error("agent", error.to_string(), remedy));
        }
        (Err(error), None) => {
            findings.push(Finding::error("agent", error.to_string(), "name another with --agent or --agent-command"));
        }
        (Ok(()), Some(client)) => {
            let version = subject.version(client.program).await;
            findings.extend(client_here(client, version, signed_in_by(&client.sign_in)));
        }
        // A program of the user's own is not run to see what it says.
        (Ok(()), None) => findings.push(Finding::ok("agent", format!("`{program}` is here"))),
    }
    for found in look_for(&subject.spawner, &subject.project, subject.timeout).await {
        let Found { client, here, version, signed_in_by } = found;
        if here && chosen.client().is_none_or(|chosen| chosen.name != client.name) {
            findings.extend(client_here(client, version, signed_in_by));
        }
    }
    findings
}

fn client_here(client: &KnownClient, version: Option<String>, signed_in_by: Option<String>) -> [Finding; 2] {
    let name = client.name;
    [
        match version {
            Some(version) => Finding::ok("agent", format!("{name}: {version}")),
            None => Finding::warn(
                "agent",
                format!("{name} does not tell its version"),
                format!("{} --version shows why; {} installs it anew", client.program, client.install),
            ),
        },
        match signed_in_by {
            Some(by) => Finding::ok("sign-in", format!("{name}: by {by}")),
            None => Finding::warn(
                "sign-in",
                format!("{name} does not look signed in, as far as that can be told without asking"),
                client.sign_in.command,
            ),
        },
    ]
}
