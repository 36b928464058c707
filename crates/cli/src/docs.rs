//! The documents that are made from the program itself. `UPDATE=1 cargo test -p ralphloop docs` writes them anew.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::CommandFactory as _;
use ralphloop_agent::builtin::{KNOWN_PROVIDERS, KnownProvider};
use ralphloop_agent::client::{KNOWN, PromptDelivery, Reports, Source};
use ralphloop_spec::{Code, ErrorClass};
use serde_json::Value;

use crate::arguments::Arguments;
use crate::config::{Form, KEYS, Key, Reach};
use crate::exit::Exit;
use crate::view::public::PublicEvent;
use crate::view::status::Status;

fn compare(name: &str, want: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, want).unwrap();
    }
    let have = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(have == want, "docs/{name} is out of date; write it with: UPDATE=1 cargo test -p ralphloop docs");
}

#[test]
fn the_document_of_the_command_line_is_what_the_program_says() {
    let options = clap_markdown::MarkdownOptions::new()
        .title("The command line".to_owned())
        .show_footer(false)
        .show_table_of_contents(true);
    let command = Arguments::command();
    let text = clap_markdown::help_markdown_command_custom(&command, &options);
    compare("cli.md", &format!("{}\n", text.trim_end()));
}

#[test]
fn the_document_of_the_settings_is_what_the_program_reads() {
    let mut text = "\
# Settings

Made from the program's own list of settings. `ralphloop config` shows what holds here and where each value comes from.

The stronger place wins: flags of the call, then `RALPHLOOP_…` variables, then the project's `ralphloop.toml` (in the
project's folder or a folder above it, up to the root of the repository), then the user's file
(`$XDG_CONFIG_HOME/ralphloop/config.toml`, or `~/.config/ralphloop/config.toml`), then the default. Without `gate` and `branch`,
those that the work itself names count. A key that is not known and a value that cannot be read are errors, before anything is started.

Keys are written `like_this`; `like-this` is read too. `screen.theme` is `theme` in the table `[screen]`. Durations are `90s`, `10m`, `1h30m` or a number of seconds; `none` takes a
bound away. In a variable, a list has one item a line.
"
    .to_owned();
    let mut heading = "";
    for key in KEYS {
        if key.heading != heading {
            heading = key.heading;
            let _ = write!(text, "\n## {heading}\n\n| key | flag | variable | default | |\n|---|---|---|---|---|\n");
        }
        let default = key.default_text().replace('\n', ", ").replace('|', "\\|");
        let help = key.help.trim().replace('|', "\\|");
        let _ = writeln!(text, "| `{}` | {} | `{}` | {default} | {help} |", key.written(), flag(key), key.variable());
    }
    compare("configuration.md", &text);
}

#[test]
fn the_document_of_the_agents_has_the_table_of_the_known_ones() {
    let mut table = "| name | agent | command line | effort | prompt | tokens and cost | how a limit shows | verified by |\n|---|---|---|---|---|---|---|---|\n".to_owned();
    for client in KNOWN {
        let variables =
            client.environment().iter().fold(String::new(), |text, (name, value)| format!("{text}{name}={value} "));
        let prompt = match client.prompt {
            PromptDelivery::Stdin => "standard input",
            PromptDelivery::Argument => "last argument",
            PromptDelivery::Conversation => "conversation",
        };
        let usage = match client.usage {
            Reports::TokensAndCost => "both",
            Reports::Tokens => "tokens",
            Reports::Nothing => "unknown",
        };
        let source = match client.known_from {
            Source::Tests(version) => format!("version {version} runs in the tests, against a scripted model"),
            Source::Recordings(version) => format!("streams of version {version}, replayed"),
            Source::Tried(version) => format!("version {version} was run by hand, not by a test"),
            Source::Documentation => "its documentation only".to_owned(),
        };
        let (name, title, line, limits) = (client.name, client.title, client.command_line(), client.limits);
        let levels = client.efforts.as_ref().map_or(&[][..], |efforts| efforts.levels);
        let effort = match levels.iter().map(|level| level.as_str()).collect::<Vec<_>>().join(", ") {
            none if none.is_empty() => "cannot be told".to_owned(),
            levels => levels,
        };
        let _ = writeln!(
            table,
            "| `{name}` | {title} | `{variables}{line}` | {effort} | {prompt} | {usage} | {limits} | {source} |"
        );
    }
    compare_part("agents.md", "known agents", &table);
}

#[test]
fn the_document_of_the_agents_has_the_table_of_the_known_providers() {
    let mut table = "| provider | protocol | address | key |\n|---|---|---|---|\n".to_owned();
    for KnownProvider { name, protocol, url, variables } in KNOWN_PROVIDERS {
        let key = variables.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or ");
        let key = if key.is_empty() { "none" } else { &key };
        let _ = writeln!(table, "| `{name}` | `{}` | {url} | {key} |", protocol.as_str());
    }
    compare_part("agents.md", "known providers", &table);
}

#[test]
fn the_document_of_the_screen_has_the_table_of_the_keys() {
    let mut table = "| action | keys | |\n|---|---|---|\n".to_owned();
    for (_, name, keys, help) in ralphloop_tui::keys::TABLE {
        let keys = keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
        let _ = writeln!(table, "| `{name}` | {keys} | {help} |");
    }
    compare_part("screen.md", "keys", &table);
}

