//! `init`: the project's file of settings, and what lets an agent drive the loop from inside its own session.

pub(crate) mod commands;

use std::fmt::Write as _;
use std::path::Path;

use ralphloop_engine::files::write_new;

use crate::arguments::InitArguments;
use crate::config::{self, KEYS, Settings};
use crate::error::CliError;
use crate::exit::Exit;
use crate::host::Host;
use crate::output;
use commands::Home;

pub(super) fn init(arguments: &InitArguments, host: &Host) -> Result<Exit, CliError> {
    match &arguments.commands {
        Some(homes) => write_commands(homes, &host.cwd),
        None => write_settings(&host.cwd),
    }
}

/// Writes the project's file. One that is there is the user's.
fn write_settings(folder: &Path) -> Result<Exit, CliError> {
    let path = folder.join(config::PROJECT_FILE);
    if path.symlink_metadata().is_ok() {
        return Err(CliError::usage(format!("{} is there already", config::PROJECT_FILE))
            .hint("`ralphloop config` shows what holds"));
    }
    write(&path, &settings_text())?;
    output::talk(&format!("wrote {}: every setting with its default, none of them set\n", config::PROJECT_FILE));
    Ok(Exit::DONE)
}

/// Every setting as a comment: what it is for, and its default.
fn settings_text() -> String {
    let mut text =
        String::from("# Settings of ralphloop for this project. `ralphloop config` shows what holds, and why.\n");
    let mut heading = "";
    for (key, (_, default)) in KEYS.iter().zip(Settings::default().values()) {
        if key.heading != heading {
            heading = key.heading;
            let _ = write!(text, "\n## {heading}\n");
        }
        let _ = writeln!(text, "\n# {}", key.help.split_whitespace().collect::<Vec<_>>().join(" "));
        // What JSON says of such values TOML says too; there is nothing for what is not set.
        let written = if default.is_null() { format!("{:?}", key.value_name) } else { default.to_string() };
        let _ = writeln!(text, "# {} = {written}", key.written());
    }
    text
}

/// Writes the commands for the agents named. What is there already stays as it is.
fn write_commands(homes: &[Home], folder: &Path) -> Result<Exit, CliError> {
    let homes = if homes.is_empty() { Home::found_in(folder) } else { homes.to_vec() };
    let mut said = String::new();
    for home in homes {
        for (name, text) in home.commands() {
            put(folder, &name, &text, &mut said)?;
        }
        let (name, text) = home.server();
        put_entry(folder, name, text, "add this server to it", &mut said)?;
        if let Some((name, text)) = home.stop_hook() {
            put_entry(
                folder,
                name,
                text,
                "add this hook to it, which keeps a session going while its run is not over",
                &mut said,
            )?;
        }
    }
    output::talk(&said);
    Ok(Exit::DONE)
}

/// Writes a file of the agent's settings. One that is there is the user's: what would have to be added to it is said.
fn put_entry(folder: &Path, name: &str, text: &str, meaning: &str, said: &mut String) -> Result<(), CliError> {
    if folder.join(name).symlink_metadata().is_err() {
        return put(folder, name, text, said);
    }
    let there = std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    if !there.contains("ralphloop") {
        let _ = writeln!(said, "{name} is yours: {meaning}\n{text}");
    }
    Ok(())
}

fn put(folder: &Path, name: &str, text: &str, said: &mut String) -> Result<(), CliError> {
    let path = folder.join(name);
    if path.symlink_metadata().is_ok() {
        let kept = if std::fs::read_to_string(&path).is_ok_and(|there| there == text) {
            "is up to date"
        } else {
            "is there already and differs; left as it is"
        };
        let _ = writeln!(said, "{name} {kept}");
        return Ok(());
    }
    write(&path, text)?;
    let _ = writeln!(said, "wrote {name}");
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), CliError> {
    write_new(path, text.as_bytes()).map_err(|error| CliError::environment(error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::config::Layer;

    #[test]
    fn every_default_can_be_uncommented_where_it_stands() {
        let text = settings_text();
        let folder = tempfile::tempdir().unwrap();
        let mut tried = 0;
        for (key, (_, default)) in KEYS.iter().zip(Settings::default().values()) {
            let commented = format!("\n# {} = ", key.written());
            assert_eq!(text.matches(&commented).count(), 1, "{commented}");
            // What is not set has the word for its value instead.
            if !default.is_null() {
                let uncommented = text.replace(&commented, &commented.replace("# ", ""));
                std::fs::write(folder.path().join(config::PROJECT_FILE), uncommented).unwrap();
                let read = config::load(folder.path(), &BTreeMap::new(), Layer::default());
                assert!(read.is_ok(), "{}", read.unwrap_err().render());
                tried += 1;
            }
        }
        assert!(tried > 20, "{tried}");
    }
}
