//! Whether two failures are the same one: their text without what differs by chance.

use serde::{Deserialize, Serialize};

use crate::ids::TreeId;

/// How an attempt ended, for comparison with the next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    text: String,
    tree: Option<TreeId>,
}

impl Fingerprint {
    /// Of a failure's text and the tree that it left.
    pub fn new(text: &str, tree: Option<TreeId>) -> Self {
        Self { text: normalise(text), tree }
    }
}

/// The text without numbers, times, hexadecimal names and paths.
fn normalise(text: &str) -> String {
    text.split_whitespace()
        .map(|word| {
            if word.contains('/') {
                "<path>".to_owned()
            } else if word.len() >= 7 && word.chars().all(|c| c.is_ascii_hexdigit()) {
                "<hex>".to_owned()
            } else {
                without_digits(word)
            }
        })
        .collect::<Vec<_>>()
        .join(" ")
}

fn without_digits(word: &str) -> String {
    let mut out = String::with_capacity(word.len());
    for c in word.chars() {
        if !c.is_ascii_digit() {
            out.push(c);
        } else if !out.ends_with('#') {
            out.push('#');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_paths_and_numbers_make_no_difference() {
        let a = Fingerprint::new("error at /tmp/a1/x.rs:10 after 3.25s in build 0a1b2c3d", None);
        let b = Fingerprint::new("error at /tmp/b2/x.rs:44 after 13.5s in build 99ffee00", None);
        assert_eq!(a, b);
        assert_ne!(a, Fingerprint::new("warning at /tmp/a1/x.rs:10 after 3.25s in build 0a1b2c3d", None));
    }

    #[test]
    fn another_tree_is_another_failure() {
        let with = |t: &str| Fingerprint::new("same", Some(TreeId::from(t)));
        assert_eq!(with("a"), with("a"));
        assert_ne!(with("a"), with("b"));
    }
}
