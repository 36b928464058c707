//! Verification steps of a story and quality checks of the whole file, in all spellings.

use std::time::Duration;

use jsonc_parser::ast::{Object, Value};
use ralphloop_core::plan::{Check, SpecGate};

use crate::prd::criteria;
use crate::{json, words};

/// Names of a story's list of steps.
const STEPS: &[&str] =
    &["verification_steps", "verificationSteps", "verification", "verify", "verifyCommands", "verify_commands"];

/// Names of the commands that hold for the whole file.
const GATES: &[&str] =
    &["quality_checks", "qualityChecks", "quality_gates", "qualityGates", "verifyCommands", "verify_commands"];

/// The time limit of a request that names none.
const URL_TIMEOUT: Duration = Duration::from_secs(30);

/// The steps that the tool can run.
pub(crate) fn checks(story: &Object<'_>) -> Vec<Check> {
    let mut checks: Vec<Check> = steps(story).into_iter().filter_map(check).collect();
    checks.extend(criteria::test_commands(story).into_iter().map(|(name, command)| shell(name, command)));
    checks
}

/// Steps that are sentences for a person, with their offsets.
pub(crate) fn sentences(story: &Object<'_>) -> Vec<(usize, String)> {
    let sentence = |value: &Value<'_>| {
        let text = json::text_of(value)?;
        (!words::is_command(unquoted(&text))).then(|| (json::start(value), text))
    };
    steps(story).into_iter().filter_map(sentence).collect()
}

/// Steps that a person does: what is to be looked at.
pub(crate) fn by_hand(story: &Object<'_>) -> Vec<String> {
    let step = |step: &Value<'_>| looked_at(step.as_object()?);
    steps(story).into_iter().filter_map(step).flatten().collect()
}

/// What a step of the type `manual` wants looked at.
pub(crate) fn looked_at(step: &Object<'_>) -> Option<Vec<String>> {
    json::first_text(step, &["type", "kind"]).filter(|kind| kind.trim().eq_ignore_ascii_case("manual"))?;
    let criteria = json::first(step, &["criteria", "steps", "description", "name"]);
    let criteria: Vec<String> = criteria.map(|(_, value)| json::texts_of(value)).unwrap_or_default();
    Some(if criteria.is_empty() { vec!["what the story wants".to_owned()] } else { criteria })
}

fn steps<'v, 'a>(story: &'v Object<'a>) -> Vec<&'v Value<'a>> {
    match json::first(story, STEPS) {
        Some((_, Value::Array(array))) => array.elements.iter().collect(),
        Some((_, value)) => vec![value],
        None => Vec::new(),
    }
}

fn check(step: &Value<'_>) -> Option<Check> {
    let object = match step {
        Value::Object(object) => object,
        other => {
            let text = json::text_of(other)?;
            let command = unquoted(&text);
            return words::is_command(command).then(|| shell(None, command.to_owned()));
        }
    };
    let name = json::first_text(object, &["name"]);
    let kind = json::first_text(object, &["type", "kind"]).unwrap_or_default().to_lowercase();
    match kind.as_str() {
        "file_exists" | "fileexists" | "file" => Some(Check::FileExists {
            name,
            path: json::first_text(object, &["path", "file"])?,
            glob: json::is_true(object, "glob"),
        }),
        "url" | "http" => Some(Check::Url {
            name,
            url: json::first_text(object, &["url"])?,
            method: json::first_text(object, &["method"]).unwrap_or_else(|| "GET".into()).to_uppercase(),
            expect_status: number(object, &["expect_status", "expectStatus"]).unwrap_or(200),
            expect_body_contains: list(object, &["expect_body_contains", "expectBodyContains"]),
            timeout: timeout(object).unwrap_or(URL_TIMEOUT),
        }),
        "" | "shell" | "command" | "cmd" => Some(Check::Shell {
            name,
            command: json::first_text(object, &["command", "cmd", "run"])?,
            cwd: json::first_text(object, &["cwd"]),
            expect_output_contains: list(object, &["expect_output_contains", "expectOutputContains"]),
            expect_files_glob: list(object, &["expect_files_glob", "expectFilesGlob"]),
            timeout: timeout(object),
        }),
        _ => None,
    }
}

fn shell(name: Option<String>, command: String) -> Check {
    Check::Shell {
        name,
        command,
        cwd: None,
        expect_output_contains: Vec::new(),
        expect_files_glob: Vec::new(),
        timeout: None,
    }
}

fn timeout(object: &Object<'_>) -> Option<Duration> {
    number(object, &["timeout_secs", "timeoutSecs", "timeout"]).map(Duration::from_secs)
}

fn number<T: std::str::FromStr>(object: &Object<'_>, keys: &[&str]) -> Option<T> {
    json::first(object, keys).and_then(|(_, value)| json::word_of(value)).and_then(|word| word.parse().ok())
}

fn list(object: &Object<'_>, keys: &[&str]) -> Vec<String> {
    json::first(object, keys).map(|(_, value)| json::texts_of(value)).unwrap_or_default()
}

/// A command may stand in backquotes of its own.
fn unquoted(text: &str) -> &str {
    text.strip_prefix('`')
        .and_then(|inner| inner.strip_suffix('`'))
        .filter(|inner| !inner.contains('`'))
        .unwrap_or(text)
}

/// The commands that the file wants run after every story.
pub(crate) fn gates(top: &Object<'_>) -> Vec<SpecGate> {
    let mut gates: Vec<SpecGate> = Vec::new();
    for (_, value) in GATES.iter().filter_map(|key| json::get(top, key).map(|value| (key, value))) {
        let found: Vec<(Option<String>, String)> = match value {
            Value::Object(object) => {
                let gate = |p: &jsonc_parser::ast::ObjectProp<'_>| {
                    json::text_of(&p.value).map(|command| (Some(p.name.as_str().to_owned()), command))
                };
                object.properties.iter().filter_map(gate).collect()
            }
            Value::Array(array) => array.elements.iter().filter_map(gate_of).collect(),
            other => gate_of(other).into_iter().collect(),
        };
        for (name, command) in found {
            if !gates.iter().any(|known| known.command == command) {
                gates.push(SpecGate { name: name.unwrap_or_else(|| command.clone()), command });
            }
        }
    }
    gates
}

fn gate_of(value: &Value<'_>) -> Option<(Option<String>, String)> {
    match value {
        Value::Object(object) => {
            Some((json::first_text(object, &["name", "id"]), json::first_text(object, &["command", "cmd", "run"])?))
        }
        other => json::text_of(other).map(|command| (None, unquoted(&command).to_owned())),
    }
}
