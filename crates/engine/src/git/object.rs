//! Commits that git has just written: each in a file of its own, read without starting git.
//!
//! <https://git-scm.com/book/en/v2/Git-Internals-Git-Objects> describes the form.
use std::io::Read as _;
use std::path::{Path, PathBuf};

use flate2::read::ZlibDecoder;

use super::oid::Oid;

/// Bytes of a commit that are read; one with a longer message is left to git.
const MOST: u64 = 1024 * 1024;

/// What a commit says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Commit {
    pub(super) tree: Oid,
    pub(super) parents: Vec<Oid>,
    /// Subject, body and trailers.
    pub(super) message: String,
}

/// The file that an object is in, while git has not packed it.
pub(super) fn loose_file(common_dir: &Path, oid: Oid) -> PathBuf {
    let name = oid.to_string();
    let (folder, file) = name.split_at(2);
    common_dir.join("objects").join(folder).join(file)
}

/// A commit that is in a file of its own. Nothing where it is not, or where git has more to do to read it: to find it in a
/// pack, to convert its message.
pub(super) fn loose_commit(common_dir: &Path, oid: Oid) -> Option<Commit> {
    let file = std::fs::File::open(loose_file(common_dir, oid)).ok()?;
    let mut bytes = Vec::new();
    ZlibDecoder::new(file.take(MOST)).take(MOST).read_to_end(&mut bytes).ok()?;
    let begin = bytes.iter().position(|byte| *byte == 0)?;
    let (kind, body) = bytes.split_at(begin);
    let body = body.get(1..)?;
    let length = std::str::from_utf8(kind.strip_prefix(b"commit ")?).ok()?;
    (length.parse() == Ok(body.len())).then_some(())?;
    parse(std::str::from_utf8(body).ok()?)
}

/// Headers, one a line and continued by a blank at its beginning, then an empty line, then the message.
fn parse(text: &str) -> Option<Commit> {
    let (headers, message) = text.split_once("\n\n")?;
    let (mut tree, mut parents) = (None, Vec::new());
    for line in headers.lines() {
        match line.split_once(' ') {
            Some(("tree", oid)) => tree = Some(Oid::from_hex(oid.as_bytes())?),
            Some(("parent", oid)) => parents.push(Oid::from_hex(oid.as_bytes())?),
            Some(("encoding", _)) => return None,
            _ => {}
        }
    }
    Some(Commit { tree: tree?, parents, message: message.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "1111111111111111111111111111111111111111";
    const TWO: &str = "2222222222222222222222222222222222222222";

    fn oid(hex: &str) -> Oid {
        Oid::from_hex(hex.as_bytes()).unwrap()
    }

    #[test]
    fn a_signed_merge_is_read() {
        let text = format!(
            "tree {ONE}\nparent {TWO}\nparent {ONE}\nauthor A <a@x> 1 +0000\ngpgsig -----BEGIN\n tree {TWO}\n -----END\n\n\
             Subject\n\nBody\n"
        );
        let commit = parse(&text).unwrap();
        assert_eq!((commit.tree, commit.parents), (oid(ONE), vec![oid(TWO), oid(ONE)]));
        assert_eq!(commit.message, "Subject\n\nBody\n");
    }

    #[test]
    fn what_git_has_to_convert_is_left_to_git() {
        assert_eq!(parse(&format!("tree {ONE}\nencoding ISO-8859-1\n\nSubject\n")), None);
    }

    #[test]
    fn what_is_no_whole_commit_is_left_to_git() {
        use std::io::Write as _;
        let folder = tempfile::tempdir().unwrap();
        let file = loose_file(folder.path(), oid(ONE));
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let body = format!("tree {TWO}\n\nSubject\n");
        for (length, found) in [(body.len(), true), (body.len() + 1, false)] {
            let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
            write!(packed, "commit {length}\0{body}").unwrap();
            std::fs::write(&file, packed.finish().unwrap()).unwrap();
            assert_eq!(loose_commit(folder.path(), oid(ONE)).is_some(), found);
        }
        std::fs::write(&file, "torn").unwrap();
        assert_eq!(loose_commit(folder.path(), oid(ONE)), None);
        assert_eq!(loose_commit(folder.path(), oid(TWO)), None);
    }
}
