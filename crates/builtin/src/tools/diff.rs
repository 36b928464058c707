//! What has changed since the last commit.

use ralphloop_engine::process::{Call, Capture};
use serde::Deserialize;

use super::{Returned, Toolbox};

/// How much is kept of what git says, in bytes.
const CAPTURE: Capture = Capture::HeadTail { head: 24 << 10, tail: 4 << 10 };

#[derive(Debug, Deserialize)]
pub(super) struct Diff {
    path: Option<String>,
}

pub(super) async fn diff(tools: &Toolbox, input: &Diff) -> Returned {
    let path = input.path.as_deref().map(|path| tools.workspace.place(path)).transpose();
    let path = path.map_err(|error| error.to_string())?.unwrap_or_else(|| tools.workspace.top().to_owned());
    let git = |arguments: &[&str]| {
        // Neither a lock, nor a program that the repository's settings name.
        let call =
            Call::new("git", tools.workspace.current()).args(["--no-optional-locks", "-c", "core.fsmonitor=false"]);
        call.args(arguments).arg("--").arg(&path).environment(tools.environment.clone()).capture(CAPTURE)
    };
    let changed = said(tools, git(&["diff", "--no-ext-diff", "--no-textconv", "--no-color", "HEAD"])).await?;
    let new = said(tools, git(&["ls-files", "--others", "--exclude-standard"])).await?;
    let mut text = changed;
    if !new.trim().is_empty() {
        text.push_str("\nNew files:\n");
        text.push_str(&new);
    }
    Ok(if text.trim().is_empty() { "(nothing is changed)".to_owned() } else { text })
}

async fn said(tools: &Toolbox, call: Call) -> Returned {
    let output = tools.spawner.run(call).await.map_err(|error| error.to_string())?;
    if output.success() {
        Ok(output.stdout.text())
    } else {
        Err(format!("git {}: {}", output.exit, output.stderr.text()))
    }
}
