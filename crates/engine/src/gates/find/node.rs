//! JavaScript: the scripts of `package.json`, by npm, pnpm, yarn or bun.

use serde_json::Value;

use super::Place;

const MANIFEST: &str = "package.json";
/// Cheap ones first.
const SCRIPTS: &[&str] = &["typecheck", "lint", "test", "build"];
/// What `npm init` writes in place of a test; running it only fails.
const PLACEHOLDER: &str = "no test specified";
const LOCK_FILES: &[(&str, &str)] = &[
    ("pnpm-lock.yaml", "pnpm"),
    ("yarn.lock", "yarn"),
    ("bun.lock", "bun"),
    ("bun.lockb", "bun"),
    ("package-lock.json", "npm"),
    ("npm-shrinkwrap.json", "npm"),
];

pub(super) fn look(place: &mut Place<'_>) {
    let Some(text) = place.read(MANIFEST) else { return };
    let manifest: Value = match serde_json::from_str(text.trim_start_matches('\u{feff}')) {
        Ok(manifest) => manifest,
        Err(e) => return place.unreadable(MANIFEST, e.to_string()),
    };
    let manager = manager(place, &manifest);
    for script in SCRIPTS {
        let body = manifest["scripts"][script].as_str().unwrap_or_default();
        if !body.trim().is_empty() && !body.contains(PLACEHOLDER) {
            place.add(&format!("{manager} {script}"), &format!("{manager} run {script}"), MANIFEST);
        }
    }
}

/// The field `packageManager` (`pnpm@9.1.0`), else the lock file, else npm.
fn manager(place: &Place<'_>, manifest: &Value) -> &'static str {
    let declared = manifest["packageManager"].as_str().and_then(|text| text.split('@').next()).unwrap_or_default();
    if let Some((_, name)) = LOCK_FILES.iter().find(|(_, name)| *name == declared) {
        return name;
    }
    LOCK_FILES.iter().find(|(file, _)| place.has(file)).map_or("npm", |(_, name)| name)
}
