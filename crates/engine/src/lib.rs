//! The effects of ralphloop: processes, git, gates, the journal and the decision loop. Nothing else in the project
//! touches the world.
pub mod gates;
pub mod git;
pub mod process;
