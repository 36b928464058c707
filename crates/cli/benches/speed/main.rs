//! How fast the program is, beside what it is measured by: `cargo bench -p ralphloop --bench speed`.
//!
//! Every ratio is of two things measured in turns in this one run, and every figure is a median: a machine that others
//! use too slows both sides alike. Names of measurements as arguments run only these:
//! `cargo bench -p ralphloop --bench speed -- story tree`. A bound that is missed is said so, and makes it fail.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a measurement that goes wrong ends, and figures are for people"
)]

mod cpu;
mod lanes;
mod reading;
mod redaction;
mod roles;
mod sandbox;
mod screen;
mod start;
mod status;
mod story;
mod stream;
mod table;
mod tree;
mod world;

use std::process::ExitCode;

use table::Table;

/// A measurement: its name, and what fills the table.
type Measurement = (&'static str, fn(&mut Table));

const ALL: [Measurement; 11] = [
    ("story", story::measure),
    ("cpu", cpu::measure),
    ("tree", tree::measure),
    ("start", start::measure),
    ("status", status::measure),
    ("stream", stream::measure),
    ("reading", reading::measure),
    ("redaction", redaction::measure),
    ("lanes", lanes::measure),
    ("screen", screen::measure),
    ("sandbox", sandbox::measure),
];

fn main() -> ExitCode {
    let mut arguments = std::env::args();
    let name = arguments.next().unwrap_or_default();
    if roles::play(&name) {
        return ExitCode::SUCCESS;
    }
    let arguments: Vec<String> = arguments.collect();
    // `cargo test --benches` and test runners that ask for a list start it without this word.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    let wanted: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let mut table = Table::default();
    for (name, measure) in ALL {
        if wanted.is_empty() || wanted.iter().any(|wanted| *wanted == name) {
            println!("measuring: {name}");
            measure(&mut table);
        }
    }
    if table.print() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
