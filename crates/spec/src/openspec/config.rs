//! What `openspec/config.yaml` says to everything that is made from the project's specs.

use crate::error::{Code, Diagnostic};
use crate::text::Text;
use crate::yaml;

/// `context`, then `rules.tasks` and `operations.apply.guidance` as lists.
pub(super) fn read(text: &Text<'_>) -> Result<String, Diagnostic> {
    let root = yaml::parse(text, text.body, 0).map_err(|error| {
        Diagnostic::warning(Code::UnreadableCompanion, text.file, error.line, error.message)
            .with_help("the project's context and rules are left out until it is mended")
    })?;
    let Some(root) = root else { return Ok(String::new()) };
    let mut parts: Vec<String> = root.first_word(&["context"]).map(str::to_owned).into_iter().collect();
    for (title, keys) in [
        ("Rules of the project for tasks:", &["rules", "tasks"] as &[&str]),
        ("Guidance of the project for this work:", &["operations", "apply", "guidance"]),
    ] {
        let rules = keys.iter().try_fold(&root, |node, key| node.get(key)).map(yaml::Node::words).unwrap_or_default();
        if !rules.is_empty() {
            parts.push(format!("{title}\n- {}", rules.join("\n- ")));
        }
    }
    Ok(parts.join("\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_rules_and_guidance_are_told_to_the_agent() {
        let source = "schema: x\ncontext: |\n  Rust, no unsafe\nrules:\n  tasks:\n    - One box a commit\n  specs: [a]\noperations:\n  apply:\n    guidance: Ask first\n";
        let told = read(&Text::decode("c", source.as_bytes()).unwrap()).unwrap();
        assert_eq!(
            told,
            "Rust, no unsafe\n\nRules of the project for tasks:\n- One box a commit\n\nGuidance of the project for this work:\n- Ask first"
        );
    }

    #[test]
    fn broken_yaml_is_a_warning_with_its_line() {
        let warning = read(&Text::decode("c", b"a: b\n  c: [d\n").unwrap()).unwrap_err();
        assert!(warning.line.is_some());
    }
}
