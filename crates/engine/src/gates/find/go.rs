//! Go: `go.mod`.

use super::Place;

const MANIFEST: &str = "go.mod";

pub(super) fn look(place: &mut Place<'_>) {
    if place.read(MANIFEST).is_none() {
        return;
    }
    place.add("go vet", "go vet ./...", MANIFEST);
    place.add("go test", "go test ./...", MANIFEST);
}
