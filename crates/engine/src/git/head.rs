//! HEAD and the refs as the files backend keeps them, read without starting git. A repository whose refs are kept in
//! another way is refused before a run.
use std::collections::BTreeMap;
use std::path::Path;

use super::Places;
use super::names::REFS;
use super::oid::Oid;
use super::record::Head;

/// HEAD can't be read.
#[derive(Debug, thiserror::Error)]
#[error("can't read {}: {reason}", path.display())]
pub struct HeadError {
    /// The file.
    pub path: std::path::PathBuf,
    /// What is wrong.
    pub reason: String,
}

/// Reads where HEAD points.
pub(super) fn read_head(places: &Places) -> Result<Head, HeadError> {
    let path = places.git_dir.join("HEAD");
    let text = std::fs::read(&path).map_err(|error| HeadError { path: path.clone(), reason: error.to_string() })?;
    let text = text.trim_ascii();
    if let Some(name) = text.strip_prefix(b"ref:") {
        let name = String::from_utf8(name.trim_ascii().to_vec())
            .map_err(|_| HeadError { path, reason: "the branch's name is no UTF-8".to_owned() })?;
        let commit = resolve(places, &name);
        return Ok(Head { branch: Some(name), commit });
    }
    match Oid::from_hex(text) {
        Some(oid) => Ok(Head { branch: None, commit: Some(oid) }),
        None => Err(HeadError { path, reason: "it names neither a branch nor a commit".to_owned() }),
    }
}

/// What a ref stands for; symbolic refs are followed a few steps.
pub(super) fn resolve(places: &Places, name: &str) -> Option<Oid> {
    let mut name = name.to_owned();
    for _ in 0..5 {
        let Ok(text) = std::fs::read(places.common_dir.join(&name)) else {
            return packed(&places.common_dir).get(&name).copied();
        };
        let text = text.trim_ascii();
        match text.strip_prefix(b"ref:") {
            Some(next) => name = String::from_utf8(next.trim_ascii().to_vec()).ok()?,
            None => return Oid::from_hex(text),
        }
    }
    None
}

/// The refs in `packed-refs`.
pub(super) fn packed(common_dir: &Path) -> BTreeMap<String, Oid> {
    let text = std::fs::read(common_dir.join("packed-refs")).unwrap_or_default();
    parse_packed(&text)
}

/// Lines `<name of object> <name of ref>`; lines that begin with `#` or `^` say more about the one before.
pub(super) fn parse_packed(text: &[u8]) -> BTreeMap<String, Oid> {
    text.split(|byte| *byte == b'\n')
        .filter(|line| !line.starts_with(b"#") && !line.starts_with(b"^"))
        .filter_map(|line| {
            let at = line.iter().position(|byte| *byte == b' ')?;
            let (oid, name) = line.split_at(at);
            Some((String::from_utf8(name.get(1..)?.to_vec()).ok()?, Oid::from_hex(oid)?))
        })
        .collect()
}

/// Our own refs by name, loose and packed.
pub(super) fn ours(common_dir: &Path) -> BTreeMap<String, Oid> {
    let mut refs: BTreeMap<_, _> =
        packed(common_dir).into_iter().filter(|(name, _)| name.starts_with(&format!("{REFS}/"))).collect();
    loose(common_dir, &common_dir.join(REFS), &mut refs);
    refs
}

/// Every ref by name, loose and packed.
pub(super) fn all(common_dir: &Path) -> BTreeMap<String, Oid> {
    let mut refs = packed(common_dir);
    loose(common_dir, &common_dir.join("refs"), &mut refs);
    refs
}

fn loose(common_dir: &Path, folder: &Path, into: &mut BTreeMap<String, Oid>) {
    let Ok(items) = std::fs::read_dir(folder) else { return };
    for path in items.filter_map(Result::ok).map(|item| item.path()) {
        if path.is_dir() {
            loose(common_dir, &path, into);
        } else if let Some(name) = path.strip_prefix(common_dir).ok().and_then(Path::to_str)
            && let Some(oid) = std::fs::read(&path).ok().and_then(|text| Oid::from_hex(text.trim_ascii()))
        {
            into.insert(name.to_owned(), oid);
        }
    }
}
