//! Texts that stand beside the tasks: why, and how.

use crate::document::Reading;
use crate::error::{Code, Diagnostic};
use crate::source::SpecText;
use crate::text::Text;

/// Takes the files of these names in; one that cannot be read is a warning.
pub(crate) fn take(reading: &mut Reading, beside: &[SpecText], proposal: &str, design: &str) {
    for file in beside.iter().filter(|file| file.path == proposal || file.path == design) {
        match Text::decode(&file.path, &file.bytes) {
            Ok(text) if file.path == proposal => text.body.trim().clone_into(&mut reading.plan.context.proposal),
            Ok(text) => text.body.trim().clone_into(&mut reading.plan.context.design),
            Err(error) => {
                let message = format!("{} (it is left out)", error.message);
                reading.warnings.push(Diagnostic::warning(Code::UnreadableCompanion, &file.path, error.line, message));
            }
        }
    }
}

/// The folder of the main file as a name; the path itself where there is none.
pub(crate) fn folder_name(path: &str) -> &str {
    let folder = path.rsplit_once('/').and_then(|(folder, _)| folder.rsplit('/').next());
    folder.filter(|name| !matches!(*name, "" | "." | "..")).unwrap_or(path)
}
