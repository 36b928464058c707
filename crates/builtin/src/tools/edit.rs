//! Changes of a part of a file: edit, multi-edit.

use serde::Deserialize;

use super::Returned;
use crate::workspace::Workspace;

#[derive(Debug, Deserialize)]
pub(super) struct Edit {
    path: String,
    #[serde(flatten)]
    change: Change,
}

#[derive(Debug, Deserialize)]
pub(super) struct MultiEdit {
    path: String,
    edits: Vec<Change>,
}

#[derive(Debug, Deserialize)]
struct Change {
    old_text: String,
    new_text: String,
    #[serde(default)]
    replace_all: bool,
}

pub(super) fn edit(workspace: &Workspace, input: Edit) -> Returned {
    multi_edit(workspace, &MultiEdit { path: input.path, edits: vec![input.change] })
}

pub(super) fn multi_edit(workspace: &Workspace, input: &MultiEdit) -> Returned {
    let MultiEdit { path, edits } = input;
    if edits.is_empty() {
        return Err("there is no edit".to_owned());
    }
    let mut text = workspace.read_text(path).map_err(|error| error.to_string())?;
    let mut places = 0;
    for (number, change) in edits.iter().enumerate() {
        let (changed, count) = apply(&text, change).map_err(|why| match edits.len() {
            1 => format!("{path} is unchanged: {why}"),
            _ => format!("{path} is unchanged: edit {}: {why}", number + 1),
        })?;
        text = changed;
        places += count;
    }
    workspace.write(path, &text).map_err(|error| error.to_string())?;
    let plural = if places == 1 { "place" } else { "places" };
    Ok(format!("{path} is changed in {places} {plural}"))
}

/// The changed text, and in how many places.
fn apply(text: &str, change: &Change) -> Result<(String, usize), String> {
    let Change { old_text: old, new_text: new, replace_all } = change;
    if old.is_empty() {
        return Err("old_text is empty; write makes a file".to_owned());
    }
    if old == new {
        return Err("old_text and new_text are the same".to_owned());
    }
    match text.matches(old.as_str()).count() {
        0 => Err("old_text is not found; read the file again, and copy it with all its blanks".to_owned()),
        1 => Ok((text.replacen(old.as_str(), new, 1), 1)),
        many if *replace_all => Ok((text.replace(old.as_str(), new), many)),
        many => {
            let line = |(at, _)| text[..at].matches('\n').count() + 1;
            let lines: Vec<String> =
                text.match_indices(old.as_str()).map(line).take(10).map(|n| n.to_string()).collect();
            Err(format!(
                "old_text is found {many} times, in the lines {}; give more of the text around the one that is meant, or \
                 set replace_all",
                lines.join(", ")
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tools::testing::{input, world};

    #[test]
    fn one_place_is_changed_and_nothing_where_it_is_not_the_only_one() {
        let (root, workspace) = world(&[("a", "x = 1\ny = 1\nz = 2\n")]);
        let text = || std::fs::read_to_string(root.path().join("a")).unwrap();
        let edit =
            |old: &str, new: &str| edit(&workspace, input(json!({"path": "a", "old_text": old, "new_text": new})));
        assert_eq!(edit("z = 2", "z = 3").unwrap(), "a is changed in 1 place");
        assert_eq!(text(), "x = 1\ny = 1\nz = 3\n");
        let error = edit(" = 1", " = 5").unwrap_err();
        assert!(error.contains("found 2 times, in the lines 1, 2"), "{error}");
        assert!(edit("nowhere", "x").unwrap_err().contains("not found"));
        assert!(edit("", "x").is_err() && edit("x", "x").is_err());
        assert_eq!(text(), "x = 1\ny = 1\nz = 3\n");
        let all = json!({"path": "a", "old_text": " = 1", "new_text": " = 5", "replace_all": true});
        assert_eq!(super::edit(&workspace, input(all)).unwrap(), "a is changed in 2 places");
        assert_eq!(text(), "x = 5\ny = 5\nz = 3\n");
    }

    #[test]
    fn several_edits_are_made_one_upon_the_other_or_none_of_them() {
        let (root, workspace) = world(&[("a", "one two\n")]);
        let text = || std::fs::read_to_string(root.path().join("a")).unwrap();
        let edits = |edits: &[(&str, &str)]| {
            let edits: Vec<_> = edits.iter().map(|(old, new)| json!({"old_text": old, "new_text": new})).collect();
            multi_edit(&workspace, &input(json!({"path": "a", "edits": edits})))
        };
        let error = edits(&[("one", "1"), ("three", "3")]).unwrap_err();
        assert!(error.contains("unchanged: edit 2"), "{error}");
        assert_eq!(text(), "one two\n");
        edits(&[("one", "1"), ("1 two", "done")]).unwrap();
        assert_eq!(text(), "done\n");
        assert!(edits(&[]).is_err());
    }

    #[test]
    fn an_executable_stays_one_and_a_link_out_of_the_workspace_is_not_followed() {
        use std::os::unix::fs::PermissionsExt as _;
        let (root, workspace) = world(&[("run", "echo a\n")]);
        let path = root.path().join("run");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        edit(&workspace, input(json!({"path": "run", "old_text": "a", "new_text": "b"}))).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o755);
        let outside = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(outside.path(), "theirs").unwrap();
        std::os::unix::fs::symlink(outside.path(), root.path().join("link")).unwrap();
        assert!(edit(&workspace, input(json!({"path": "link", "old_text": "theirs", "new_text": "x"}))).is_err());
        assert_eq!(std::fs::read_to_string(outside.path()).unwrap(), "theirs");
    }
}
