//! `just`: recipes that need no argument.

use super::Place;

const MANIFESTS: &[&str] = &["justfile", "Justfile", ".justfile"];
const RECIPES: &[&str] = &["check", "lint", "test"];

pub(super) fn look(place: &mut Place<'_>) {
    let Some((manifest, text)) = MANIFESTS.iter().find_map(|name| Some((*name, place.read(name)?))) else { return };
    for recipe in RECIPES {
        if text.lines().any(|line| begins(line, recipe)) {
            place.add(&format!("just {recipe}"), &format!("just {recipe}"), manifest);
        }
    }
}

/// The line begins that recipe (`test *args: build`), or an alias of that name. A parameter without a default needs an
/// argument, which a gate has none of; `*rest` may be empty.
fn begins(line: &str, recipe: &str) -> bool {
    if let Some(alias) = line.strip_prefix("alias ") {
        return alias.split_once(":=").is_some_and(|(name, _)| name.trim() == recipe);
    }
    let Some((head, rest)) = line.split_once(':') else { return false };
    if rest.starts_with('=') {
        return false;
    }
    let mut words = head.trim_start_matches('@').split_whitespace();
    words.next() == Some(recipe)
        && !line.starts_with([' ', '\t'])
        && words.all(|parameter| parameter.starts_with('*') || parameter.contains('='))
}
