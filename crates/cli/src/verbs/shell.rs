//! `completions` and `man`: made from the command line itself.

use clap::{Command, CommandFactory as _};

use crate::arguments::{AFTER_HELP, Arguments, CompletionsArguments, ManArguments};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;

pub(super) fn completions(arguments: &CompletionsArguments) -> Result<Exit, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut shown(), "ralphloop", &mut script);
    output::data(&String::from_utf8_lossy(&script))?;
    Ok(Exit::DONE)
}

/// The command line without what is hidden.
fn shown() -> Command {
    let whole = Arguments::command();
    let verbs = whole.get_subcommands().filter(|verb| !verb.is_hide_set()).cloned();
    let mut shown = Command::new("ralphloop").disable_help_subcommand(true).subcommands(verbs);
    shown = shown.version(env!("CARGO_PKG_VERSION")).after_help(AFTER_HELP);
    if let Some(about) = whole.get_about() {
        shown = shown.about(about.clone());
    }
    shown
}

/// The page of the program, or of one of its verbs, as `man -l -` reads it.
pub(super) fn man(arguments: &ManArguments) -> Result<Exit, CliError> {
    let mut command = shown();
    // Gives verbs their full names.
    command.build();
    let chosen = match &arguments.verb {
        None => &command,
        Some(name) => command.find_subcommand(name).ok_or_else(|| {
            let names: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
            CliError::usage(format!("there is no verb `{name}`")).hint(format!("the verbs are: {}", names.join(", ")))
        })?,
    };
    let mut page = Vec::new();
    clap_mangen::Man::new(chosen.clone())
        .render(&mut page)
        .map_err(|error| CliError::environment("could not write the manual page").cause(&error))?;
    output::data(&String::from_utf8_lossy(&page))?;
    Ok(Exit::DONE)
}
