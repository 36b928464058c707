//! Files found by name, and lines by what they hold; what git ignores is no part of either.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use globset::{GlobBuilder, GlobMatcher};
use ignore::WalkBuilder;
use regex::bytes::RegexBuilder;
use serde::Deserialize;

use super::Returned;
use super::output::first;
use crate::workspace::Workspace;

/// How many files a glob shows.
const FILES: usize = 200;
/// How many lines a search shows.
const LINES: usize = 200;
/// How much of a line is shown, in bytes.
const LONGEST_LINE: usize = 400;
/// How large a compiled regular expression may be, in bytes.
const PATTERN: usize = 1 << 20;
/// So many bytes at the beginning of a file tell whether it is text.
const SNIFFED: usize = 8192;

#[derive(Debug, Deserialize)]
pub(super) struct Glob {
    pattern: String,
    path: Option<String>,
}

pub(super) fn glob(workspace: &Workspace, input: &Glob) -> Returned {
    let folder = workspace.folder(input.path.as_deref()).map_err(|error| error.to_string())?;
    let matcher = matcher(input.pattern.trim_start_matches("./"))?;
    let mut found: Vec<(SystemTime, PathBuf)> = files(&folder)
        .filter(|(path, _)| path.strip_prefix(&folder).is_ok_and(|below| matcher.is_match(below)))
        .map(|(path, changed)| (changed, path))
        .collect();
    if found.is_empty() {
        return Ok("(no file matches)".to_owned());
    }
    found.sort_unstable_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let lines = found.iter().map(|(_, path)| shown(workspace, path)).collect();
    Ok(first(lines, FILES, "narrow the pattern"))
}

#[derive(Debug, Deserialize)]
pub(super) struct Grep {
    pattern: String,
    path: Option<String>,
    files: Option<String>,
    #[serde(default)]
    ignore_case: bool,
}

pub(super) fn grep(workspace: &Workspace, input: &Grep) -> Returned {
    let place = workspace.place(input.path.as_deref().unwrap_or(".")).map_err(|error| error.to_string())?;
    let pattern = RegexBuilder::new(&input.pattern).case_insensitive(input.ignore_case).size_limit(PATTERN).build();
    let pattern = pattern.map_err(|error| format!("the pattern cannot be used: {error}"))?;
    let only = input.files.as_deref().map(matcher).transpose()?;
    let wanted = |path: &Path| {
        let below = path.strip_prefix(&place).unwrap_or(path);
        let name = path.file_name().unwrap_or_default();
        only.as_ref().is_none_or(|only| only.is_match(below) || only.is_match(name))
    };
    let mut lines = Vec::new();
    let mut paths: Vec<PathBuf> = files(&place).map(|(path, _)| path).filter(|path| wanted(path)).collect();
    paths.sort_unstable();
    for path in paths {
        // What cannot be read, or is too large, holds nothing that could be shown.
        let Some(bytes) = path.strip_prefix(workspace.top()).ok().and_then(|below| workspace.read_below(below).ok())
        else {
            continue;
        };
        if bytes[..bytes.len().min(SNIFFED)].contains(&0) {
            continue;
        }
        let name = shown(workspace, &path);
        for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| pattern.is_match(line))
        {
            let text = String::from_utf8_lossy(line);
            let text = text.trim_end_matches('\r');
            lines.push(format!("{name}:{}: {}", number + 1, &text[..text.floor_char_boundary(LONGEST_LINE)]));
        }
    }
    if lines.is_empty() {
        return Ok("(no line matches)".to_owned());
    }
    Ok(first(lines, LINES, "narrow the pattern, or name a path"))
}

fn matcher(pattern: &str) -> Result<GlobMatcher, String> {
    let glob = GlobBuilder::new(pattern).literal_separator(true).build();
    Ok(glob.map_err(|error| format!("the pattern cannot be used: {error}"))?.compile_matcher())
}

