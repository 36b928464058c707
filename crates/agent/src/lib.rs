//! Pure adapters of coding agents: how each is started, how its output reads, what its failures mean, what it is told.
#![forbid(unsafe_code)]
