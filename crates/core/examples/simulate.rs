//! Plays any number of seeded worlds against the core and prints the seed that fails, with what happened in it:
//! `cargo run -p ralphloop-core --example simulate -- --seeds 1000000 --from 1`.
#![expect(clippy::print_stdout, clippy::expect_used, reason = "a command for developers")]

#[path = "../tests/sim/mod.rs"]
mod sim;

use std::process::ExitCode;
use std::time::Instant;

const USAGE: &str = "usage: simulate [--seeds N] [--from S] [--plant NAME]";

fn main() -> ExitCode {
    let Some((seeds, from, planted)) = arguments() else {
        println!("{USAGE}\nbugs to plant: {:?}", sim::Planted::ALL);
        return ExitCode::from(2);
    };
    let begun = Instant::now();
    match sim::simulate_many(from, seeds, planted) {
        Ok(tally) => {
            println!(
                "{seeds} seeds from {from} hold: {} steps, {} crashes, {} calls, {} landings, in {:.1} s",
                tally.steps,
                tally.crashes,
                tally.calls,
                tally.landed,
                begun.elapsed().as_secs_f64()
            );
            ExitCode::SUCCESS
        }
        Err(broken) => {
            println!("{}\nseed {}: {}", broken.trace.join("\n"), broken.seed, broken.breach);
            ExitCode::FAILURE
        }
    }
}

fn arguments() -> Option<(u64, u64, Option<sim::Planted>)> {
    let (mut seeds, mut from, mut planted) = (20_000, 1, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(flag) = arguments.next() {
        let value = arguments.next()?;
        match flag.as_str() {
            "--seeds" => seeds = value.parse().ok()?,
            "--from" => from = value.parse().ok()?,
            "--plant" => planted = Some(sim::Planted::ALL.into_iter().find(|p| format!("{p:?}") == value)?),
            _ => return None,
        }
    }
    Some((seeds, from, planted))
}
