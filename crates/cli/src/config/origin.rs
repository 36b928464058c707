//! Where a value comes from, and the values after all places were heard.

use std::fmt;

use serde_json::{Value as Json, json};

use super::keys::{KEYS, Key, Settings};
use crate::error::CliError;

/// The place that a value comes from, weakest first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    /// Nobody said anything.
    Default,
    /// The user's file.
    UserFile {
        /// The file.
        path: String,
        /// The line, 1-based.
        line: usize,
    },
    /// The project's file.
    ProjectFile {
        /// The file.
        path: String,
        /// The line, 1-based.
        line: usize,
    },
    /// An environment variable.
    Variable(String),
    /// A flag of this call.
    Flag(String),
}

impl Origin {
    /// How strong the place is: of two, the higher one wins.
    pub(super) fn rank(&self) -> u8 {
        match self {
            Self::Default => 0,
            Self::UserFile { .. } => 1,
            Self::ProjectFile { .. } => 2,
            Self::Variable(_) => 3,
            Self::Flag(_) => 4,
        }
    }

    fn json(&self) -> Json {
        match self {
            Self::Default => json!({ "from": "default" }),
            Self::UserFile { path, line } => json!({ "from": "user_file", "path": path, "line": line }),
            Self::ProjectFile { path, line } => json!({ "from": "project_file", "path": path, "line": line }),
            Self::Variable(name) => json!({ "from": "environment", "variable": name }),
            Self::Flag(flag) => json!({ "from": "flag", "flag": flag }),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Variable(name) | Self::Flag(name) => f.write_str(name),
            Self::UserFile { path, line } | Self::ProjectFile { path, line } => write!(f, "{path}:{line}"),
        }
    }
}

/// A value and the place it stands at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Given<T> {
    /// The value.
    pub(crate) value: T,
    /// The place.
    pub(crate) origin: Origin,
}

/// The settings that hold, each with its origin.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    /// The values.
    pub(crate) settings: Settings,
    /// Their origins, in the order of [`KEYS`].
    pub(super) origins: Vec<Origin>,
}

impl Config {
    /// Every setting: what it is, its value as it would be written, and where that comes from.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&'static Key, String, &Origin)> {
        KEYS.iter().zip(self.settings.values()).zip(&self.origins).map(|((key, (text, _)), origin)| (key, text, origin))
    }

    /// The origin of the setting `name`.
    pub(crate) fn origin(&self, name: &str) -> &Origin {
        let found = KEYS.iter().zip(&self.origins).find(|(key, _)| key.name == name);
        found.map_or(&Origin::Default, |(_, origin)| origin)
    }

    /// Refuses a setting that only a person may give, where the repository's own file gives it.
    ///
    /// # Errors
    /// It does.
    pub(crate) fn refuse_from_repository(&self, name: &str) -> Result<(), CliError> {
        let origin = self.origin(name);
        if !matches!(origin, Origin::ProjectFile { .. }) {
            return Ok(());
        }
        Err(CliError::usage(format!("{name} cannot be set by the repository itself ({origin})"))
            .hint(format!("set it in your own config.toml, or as RALPHLOOP_{}", name.to_uppercase())))
    }

    /// One object: `name` to `{value, from, …}`.
    pub(crate) fn json(&self) -> Json {
        let rows = KEYS.iter().zip(self.settings.values()).zip(&self.origins);
        rows.map(|((key, (_, value)), origin)| {
            let mut row = origin.json();
            row["value"] = value;
            (key.name.to_owned(), row)
        })
        .collect::<serde_json::Map<_, _>>()
        .into()
    }
}
