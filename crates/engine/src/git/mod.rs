//! The repository: looked at before a run, checkpointed, put back exactly, landed in.
