//! The engine against real programs.
mod gates;
mod process;
