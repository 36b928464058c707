//! Commands that a repository brings with it, before they are run: what their shape is, by the grammar of the shell, and
//! whether this user has trusted them.

mod judge;
mod parsed;
mod trust;

pub use judge::{Shape, shape_of};
pub use trust::{Trust, TrustError, Trusted};
