//! The sandbox: whether this machine has one, found out by trying to break out of it.

use super::{Finding, Subject};
use crate::sandbox::{Choice, Level, Sandbox};

const AREA: &str = "sandbox";

pub(super) async fn look(subject: &Subject) -> Finding {
    let (level, is_asked) = match subject.sandbox {
        Choice::Asked(level) => (level, true),
        Choice::Off => (Level::Workspace, false),
    };
    // Of nobody's runs: looking must leave nothing behind.
    let state = match tempfile::Builder::new().prefix("ralphloop-doctor-").tempdir() {
        Ok(state) => state,
        Err(error) => {
            return Finding::warn(AREA, format!("it could not be tried: {error}"), "make room for temporary files");
        }
    };
    let opened = Sandbox::open(level, subject.sandbox_terms.clone(), state.path(), &subject.spawner).await;
    match opened {
        Ok(sandbox) => {
            let tried = match sandbox.attempts(&subject.spawner).await {
                Ok(tried) => tried,
                Err(why) => {
                    return Finding::warn(AREA, format!("it could not be tried: {why}"), "run doctor once more");
                }
            };
            Finding::ok(
                AREA,
                format!(
                    "`{}` works here, by {}: {} attempts to break out failed{}",
                    level.as_str(),
                    sandbox.mechanism().as_str(),
                    tried.len(),
                    if subject.sandbox == Choice::Off { "; `--sandbox workspace` uses it" } else { "" },
                ),
            )
        }
        Err(error) => {
            let remedy = error.remedies().join("; ");
            if is_asked {
                Finding::error(AREA, error.to_string(), remedy)
            } else {
                Finding::warn(AREA, error.to_string(), remedy)
            }
        }
    }
}
