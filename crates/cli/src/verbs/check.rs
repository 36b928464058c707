//! `check`: what is wrong with a piece of work, with places and ways out; `--fix` mends what leaves no choice.

use ralphloop_core::plan::Scheme;
use ralphloop_engine::files::{Access, write_atomic};
use ralphloop_engine::openspec_cli::{self, Level, OpenSpecError, Program, Validation};
use ralphloop_spec::{Code, Diagnostic, Mended, Severity};
use serde::Serialize;

use super::repository;
use super::schema::printed::Finding;
use super::spec::{Opened, open};
use crate::arguments::CheckArguments;
use crate::config::Settings;
use crate::error::{CliError, render_finding};
use crate::exit::Exit;
use crate::host::Host;
use crate::output::{self, count};

pub(super) fn check(arguments: &CheckArguments, host: &Host) -> Result<Exit, CliError> {
    let mut opened = open(arguments.work.as_deref(), host)?;
    let mended = if arguments.fix { fix(&mut opened)? } else { None };
    let (findings, unasked) = findings(&opened)?;
    if let Some(why) = unasked {
        output::warn(&why);
    }
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error).count();
    if arguments.json {
        output::json(&output::value(&Checked::of(&opened, &findings, mended.as_ref(), arguments.fix))?)?;
    } else {
        output::data(&as_text(&opened, &findings, mended.as_ref(), arguments.fix))?;
    }
    Ok(if errors == 0 { Exit::DONE } else { Exit::USAGE })
}

/// All that is wrong, and why the program of `OpenSpec` did not say what it thinks, if it did not.
pub(crate) fn findings(opened: &Opened) -> Result<(Vec<Diagnostic>, Option<String>), CliError> {
    let mut findings = ralphloop_spec::check(&opened.files);
    let (further, unasked) = by_openspec(opened, &findings)?;
    findings.extend(further);
    Ok((findings, unasked))
}

/// Mends the main file on the disk and in `opened`.
fn fix(opened: &mut Opened) -> Result<Option<Mended>, CliError> {
    let Some(mended) = ralphloop_spec::mend(&opened.files) else { return Ok(None) };
    let file = &opened.work.main;
    let now = std::fs::read(file)
        .map_err(|error| CliError::environment(format!("could not read {}", file.display())).cause(&error))?;
    if now != opened.files.main.bytes {
        return Err(CliError::environment(format!("{} is being changed; nothing was mended", file.display()))
            .hint("try again when it is not"));
    }
    write_atomic(file, &mended.bytes, Access::Usual)
        .map_err(|error| CliError::environment("nothing was mended").cause(&error))?;
    opened.files.main.bytes.clone_from(&mended.bytes);
    Ok(Some(mended))
}

/// What `check --json` prints.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct Checked<'a> {
    /// The work: `scheme:id`.
    work: String,
    /// It can be run.
    ok: bool,
    /// Why it cannot.
    #[schemars(with = "Vec<Finding>")]
    errors: Vec<&'a Diagnostic>,
    /// What is worth knowing.
    #[schemars(with = "Vec<Finding>")]
    warnings: Vec<&'a Diagnostic>,
    /// What `--fix` has mended, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    fixed: Option<Vec<Fixed>>,
}

/// Something that was mended.
#[derive(Debug, Serialize, schemars::JsonSchema)]
struct Fixed {
    /// The file.
    file: String,
    /// The line, from 1.
    line: u32,
    /// What was done.
    message: String,
}

impl<'a> Checked<'a> {
    fn of(opened: &Opened, findings: &'a [Diagnostic], mended: Option<&Mended>, fix: bool) -> Self {
        let (errors, warnings): (Vec<&Diagnostic>, Vec<&Diagnostic>) =
            findings.iter().partition(|finding| finding.severity == Severity::Error);
        let mends = mended.map_or(&[][..], |mended| &mended.mends);
        let file = &opened.files.main.path;
        let fixed =
            |mend: &ralphloop_spec::Mend| Fixed { file: file.clone(), line: mend.line, message: mend.what.clone() };
        Self {
            work: opened.work.id.to_string(),
            ok: errors.is_empty(),
            errors,
            warnings,
            fixed: fix.then(|| mends.iter().map(fixed).collect()),
        }
    }
}

