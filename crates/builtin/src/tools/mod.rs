//! The tools that the model can call: what each is called, takes and does. Every one works in the workspace alone, answers
//! with bounded text, and tells a failure as such, so that the model can mend it.

mod bash;
mod diff;
mod edit;
mod files;
mod output;
mod search;

use genai::chat::{Tool, ToolCall};
use ralphloop_engine::process::{Environment, Spawner};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::model::UNREADABLE;
use crate::workspace::Workspace;

/// What the tools work with.
#[derive(Debug)]
pub(crate) struct Toolbox {
    pub(crate) workspace: Workspace,
    pub(crate) spawner: Spawner,
    /// What commands see of the environment.
    pub(crate) environment: Environment,
}

/// What a tool returns: its text, or what went wrong.
pub(crate) type Returned = Result<String, String>;

impl Toolbox {
    /// Carries out a call.
    pub(crate) async fn call(&self, call: &ToolCall) -> Returned {
        let input = &call.fn_arguments;
        if let Some(written) = input.get(UNREADABLE) {
            return Err(format!("the arguments are no JSON object, so nothing was done: {written}"));
        }
        let returned = match call.fn_name.as_str() {
            "read" => files::read(&self.workspace, &read(input)?),
            "write" => files::write(&self.workspace, &read(input)?),
            "edit" => edit::edit(&self.workspace, read(input)?),
            "multi_edit" => edit::multi_edit(&self.workspace, &read(input)?),
            "list" => files::list(&self.workspace, &read(input)?),
            "glob" => search::glob(&self.workspace, &read(input)?),
            "grep" => search::grep(&self.workspace, &read(input)?),
            "bash" => bash::run(self, &read(input)?).await,
            "diff" => diff::diff(self, &read(input)?).await,
            unknown => {
                let names: Vec<String> = offered().iter().map(|tool| tool.name.to_string()).collect();
                Err(format!("there is no tool {unknown:?}; there are {}", names.join(", ")))
            }
        };
        returned.map(|text| output::bounded(&text))
    }
}

fn read<T: DeserializeOwned>(input: &Value) -> Result<T, String> {
    serde_json::from_value(input.clone()).map_err(|error| format!("the arguments do not fit: {error}"))
}

/// The tools as the model is told of them.
pub(crate) fn offered() -> Vec<Tool> {
    let text = |what: &str| json!({"type": "string", "description": what});
    let number = |what: &str| json!({"type": "integer", "minimum": 1, "description": what});
    let path = || text("From the current folder, or absolute; inside of the repository");
    let edits = json!({"old_text": text("What stands there now, exactly, and only once"), "new_text": text("What is to stand there")});
    [
        (
            "read",
            "Read a text file, with line numbers. Long files come in parts: say from which line.",
            json!({"path": path(), "from_line": number("The first line; 1 if absent"), "lines": number("How many lines at most")}),
            &["path"][..],
        ),
        (
            "write",
            "Write a whole file, a new one or over an old one. Folders are made as needed.",
            json!({"path": path(), "content": text("All of it")}),
            &["path", "content"],
        ),
        (
            "edit",
            "Replace one text of a file by another. Fails if old_text is not found exactly once, unless all are to be replaced.",
            json!({"path": path(), "old_text": edits["old_text"], "new_text": edits["new_text"],
                "replace_all": {"type": "boolean", "description": "Replace every one"}}),
            &["path", "old_text", "new_text"],
        ),
        (
            "multi_edit",
            "Several edits of one file, one after the other: all of them, or none if one fails.",
            json!({"path": path(), "edits": {"type": "array", "items": {"type": "object", "properties": edits,
                "required": ["old_text", "new_text"]}}}),
            &["path", "edits"],
        ),
        (
            "list",
            "List a folder: its files with their sizes, and its folders.",
            json!({"path": path()}),
            &[],
        ),
        (
            "glob",
            "Find files by a pattern such as **/*.rs, newest first. What git ignores is left out.",
            json!({"pattern": text("The pattern, from the folder"), "path": path()}),
            &["pattern"],
        ),
        (
            "grep",
            "Search files for lines that a regular expression matches. What git ignores is left out.",
            json!({"pattern": text("The regular expression"), "path": path(),
                "files": text("Only files whose path or name matches this pattern, such as *.rs"),
                "ignore_case": {"type": "boolean", "description": "Upper and lower case alike"}}),
            &["pattern"],
        ),
        (
            "bash",
            "Run a command in a shell, in the current folder. Its output and its exit code come back.",
            json!({"command": text("The command"), "timeout_seconds": number("How long it may take; 120 if absent, at most 600")}),
            &["command"],
        ),
        (
            "diff",
            "What is changed in the repository since its last commit, and which files are new.",
            json!({"path": path()}),
            &[],
        ),
    ]
    .into_iter()
    .map(|(name, description, properties, required)| {
        let schema = json!({"type": "object", "properties": properties, "required": required});
        Tool::new(name).with_description(description).with_schema(schema)
    })
    .collect()
}

#[cfg(test)]
pub(crate) mod testing {
    //! A workspace for tests of tools.

    use super::*;

    pub(crate) fn world(files: &[(&str, &str)]) -> (tempfile::TempDir, Workspace) {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join(".git")).unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let workspace = Workspace::around(root.path()).unwrap();
        (root, workspace)
    }

    /// The input of a tool.
    pub(crate) fn input<T: DeserializeOwned>(input: Value) -> T {
        serde_json::from_value(input).unwrap()
    }
}
