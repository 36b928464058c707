//! Rust: `Cargo.toml`.

use super::Place;

const MANIFEST: &str = "Cargo.toml";

pub(super) fn look(place: &mut Place<'_>) {
    if place.read(MANIFEST).is_none() {
        return;
    }
    place.add("cargo check", "cargo check", MANIFEST);
    if (place.is_installed)("cargo-clippy") {
        place.add("cargo clippy", "cargo clippy --all-targets -- -D warnings", MANIFEST);
    }
    place.add("cargo test", "cargo test", MANIFEST);
}
