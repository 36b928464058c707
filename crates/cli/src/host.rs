//! What the program was started in.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::error::CliError;

/// The folder and the environment of this call, read once.
#[derive(Debug, Clone)]
pub(crate) struct Host {
    /// The current folder, absolute.
    pub(crate) cwd: PathBuf,
    /// The environment, as far as it is text.
    pub(crate) environment: BTreeMap<String, String>,
}

impl Host {
    /// Reads them.
    pub(crate) fn of_this_process() -> Result<Self, CliError> {
        let cwd = std::env::current_dir().map_err(|error| {
            CliError::environment("the current folder cannot be used").cause(&error).hint("change into another one")
        })?;
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Ok(Self { cwd, environment: std::env::vars_os().filter_map(text).collect() })
    }
}
