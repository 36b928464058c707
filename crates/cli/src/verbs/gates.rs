//! The gates of a run: given, named by the work, or found in the project.

use std::fmt::Write as _;

use ralphloop_core::plan::Plan;
use ralphloop_core::policy::Gate;
use ralphloop_engine::gates::find;

use super::spec::Opened;
use crate::config::{self, Config, Gates, Layer};
use crate::error::CliError;
use crate::host::Host;
use crate::output::{HEAD, one_line, styled};

/// A gate and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chosen {
    /// The gate.
    pub(crate) gate: Gate,
    /// `ralphloop.toml:3`, `named by the work`, `found in Cargo.toml`.
    pub(crate) from: String,
}

/// The gates, and what is worth a warning.
pub(crate) fn choose(config: &Config, plan: &Plan, project: &std::path::Path) -> (Vec<Chosen>, Vec<String>) {
    match config.settings.gates() {
        Gates::Off => (Vec::new(), Vec::new()),
        Gates::Commands(commands) => {
            let from = config.origin("gate").to_string();
            let gate = |command: String| Chosen { gate: Gate { name: command.clone(), command }, from: from.clone() };
            (commands.into_iter().map(gate).collect(), Vec::new())
        }
        Gates::Found if !plan.gates.is_empty() => {
            let named = plan.gates.iter().map(|gate| Chosen {
                gate: Gate { name: gate.name.clone(), command: gate.command.clone() },
                from: "named by the work".to_owned(),
            });
            (named.collect(), Vec::new())
        }
        Gates::Found => {
            let found = find::find(project, &find::on_path);
            let gates = found.gates.into_iter().map(|found| Chosen {
                gate: Gate { name: found.gate.name, command: found.gate.command },
                from: format!("found in {}", found.from.display()),
            });
            let unread = found
                .unreadable
                .iter()
                .map(|(path, why)| format!("{} could not be read, gates may be missing: {why}", path.display()));
            (gates.collect(), unread.collect())
        }
    }
}

/// The gates for people.
pub(super) fn lines(opened: &Opened, plan: &Plan, host: &Host) -> Result<String, CliError> {
    let (config, _) = config::load(&opened.work.project, &host.environment, Layer::default())?;
    let (gates, warnings) = choose(&config, plan, &opened.work.project);
    let mut text = styled(HEAD, "Gates") + "\n";
    if gates.is_empty() {
        text.push_str("  none; only the stories' own checks are proof\n");
    }
    for chosen in gates {
        let _ = writeln!(text, "  {}  ({})", one_line(&chosen.gate.command), one_line(&chosen.from));
    }
    for warning in warnings {
        let _ = writeln!(text, "  warning: {}", one_line(&warning));
    }
    Ok(text)
}