/// Compares the part of a document between a mark and the next end.
fn compare_part(name: &str, part: &str, want: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    let text = std::fs::read_to_string(path).unwrap();
    let mark = format!("<!-- made from the program: {part} -->\n");
    let (before, rest) = text.split_once(&mark).unwrap();
    let (_, after) = rest.split_once("<!-- end -->").unwrap();
    compare(name, &format!("{before}{mark}\n{want}\n<!-- end -->{after}"));
}

fn flag(key: &Key) -> String {
    let value = key.value_name.replace('|', "\\|");
    match (key.reach, key.form) {
        (Reach::File, _) => "–".to_owned(),
        (Reach::Flag, Form::Switch) => format!("`--{}`", key.flag()),
        (Reach::Flag, Form::One) => format!("`--{} {value}`", key.flag()),
        (Reach::Flag, Form::Many) => format!("`--{} {value}` …", key.flag()),
    }
}

#[test]
fn the_document_of_the_exit_codes_is_what_the_program_ends_with() {
    let mut text = "# Exit codes\n\n| code | means |\n|---|---|\n".to_owned();
    for exit in Exit::ALL {
        let _ = writeln!(text, "| {} | {} |", exit.code, exit.means);
    }
    compare("exit-codes.md", &text);
}

#[test]
fn the_document_of_the_events_is_what_json_prints() {
    let schema = schemars::schema_for!(PublicEvent).to_value();
    let mut text = "\
# Events

`ralphloop run --json` prints these on the standard output, one JSON object a line, and nothing else there;
`ralphloop log --json` prints them of any run, oldest first. Made from the program's own types.

`type` says which event it is. Times are RFC 3339 in UTC. Kinds and fields are only ever added: a reader skips what it does
not know. A field that may be `null` is always there.

```console
$ ralphloop log --json | jq -r 'select(.type == \"story.landed\") | [.story, .commit] | @tsv'
```
"
    .to_owned();
    for kind in schema["oneOf"].as_array().unwrap() {
        let name = kind["properties"]["type"]["const"].as_str().unwrap();
        let _ = writeln!(text, "\n## `{name}`\n\n{}\n", one_line(&kind["description"]));
        fields(kind, &mut text);
    }
    definitions(&schema, &mut text);
    compare("events.md", &text);
}

#[test]
fn the_document_of_the_status_is_what_status_prints() {
    let schema = schemars::schema_for!(Status).to_value();
    let mut text = "\
# The status

`ralphloop status --json` prints one object. Made from the program's own types. Times are RFC 3339 in UTC. Fields are only
ever added. A field that may be `null` is always there.

"
    .to_owned();
    fields(&schema, &mut text);
    definitions(&schema, &mut text);
    compare("status.md", &text);
}

#[test]
fn the_document_of_the_findings_is_what_check_says() {
    let mut text = "\
# Errors and warnings about work

What `ralphloop check` says about the files of a piece of work, and the `class` and `code` of its `--json`. Made from the
program's own list. Each is told with its file, its line and a way out.

## Errors

The file cannot be read as work: `check` and `run` end with 2, and nothing is started. `show --json` prints
`{\"error\": {\"class\": …, \"line\": …, \"message\": …}}`.

| class | |
|---|---|
"
    .to_owned();
    for class in ErrorClass::ALL {
        let _ = writeln!(text, "| `{class}` | {} |", class.means());
    }
    text.push_str("\n## Warnings\n\nThe work can run.\n\n| code | |\n|---|---|\n");
    for code in Code::ALL {
        let _ = writeln!(text, "| `{code}` | {} |", code.means());
    }
    compare("findings.md", &text);
}

/// A table of an object's fields.
fn fields(object: &Value, text: &mut String) {
    text.push_str("| field | type | |\n|---|---|---|\n");
    for (name, field) in object["properties"].as_object().unwrap() {
        if name != "type" {
            let help = one_line(&field["description"]).replace('|', "\\|");
            let _ = writeln!(text, "| `{name}` | {} | {help} |", kind_of(field));
        }
    }
}

/// What the fields refer to: objects as tables, words as lists.
fn definitions(schema: &Value, text: &mut String) {
    for (name, definition) in schema["$defs"].as_object().unwrap() {
        let _ = writeln!(text, "\n## {name}\n\n{}\n", one_line(&definition["description"]));
        if definition["properties"].is_object() {
            fields(definition, text);
            continue;
        }
        for word in words(definition) {
            let _ = writeln!(text, "- {word}");
        }
    }
}

fn words(definition: &Value) -> Vec<String> {
    let list = |key: &str| definition[key].as_array().cloned().unwrap_or_default();
    let plain = list("enum").into_iter().map(|word| format!("`{}`", word.as_str().unwrap()));
    let described = list("oneOf").into_iter().flat_map(|choice| match choice["const"].as_str() {
        Some(word) => vec![format!("`{word}`: {}", one_line(&choice["description"]))],
        None => words(&choice),
    });
    plain.chain(described).collect()
}

fn kind_of(field: &Value) -> String {
    if let Some(name) = field["$ref"].as_str() {
        let name = name.rsplit('/').next().unwrap();
        return format!("[{name}](#{})", name.to_lowercase());
    }
    match &field["type"] {
        Value::String(kind) if kind == "array" => format!("list of {}", kind_of(&field["items"])),
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => kinds.iter().map(|kind| kind.as_str().unwrap()).collect::<Vec<_>>().join(" or "),
        other => panic!("a field of no known type: {other} in {field}"),
    }
}

/// A description on one line, without the brackets of a link inside the code.
fn one_line(text: &Value) -> String {
    let text = text.as_str().unwrap_or_else(|| panic!("something has no description"));
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.replace("[`", "`").replace("`]", "`")
}
