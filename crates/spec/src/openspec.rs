//! Changes of `OpenSpec`: `tasks.md` with its stories, and the proposal, design and requirement deltas beside it.

mod config;
pub(crate) mod deltas;
mod prompt;

use ralphloop_core::plan::{Context, Plan, Scheme, WorkId, WorkState};

use crate::document::{Document, Reading};
use crate::error::{Code, Diagnostic, SpecError};
use crate::markdown::outline::{Outline, outline};
use crate::markdown::stories::{PLAIN, Stories, stories};
use crate::markdown::verification;
use crate::source::SpecText;
use crate::text::Text;

/// The stories of `tasks.md`.
pub(crate) fn document(text: &Text<'_>) -> Result<Document, SpecError> {
    let outline = outline(text);
    let Stories { list: mut stories, marks, warnings } = stories(text, &outline, PLAIN)?;
    for story in &mut stories {
        story.checks = verification::checks(story);
    }
    let plan = Plan {
        title: outline.title.clone(),
        ..Plan::new(WorkId { scheme: Scheme::OpenSpec, id: change_name(text.file).to_owned() }, stories)
    };
    Ok(Document { reading: Reading::new(plan, outline.title, warnings), marks })
}

/// The stories with all that the change's other files say.
pub(crate) fn read(text: &Text<'_>, beside: &[SpecText]) -> Result<Reading, SpecError> {
    let mut reading = document(text)?.reading;
    let mut context = Context::default();
    for file in beside {
        let companion = match Text::decode(&file.path, &file.bytes) {
            Ok(companion) => companion,
            Err(error) => {
                let message = format!("{} (it is left out)", error.message);
                reading.warnings.push(Diagnostic::warning(Code::UnreadableCompanion, &file.path, error.line, message));
                continue;
            }
        };
        match Companion::of(&file.path, text.file) {
            Companion::Proposal => companion.body.trim().clone_into(&mut context.proposal),
            Companion::Design => companion.body.trim().clone_into(&mut context.design),
            Companion::Delta(capability) => {
                context.requirements.extend(deltas::read(&companion, capability).requirements);
            }
            Companion::Config => match config::read(&companion) {
                Ok(project) => context.project = project,
                Err(warning) => reading.warnings.push(warning),
            },
            Companion::OtherTasks => reading.warnings.extend(open_boxes(&companion)),
            Companion::Unknown => {}
        }
    }
    if let Some(title) = outline_title(&context.proposal) {
        reading.plan.title = Some(title);
    }
    context.tool_prompt = prompt::tool_prompt(text.file, &context);
    reading.plan.context = context;
    Ok(reading)
}

/// What a file beside `tasks.md` is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Companion<'a> {
    Proposal,
    Design,
    /// Requirement deltas of a capability (`identity/tokens`).
    Delta(&'a str),
    Config,
    /// Further tasks in a sub-folder, which are not read.
    OtherTasks,
    Unknown,
}

impl<'a> Companion<'a> {
    pub(crate) fn of(path: &'a str, main: &str) -> Self {
        let name = file_name(path);
        if let Some(capability) = capability(path) {
            return Self::Delta(capability);
        }
        match name {
            "proposal.md" => Self::Proposal,
            "design.md" => Self::Design,
            "config.yaml" | "config.yml" => Self::Config,
            _ if name == "tasks.md" || name == file_name(main) => Self::OtherTasks,
            _ => Self::Unknown,
        }
    }
}

/// `specs/identity/tokens/spec.md` is about `identity/tokens`.
fn capability(path: &str) -> Option<&str> {
    let inside = match path.find("/specs/") {
        _ if path.starts_with("specs/") => &path["specs/".len()..],
        Some(at) => &path[at + "/specs/".len()..],
        None => return None,
    };
    inside.strip_suffix("/spec.md")
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The folder of `tasks.md`; the path itself where there is none.
fn change_name(path: &str) -> &str {
    let folder = path.rsplit_once('/').map(|(folder, _)| file_name(folder));
    folder.filter(|name| !name.is_empty() && *name != "." && *name != "..").unwrap_or(path)
}

fn outline_title(markdown: &str) -> Option<String> {
    let text = Text::decode("", markdown.as_bytes()).ok()?;
    let Outline { title, .. } = outline(&text);
    let title = title?;
    let bare = ["Change:", "Proposal:", "Change Proposal:"].iter().find_map(|word| title.strip_prefix(word));
    let title = bare.unwrap_or(&title).trim();
    let generic = matches!(title.to_lowercase().as_str(), "" | "proposal" | "change" | "why");
    (!generic).then(|| title.to_owned())
}

fn open_boxes(text: &Text<'_>) -> Option<Diagnostic> {
    let outline = outline(text);
    let open = outline.sections.iter().flat_map(|s| &s.items).filter(|item| item.state != WorkState::Done);
    let lines: Vec<u32> = open.map(|item| item.line).collect();
    let message =
        format!("{} open boxes in this file are not part of the work, only those of the main file", lines.len());
    lines.first().map(|line| {
        Diagnostic::warning(Code::OtherTasksFile, text.file, Some(*line), message)
            .with_help("move them into the main tasks.md, or name this file as the work")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn companions_are_known_by_their_place() {
        let of = |path| Companion::of(path, "openspec/changes/a/tasks.md");
        assert_eq!(of("specs/identity/tokens/spec.md"), Companion::Delta("identity/tokens"));
        assert_eq!(of("openspec/changes/a/specs/b/spec.md"), Companion::Delta("b"));
        assert_eq!(of("design.md"), Companion::Design);
        assert_eq!(of("parts/tasks.md"), Companion::OtherTasks);
        assert_eq!(of("openspec/config.yaml"), Companion::Config);
        assert_eq!(of("notes.md"), Companion::Unknown);
    }

    #[test]
    fn a_change_is_called_like_its_folder() {
        assert_eq!(change_name("openspec/changes/add-login/tasks.md"), "add-login");
        assert_eq!(change_name("tasks.md"), "tasks.md");
    }
}