fn as_text(opened: &Opened, findings: &[Diagnostic], mended: Option<&Mended>, fix: bool) -> String {
    let mut text = String::new();
    let file = output::one_line(&opened.files.main.path);
    for mend in mended.map_or(&[][..], |mended| &mended.mends) {
        text.push_str(&format!("fixed: {file}:{}: {}\n", mend.line, output::one_line(&mend.what)));
    }
    if fix && mended.is_none() {
        text.push_str("nothing could be fixed without a choice that is yours\n");
    }
    for finding in findings {
        let hints = if finding.help.is_empty() { Vec::new() } else { vec![finding.help.clone()] };
        let is_error = finding.severity == Severity::Error;
        text.push_str(&render_finding(is_error, &finding.message, opened.place(finding), &hints));
    }
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error).count();
    let sum =
        format!("{}, {}", count(errors, "error", "errors"), count(findings.len() - errors, "warning", "warnings"));
    text.push_str(&format!(
        "{}: {sum}{}\n",
        output::one_line(&opened.work.id.to_string()),
        if fix { " left" } else { "" }
    ));
    text
}

/// What `openspec validate --strict` says of a change beyond what was found already, or why it does not. Without the
/// program: nothing.
fn by_openspec(opened: &Opened, known: &[Diagnostic]) -> Result<(Vec<Diagnostic>, Option<String>), CliError> {
    let nothing = (Vec::new(), None);
    let (Scheme::OpenSpec, Some(_)) = (opened.work.id.scheme, &opened.work.change) else { return Ok(nothing) };
    let (project, change) = (&opened.work.project, &opened.work.id.id);
    let timeout = Settings::default().command_timeout;
    let (spawner, program) = (repository::spawner()?, Program::default());
    let asked = openspec_cli::validate(&spawner, &program, project, change, timeout);
    match repository::runtime()?.block_on(asked) {
        Ok(validation) => Ok((told(&validation, opened, known), None)),
        Err(OpenSpecError::Absent) => Ok(nothing),
        Err(error) => Ok((Vec::new(), Some(error.to_string()))),
    }
}

fn told(validation: &Validation, opened: &Opened, known: &[Diagnostic]) -> Vec<Diagnostic> {
    let beside = opened.files.beside.iter().map(|file| file.path.as_str());
    let files: Vec<&str> = std::iter::once(opened.files.main.path.as_str()).chain(beside).collect();
    let diagnostic = |finding: &openspec_cli::Finding| {
        // A path is a file of the change, or an element inside of it (`identity/spec.md`, `requirements[0].text`).
        let file = files.iter().find(|file| !finding.path.is_empty() && file.ends_with(&finding.path));
        let line = finding.line.filter(|_| file.is_some());
        let place = match line {
            None if !finding.path.is_empty() => format!("{}: ", finding.path),
            _ => String::new(),
        };
        Diagnostic {
            code: ralphloop_spec::Finding::Code(Code::OpenspecValidate),
            severity: if finding.level == Level::Error { Severity::Error } else { Severity::Warning },
            file: file.map_or_else(|| opened.files.main.path.clone(), |file| (*file).to_owned()),
            line,
            column: None,
            message: format!("openspec: {place}{}", finding.message),
            help: String::new(),
        }
    };
    let same = |one: &Diagnostic, other: &Diagnostic| {
        one.line.is_some() && one.line == other.line && one.file == other.file && one.severity <= other.severity
    };
    let told = validation.findings.iter().map(diagnostic);
    told.filter(|finding| !known.iter().any(|known| same(finding, known))).collect()
}
