//! The smallest possible changes of a file: one token is replaced, every other byte is copied.

/// Replace `remove` at `offset` by `insert`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// In bytes, from the start of the original file, a byte order mark included.
    pub offset: usize,
    /// What stands there; empty for an insertion.
    pub remove: String,
    /// What is to stand there.
    pub insert: String,
}

/// The bytes are not those that the edit was made for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the file changed since it was read: {expected:?} is no longer at byte {offset}; read it again")]
pub struct StaleEdit {
    /// Where the edit wanted to go.
    pub offset: usize,
    /// What it wanted to replace.
    pub expected: String,
}

/// The bytes with all edits made. Offsets are those of the original, whatever the order of the edits.
///
/// # Errors
/// Bytes that are not those that an edit replaces, or edits that overlap: nothing is changed then.
pub fn apply(bytes: &[u8], edits: &[Edit]) -> Result<Vec<u8>, StaleEdit> {
    let mut sorted: Vec<&Edit> = edits.iter().collect();
    sorted.sort_by_key(|edit| edit.offset);
    let mut out = Vec::with_capacity(bytes.len() + 32);
    let mut copied = 0;
    for edit in sorted {
        let stale = || StaleEdit { offset: edit.offset, expected: edit.remove.clone() };
        let before = bytes.get(copied..edit.offset).ok_or_else(stale)?;
        let rest = bytes.get(edit.offset..).ok_or_else(stale)?;
        if !rest.starts_with(edit.remove.as_bytes()) {
            return Err(stale());
        }
        out.extend_from_slice(before);
        out.extend_from_slice(edit.insert.as_bytes());
        copied = edit.offset + edit.remove.len();
    }
    out.extend_from_slice(bytes.get(copied..).unwrap_or_default());
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(offset: usize, remove: &str, insert: &str) -> Edit {
        Edit { offset, remove: remove.into(), insert: insert.into() }
    }

    #[test]
    fn edits_count_from_the_original_in_any_order() {
        let out = apply(b"- [ ] a\n- [ ] b", &[edit(11, " ", "x"), edit(3, " ", "xx")]).unwrap();
        assert_eq!(out, b"- [xx] a\n- [x] b");
    }

    #[test]
    fn an_edit_for_other_bytes_changes_nothing() {
        assert!(apply(b"- [x] a", &[edit(3, " ", "x")]).is_err());
        assert!(apply(b"- [", &[edit(30, " ", "x")]).is_err());
        assert!(apply(b"abcd", &[edit(0, "abc", "x"), edit(1, "b", "y")]).is_err());
    }
}
