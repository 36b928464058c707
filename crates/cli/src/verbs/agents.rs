//! `agents`: which agents there are, and which of them could be used now.

mod stats;

use std::fmt::Write as _;

use ralphloop_agent::chain::Chain;
use ralphloop_agent::client::Agent;
use ralphloop_engine::agents::{Found, key_from, look};
use ralphloop_engine::start::is_there;
use serde_json::{Value, json};

use super::repository::{runtime, spawner};
use super::settings;
use crate::arguments::{AgentsArguments, AgentsVerb};
use crate::config::{self, Layer, OwnAgent};
use crate::error::CliError;
use crate::exit::Exit;
use crate::host::Host;
use crate::output::{self, DIM, GOOD, one_line, styled};

pub(super) fn agents(arguments: &AgentsArguments, host: &Host) -> Result<Exit, CliError> {
    match arguments.what.unwrap_or(AgentsVerb::List) {
        AgentsVerb::List => list(arguments.json, host),
        AgentsVerb::Stats => stats::stats(arguments.json, host),
    }
}

fn list(as_json: bool, host: &Host) -> Result<Exit, CliError> {
    let (config, warnings) = config::load(&host.cwd, &host.environment, Layer::default())?;
    for warning in warnings {
        output::warn(&warning);
    }
    let chosen = settings::agents(&config)?;
    let mut found = runtime()?.block_on(look(&spawner()?, &host.cwd, config.settings.command_timeout));
    // Of the built-in agent, the key that counts is that of the provider which was chosen.
    if let Some(setup) = chosen.iter().find_map(Agent::setup) {
        let built_in = found.iter_mut().filter(|found| found.client.is_built_in());
        built_in.for_each(|found| found.signed_in_by = key_from(&setup.provider.key));
    }
    let own = &config.settings.agents;
    if as_json {
        let known = found.iter().filter(|found| !is_hidden(found, own)).map(json_of);
        let agents: Vec<Value> = own.iter().map(json_of_own).chain(known).collect();
        output::json(&json!({ "chosen": chosen.first().name, "chain": chosen.ids(), "agents": agents }))?;
    } else {
        output::data(&text(&found, own, &chosen))?;
        output::talk(
            "Name one with --agent NAME[:MODEL[:EFFORT]], several as a chain (a,b,c), or any other program with --agent-command.\n",
        );
    }
    Ok(Exit::DONE)
}

/// An agent of the user's own has its name.
fn is_hidden(found: &Found, own: &[OwnAgent]) -> bool {
    own.iter().any(|own| own.client.name == found.client.name)
}

fn json_of(found: &Found) -> Value {
    let client = found.client;
    json!({
        "name": client.name,
        "title": client.title,
        "program": client.program,
        "here": found.here,
        "version": found.version,
        // Where nothing shows it may be signed in all the same: a keyring is not asked.
        "signed_in": found.here.then(|| found.signed_in_by.is_some().then_some(true)).flatten(),
        "signed_in_by": found.signed_in_by.as_ref().filter(|_| found.here),
        "format": client.format.as_str(),
        "install": client.install,
        "sign_in": client.sign_in.command,
        "own": false,
    })
}

fn json_of_own(own: &OwnAgent) -> Value {
    json!({
        "name": own.client.name,
        "title": own.client.name,
        "program": own.client.command,
        "here": is_there(&own.client.command),
        "version": null,
        "signed_in": null,
        "signed_in_by": null,
        "format": own.client.format.as_str(),
        "install": null,
        "sign_in": null,
        "own": true,
    })
}

fn text(found: &[Found], own: &[OwnAgent], chosen: &Chain) -> String {
    let mark = |name: &str| if chosen.iter().any(|agent| agent.name == name) { "*" } else { " " };
    let mut text = String::new();
    for own in own {
        let here = if is_there(&own.client.command) { styled(GOOD, "here") } else { "not here".to_owned() };
        let command = one_line(&own.client.command);
        let _ =
            writeln!(text, "{} {:<9} {here}: `{command}` ({})", mark(&own.client.name), own.client.name, own.origin);
    }
    for found in found.iter().filter(|found| !is_hidden(found, own)) {
        let client = found.client;
        let (name, title) = (client.name, client.title);
        let told = if found.here {
            let version = found.version.as_deref().map_or_else(|| "version unknown".to_owned(), one_line);
            let sign_in = match &found.signed_in_by {
                Some(by) => format!("signed in by {}", one_line(by)),
                None => format!("sign-in not seen: {}", client.sign_in.command),
            };
            format!("{}, {version}; {sign_in}", styled(GOOD, "here"))
        } else {
            styled(DIM, &format!("not here: {}", client.install))
        };
        let _ = writeln!(text, "{} {name:<9} {title}: {told}", mark(name));
    }
    text
}
