//! The agents: which are here, their versions, and whether they look signed in.

use std::collections::BTreeSet;

use ralphloop_agent::builtin::Provider;
use ralphloop_agent::client::{Agent, KnownClient};

use super::{Finding, Subject};
use crate::agents::{Found, key_from, look as look_for, signed_in_by};
use crate::start::{StartError, check_agent};

/// The agents that a run would use, then the others that are here.
pub(super) async fn look(subject: &Subject) -> Vec<Finding> {
    let mut findings = Vec::new();
    let some_here = subject.agents.iter().any(|agent| check_agent(agent).is_ok());
    let missing = |error: StartError, remedy: String| {
        if some_here {
            Finding::warn("agent", format!("{error}; a run goes on without it"), remedy)
        } else {
            Finding::error("agent", error.to_string(), remedy)
        }
    };
    let mut seen = BTreeSet::new();
    let key =
        |agent: &Agent| agent.setup().map_or_else(|| agent.invocation().program, |setup| setup.provider.name.clone());
    for chosen in subject.agents.iter().filter(|agent| seen.insert(key(agent))) {
        if let Some(setup) = chosen.setup() {
            findings.push(built_in(chosen, &setup.provider));
            continue;
        }
        match (check_agent(chosen), chosen.client()) {
            (Err(error), Some(client)) => {
                findings.push(missing(
                    error,
                    format!("{}; or name another with --agent or --agent-command", client.install),
                ));
            }
            (Err(error), None) => {
                findings.push(missing(error, "name another with --agent or --agent-command".to_owned()));
            }
            (Ok(()), Some(client)) => {
                let version = subject.version(client.program).await;
                findings.extend(client_here(client, version, signed_in_by(&client.sign_in)));
            }
            // A program of the user's own is not run to see what it says.
            (Ok(()), None) => {
                findings.push(Finding::ok("agent", format!("`{}` is here", chosen.invocation().program)));
            }
        }
    }
    for found in look_for(&subject.spawner, &subject.project, subject.timeout).await {
        let Found { client, here, version, signed_in_by } = found;
        if here && !client.is_built_in() && subject.agents.iter().all(|chosen| chosen.client() != Some(client)) {
            findings.extend(client_here(client, version, signed_in_by));
        }
    }
    findings
}

/// Of the built-in agent only its key can be missing.
fn built_in(agent: &Agent, provider: &Provider) -> Finding {
    match key_from(&provider.key) {
        Some(key) => Finding::ok("sign-in", format!("{}: at {}, with {key}", agent.id(), provider.url)),
        None => Finding::error(
            "sign-in",
            format!("{} has no key of {}", agent.id(), provider.name),
            provider.key.remedy(&provider.name),
        ),
    }
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
