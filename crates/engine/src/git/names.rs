//! Names of refs and files made from ids that may hold anything.

/// Where everything of ours lives below `refs/`.
pub(super) const REFS: &str = "refs/ralphloop";
/// Where branches are kept as they were before the commits of a run were made one: `SQUASHED_REFS/RUN`.
pub(super) const SQUASHED_REFS: &str = "refs/ralphloop/squashed";

/// A file or ref component for an id: injective, so that different ids never meet. Letters of ASCII, digits and `-` stand
/// for themselves; every other byte is `_` and two hexadecimal digits, `_` too. An id too long for a file name is cut and
/// its hash added. Where the file system ignores case, ids that differ by it alone share a name: a ref then keeps both
/// attempts reachable.
pub fn slug(id: &str) -> String {
    use std::fmt::Write as _;
    let mut slug = String::with_capacity(id.len());
    for byte in id.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' => slug.push(char::from(byte)),
            _ => {
                // Writing to a string does not fail.
                let _ = write!(slug, "_{byte:02x}");
            }
        }
    }
    if slug.is_empty() {
        // No byte encodes to this: `_` is always followed by digits.
        return "_".to_owned();
    }
    if slug.len() > 100 {
        slug.truncate(60);
        // `_h` is no encoding of a byte, so that no short id has this name.
        slug.push_str("_h");
        slug.push_str(&blake3::hash(id.as_bytes()).to_hex()[..32]);
    }
    slug
}

/// The id that [`slug`] made this of; nothing for one that was cut, or that it did not make.
pub(super) fn unslug(slug: &str) -> Option<String> {
    if slug == "_" {
        return Some(String::new());
    }
    let mut bytes = Vec::with_capacity(slug.len());
    let mut rest = slug.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first == b'_' {
            let (digits, after) = rest.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            rest = after;
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).ok()
}

/// Below this is kept what was found in a lane where nothing was to be: as attempts of a story of the lane's name, so that
/// whoever lists attempts lists it.
pub(crate) fn found_refs(run: &ralphloop_core::ids::RunId, lane: ralphloop_core::ids::LaneId) -> String {
    format!("{REFS}/{}/lane-{}", slug(run.as_str()), lane.0.saturating_add(1))
}

/// The ref under which an attempt is kept: `refs/ralphloop/<run>/<story>/<attempt>`.
pub fn attempt_ref(run: &ralphloop_core::ids::RunId, attempt: &ralphloop_core::ids::AttemptId) -> String {
    format!("{REFS}/{}/{}/{}", slug(run.as_str()), slug(attempt.story.as_str()), attempt.number)
}

/// The ref under which a branch is kept as it was before the commits of a run were made one.
pub fn squashed_ref(run: &ralphloop_core::ids::RunId) -> String {
    format!("{SQUASHED_REFS}/{}", slug(run.as_str()))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn an_id_is_read_back_from_its_name_unless_it_was_cut() {
        for id in ["S-3", "a_b", "", "_", "ä/ö", "20260101-000000-000"] {
            assert_eq!(unslug(&slug(id)).as_deref(), Some(id));
        }
        for no in [slug(&"x".repeat(300)).as_str(), "_zz", "_5", "_c3"] {
            assert_eq!(unslug(no), None, "{no}");
        }
    }

    #[test]
    fn different_ids_never_meet_and_common_ones_stay_readable() {
        let long = "x".repeat(300);
        let ids = [
            "a-b",
            "a_b",
            "A-B",
            "a/b",
            "a b",
            "a.b",
            "ä",
            "日本",
            "",
            "_",
            "_5f",
            "..",
            ".lock",
            "a.lock",
            "@{",
            &long,
            &long[1..],
        ];
        let slugs: HashSet<_> = ids.iter().map(|id| slug(id)).collect();
        assert_eq!(slug("US-001"), "US-001");
        assert_eq!(slugs.len(), ids.len());
        assert!(slugs.iter().all(|slug| slug.len() <= 100 && !slug.contains(['/', '.', ' '])));
    }
}
