//! The key that commits are signed with: as it is set, or as a command of the user's tells it.

use std::path::Path;

use ralphloop_engine::git::Seal;
use ralphloop_engine::notify::Secret;
use ralphloop_engine::process::{Call, Spawner};

use crate::config::Config;
use crate::error::CliError;
use crate::output::one_line;

/// What signs, and checks what was signed; none where no key is set. A command is asked in `folder`, and its first line is
/// the key.
///
/// # Errors
/// The command is the repository's, fails, or tells nothing.
pub(super) async fn seal(config: &Config, folder: &Path, spawner: &Spawner) -> Result<Option<Seal>, CliError> {
    let settings = &config.settings;
    if let Some(key) = &settings.commit_key {
        return Ok(Some(Seal::new(key.0.clone())));
    }
    let Some(command) = &settings.commit_key_command else { return Ok(None) };
    config.refuse_from_repository("commit_key_command")?;
    let origin = config.origin("commit_key_command");
    let failed = |why: &str| {
        CliError::environment(format!("the key for commits: `{}` {why} ({origin})", one_line(command)))
            .hint("run it yourself: its first line has to be the key, without a question on the terminal")
    };
    let asked = spawner.run(Call::shell(command, folder).timeout(settings.command_timeout)).await;
    let output = asked.map_err(|error| failed("could not be run").cause(&error))?;
    if !output.success() {
        let said = output.stderr.text();
        let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        return Err(failed(&format!("{}: {}", output.exit, one_line(last))));
    }
    let said = output.stdout.text();
    let key = said.lines().next().unwrap_or_default().trim();
    if key.is_empty() {
        return Err(failed("told no key"));
    }
    Ok(Some(Seal::new(Secret::new(key))))
}
