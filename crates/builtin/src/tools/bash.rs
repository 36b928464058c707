//! Commands: bounded in time and output, without a terminal, all that they started ended with them.

use std::time::Duration;

use ralphloop_engine::process::{Call, Capture, Exit, Ownership};
use serde::Deserialize;

use super::{Returned, Toolbox};

/// How long a command may take if the model does not say.
const USUAL: Duration = Duration::from_mins(2);
/// How long it may take at most.
const LONGEST: Duration = Duration::from_mins(10);
/// How much is kept of each output: its beginning and its end, in bytes.
const CAPTURE: Capture = Capture::HeadTail { head: 8 << 10, tail: 16 << 10 };
/// The shell that models know best, and where it is not, the one that is everywhere.
const SHELLS: [&str; 2] = ["/bin/bash", "/bin/sh"];

#[derive(Debug, Deserialize)]
pub(super) struct Bash {
    command: String,
    timeout_seconds: Option<u64>,
}

pub(super) async fn run(tools: &Toolbox, input: &Bash) -> Returned {
    let timeout = input.timeout_seconds.map_or(USUAL, Duration::from_secs).min(LONGEST);
    let shell = SHELLS.iter().find(|shell| std::path::Path::new(shell).exists()).unwrap_or(&SHELLS[1]);
    let call = Call::new(*shell, tools.workspace.current())
        .arg("-c")
        .arg(&input.command)
        .environment(tools.environment.clone())
        .ownership(Ownership::Supervised)
        .capture(CAPTURE)
        .timeout(timeout);
    let output = tools.spawner.run(call).await.map_err(|error| error.to_string())?;
    let mut text = output.stdout.text();
    let errors = output.stderr.text();
    if !errors.trim().is_empty() {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str("[standard error]\n");
        text.push_str(&errors);
    }
    if output.leaked {
        text.push_str("\n[what it left running was ended]");
    }
    match output.exit {
        Exit::Code(0) if text.trim().is_empty() => Ok("(no output)".to_owned()),
        Exit::Code(0) => Ok(text),
        exit => Err(format!("{}\n[it {exit}]", text.trim_end())),
    }
}
