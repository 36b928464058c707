//! `convert`: a piece of work written down in another format.

use std::path::Path;

use ralphloop_core::plan::Scheme;
use ralphloop_engine::files::{FileError, write_new, write_new_folder};
use ralphloop_spec::{ConvertError, Loss, Written};

use super::spec::open;
use crate::arguments::ConvertArguments;
use crate::error::{CliError, closest};
use crate::exit::Exit;
use crate::host::Host;
use crate::output;

pub(super) fn convert(arguments: &ConvertArguments, host: &Host) -> Result<Exit, CliError> {
    let to = scheme(&arguments.to)?;
    let file = arguments.output.as_deref().map(|file| host.cwd.join(file));
    // Said before anything is read: it is the commonest mistake.
    if let Some(file) = file.as_deref().filter(|file| file.symlink_metadata().is_ok()) {
        return Err(exists(file));
    }
    let opened = open(Some(&arguments.work), host)?;
    let reading = opened.reading()?;
    let converted = ralphloop_spec::convert(&reading, to).map_err(|error| {
        let said = CliError::usage(format!("{}: {error}", opened.work.id));
        match error {
            ConvertError::NoFile { .. } => said.hint(format!("what can be written: {}", writable())),
            ConvertError::NothingLeft { .. } | ConvertError::Unproven { .. } => {
                said.hint("nothing was written; try another format")
            }
        }
    })?;
    match (&converted.written, file.as_deref()) {
        (Written::File(text), None) => output::data(text)?,
        (Written::File(text), Some(file)) => {
            write_new(file, text.as_bytes()).map_err(|error| unwritten(file, &error))?;
        }
        (Written::Folder(_), None) => {
            return Err(CliError::usage(format!("{} is written as a folder, and none was named", to.as_str()))
                .hint(format!("name one that is not there yet: -o {}", usual_folder(to))));
        }
        (Written::Folder(_), Some(folder)) if to == Scheme::Flight && !is_area(folder) => {
            return Err(CliError::usage(format!("{} is no place for an area of Flight Rules", folder.display()))
                .hint(format!("areas are found in docs/implementation: -o {}", usual_folder(to))));
        }
        (Written::Folder(files), Some(folder)) => {
            let files = files.iter().map(|file| (Path::new(&file.path), file.bytes.as_slice()));
            write_new_folder(folder, files).map_err(|error| unwritten(folder, &error))?;
        }
    }
    output::talk(&summary(&opened.work.id.to_string(), to, file.as_deref(), &converted.losses));
    Ok(Exit::DONE)
}

/// What was done, and what the new format cannot say.
fn summary(work: &str, to: Scheme, file: Option<&Path>, losses: &[Loss]) -> String {
    let place = file.map_or_else(String::new, |file| format!(", written to {}", file.display()));
    let mut text = format!("{} as {}{place}\n", output::one_line(work), to.as_str());
    if losses.is_empty() {
        text.push_str("nothing is lost\n");
    }
    for loss in losses {
        text.push_str(&format!("  {}\n", output::one_line(&loss.to_string())));
    }
    text
}

fn scheme(word: &str) -> Result<Scheme, CliError> {
    if let Some(scheme) = Scheme::ALL.iter().find(|scheme| scheme.as_str() == word) {
        return Ok(*scheme);
    }
    let said = CliError::usage(format!("there is no format '{word}'"));
    Err(match closest(word, Scheme::ALL.iter().map(|scheme| scheme.as_str())) {
        Some(near) => said.hint(format!("did you mean {near}?")),
        None => said.hint(format!("what can be written: {}", writable())),
    })
}

fn writable() -> String {
    let names = Scheme::ALL.iter().filter(|scheme| ralphloop_spec::can_be_written(**scheme));
    names.map(|scheme| scheme.as_str()).collect::<Vec<_>>().join(", ")
}

/// Where a format that is a folder usually stands.
fn usual_folder(to: Scheme) -> &'static str {
    if to == Scheme::Flight { "docs/implementation/1-area" } else { "backlog" }
}

fn is_area(folder: &Path) -> bool {
    folder.ancestors().any(|above| above.ends_with("implementation"))
}

fn unwritten(place: &Path, error: &FileError) -> CliError {
    if place.exists() { exists(place) } else { CliError::environment("nothing was written").cause(error) }
}

fn exists(file: &Path) -> CliError {
    CliError::usage(format!("{} exists already and is left as it is", file.display()))
        .hint("name another file with -o, or remove it first")
}
