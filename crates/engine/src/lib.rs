//! The effects of ralphloop: processes, git, gates, the journal and the decision loop. Nothing else in the project
//! touches the world.
mod aftermath;
pub mod clean;
pub mod clock;
pub mod control;
pub mod doctor;
pub mod driver;
pub mod files;
pub mod finish;
pub mod gates;
pub mod git;
pub mod journal;
pub mod lane;
pub mod lock;
pub mod notice;
pub mod notify;
pub mod openspec_cli;
pub mod process;
pub mod runs;
pub mod settings;
pub mod signals;
pub mod start;
pub mod tracker;
pub mod transcript;
pub mod work;
