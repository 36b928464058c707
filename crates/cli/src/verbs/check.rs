//! `check`: what is wrong with a piece of work, with places and ways out.

use ralphloop_spec::{Diagnostic, Severity};
use serde_json::json;

use super::spec::open;
use crate::arguments::CheckArguments;
use crate::error::{CliError, render_finding};
use crate::exit::Exit;
use crate::host::Host;
use crate::output;

pub(super) fn check(arguments: &CheckArguments, host: &Host) -> Result<Exit, CliError> {
    let opened = open(arguments.work.as_deref(), host)?;
    let findings = ralphloop_spec::check(&opened.files);
    let (errors, warnings): (Vec<&Diagnostic>, Vec<&Diagnostic>) =
        findings.iter().partition(|finding| finding.severity == Severity::Error);
    let work = opened.work.id.to_string();
    if arguments.json {
        let findings = json!({ "work": work, "ok": errors.is_empty(), "errors": errors, "warnings": warnings });
        output::json(&findings)?;
    } else {
        for finding in &findings {
            let hints = if finding.help.is_empty() { Vec::new() } else { vec![finding.help.clone()] };
            let text =
                render_finding(finding.severity == Severity::Error, &finding.message, opened.place(finding), &hints);
            output::data(&text)?;
        }
        let count = |number: usize, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
        let sum = format!("{}, {}", count(errors.len(), "error"), count(warnings.len(), "warning"));
        output::data(&format!("{}: {sum}\n", output::one_line(&work)))?;
    }
    Ok(if errors.is_empty() { Exit::DONE } else { Exit::USAGE })
}
