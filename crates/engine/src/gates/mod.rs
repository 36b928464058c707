//! Quality gates and story checks: found in the project, run by us, remembered by tree.
//!
//! - [`find`]: which gates a project has, by its manifests.
//! - [`run`]: one gate, as a command under supervision.
//! - [`check`]: one verification step of a story.
//! - [`output`]: what of a command's output is kept and shown.
//! - [`fingerprint`]: when two failures are the same.
//! - [`cache`]: results by tree, and how long each gate takes.

pub mod cache;
pub mod check;
pub mod find;
pub mod fingerprint;
mod inside;
pub mod output;
mod room;
pub mod run;

pub use ralphloop_core::policy::Gate;
