//! The program `ralphloop`: verbs, configuration, output.

mod arguments;
mod config;
mod demo;
#[cfg(test)]
mod docs;
mod duration;
mod error;
mod exit;
mod export;
mod host;
mod loop_flags;
mod mcp;
mod money;
mod output;
mod screen;
mod story_flags;
mod verbs;
mod view;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use arguments::Arguments;
use exit::Exit;
use host::Host;

fn main() -> ExitCode {
    // Before anything else: a supervisor has one thread and no use for arguments.
    if std::env::args_os().nth(1).is_some_and(|word| word == verbs::repository::SUPERVISE) {
        return ralphloop_engine::process::supervise_main();
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version come as errors too; a reader that is gone is no reason for another code.
            drop(error.print());
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(Exit::USAGE.code));
        }
    };
    let Some(verb) = arguments.verb else {
        if screen::possible() {
            return finish(Host::of_this_process().and_then(|host| screen::pick::bare(&host)));
        }
        return finish(output::data(&Arguments::command().render_help().ansi().to_string()).map(|()| Exit::DONE));
    };
    finish(Host::of_this_process().and_then(|host| verbs::perform(verb, &host)))
}

/// Says what went wrong, once, and ends with the code that follows from it.
fn finish(result: Result<Exit, error::CliError>) -> ExitCode {
    result
        .unwrap_or_else(|error| {
            if !error.silent {
                output::talk(&error.render());
            }
            error.exit
        })
        .into()
}
