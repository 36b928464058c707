//! Settings: read from the user's file, the project's file, the environment and the flags, each stronger than the one
//! before it.

mod file;
mod flags;
mod generate;
mod keys;
mod origin;
mod own_agents;
mod own_prices;
mod own_providers;
mod own_retries;
mod own_roles;
mod screen;
mod table;
mod told;
mod value;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::error::{CliError, closest};

#[cfg(test)]
pub(crate) use keys::Reach;
pub(crate) use keys::{KEYS, Key, Layer, Settings};
pub(crate) use origin::{Config, Origin};
pub(crate) use own_agents::OwnAgent;
pub(crate) use own_retries::OwnRetry;
pub(crate) use value::{Bytes, Dirty, Form, OnExhausted, Sandbox, SandboxBy, Trusting, Value};

use value::Raw;

/// The name of the project's file.
pub(crate) const PROJECT_FILE: &str = "ralphloop.toml";

/// Variables of the program's own that are no settings.
const OTHER_VARIABLES: &[&str] = &["RALPHLOOP_LOG"];

/// The gates to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Gates {
    /// Those that the work names, else those found in the project.
    Found,
    /// These, in this order.
    Commands(Vec<String>),
    /// None.
    Off,
}

impl Settings {
    /// What `gate` and `no_gates` come to.
    pub(crate) fn gates(&self) -> Gates {
        if self.no_gates {
            Gates::Off
        } else if self.gate.is_empty() {
            Gates::Found
        } else {
            Gates::Commands(self.gate.clone())
        }
    }
}

/// Reads all places and lays them over each other: the user's file, the file of the project that `directory` is in, the
/// environment, `flags`. The second value is what is worth a warning.
pub(crate) fn load(
    directory: &Path,
    environment: &BTreeMap<String, String>,
    flags: Layer,
) -> Result<(Config, Vec<String>), CliError> {
    let user = user_file(environment).map(|path| file::read(&path, |path, line| Origin::UserFile { path, line }));
    let project =
        project_file(directory).map(|path| file::read(&path, |path, line| Origin::ProjectFile { path, line }));
    let (variables, warnings) = from_environment(environment)?;
    let (user, project) = (user.transpose()?.unwrap_or_default(), project.transpose()?.unwrap_or_default());
    if variables.sandbox.is_none() && flags.sandbox.is_none() {
        refuse_a_weaker_sandbox(&user, &project)?;
    }
    Ok((combine(vec![user, project, variables, flags])?, warnings))
}

/// The repository may ask for a sandbox, but not for less of it than the user does.
fn refuse_a_weaker_sandbox(user: &Layer, project: &Layer) -> Result<(), CliError> {
    let (Some(user), Some(project)) = (&user.sandbox, &project.sandbox) else { return Ok(()) };
    if project.value >= user.value {
        return Ok(());
    }
    let (wanted, given) = (user.value.show(), project.value.show());
    let (own, theirs) = (&user.origin, &project.origin);
    Err(CliError::usage(format!(
        "the repository asks for `sandbox = {given}` ({theirs}), and you for {wanted} ({own})"
    ))
    .hint("take the line out of the repository's file")
    .hint(format!("or say what you want of this call: --sandbox {wanted}")))
}

/// The settings that [`Layer::texts`] named, as flags again. What this version does not know or cannot read is left out
/// and named in the second value.
pub(crate) fn from_texts(texts: &[(String, Vec<String>)]) -> (Layer, Vec<String>) {
    let mut layer = Layer::default();
    let lost = texts.iter().filter(|(name, values)| set_flag(&mut layer, name, values).is_err());
    let lost = lost.map(|(name, _)| name.clone()).collect();
    (layer, lost)
}

/// Settings that were given by name, as flags.
pub(crate) fn named(texts: &[(String, Vec<String>)]) -> Result<Layer, CliError> {
    let mut layer = Layer::default();
    for (name, values) in texts {
        set_flag(&mut layer, name, values)?;
    }
    Ok(layer)
}

fn set_flag(layer: &mut Layer, name: &str, values: &[String]) -> Result<(), CliError> {
    let Some(key) = KEYS.iter().find(|key| key.name == name) else {
        let said = CliError::usage(format!("there is no setting {name:?}"));
        let meant = closest(name, KEYS.iter().map(|key| key.name));
        return Err(match meant {
            Some(meant) => said.hint(format!("did you mean {meant}?")),
            None => said.hint("`ralphloop config` lists them"),
        });
    };
    layer.set(key.name, Raw::Flags(values), Origin::Flag(format!("--{}", key.flag()))).map_err(|why| {
        CliError::usage(format!("invalid value '{}' for '--{}': {why}", values.join("', '"), key.flag()))
    })
}

/// What the call gave, laid over what `earlier` gave.
pub(crate) fn over(earlier: Layer, call: Layer) -> Layer {
    keys::over(earlier, call)
}

/// Merges, and settles `gate` against `no_gates`: the stronger place decides, and one place may not say both. Likewise an
/// agent that a stronger place names comes before a command; in one place, the command takes the place of the name.
fn combine(layers: Vec<Layer>) -> Result<Config, CliError> {
    let mut config = keys::merge(layers);
    if config.settings.agent.is_some() && config.origin("agent").rank() > config.origin("agent_command").rank() {
        config.settings.agent_command = None;
    }
    if config.settings.no_gates && !config.settings.gate.is_empty() {
        let (list, none) = (config.origin("gate").clone(), config.origin("no_gates").clone());
        match list.rank().cmp(&none.rank()) {
            std::cmp::Ordering::Greater => config.settings.no_gates = false,
            std::cmp::Ordering::Less => config.settings.gate = Vec::new(),
            std::cmp::Ordering::Equal => {
                return Err(CliError::usage(format!("gates are both given ({list}) and switched off ({none})"))
                    .hint("keep one of the two"));
            }
        }
    }
    Ok(config)
}

/// `$XDG_CONFIG_HOME/ralphloop/config.toml`, or the same below `~/.config`.
pub(crate) fn user_file(environment: &BTreeMap<String, String>) -> Option<PathBuf> {
    let absolute = |name: &str| environment.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")))?;
    Some(folder.join("ralphloop/config.toml")).filter(|path| path.exists())
}

/// The nearest `ralphloop.toml`, from `directory` up to the root of its repository.
pub(crate) fn project_file(directory: &Path) -> Option<PathBuf> {
    for folder in directory.ancestors() {
        let path = folder.join(PROJECT_FILE);
        if path.exists() {
            return Some(path);
        }
        if folder.join(".git").exists() {
            return None;
        }
    }
    None
}

fn from_environment(environment: &BTreeMap<String, String>) -> Result<(Layer, Vec<String>), CliError> {
    let mut layer = Layer::default();
    let mut warnings = Vec::new();
    let known: BTreeMap<String, &Key> = KEYS.iter().map(|key| (key.variable(), key)).collect();
    for (name, value) in environment.iter().filter(|(name, _)| name.starts_with("RALPHLOOP_")) {
        if let Some(key) = known.get(name) {
            layer
                .set(key.name, Raw::Variable(value), Origin::Variable(name.clone()))
                .map_err(|problem| CliError::usage(format!("invalid value '{value}' of {name}: {problem}")))?;
        } else if !OTHER_VARIABLES.contains(&name.as_str())
            && let Some(meant) = closest(name, known.keys().map(String::as_str))
        {
            warnings.push(format!("the environment variable {name} is no setting; did you mean {meant}?"));
        }
    }
    Ok((layer, warnings))
}

#[cfg(test)]
mod tests;
