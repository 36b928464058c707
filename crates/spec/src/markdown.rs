//! Markdown with boxes, read line by line with positions, as lenient as the files in use demand.
//!
//! A Markdown library would drop what these files live by: boxes with odd marks or spacing, their byte positions, and
//! tasks behind a fence that nobody closed.

pub(crate) mod boxes;
pub(crate) mod fields;
pub(crate) mod outline;
pub(crate) mod scan;
pub(crate) mod stories;
pub(crate) mod verification;
