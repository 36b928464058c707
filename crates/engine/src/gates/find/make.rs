//! `make`: targets that are written out in the makefile.

use super::Place;

/// In the order in which GNU make looks.
const MANIFESTS: &[&str] = &["GNUmakefile", "makefile", "Makefile"];
const TARGETS: &[&str] = &["check", "lint", "test"];

pub(super) fn look(place: &mut Place<'_>) {
    let Some((manifest, text)) = MANIFESTS.iter().find_map(|name| Some((*name, place.read(name)?))) else { return };
    for target in TARGETS {
        if targets(&text).any(|name| name == *target) {
            place.add(&format!("make {target}"), &format!("make {target}"), manifest);
        }
    }
}

/// The names left of a rule's colon. Recipes, comments and assignments (`=`, `:=`, `::=`, `?=`, `+=`) have none, and
/// what is only declared `.PHONY` has no rule.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.starts_with(['\t', '#', ' '])).flat_map(|line| {
        let (names, rest) = line.split_once(':').unwrap_or_default();
        let is_rule = !names.contains('=') && !rest.trim_start_matches(':').starts_with('=');
        names.split_whitespace().filter(move |_| is_rule)
    })
}
