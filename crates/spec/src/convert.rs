//! One plan, written down in another format: what that format can say is said, the rest is kept as text or named.
//!
//! The new text is read again before it is handed out. If it has another number of stories, another story that is done
//! or another dependency, there is no text at all.

mod draft;
mod loss;
mod markdown;
mod prd;
mod yaml;

use ralphloop_core::plan::Scheme;

pub use loss::{Kept, Loss};

use crate::document::Reading;
use crate::source::{Strictness, document};
use crate::text::Text;

/// A plan in another format.
#[derive(Debug, Clone, PartialEq)]
pub struct Converted {
    /// The file.
    pub text: String,
    /// What the format cannot say.
    pub losses: Vec<Loss>,
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
            Scheme::Backlog => no_file("a backlog is a folder with a file a task; `backlog task create` makes one"),
            Scheme::Flight => no_file("an area is a folder with a file a task group"),
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
    let text = match to {
        Scheme::Prd => prd::text(&draft),
        Scheme::Yaml => yaml::text(&draft),
        _ => markdown::text(&draft, to),
    };
    let decoded = Text::decode(to.as_str(), text.as_bytes()).map_err(|error| unproven(error.message))?;
    let after = document(to, &decoded, Strictness::Strict).map_err(|error| unproven(error.message))?.reading;
    let losses = loss::compare(reading, &draft, &after, abilities).map_err(unproven)?;
    Ok(Converted { text, losses })
}

/// Whether [`convert`] can write that format as a file.
pub fn can_be_written(to: Scheme) -> bool {
    Abilities::of(to).is_ok()
}
