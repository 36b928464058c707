//! What `openspec/config.yaml` says to everything that is made from the project's specs.

use saphyr::{LoadableYamlNode, Yaml};

use crate::error::{Code, Diagnostic};
use crate::text::{Text, saturate};

/// `context`, then `rules.tasks` and `operations.apply.guidance` as lists.
pub(super) fn read(text: &Text<'_>) -> Result<String, Diagnostic> {
    let documents = Yaml::load_from_str(text.body).map_err(|error| {
        let line = saturate(error.marker().line());
        Diagnostic::warning(
            Code::UnreadableCompanion,
            text.file,
            Some(line),
            format!("not valid YAML: {}", error.info()),
        )
        .with_help("the project's context and rules are left out until it is mended")
    })?;
    let Some(root) = documents.first() else { return Ok(String::new()) };
    let at = |keys: &[&str]| keys.iter().try_fold(root, |node, key| node.as_mapping_get(key));
    let mut parts = Vec::new();
    if let Some(context) = at(&["context"]).and_then(Yaml::as_str).map(str::trim).filter(|text| !text.is_empty()) {
        parts.push(context.to_owned());
    }
    for (title, keys) in [
        ("Rules of the project for tasks:", &["rules", "tasks"] as &[&str]),
        ("Guidance of the project for this work:", &["operations", "apply", "guidance"]),
    ] {
        let rules = at(keys).map(texts).unwrap_or_default();
        if !rules.is_empty() {
            parts.push(format!("{title}\n- {}", rules.join("\n- ")));
        }
    }
    Ok(parts.join("\n\n"))
}

fn texts(node: &Yaml<'_>) -> Vec<String> {
    let own = |node: &Yaml<'_>| node.as_str().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    match node.as_vec() {
        Some(list) => list.iter().filter_map(own).collect(),
        None => own(node).into_iter().collect(),
    }
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
