//! Whole files and folders: read, write, list.

use std::fmt::Write as _;

use serde::Deserialize;

use super::Returned;
use super::output::first;
use crate::workspace::Workspace;

/// How many lines are read at once.
const LINES: usize = 2000;
/// How much of one line is shown, in bytes.
const LONGEST_LINE: usize = 2000;
/// How many entries of a folder are shown.
const ENTRIES: usize = 500;

#[derive(Debug, Deserialize)]
pub(super) struct Read {
    path: String,
    from_line: Option<usize>,
    lines: Option<usize>,
}

pub(super) fn read(workspace: &Workspace, input: &Read) -> Returned {
    let text = workspace.read_text(&input.path).map_err(|error| error.to_string())?;
    let from = input.from_line.unwrap_or(1).max(1);
    let most = input.lines.unwrap_or(LINES).clamp(1, LINES);
    let total = text.lines().count();
    if total == 0 {
        return Ok("(the file is empty)".to_owned());
    }
    if from > total {
        return Err(format!("{} has {total} lines", input.path));
    }
    let mut shown = String::new();
    for (number, line) in text.lines().enumerate().skip(from - 1).take(most) {
        let end = line.floor_char_boundary(LONGEST_LINE);
        let cut = if end < line.len() { format!(" … {} bytes left out", line.len() - end) } else { String::new() };
        let _ = writeln!(shown, "{:>6}\t{}{cut}", number + 1, &line[..end]);
    }
    let last = (from - 1 + most).min(total);
    if last < total {
        let _ = writeln!(shown, "… lines {} to {total} are left out; read on with from_line", last + 1);
    }
    Ok(shown)
}

#[derive(Debug, Deserialize)]
pub(super) struct Write {
    path: String,
    content: String,
}

pub(super) fn write(workspace: &Workspace, input: &Write) -> Returned {
    let is_new = workspace.write(&input.path, &input.content).map_err(|error| error.to_string())?;
    let done = if is_new { "made" } else { "written over" };
    Ok(format!("{} is {done}, with {} lines", input.path, input.content.lines().count()))
}

#[derive(Debug, Deserialize)]
pub(super) struct List {
    path: Option<String>,
}

pub(super) fn list(workspace: &Workspace, input: &List) -> Returned {
    let folder = workspace.folder(input.path.as_deref()).map_err(|error| error.to_string())?;
    let entries = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut lines: Vec<String> = entries
        .filter_map(Result::ok)
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            match entry.metadata() {
                Ok(kind) if kind.is_dir() => format!("{name}/"),
                Ok(kind) if kind.is_symlink() => format!("{name} (a link)"),
                Ok(kind) => format!("{name} ({} bytes)", kind.len()),
                Err(_) => name,
            }
        })
        .collect();
    lines.sort_unstable();
    if lines.is_empty() {
        return Ok("(the folder is empty)".to_owned());
    }
    Ok(first(lines, ENTRIES, "use glob to find some"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tools::testing::{input, world};

    #[test]
    fn a_long_file_is_read_in_parts_with_the_numbers_of_its_lines() {
        let text: String = (1..=5000).map(|n| format!("line {n}\n")).collect();
        let (_root, workspace) = world(&[("long", &text), ("wide", &"x".repeat(9000)), ("empty", "")]);
        let whole = read(&workspace, &input(json!({"path": "long"}))).unwrap();
        assert!(whole.starts_with("     1\tline 1\n") && whole.contains("lines 2001 to 5000 are left out"));
        let part = read(&workspace, &input(json!({"path": "long", "from_line": 4999, "lines": 9}))).unwrap();
        assert_eq!(part, "  4999\tline 4999\n  5000\tline 5000\n");
        assert!(
            read(&workspace, &input(json!({"path": "long", "from_line": 5001}))).unwrap_err().contains("5000 lines")
        );
        assert!(read(&workspace, &input(json!({"path": "wide"}))).unwrap().contains("7000 bytes left out"));
        assert_eq!(read(&workspace, &input(json!({"path": "empty"}))).unwrap(), "(the file is empty)");
    }

    #[test]
    fn what_is_no_text_or_outside_is_an_error_in_words() {
        let (root, workspace) = world(&[]);
        std::fs::write(root.path().join("binary"), [0xff, 0xfe, 0]).unwrap();
        assert!(read(&workspace, &input(json!({"path": "binary"}))).unwrap_err().contains("no text"));
        for path in ["/etc/passwd", "../x"] {
            assert!(read(&workspace, &input(json!({"path": path}))).unwrap_err().contains("outside of the workspace"));
            let written = write(&workspace, &input(json!({"path": path, "content": ""})));
            assert!(written.unwrap_err().contains("outside of the workspace"));
            assert!(list(&workspace, &input(json!({"path": path}))).is_err());
        }
    }

    #[test]
    fn a_file_is_made_with_its_folders_or_written_over_and_listed() {
        let (root, workspace) = world(&[("a", "1\n")]);
        let write = |path: &str| write(&workspace, &input(json!({"path": path, "content": "x\ny\n"}))).unwrap();
        assert_eq!(write("deep/er/b"), "deep/er/b is made, with 2 lines");
        assert_eq!(write("a"), "a is written over, with 2 lines");
        assert_eq!(std::fs::read_to_string(root.path().join("deep/er/b")).unwrap(), "x\ny\n");
        assert_eq!(list(&workspace, &input(json!({}))).unwrap(), ".git/\na (4 bytes)\ndeep/");
        assert_eq!(list(&workspace, &input(json!({"path": "deep"}))).unwrap(), "er/");
    }
}
