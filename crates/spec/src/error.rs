//! What can be wrong with a spec file: errors that stop the reading, and findings beside it.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::text::Position;

macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $(#[doc = $means:literal] $variant:ident => $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $(#[doc = $means] $variant,)+
        }

        impl $name {
            /// All of them, in the order of their kinds.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// What it means, in a sentence.
            pub fn means(self) -> &'static str {
                match self {
                    $(Self::$variant => $means.trim_ascii(),)+
                }
            }

            /// The name in JSON.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

named! {
    /// Why a file could not be read as work.
    ErrorClass {
        /// Nothing in it but blanks.
        EmptyFile => "empty_file",
        /// Not UTF-8.
        NotUtf8 => "not_utf8",
        /// No front matter, where the format lives by it.
        MissingFrontMatter => "missing_front_matter",
        /// Not JSON.
        JsonSyntax => "json_syntax",
        /// Not YAML.
        YamlSyntax => "yaml_syntax",
        /// A line that is not JSON, in a file of one object a line.
        JsonlSyntax => "jsonl_syntax",
        /// A key twice in one object.
        DuplicateKey => "duplicate_key",
        /// Left-over markers of a merge.
        MergeConflict => "merge_conflict",
        /// No list of stories that could carry a state.
        UnrecognisedShape => "unrecognised_shape",
        /// A known key holds a value of another type.
        WrongType => "wrong_type",
        /// A story without any text.
        MissingField => "missing_field",
        /// Two stories of one id.
        DuplicateId => "duplicate_id",
        /// A dependency that names no story.
        UnknownDependency => "unknown_dependency",
        /// Unfinished stories that wait for each other.
        DependencyCycle => "dependency_cycle",
        /// The file is fine but holds no item.
        NoTasks => "no_tasks",
    }
}

named! {
    /// What is worth saying about a file that could be read.
    Code {
        /// A box with blanks missing or to spare.
        MalformedCheckbox => "malformed_checkbox",
        /// A mark in a box that is neither blank nor x.
        NonstandardMark => "nonstandard_mark",
        /// A box inside a code fence is not counted.
        CheckboxInFence => "checkbox_in_fence",
        /// A box inside an HTML comment is not counted.
        CheckboxInComment => "checkbox_in_comment",
        /// A box inside a quotation is not counted.
        CheckboxInQuote => "checkbox_in_quote",
        /// A fence without an end is read as text.
        UnclosedFence => "unclosed_fence",
        /// A comment without an end is read as text.
        UnclosedComment => "unclosed_comment",
        /// An id twice; the later one got a suffix.
        DuplicateId => "duplicate_id",
        /// A dependency that names nothing here; it holds nothing up.
        UnknownDependency => "unknown_dependency",
        /// A priority without a known meaning; read as none.
        UnknownPriority => "unknown_priority",
        /// A done flag that is not a boolean.
        NonbooleanPasses => "nonboolean_passes",
        /// Flag and status disagree; the flag holds.
        ConflictingDone => "conflicting_done",
        /// An item is marked done over an open item below it.
        ParentDoneChildOpen => "parent_done_child_open",
        /// A box without text.
        EmptyTask => "empty_task",
        /// A task without a line that says how far it is; it is open.
        MissingStatus => "missing_status",
        /// A bare `@name`, which is no YAML; it is read as if it stood in quotes.
        UnquotedAt => "unquoted_at",
        /// A tag in brackets that cannot be understood; it is read as text.
        MalformedTag => "malformed_tag",
        /// A placeholder of a template that nobody filled in.
        TemplatePlaceholder => "template_placeholder",
        /// Another tasks file of the same work holds open boxes.
        OtherTasksFile => "other_tasks_file",
        /// A file beside the main one could not be read.
        UnreadableCompanion => "unreadable_companion",
        /// A story that no check of its own verifies.
        StoryWithoutCheck => "story_without_check",
        /// A story that is to be verified by its tasks, and names none.
        StoryWithoutTasks => "story_without_tasks",
        /// A verification step is a sentence, not a command.
        StepIsNoCommand => "step_is_no_command",
        /// A story that leaves an agent little room to work in one context.
        StoryTooLarge => "story_too_large",
        /// Something that `openspec validate --strict` found.
        OpenspecValidate => "openspec_validate",
        /// Boxes before the first heading.
        BoxOutsideStory => "box_outside_story",
        /// A section of a delta file that is no delta.
        UnknownDeltaSection => "unknown_delta_section",
        /// A delta file without any delta.
        NoDelta => "no_delta",
        /// A requirement without a scenario.
        RequirementWithoutScenario => "requirement_without_scenario",
        /// A requirement that binds to nothing.
        RequirementWithoutShall => "requirement_without_shall",
        /// A RENAMED section whose lines make no pair.
        UnpairedRename => "unpaired_rename",
        /// A requirement twice in one delta file.
        DuplicateRequirement => "duplicate_requirement",
    }
}

