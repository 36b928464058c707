//! `config`: every setting, its value and where that comes from.

use std::fmt::Write as _;

use crate::arguments::ConfigArguments;
use crate::config::{self, Layer, Origin};
use crate::error::CliError;
use crate::exit::Exit;
use crate::host::Host;
use crate::output;

pub(super) fn config(arguments: &ConfigArguments, host: &Host) -> Result<Exit, CliError> {
    let (config, warnings) = config::load(&host.cwd, &host.environment, Layer::default())?;
    for warning in warnings {
        output::warn(&warning);
    }
    if arguments.json {
        output::json(&config.json())?;
    } else {
        output::data(&text(&config, host))?;
    }
    Ok(Exit::DONE)
}

fn text(config: &config::Config, host: &Host) -> String {
    let mut text = String::new();
    let mut heading = "";
    let width = config.rows().map(|(key, ..)| key.written().len()).max().unwrap_or(0);
    for (key, value, origin) in config.rows() {
        if key.heading != heading {
            let blank = if heading.is_empty() { "" } else { "\n" };
            let _ = writeln!(text, "{blank}{}", output::styled(output::HEAD, key.heading));
            heading = key.heading;
        }
        let value = if *origin == Origin::Default { key.default_text() } else { value.replace('\n', ", ") };
        let place = match origin {
            Origin::Default => output::styled(output::DIM, "default"),
            origin => output::harmless(&origin.to_string()).into_owned(),
        };
        let _ = writeln!(text, "  {:width$}  {}  [{place}]", key.written(), output::one_line(&value));
    }
    text.push_str(&tables(&config.settings));
    let _ = writeln!(text);
    let files = [config::project_file(&host.cwd), config::user_file(&host.environment)];
    for (name, file) in ["project", "user"].iter().zip(files) {
        let file = file.map_or_else(|| "none".to_owned(), |path| path.display().to_string());
        let _ = writeln!(text, "The {name}'s file: {}", output::one_line(&file));
    }
    text
}

/// What stands in tables: the user's own agents, prices, providers, answers to failures and roles, and the files that are
/// made anew.
fn tables(settings: &config::Settings) -> String {
    let agents = settings.agents.iter().map(|own| format!("[agents.{}]  [{}]", own.client.name, own.origin));
    let prices = settings.prices.iter().map(|own| format!("[prices.\"{}\"]", own.prefix));
    let providers = settings.providers.iter().map(|own| format!("[providers.{}]  [{}]", own.provider.name, own.origin));
    let retries = settings.retries.iter().map(config::OwnRetry::shown);
    let roles = settings.roles.iter().map(|own| format!("[roles.{}]", own.name));
    let generated = settings.generate.value.rules();
    let generated = generated.map(|(files, command)| format!("[[generate]] {}: {command}", files.join(", ")));
    let all = agents.chain(prices).chain(providers).chain(retries).chain(roles).chain(generated);
    let lines: Vec<String> = all.collect();
    if lines.is_empty() {
        return String::new();
    }
    let lines = lines.iter().map(|line| format!("  {}\n", output::one_line(line)));
    format!("\n{}\n{}", output::styled(output::HEAD, "Tables"), lines.collect::<String>())
}
