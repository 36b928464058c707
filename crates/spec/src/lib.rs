//! Pure readers and minimal writers of the files in which work is written down: text in, stories and byte edits out.
//!
//! [`read`] makes a [`Reading`] of a piece of work, [`mark_done`] and [`tick_story`] answer with the smallest edits
//! that tick an item, [`reconcile`] says how the spec file is to look after an attempt, and [`check`] tells what is
//! wrong with the work beyond what a reading needs. Nothing here touches a file.
//!
//! A format is one module: it turns text into a document, which is a reading with the places of its marks. All else is
//! the same for every format.
#![forbid(unsafe_code)]

mod backlog;
mod beads;
mod check;
mod checklist;
mod closing;
mod companions;
mod convert;
mod document;
mod edit;
mod error;
mod fixplan;
mod flight;
mod github;
mod graph;
mod json;
mod kiro;
mod label;
mod mark;
mod markdown;
mod mend;
mod openspec;
mod prd;
mod prompt;
mod reconcile;
mod source;
mod speckit;
mod tasks_yaml;
mod text;
mod uniform;
mod words;
mod work;
mod yaml;

pub use check::{LARGEST_STORY, check};
pub use closing::{close_issues, prd_history};
pub use convert::{ConvertError, Converted, Kept, Loss, Written, can_be_written, convert};
pub use document::Reading;
pub use edit::{Edit, StaleEdit, apply};
pub use error::{Code, Diagnostic, ErrorClass, Finding, Severity, SpecError};
pub use flight::fix_task::is_task_group;
pub use mark::{MarkError, mark_done, tick_story};
pub use mend::{Mend, Mended, mend};
pub use reconcile::{OwnBoxes, Reconciled, reconcile};
pub use source::{NEXT_STEPS, SpecFiles, SpecText, read};
pub use uniform::{error_json, to_json};
pub use work::{EditsByFile, ReconciledFiles, add_fix_task, apply_in, mark_in, reconcile_files, told_by_commits};