/// A file cannot be read as work: what is wrong, where, and the way out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct SpecError {
    /// The kind.
    pub class: ErrorClass,
    /// The file, as it was named.
    pub file: String,
    /// From 1; none where no line makes sense.
    pub line: Option<u32>,
    /// In characters, from 1.
    pub column: Option<u32>,
    /// What is wrong; every fault of the kind.
    pub message: String,
    /// What to do about it; may be empty.
    pub help: String,
}

impl SpecError {
    pub(crate) fn new(class: ErrorClass, file: &str, message: impl Into<String>) -> Self {
        Self { class, file: file.to_owned(), line: None, column: None, message: message.into(), help: String::new() }
    }

    pub(crate) fn at(mut self, position: Position) -> Self {
        self.line = Some(position.line);
        self.column = Some(position.column);
        self
    }

    pub(crate) fn at_line(mut self, line: u32) -> Self {
        self.line = Some(line);
        self
    }

    pub(crate) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = help.into();
        self
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_place(f, &self.file, self.line, self.column)?;
        f.write_str(&self.message)?;
        if !self.help.is_empty() {
            write!(f, "; {}", self.help)?;
        }
        Ok(())
    }
}

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; the work can run.
    Warning,
    /// The work cannot run.
    Error,
}

/// Which rule a finding comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// The file can be read.
    Code(Code),
    /// The file cannot be read.
    Class(ErrorClass),
}

impl Finding {
    /// The name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Code(code) => code.as_str(),
            Self::Class(class) => class.as_str(),
        }
    }
}

impl Serialize for Finding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// Something worth saying about a file: what, where, and the way out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// The rule.
    pub code: Finding,
    /// How much it matters.
    pub severity: Severity,
    /// The file, as it was named.
    pub file: String,
    /// From 1.
    pub line: Option<u32>,
    /// In characters, from 1.
    pub column: Option<u32>,
    /// What is so.
    pub message: String,
    /// What to do about it; may be empty.
    pub help: String,
}

impl Diagnostic {
    pub(crate) fn warning(code: Code, file: &str, line: Option<u32>, message: impl Into<String>) -> Self {
        Self {
            code: Finding::Code(code),
            severity: Severity::Warning,
            file: file.to_owned(),
            line,
            column: None,
            message: message.into(),
            help: String::new(),
        }
    }

    pub(crate) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = help.into();
        self
    }
}

impl From<SpecError> for Diagnostic {
    fn from(error: SpecError) -> Self {
        Self {
            code: Finding::Class(error.class),
            severity: Severity::Error,
            file: error.file,
            line: error.line,
            column: error.column,
            message: error.message,
            help: error.help,
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_place(f, &self.file, self.line, self.column)?;
        f.write_str(&self.message)?;
        if !self.help.is_empty() {
            write!(f, "; {}", self.help)?;
        }
        Ok(())
    }
}

fn write_place(f: &mut fmt::Formatter<'_>, file: &str, line: Option<u32>, column: Option<u32>) -> fmt::Result {
    f.write_str(file)?;
    if let Some(line) = line {
        write!(f, ":{line}")?;
        if let Some(column) = column {
            write!(f, ":{column}")?;
        }
    }
    f.write_str(": ")
}
