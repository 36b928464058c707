//! `mark`: a story or task ticked by hand, with the edit that the loop would make.

use ralphloop_engine::files::{Access, write_atomic};
use ralphloop_engine::tracker::Tracker;

use super::spec::open;
use crate::arguments::MarkArguments;
use crate::error::CliError;
use crate::exit::Exit;
use crate::host::Host;
use crate::output;

pub(super) fn mark(arguments: &MarkArguments, host: &Host) -> Result<Exit, CliError> {
    let opened = open(Some(&arguments.work), host)?;
    let reading = opened.reading()?;
    let id = arguments.id.as_str();
    if let Some(tracker) = Tracker::of(&opened.work)
        && reading.plan.story(&id.into()).is_some()
    {
        super::tracker::close(&tracker, &id.into())?;
        output::talk(&format!("{} is closed through {}\n", output::one_line(id), tracker.program()));
        return Ok(Exit::DONE);
    }
    let refused = |error: &dyn std::error::Error| {
        CliError::usage(format!("could not mark {id} in {}", opened.work.id)).cause(error)
    };
    let edits = ralphloop_spec::mark_in(&opened.files, id).map_err(|error| refused(&error))?;
    if edits.is_empty() {
        output::talk(&format!("{} is done already\n", output::one_line(id)));
        return Ok(Exit::DONE);
    }
    let marked = ralphloop_spec::apply_in(&opened.files, &edits).map_err(|error| refused(&error))?;
    for file in marked {
        let left = ralphloop_spec::mark_done(opened.files.scheme, &file.bytes, id).map_err(|error| refused(&error))?;
        if !left.is_empty() {
            return Err(CliError::usage(format!("{id} would still be open after the edit; nothing was changed")));
        }
        write_atomic(&opened.work.place_of(&file.path), &file.bytes, Access::Usual)
            .map_err(|error| CliError::environment(format!("could not mark {id}")).cause(&error))?;
        output::talk(&format!("{} is marked as done in {}\n", output::one_line(id), output::one_line(&file.path)));
    }
    Ok(Exit::DONE)
}
