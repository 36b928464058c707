//! Python: ruff, mypy and pytest, each only where the project configures it or depends on it.

use toml::{Table, Value};

use super::Place;

/// A project has one of these; the first is what its gates are said to come from.
const MANIFESTS: &[&str] = &["pyproject.toml", "setup.py", "setup.cfg"];
const REQUIREMENTS: &[&str] = &["requirements.txt", "requirements-dev.txt", "dev-requirements.txt", "tox.ini"];

struct Tool {
    name: &'static str,
    command: &'static str,
    /// Files whose presence says that the project uses it.
    files: &'static [&'static str],
    /// Sections of `setup.cfg` and `tox.ini`.
    sections: &'static [&'static str],
}

const TOOLS: &[Tool] = &[
    Tool { name: "ruff", command: "ruff check .", files: &["ruff.toml", ".ruff.toml"], sections: &[] },
    Tool { name: "mypy", command: "mypy .", files: &["mypy.ini", ".mypy.ini"], sections: &["[mypy]"] },
    Tool {
        name: "pytest",
        command: "pytest",
        files: &["pytest.ini", "conftest.py", "tests/conftest.py"],
        sections: &["[tool:pytest]", "[pytest]"],
    },
];

pub(super) fn look(place: &mut Place<'_>) {
    let Some(manifest) = MANIFESTS.iter().find(|name| place.has(name)) else { return };
    let pyproject = place.read("pyproject.toml").map(|text| text.parse::<Table>());
    let pyproject = match pyproject {
        Some(Ok(table)) => table,
        Some(Err(e)) => return place.unreadable("pyproject.toml", e.message().to_owned()),
        None => Table::new(),
    };
    let loose: Vec<String> = MANIFESTS[1..].iter().chain(REQUIREMENTS).filter_map(|name| place.read(name)).collect();
    let runner = runner(place);
    for tool in TOOLS {
        let configured = pyproject.get("tool").and_then(|t| t.get(tool.name)).is_some()
            || tool.files.iter().any(|file| place.has(file))
            || loose.iter().flat_map(|text| text.lines()).any(|line| tool.sections.contains(&line.trim()));
        let wanted = configured
            || depends_on(&pyproject, tool.name)
            || loose.iter().any(|text| mentions_requirement(text, tool.name));
        if wanted {
            place.add(tool.name, &format!("{runner}{}", command(tool, &pyproject)), manifest);
        }
    }
}

/// mypy with its own list of files is called without one.
fn command<'a>(tool: &Tool, pyproject: &Table) -> &'a str
where
    'static: 'a,
{
    let mypy = pyproject.get("tool").and_then(|t| t.get("mypy"));
    let lists_files = mypy.is_some_and(|m| ["files", "packages", "modules"].iter().any(|key| m.get(key).is_some()));
    if tool.name == "mypy" && lists_files { "mypy" } else { tool.command }
}

fn runner(place: &Place<'_>) -> &'static str {
    [("uv.lock", "uv run "), ("poetry.lock", "poetry run "), ("pdm.lock", "pdm run ")]
        .iter()
        .find(|(lock, _)| place.has(lock))
        .map_or("", |(_, runner)| runner)
}

/// Looks at every place where the known tools list requirements: PEP 621, PEP 735, uv, poetry.
fn depends_on(pyproject: &Table, name: &str) -> bool {
    let at = |path: &[&str]| {
        path.iter().try_fold(None, |at: Option<&Value>, key| {
            Some(Some(match at {
                None => pyproject.get(*key)?,
                Some(value) => value.get(*key)?,
            }))
        })
    };
    let lists = [
        at(&["project", "dependencies"]),
        at(&["project", "optional-dependencies"]),
        at(&["dependency-groups"]),
        at(&["tool", "uv", "dev-dependencies"]),
        at(&["tool", "poetry", "dependencies"]),
        at(&["tool", "poetry", "dev-dependencies"]),
        at(&["tool", "poetry", "group"]),
    ];
    lists.into_iter().flatten().flatten().any(|value| names(value, name))
}

/// The requirement stands in a list of requirement strings, or as a key of a table, at any depth.
fn names(value: &Value, name: &str) -> bool {
    match value {
        Value::String(text) => requirement_name(text) == name,
        Value::Array(items) => items.iter().any(|item| names(item, name)),
        Value::Table(table) => {
            table.iter().any(|(key, item)| key == name || ((item.is_array() || item.is_table()) && names(item, name)))
        }
        _ => false,
    }
}

/// `pytest>=8; python_version > "3"` is about `pytest`.
fn requirement_name(text: &str) -> &str {
    let end = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    text.trim().split(end).next().unwrap_or_default()
}

/// For files that are lists of requirements, or Python code: the name stands as a word of its own.
fn mentions_requirement(text: &str, name: &str) -> bool {
    text.lines()
        .map(|line| line.split('#').next().unwrap_or_default())
        .any(|line| line.split(['\'', '"', ',', ' ', '\t']).any(|word| requirement_name(word) == name))
}
