//! `doctor`: what a run depends on, and what mends it.

use ralphloop_engine::doctor::{Finding, Level, Subject, examine};
use serde_json::{Value, json};

use super::repository::{runtime, spawner};
use super::settings;
use crate::arguments::DoctorArguments;
use crate::config::{self, Layer};
use crate::error::CliError;
use crate::exit::Exit;
use crate::host::Host;
use crate::output::{self, BAD, DIM, GOOD, WARN, one_line, styled};

pub(super) fn doctor(arguments: &DoctorArguments, host: &Host) -> Result<Exit, CliError> {
    let (config, warnings) = config::load(&host.cwd, &host.environment, Layer::default())?;
    for warning in warnings {
        output::warn(&warning);
    }
    let subject = Subject {
        project: host.cwd.clone(),
        spawner: spawner()?,
        timeout: config.settings.command_timeout,
        agents: settings::agents(&config)?,
        sandbox: settings::sandbox(&config),
        sandbox_terms: settings::sandbox_terms(&config),
    };
    let findings = runtime()?.block_on(examine(&subject));
    let stops = findings.iter().any(|finding| finding.level == Level::Error);
    if arguments.json {
        let findings: Vec<Value> = findings.iter().map(as_json).collect();
        output::json(&json!({ "ready": !stops, "findings": findings }))?;
    } else {
        output::data(&findings.iter().map(as_text).collect::<String>())?;
        let last = if stops { "A run would not start here." } else { "A run can start here." };
        output::talk(&format!("{last}\n"));
    }
    Ok(if stops { Exit::ENVIRONMENT } else { Exit::DONE })
}

fn as_json(finding: &Finding) -> Value {
    json!({
        "area": finding.area,
        "level": finding.level.as_str(),
        "message": finding.message,
        "remedy": finding.remedy,
    })
}

fn as_text(finding: &Finding) -> String {
    let style = match finding.level {
        Level::Ok => GOOD,
        Level::Warn => WARN,
        Level::Error => BAD,
    };
    let level = styled(style, &format!("{:<5}", finding.level.as_str()));
    let mut text = format!("{level}  {:<10}  {}\n", finding.area, one_line(&finding.message));
    if let Some(remedy) = &finding.remedy {
        text += &format!("{:19}{}\n", "", styled(DIM, &format!("→ {}", one_line(remedy))));
    }
    text
}
