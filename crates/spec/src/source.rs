//! The files of a piece of work, and the way to the reader of their format.

use ralphloop_core::plan::Scheme;

use crate::document::{Document, Reading};
use crate::error::SpecError;
use crate::json::Flavour;
use crate::text::Text;
use crate::{backlog, beads, checklist, fixplan, flight, github, kiro, openspec, prd, speckit, tasks_yaml};

/// A file with its name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SpecText {
    /// How it is called in messages; for companions, relative to the work's folder.
    pub path: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

impl SpecText {
    /// A file of that name and content.
    pub fn new(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { path: path.into(), bytes: bytes.into() }
    }
}

/// All files of one piece of work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecFiles {
    /// The format.
    pub scheme: Scheme,
    /// The file that holds the stories and their state; the first of them, where the work has several. With
    /// [`NEXT_STEPS`] behind its path, only the next steps of a session log are the work, each a story of its own.
    pub main: SpecText,
    /// Further files that hold stories or their state, each of which can be read by itself.
    pub more: Vec<SpecText>,
    /// What stands beside them. `OpenSpec`: `proposal.md`, `design.md`, `specs/**/spec.md`, further `tasks.md` relative to
    /// the change's folder, and the project's `openspec/config.yaml`. Backlog.md: `config.yml` and, without their text,
    /// the tasks that were put aside.
    pub beside: Vec<SpecText>,
    /// What the work is called if it is a folder with a file a story; none if it is its main file.
    pub folder: Option<String>,
}

/// Behind the path of a session log of Flight Rules: its next steps are the work.
pub const NEXT_STEPS: &str = "#next-steps";

impl SpecFiles {
    /// A piece of work that is one file.
    pub fn single(scheme: Scheme, main: SpecText) -> Self {
        Self { scheme, main, more: Vec::new(), beside: Vec::new(), folder: None }
    }

    /// The files that hold stories or their state.
    pub fn stories(&self) -> impl Iterator<Item = &SpecText> {
        std::iter::once(&self.main).chain(&self.more)
    }

    /// How the work is called in messages: its folder or its file.
    pub fn name(&self) -> &str {
        self.folder.as_deref().unwrap_or(&self.main.path)
    }
}

/// Reads a piece of work.
///
/// # Errors
/// The main file cannot be read as work. Companions never stop a reading; what is wrong with them is a warning.
pub fn read(files: &SpecFiles) -> Result<Reading, SpecError> {
    match files.scheme {
        Scheme::Backlog if files.folder.is_some() => return backlog::folder(files),
        Scheme::Flight => return flight::read(files),
        _ => {}
    }
    let text = Text::decode(&files.main.path, &files.main.bytes)?;
    match files.scheme {
        Scheme::OpenSpec => openspec::read(&text, &files.beside),
        Scheme::Prd => prd::document(&text, Flavour::of(&files.main.path)).map(|document| document.reading),
        Scheme::SpecKit => speckit::read(&text, &files.beside),
        Scheme::Kiro => kiro::read(&text, &files.beside),
        scheme => document(scheme, &text, Strictness::Strict).map(|document| document.reading),
    }
}

/// The stories of a main file alone, with their marks.
pub(crate) fn document(scheme: Scheme, text: &Text<'_>, strictness: Strictness) -> Result<Document, SpecError> {
    match scheme {
        Scheme::OpenSpec => openspec::document(text),
        Scheme::Prd => match strictness {
            Strictness::Strict => prd::document(text, Flavour::Strict),
            Strictness::Lenient => prd::document(text, Flavour::Comments),
        },
        Scheme::Markdown => checklist::document(text),
        Scheme::FixPlan => fixplan::document(text),
        Scheme::SpecKit => speckit::document(text),
        Scheme::Kiro => kiro::document(text),
        Scheme::GitHub => github::document(text),
        Scheme::Beads => beads::document(text),
        Scheme::Yaml => tasks_yaml::document(text),
        Scheme::Flight => flight::document(text),
        Scheme::Backlog => backlog::document(text),
    }
}

/// How a file without a name is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// As the format is defined.
    Strict,
    /// With everything that any file name of the format would allow.
    Lenient,
}

/// Reads bytes that have no name: strictly if that is possible, else leniently.
pub(crate) fn unnamed(scheme: Scheme, bytes: &[u8]) -> Result<(Document, Strictness), SpecError> {
    let text = Text::decode(scheme.as_str(), bytes)?;
    match document(scheme, &text, Strictness::Strict) {
        Ok(document) => Ok((document, Strictness::Strict)),
        Err(error) => match document(scheme, &text, Strictness::Lenient) {
            Ok(document) => Ok((document, Strictness::Lenient)),
            Err(_) => Err(error),
        },
    }
}
