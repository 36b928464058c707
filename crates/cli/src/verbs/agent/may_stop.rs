//! What a session is told that is about to stop while it drives a run: to go on. Whatever goes wrong, it may stop: a session that
//! cannot end is worse than a run that is gone on with later.

use std::path::Path;

use ralphloop_core::run::{Activity, Run};
use ralphloop_engine::files::{self, Access};
use ralphloop_engine::process;
use ralphloop_engine::runs::{ProcessMark, RunFolder};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::exit::Exit;
use crate::host::Host;
use crate::mcp;
use crate::output;
use crate::verbs::control::at_work;
use crate::view::status::{RunState, reason};

/// How often in a row a session is told to go on without anything happening in its run.
const IN_VAIN: u32 = 3;

/// What is known of the last times.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Told {
    /// How long the journal was.
    journal: u64,
    /// How often in a row the session was told at that length.
    times: u32,
}

pub(super) fn may_stop(host: &Host) -> Exit {
    if let Some(why) = why_not(host) {
        // A reader that is gone needs no answer.
        drop(output::json_line(&json!({ "decision": "block", "reason": why })));
    }
    Exit::DONE
}

fn why_not(host: &Host) -> Option<String> {
    let (folder, run) = at_work(host).ok()?.into_iter().find_map(|folder| {
        let process = folder.live_process().filter(is_of_this_session)?;
        let run = folder.fold().ok()?.run;
        (process.is_alive() && mcp::drives(&run) && !matches!(run.activity(), Activity::Ended(_)))
            .then_some((folder, run))
    })?;
    told_again(&folder)?;
    Some(words(&run))
}

/// The server is a child of the agent that this call descends from.
fn is_of_this_session(server: &ProcessMark) -> bool {
    let Some(agent) = process::parent(server.pid) else { return false };
    let mut above = process::parent(std::process::id());
    while let Some(pid) = above.filter(|pid| *pid > 1) {
        if pid == agent {
            return true;
        }
        above = process::parent(pid);
    }
    false
}

/// Counts this time; nothing once it has been in vain too often.
fn told_again(folder: &RunFolder) -> Option<()> {
    let journal = std::fs::metadata(folder.journal()).ok()?.len();
    let place = folder.path().join("told-to-go-on.json");
    let last = read(&place);
    let times = if last.journal == journal { last.times.saturating_add(1) } else { 1 };
    let bytes = serde_json::to_vec(&Told { journal, times }).ok()?;
    files::write_derived(&place, &bytes, Access::Private).ok()?;
    (times <= IN_VAIN).then_some(())
}

fn read(place: &Path) -> Told {
    std::fs::read(place).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

fn words(run: &Run) -> String {
    let doing = reason(run, RunState::of(run, true))
        .map_or_else(String::new, |reason| format!(" ({})", output::one_line(&reason)));
    format!(
        "The ralphloop run of {} that this session drives is not over{doing}. Call the tool `next` of the MCP server \
         `ralphloop`, and do what its answer says. If the user wants the run to end, call `stop` first.",
        output::one_line(&run.plan().work.to_string())
    )
}
