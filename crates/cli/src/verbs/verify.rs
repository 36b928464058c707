//! `verify`: the gates and a story's checks on the tree as it is.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};
use std::time::Duration;

use ralphloop_agent::redact::Redactor;
use ralphloop_core::evidence::CheckResult;
use ralphloop_core::ids::StoryId;
use ralphloop_engine::gates::Gate;
use ralphloop_engine::gates::run::{Ran, Runner};
use ralphloop_engine::process::Passing;
use ralphloop_engine::start;
use tokio_util::sync::CancellationToken;

use super::gates;
use super::repository::{runtime, spawner};
use super::spec::open;
use super::take_up::{self, Asker};
use super::trust;
use crate::arguments::VerifyArguments;
use crate::config;
use crate::error::CliError;
use crate::exit::Exit;
use crate::host::Host;
use crate::output::{self, BAD, GOOD, harmless, one_line, styled};
use crate::view;

pub(super) fn verify(arguments: VerifyArguments, host: &Host) -> Result<Exit, CliError> {
    let opened = open(arguments.work.as_deref(), host)?;
    let reading = opened.reading()?;
    let Some(story) = reading.plan.story(&StoryId::from(arguments.story.as_str())) else {
        return Err(opened.no_story(&arguments.story, &reading));
    };
    let project = &opened.work.project;
    let (config, _) = config::load(project, &host.environment, arguments.settings)?;
    let brought = trust::by_work(&config, &reading.plan, project, |one| one.id == story.id);
    let place = runtime()?.block_on(start::open(project, spawner()?, config.settings.command_timeout));
    // Outside of a repository, what is trusted is noted by the project's folder.
    let trusted_as = place.map_or_else(|_| project.clone(), |place| place.repository.places().common_dir.clone());
    let mut asker = take_up::on_terminal(io::stdin().is_terminal() && io::stderr().is_terminal());
    let asker = asker.as_mut().map(|asker| asker as &mut dyn Asker);
    if !trust::may_begin(&config, &brought, &trusted_as, asker)? {
        return Ok(take_up::left_alone());
    }
    let (chosen, warnings) = gates::choose(&config, &reading.plan, project);
    for warning in warnings {
        output::warn(&warning);
    }
    if chosen.is_empty() && story.checks.is_empty() {
        output::data("there is no gate and no check: nothing can be proven\n")?;
        return Ok(Exit::DONE);
    }
    let spawner = spawner()?;
    runtime()?.block_on(async {
        let cancel = CancellationToken::new();
        let redactor = Redactor::new(std::env::vars_os());
        let runner = Runner {
            spawner: &spawner,
            project,
            timeout: config.settings.gate_timeout,
            cancel: cancel.clone(),
            environment: &[],
            sees: &Passing::of(&config.settings.gate_env),
            redactor: &redactor,
            inside: &|call| call,
        };
        let work = async {
            let mut all_passed = true;
            for gate in &chosen {
                let command = Gate { name: gate.gate.name.clone(), command: gate.gate.command.clone() };
                let ran = runner.run_gate(&command).await.map_err(|_| CliError::silent(Exit::INT))?;
                all_passed &= told(&gate.gate.name, &ran)?;
            }
            for check in &story.checks {
                let ran = runner.run_check(check).await.map_err(|_| CliError::silent(Exit::INT))?;
                all_passed &= told(check.label(), &ran)?;
            }
            Ok(if all_passed { Exit::DONE } else { Exit::FAILED })
        };
        tokio::pin!(work);
        tokio::select! {
            result = &mut work => result,
            _ = tokio::signal::ctrl_c() => {
                cancel.cancel();
                work.await
            }
        }
    })
}

/// Prints a result, and says whether it passed.
fn told(label: &str, ran: &Ran) -> Result<bool, CliError> {
    let time = view::span(ran.took.max(Duration::ZERO));
    let label = one_line(label);
    let mut text = String::new();
    match &ran.result {
        CheckResult::Passed => {
            let _ = writeln!(text, "{}  {label}  ({time})", styled(GOOD, "passed"));
        }
        CheckResult::Failed { why, output } => {
            let _ = writeln!(text, "{}  {label}: {}  ({time})", styled(BAD, "failed"), one_line(why));
            for line in output.lines() {
                let _ = writeln!(text, "  | {}", harmless(line));
            }
        }
        CheckResult::CouldNotRun { why } => {
            let _ = writeln!(text, "{}  {label}: could not run: {}", styled(BAD, "failed"), one_line(why));
        }
        CheckResult::NoRoom { why } => {
            let _ = writeln!(text, "{}  {label}: for want of room: {}", styled(BAD, "failed"), one_line(why));
        }
        CheckResult::Stopped => {
            let _ = writeln!(text, "{}  {label}", styled(BAD, "stopped"));
        }
    }
    output::data(&text)?;
    Ok(ran.result.passed())
}
