//! Files that somebody names by patterns.

use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// Files by patterns from the top of the repository. One without a folder names files in any.
#[derive(Debug, Clone, Default)]
pub struct FilePatterns {
    written: Vec<String>,
    /// The same, compiled.
    set: GlobSet,
}

/// A pattern that is none.
#[derive(Debug, thiserror::Error)]
#[error("`{pattern}` is no pattern of files: {source}")]
pub struct NoPattern {
    pattern: String,
    source: globset::Error,
}

impl PartialEq for FilePatterns {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

impl Eq for FilePatterns {}

impl FilePatterns {
    /// Those of these patterns.
    ///
    /// # Errors
    /// One of them is none.
    pub fn of(patterns: &[String]) -> Result<Self, NoPattern> {
        let mut set = GlobSetBuilder::new();
        for pattern in patterns {
            let anywhere = if pattern.contains('/') { pattern.clone() } else { format!("**/{pattern}") };
            let glob = GlobBuilder::new(&anywhere).literal_separator(true).build();
            set.add(glob.map_err(|source| NoPattern { pattern: pattern.clone(), source })?);
        }
        let set = set.build().map_err(|source| NoPattern { pattern: patterns.join(" "), source })?;
        Ok(Self { written: patterns.to_vec(), set })
    }

    /// As they were written.
    pub fn written(&self) -> &[String] {
        &self.written
    }

    /// Whether a path from the top of the repository is one of them.
    pub fn has(&self, path: impl AsRef<Path>) -> bool {
        self.set.is_match(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_from_the_top_or_by_its_name_alone() {
        let files = FilePatterns::of(&["*.pem".to_owned(), "fixtures/**".to_owned()]).unwrap();
        for file in ["a/b/x.pem", "x.pem", "fixtures/a/b"] {
            assert!(files.has(file), "{file}");
        }
        assert!(!files.has("a/fixtures/b"));
    }
}
