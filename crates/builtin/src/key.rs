//! The key of a provider: read when the agent starts, held in memory, given to nobody but the provider.

use std::path::Path;
use std::time::Duration;

use ralphloop_agent::builtin::Key;
use ralphloop_agent::redact::Redactor;
use ralphloop_engine::process::{Call, Environment, Spawner};
use thiserror::Error;

/// How long the command that prints it may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// What is sent to a provider that wants none: some clients and servers refuse an empty one.
const NO_KEY: &str = "none";

/// There is no key.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum NoKey {
    /// None of its variables is set.
    #[error("{} is not set", .0.join(" or "))]
    NotSet(Vec<String>),
    /// The command failed, or printed nothing.
    #[error("the command `{command}` printed no key: {why}")]
    Command {
        /// The command.
        command: String,
        /// How it ended. What it printed is never told.
        why: String,
    },
}

/// A key. It has no `Debug` that shows it.
pub(crate) struct Secret {
    text: String,
    is_secret: bool,
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// Gets it from where it is.
    pub(crate) async fn get(key: &Key, folder: &Path, spawner: &Spawner) -> Result<Self, NoKey> {
        match key {
            Key::None => Ok(Self { text: NO_KEY.to_owned(), is_secret: false }),
            Key::Variables(names) => {
                let set = names.iter().find_map(|name| std::env::var(name).ok().filter(|text| !text.trim().is_empty()));
                let text = set.ok_or_else(|| NoKey::NotSet(names.clone()))?;
                Ok(Self { text: text.trim().to_owned(), is_secret: true })
            }
            Key::Command(command) => {
                let failed = |why: String| NoKey::Command { command: command.clone(), why };
                let output = spawner.run(Call::shell(command, folder).timeout(PATIENCE)).await;
                let output = output.map_err(|error| failed(error.to_string()))?;
                let printed = output.stdout.text();
                let text = printed.lines().next().unwrap_or_default().trim();
                if !output.success() || text.is_empty() {
                    return Err(failed(format!("it {}", output.exit)));
                }
                Ok(Self { text: text.to_owned(), is_secret: true })
            }
        }
    }

    /// For the provider alone.
    pub(crate) fn reveal(&self) -> &str {
        &self.text
    }

    /// What masks it, and what else looks secret in the environment, in all that is printed.
    pub(crate) fn redactor(&self) -> Redactor {
        let own = self.is_secret.then(|| ("API_KEY".into(), self.text.clone().into()));
        Redactor::new(std::env::vars_os().chain(own))
    }

    /// An environment without it, for what the tools start.
    pub(crate) fn kept_from(&self, environment: Environment) -> Environment {
        if !self.is_secret {
            return environment;
        }
        let holds = |value: &std::ffi::OsString| value.to_string_lossy().contains(&self.text);
        let names = std::env::vars_os().filter(|(_, value)| holds(value)).map(|(name, _)| name);
        names.fold(environment, Environment::remove)
    }
}
