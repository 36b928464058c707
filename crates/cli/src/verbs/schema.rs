//! `schema`: the JSON Schemas of what is written, read and printed, made from the program's own types.

pub(crate) mod printed;

use ralphloop_core::policy::FailureKind;
use schemars::{JsonSchema, schema_for};
use serde_json::{Map, Value, json};

use super::check::Checked;
use super::list::ListedWork;
use super::runs::ListedRun;
use crate::arguments::SchemaArguments;
use crate::config::{Form, KEYS, Key};
use crate::error::{CliError, closest};
use crate::exit::Exit;
use crate::export::failures::FailureLog;
use crate::export::prd_status::PrdStatus;
use crate::export::states::{ContinuousSession, RalphLoop, TaskLoop};
use crate::output;
use crate::view::public::PublicEvent;
use crate::view::status::Status;

/// One schema.
struct Schema {
    name: &'static str,
    about: &'static str,
    make: fn() -> Value,
}

fn of<T: JsonSchema>() -> Value {
    schema_for!(T).to_value()
}

const SCHEMAS: &[Schema] = &[
    Schema { name: "event", about: "a line of `run --json` and `log --json`", make: of::<PublicEvent> },
    Schema { name: "status", about: "what `status --json` prints", make: of::<Status> },
    Schema { name: "list", about: "what `list --json` prints", make: of::<Vec<ListedWork>> },
    Schema { name: "show", about: "what `show --json` prints", make: of::<printed::Shown> },
    Schema { name: "check", about: "what `check --json` prints", make: of::<Checked<'_>> },
    Schema { name: "runs", about: "what `runs --json` prints", make: of::<Vec<ListedRun>> },
    Schema { name: "config", about: "ralphloop.toml", make: config },
    Schema {
        name: "continuous-session-state",
        about: ".continuous-session-state.json, as `export` writes it",
        make: of::<ContinuousSession>,
    },
    Schema { name: "task-loop-state", about: ".task-loop-state.json, as `export` writes it", make: of::<TaskLoop> },
    Schema { name: "ralph-loop-state", about: ".ralph-loop-state.json, as `export` writes it", make: of::<RalphLoop> },
    Schema { name: "prd-status", about: "prd-status.json, as `export` writes it", make: of::<PrdStatus> },
    Schema { name: "failures", about: "ralph_logs/…_ralph.json, as `export` writes it", make: of::<FailureLog> },
];

pub(super) fn schema(arguments: &SchemaArguments) -> Result<Exit, CliError> {
    let Some(name) = &arguments.name else {
        let rows: Vec<Vec<String>> =
            SCHEMAS.iter().map(|schema| vec![schema.name.to_owned(), schema.about.to_owned()]).collect();
        output::data(&output::table(&["NAME", "OF"], &rows))?;
        return Ok(Exit::DONE);
    };
    let Some(schema) = SCHEMAS.iter().find(|schema| schema.name == name) else {
        let said = CliError::usage(format!("there is no schema {name:?}"));
        return Err(match closest(name, SCHEMAS.iter().map(|schema| schema.name)) {
            Some(meant) => said.hint(format!("did you mean {meant}?")),
            None => said.hint("`ralphloop schema` lists them"),
        });
    };
    output::json(&(schema.make)())?;
    Ok(Exit::DONE)
}

/// That of the file of settings, made from their list.
fn config() -> Value {
    let mut properties = Map::new();
    let mut tables: Map<String, Value> = Map::new();
    for key in KEYS {
        if let Some((table, name)) = key.written().split_once('.') {
            let table = tables.entry(table.to_owned()).or_insert_with(|| Value::Object(Map::new()));
            if let Some(table) = table.as_object_mut() {
                table.insert(name.to_owned(), of_key(key));
            }
        } else {
            properties.insert(key.name.to_owned(), of_key(key));
            // The other spelling of the same key.
            if key.name.contains('_') {
                properties.insert(key.flag(), of_key(key));
            }
        }
    }
    for (name, keys) in tables {
        properties.insert(name, json!({ "type": "object", "properties": keys, "additionalProperties": false }));
    }
    let table =
        |about: &str| json!({ "type": "object", "description": about, "additionalProperties": { "type": "object" } });
    properties.insert("agents".to_owned(), table("Agents of your own, by name."));
    properties.insert("prices".to_owned(), table("Prices of models, by the beginning of their names."));
    let retry = json!({
        "type": "object",
        "properties": {
            "attempts": { "type": "integer", "minimum": 0, "description": "Attempts of a story after failures of this kind." },
            "backoff": { "type": "array", "items": { "type": ["string", "number"] }, "description": "The waits before them." },
        },
        "additionalProperties": false,
    });
    let kinds: Map<String, Value> =
        FailureKind::ALL.iter().map(|kind| (kind.as_str().to_owned(), retry.clone())).collect();
    properties.insert(
        "retry".to_owned(),
        json!({
            "type": "object", "description": "Answers to failures, by their kind.",
            "properties": kinds, "additionalProperties": false,
        }),
    );
    properties.insert("providers".to_owned(), table("Providers for the built-in agent, by name."));
    properties.insert("roles".to_owned(), table("Roles of a relay, by name."));
    properties.insert(
        "generate".to_owned(),
        json!({ "type": "array", "description": "Files that are made anew where they are in conflict.", "items": { "type": "object" } }),
    );
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "ralphloop.toml",
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    })
}

fn of_key(key: &Key) -> Value {
    let help = key.help.trim();
    let one = json!(["string", "number", "boolean"]);
    match key.form {
        // A setting that is a table itself.
        _ if key.value_name == "TABLE" => json!({ "type": "object", "description": help }),
        Form::Switch => json!({ "type": ["boolean", "string"], "description": help }),
        Form::One => json!({ "type": one, "description": help }),
        Form::Many => json!({
            "description": help,
            "anyOf": [{ "type": one }, { "type": "array", "items": { "type": "string" } }],
        }),
    }
}
