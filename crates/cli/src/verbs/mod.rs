//! What each verb does.

pub(crate) mod agent;
mod agents;
pub(crate) mod between;
mod builtin;
pub(crate) mod check;
mod clean;
pub(crate) mod closing;
mod commit_key;
mod config;
mod control;
mod convert;
mod demo;
mod diff;
mod doctor;
pub(crate) mod dry_run;
mod export;
pub(crate) mod gates;
pub(crate) mod init;
pub(crate) mod inventory;
pub(crate) mod launch;
pub(crate) mod list;
mod mark;
mod new;
pub(crate) mod prompt;
pub(crate) mod repository;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod schema;
pub(crate) mod settings;
mod shell;
pub(crate) mod show;
pub(crate) mod sign;
pub(crate) mod spec;
pub(crate) mod take_up;
mod talk;
mod tracker;
pub(crate) mod trust;
mod verify;
mod verify_log;

use crate::arguments::Verb;
use crate::error::CliError;
use crate::exit::Exit;
use crate::host::Host;

/// Does what was asked for, and says how the program ends.
pub(crate) fn perform(verb: Verb, host: &Host) -> Result<Exit, CliError> {
    match verb {
        Verb::Run(arguments) => run::run(*arguments, host),
        Verb::Resume(arguments) => run::resume(*arguments, host),
        Verb::List(arguments) => list::list(&arguments, host),
        Verb::Show(arguments) => show::show(&arguments, host),
        Verb::Check(arguments) => check::check(&arguments, host),
        Verb::Convert(arguments) => convert::convert(&arguments, host),
        Verb::New(arguments) => new::new(&arguments, host),
        Verb::Mark(arguments) => mark::mark(&arguments, host),
        Verb::Sign(arguments) => sign::sign(&arguments, host),
        Verb::Status(arguments) => runs::status(&arguments, host),
        Verb::Runs(arguments) => runs::runs(&arguments, host),
        Verb::Log(arguments) => runs::log(&arguments, host),
        Verb::Diff(arguments) => diff::diff(&arguments, host),
        Verb::Squash(arguments) => closing::squash(&arguments, host),
        Verb::Pr(arguments) => closing::pull_request(&arguments, host),
        Verb::Stop(arguments) => control::stop(&arguments, host),
        Verb::Pause(arguments) => control::pause(&arguments, host),
        Verb::Guide(arguments) => control::guide(&arguments, host),
        Verb::Skip(arguments) => control::skip(&arguments, host),
        Verb::Retry(arguments) => control::retry(*arguments, host),
        Verb::Verify(arguments) => verify::verify(*arguments, host),
        Verb::VerifyLog(arguments) => verify_log::verify_log(&arguments, host),
        Verb::Trust(arguments) => trust::trust(&arguments, host),
        Verb::Config(arguments) => config::config(&arguments, host),
        Verb::Agent { what } => agent::agent(what, host),
        Verb::Agents(arguments) => agents::agents(&arguments, host),
        Verb::Doctor(arguments) => doctor::doctor(&arguments, host),
        Verb::Clean(arguments) => clean::clean(&arguments, host),
        Verb::Completions(arguments) => shell::completions(&arguments),
        Verb::Man(arguments) => shell::man(&arguments),
        Verb::Export(arguments) => export::export(&arguments, host),
        Verb::Schema(arguments) => schema::schema(&arguments),
        Verb::Demo(arguments) => demo::demo(&arguments, host),
        Verb::Init(arguments) => init::init(&arguments, host),
        Verb::Mcp => crate::mcp::serve(host.clone()),
        Verb::Leashed => crate::screen::leash::obey(),
        Verb::BuiltinAgent { setup, model: _ } => builtin::work(&setup, host),
        Verb::DemoAgent { notes } => crate::demo::play(&notes)
            .map(|()| Exit::DONE)
            .map_err(|error| CliError::environment("the scripted agent could not play its part").cause(&error)),
    }
}