/// Ordinary files at or below a place, with when they were changed: no links, nothing of git's, nothing that it ignores.
fn files(place: &Path) -> impl Iterator<Item = (PathBuf, SystemTime)> {
    let walk = WalkBuilder::new(place)
        .hidden(false)
        .follow_links(false)
        .require_git(false)
        .filter_entry(|entry| entry.file_name() != ".git")
        .build();
    walk.filter_map(Result::ok).filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file())).map(|entry| {
        let changed = entry.metadata().ok().and_then(|metadata| metadata.modified().ok());
        (entry.into_path(), changed.unwrap_or(SystemTime::UNIX_EPOCH))
    })
}

fn shown(workspace: &Workspace, path: &Path) -> String {
    workspace.shown(path.strip_prefix(workspace.top()).unwrap_or(path))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::tools::testing::{input, world};

    fn project() -> (tempfile::TempDir, Workspace) {
        let (root, workspace) = world(&[
            (".gitignore", "target/\n*.log\n"),
            ("src/main.rs", "fn main() {}\n"),
            ("src/deep/lib.rs", "// Find Me\nfn lib() {}\n"),
            ("README.md", "find me\n"),
            ("target/out.rs", "find me\n"),
            ("x.log", "find me\n"),
            (".git/config.rs", "find me\n"),
            (".hidden/y.rs", "fn y() {}\n"),
        ]);
        std::fs::write(root.path().join("binary"), b"find me\0").unwrap();
        std::os::unix::fs::symlink("/etc", root.path().join("etc")).unwrap();
        (root, workspace)
    }

    fn globbed(workspace: &Workspace, value: Value) -> Vec<String> {
        let mut lines: Vec<String> = glob(workspace, &input(value)).unwrap().lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    }

    #[test]
    fn files_are_found_by_their_pattern_but_for_what_git_ignores_or_lies_behind_a_link() {
        let (_root, workspace) = project();
        assert_eq!(
            globbed(&workspace, json!({"pattern": "**/*.rs"})),
            [".hidden/y.rs", "src/deep/lib.rs", "src/main.rs"]
        );
        assert_eq!(globbed(&workspace, json!({"pattern": "*.rs", "path": "src"})), ["src/main.rs"]);
        assert_eq!(globbed(&workspace, json!({"pattern": "etc/*"})), ["(no file matches)"]);
        assert!(glob(&workspace, &input(json!({"pattern": "*", "path": "etc"}))).is_err());
        assert!(glob(&workspace, &input(json!({"pattern": "*", "path": ".."}))).is_err());
        assert!(glob(&workspace, &input(json!({"pattern": "a{"}))).is_err());
    }

    #[test]
    fn the_newest_file_comes_first_and_a_long_list_is_cut_with_a_note() {
        let (root, workspace) = project();
        let old = std::fs::File::options().write(true).open(root.path().join("src/main.rs")).unwrap();
        old.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert!(glob(&workspace, &input(json!({"pattern": "**/*.rs"}))).unwrap().ends_with("src/main.rs"));
        for number in 0..FILES + 5 {
            std::fs::write(root.path().join(format!("many{number}.txt")), "").unwrap();
        }
        let many = glob(&workspace, &input(json!({"pattern": "many*.txt"}))).unwrap();
        assert!(many.ends_with("… 5 more are left out; narrow the pattern"), "{many}");
    }

    #[test]
    fn lines_are_found_with_their_places_in_text_alone() {
        let (_root, workspace) = project();
        let grep = |value: Value| grep(&workspace, &input(value));
        assert_eq!(grep(json!({"pattern": "find me"})).unwrap(), "README.md:1: find me");
        assert_eq!(
            grep(json!({"pattern": "find me", "ignore_case": true})).unwrap(),
            "README.md:1: find me\nsrc/deep/lib.rs:1: // Find Me"
        );
        assert_eq!(grep(json!({"pattern": "^fn \\w+", "files": "lib.*"})).unwrap(), "src/deep/lib.rs:2: fn lib() {}");
        assert_eq!(grep(json!({"pattern": "fn", "path": "src/main.rs"})).unwrap(), "src/main.rs:1: fn main() {}");
        assert_eq!(grep(json!({"pattern": "root:", "path": "."})).unwrap(), "(no line matches)");
        assert!(grep(json!({"pattern": "root:", "path": "etc/passwd"})).unwrap_err().contains("outside"));
        assert!(grep(json!({"pattern": "("})).unwrap_err().contains("cannot be used"));
    }
}
