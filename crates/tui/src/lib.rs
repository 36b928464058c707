//! The screen: a view of runs, and a way to steer them.
//!
//! [`Model`] is all that is seen; [`Model::update`] takes one [`Msg`] in and answers with [`Request`]s, [`Model::draw`]
//! puts it into a frame. Both are pure. [`app::show`] owns the terminal, turns keys into messages, and hands requests to
//! its host, which alone has effects. Texts of agents are read by window and never held whole.

pub mod app;
mod draw;
mod facts;
pub mod keys;
mod line;
pub mod mailbox;
pub mod model;
pub mod pick;
pub mod port;
mod sheet;
mod signals;
mod tabs;
mod terminal;
pub mod text;
pub mod theme;

pub use facts::doing;
pub use model::Model;
pub use port::{Msg, Request};
pub use signals::Signals;
