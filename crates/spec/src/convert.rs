//! One plan, written down in another format: what that format can say is said, the rest is kept as text or named.
//!
//! The new text is read again before it is handed out. If it has another number of stories, another story that is done
//! or another dependency, there is no text at all.

mod draft;
mod folder;
mod loss;
mod markdown;
mod prd;
mod yaml;

use ralphloop_core::plan::Scheme;

pub use loss::{Kept, Loss};

use crate::document::Reading;
use crate::source::{SpecFiles, SpecText, read};

/// A plan in another format.
#[derive(Debug, Clone, PartialEq)]
pub struct Converted {
    /// What is to be written.
    pub written: Written,
    /// What the format cannot say.
    pub losses: Vec<Loss>,
}

/// What a format is written as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// The text of a file.
    File(String),
    /// Files by their paths in a folder that is not there yet.
    Folder(Vec<SpecText>),
}

/// Why there is no such file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConvertError {
    /// The format has no file that could be written.
    #[error("{} cannot be written as a file: {way}", .to.as_str())]
    NoFile {
        /// The format.
        to: Scheme,
        /// How its items come into being.
        way: &'static str,
    },
    /// Every story is one that the format would turn into open work.
    #[error("{} cannot say that a story is skipped or optional, and there is no other", .to.as_str())]
    NothingLeft {
        /// The format.
        to: Scheme,
    },
    /// Read again, the file said something else than the plan.
    #[error("as {} the plan would read differently: {what}", .to.as_str())]
    Unproven {
        /// The format.
        to: Scheme,
        /// What differs.
        what: String,
    },
}

/// What a format can say, as far as formats differ in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Abilities {
    ids: Ids,
    says: &'static [Can],
}

/// Something that only some formats can say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Can {
    /// Stories depend on others.
    Deps,
    /// Stories have a rank.
    Priorities,
    /// Stories have a rank from 1 to 3.
    ThreePriorities,
    /// A story says itself that it is done; else its boxes do.
    OwnState,
    /// Stories are skipped.
    Skips,
    /// Stories are optional.
    OptionalStories,
    /// Tasks are optional.
    OptionalTasks,
}

/// What an id may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ids {
    /// Any text.
    Any,
    /// A number or a key at the start of a heading.
    Heading,
    /// A number or a key at the start of a box.
    Box,
    /// `task-7`, of a file in a backlog.
    Task,
    /// `1.2`, of a task group.
    Group,
}

impl Abilities {
    fn of(to: Scheme) -> Result<Self, ConvertError> {
        let no_file = |way| Err(ConvertError::NoFile { to, way });
        let headings = |says| Ok(Self { ids: Ids::Heading, says });
        match to {
            Scheme::Prd => Ok(Self {
                ids: Ids::Any,
                says: &[
                    Can::Deps,
                    Can::Priorities,
                    Can::OwnState,
                    Can::Skips,
                    Can::OptionalStories,
                    Can::OptionalTasks,
                ],
            }),
            Scheme::Yaml => Ok(Self {
                ids: Ids::Any,
                says: &[Can::Deps, Can::Priorities, Can::OwnState, Can::Skips, Can::OptionalStories],
            }),
            Scheme::Markdown => headings(&[Can::Deps, Can::Priorities]),
            Scheme::FixPlan => headings(&[Can::Priorities, Can::OptionalStories]),
            Scheme::OpenSpec | Scheme::SpecKit => headings(&[]),
            Scheme::Kiro => Ok(Self { ids: Ids::Box, says: &[Can::OptionalStories, Can::OptionalTasks] }),
            Scheme::GitHub => no_file("issues live on GitHub; `gh issue create` makes one"),
            Scheme::Backlog => Ok(Self { ids: Ids::Task, says: &[Can::Deps, Can::ThreePriorities, Can::OwnState] }),
            Scheme::Flight => Ok(Self { ids: Ids::Group, says: &[Can::Deps] }),
            Scheme::Beads => no_file("issues live in its own database; `bd create` makes one"),
        }
    }

    fn can(self, what: Can) -> bool {
        self.says.contains(&what)
    }
}

/// Writes the plan as a file of the format `to`.
///
/// # Errors
/// The format has no file of its own, or cannot say what the plan says.
pub fn convert(reading: &Reading, to: Scheme) -> Result<Converted, ConvertError> {
    let abilities = Abilities::of(to)?;
    let unproven = |what: String| ConvertError::Unproven { to, what };
    let draft = draft::Draft::of(reading, abilities);
    if draft.stories.is_empty() {
        return Err(ConvertError::NothingLeft { to });
    }
    let written = match to {
        Scheme::Prd => Written::File(prd::text(&draft)),
        Scheme::Yaml => Written::File(yaml::text(&draft)),
        Scheme::Backlog => Written::Folder(folder::backlog(&draft)),
        Scheme::Flight => Written::Folder(folder::groups(&draft)),
        _ => Written::File(markdown::text(&draft, to)),
    };
    let after = read(&written.as_work(to)).map_err(|error| unproven(error.message))?;
    let losses = loss::compare(reading, &draft, &after, abilities).map_err(unproven)?;
    Ok(Converted { written, losses })
}

impl Written {
    /// The work that it will be.
    fn as_work(&self, to: Scheme) -> SpecFiles {
        match self {
            Self::File(text) => SpecFiles::single(to, SpecText::new(to.as_str(), text.as_str())),
            Self::Folder(files) => {
                let is_story =
                    |file: &&SpecText| std::path::Path::new(&file.path).extension().is_some_and(|end| end == "md");
                let mut stories = files.iter().filter(is_story).cloned();
                SpecFiles {
                    scheme: to,
                    main: stories.next().unwrap_or_default(),
                    more: stories.collect(),
                    beside: files.iter().filter(|file| !is_story(file)).cloned().collect(),
                    folder: Some(to.as_str().to_owned()),
                }
            }
        }
    }
}

/// Whether [`convert`] can write that format as a file.
pub fn can_be_written(to: Scheme) -> bool {
    Abilities::of(to).is_ok()
}
