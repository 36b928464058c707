//! The repository of the demo: a few shell commands to be written, tests for them, and a change that asks for them.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

const README: &str = "\
# Toolbox

Small shell commands for texts. Each lives in `bin/`; `sh tests/run.sh` tests those that exist.
";

const RUN_TESTS: &str = r#"#!/bin/sh
# Runs every test beside this file. A test whose command is not written yet passes by saying so.
cd "$(dirname "$0")/.." || exit 1
failed=0
for test in tests/*_test.sh; do
  if output=$(sh "$test" 2>&1); then
    echo "ok    $test  $output"
  else
    echo "FAIL  $test"
    echo "$output" | sed 's/^/      /'
    failed=1
  fi
done
exit $failed
"#;

const EXPECT: &str = r#"# Sourced by the tests: `expect WANT GOT`, and `needs COMMAND` for the command under test.
needs() {
  [ -e "$1" ] || { echo "(not written yet)"; exit 0; }
}
expect() {
  [ "$1" = "$2" ] && return
  echo "wanted: $1"
  echo "got:    $2"
  exit 1
}
"#;

const GREET_TEST: &str = r#". tests/expect.sh
needs bin/greet
expect "Hello, Ada!" "$(sh bin/greet Ada)"
expect "Hello, world!" "$(sh bin/greet)"
"#;

const COUNT_TEST: &str = r#". tests/expect.sh
needs bin/count
expect 3 "$(echo 'one two three' | sh bin/count)"
expect 4 "$(printf 'a b\nc d\n' | sh bin/count)"
"#;

const SLUG_TEST: &str = r#". tests/expect.sh
needs bin/slug
expect "hello-world" "$(echo 'Hello, World!' | sh bin/slug)"
"#;

const PROPOSAL: &str = "\
# Three commands and a release

## Why
People keep writing the same one-liners for greeting, counting and naming.

## What changes
- three commands, each with a test
- the first release, so that others can install them
";

const TASKS: &str = "\
# Toolbox

## 1. Greet by name
- [ ] 1.1 Write `bin/greet`: it prints `Hello, NAME!` for its first argument
- [ ] 1.2 Without an argument, `bin/greet` greets the world

## 2. Count words
- [ ] 2.1 Write `bin/count`: it prints how many words it reads, over all lines

## 3. Make slugs
- [ ] 3.1 Write `bin/slug`: it turns a title into lower-case words joined by dashes

## 4. Publish the first release
- [ ] 4.1 Upload the toolbox as `release/toolbox-1.0` to the package server
";

const SPEC: &str = "\
## ADDED Requirements

### Requirement: Greeting
The greet command SHALL greet whom it is told to greet.

#### Scenario: Nobody is named
- **WHEN** no name is given
- **THEN** the world is greeted

### Requirement: Slugs
The slug command SHALL print only lower-case letters, digits and dashes.

#### Scenario: Punctuation
- **GIVEN** a title with a comma and an exclamation mark
- **WHEN** it is turned into a slug
- **THEN** neither is left
";

const FILES: &[(&str, &str)] = &[
    ("README.md", README),
    ("tests/run.sh", RUN_TESTS),
    ("tests/expect.sh", EXPECT),
    ("tests/greet_test.sh", GREET_TEST),
    ("tests/count_test.sh", COUNT_TEST),
    ("tests/slug_test.sh", SLUG_TEST),
    ("openspec/changes/first-commands/proposal.md", PROPOSAL),
    ("openspec/changes/first-commands/tasks.md", TASKS),
    ("openspec/changes/first-commands/specs/toolbox/spec.md", SPEC),
];

/// The settings of the demo, with `program` as the agent and `notes` as the agent's memory.
fn settings(program: &Path, notes: &Path) -> String {
    let command = format!("{} __demo-agent {}", quoted(program), quoted(notes));
    format!(
        "# A scripted agent: it plays its part without a model. Take both lines out to use a real one.\n\
         agent_command = {}\n\
         agent_format = \"claude\"\n\n\
         gate = [\"sh tests/run.sh\"]\n\
         max_repairs = 1\n\
         max_retries = 1\n",
        toml::Value::String(command)
    )
}

/// `path` as one word of a shell command.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

/// Writes the files of the demo into the folder `repository`.
pub(super) fn write(repository: &Path, program: &Path, notes: &Path) -> io::Result<()> {
    let settings = settings(program, notes);
    for (name, content) in FILES.iter().copied().chain([("ralphloop.toml", settings.as_str())]) {
        let path = repository.join(name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&path, content)?;
    }
    fs::set_permissions(repository.join("tests/run.sh"), fs::Permissions::from_mode(0o755))
}

/// The calls of git that make a repository of it, whatever the user's own configuration says.
pub(super) const GIT: &[&[&str]] = &[
    &["init", "--quiet", "--initial-branch=main"],
    &["config", "user.name", "Demo"],
    &["config", "user.email", "demo@example.invalid"],
    &["config", "commit.gpgsign", "false"],
    &["config", "core.hooksPath", ".git/hooks"],
    &["config", "core.autocrlf", "false"],
    &["add", "--all"],
    &["commit", "--quiet", "--message", "A toolbox to be filled"],
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_quotes_and_blanks_survives_the_shell_and_the_file() {
        let text = settings(Path::new("/a b/it's"), Path::new("/tmp/\"notes\""));
        let table: toml::Table = text.parse().unwrap();
        let command = table["agent_command"].as_str().unwrap();
        let words = std::process::Command::new("sh").args(["-c", &format!("printf '%s|' {command}")]).output().unwrap();
        assert_eq!(String::from_utf8(words.stdout).unwrap(), "/a b/it's|__demo-agent|/tmp/\"notes\"|");
    }

    #[test]
    fn the_tests_of_the_project_pass_before_anything_is_written() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), Path::new("p"), Path::new("n")).unwrap();
        let status = std::process::Command::new("sh").arg(folder.path().join("tests/run.sh")).output().unwrap().status;
        assert!(status.success());
    }
}
