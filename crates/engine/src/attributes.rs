//! Extended attributes of files, access lists among them: those that are a person's, not the system's own (labels of a
//! security module, views of a network file system), which follow from where a file lies.

use std::io;
use std::path::Path;

use rustix::fs::{XattrFlags, lgetxattr, llistxattr, lremovexattr, lsetxattr};
use rustix::io::Errno;

/// Names with their values, sorted by name. Almost every file has none.
pub(crate) type Attributes = Vec<(Vec<u8>, Vec<u8>)>;

/// The longest list of names, and the longest value, that Linux has (`XATTR_LIST_MAX`, `XATTR_SIZE_MAX`), in bytes.
const LONGEST: usize = 64 * 1024;

/// Whether an attribute is kept.
fn is_kept(name: &[u8]) -> bool {
    let exact: [&[u8]; 3] = [b"system.posix_acl_access", b"system.posix_acl_default", b"security.capability"];
    name.starts_with(b"user.") || name.starts_with(b"trusted.") || exact.contains(&name)
}

/// What a path has; a link is not followed. None where the file system knows no attributes.
pub(crate) fn read(path: &Path) -> io::Result<Attributes> {
    let mut short = [0_u8; 256];
    let mut long = Vec::new();
    let names = match llistxattr(path, &mut short) {
        Ok(count) => &short[..count],
        Err(Errno::RANGE) => {
            long.resize(LONGEST, 0);
            let count = llistxattr(path, long.as_mut_slice())?;
            &long[..count]
        }
        Err(Errno::NOTSUP | Errno::NOENT | Errno::PERM | Errno::ACCESS) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let mut all = Attributes::new();
    for name in names.split(|byte| *byte == 0).filter(|name| is_kept(name)) {
        let mut value = vec![0; LONGEST];
        match lgetxattr(path, name, value.as_mut_slice()) {
            Ok(count) => {
                value.truncate(count);
                value.shrink_to_fit();
                all.push((name.to_vec(), value));
            }
            // It went meanwhile, or is not for us to see.
            Err(Errno::NODATA | Errno::NOENT | Errno::PERM | Errno::ACCESS) => {}
            Err(error) => return Err(error.into()),
        }
    }
    all.sort_unstable();
    Ok(all)
}

/// Gives a path exactly these, as far as the system lets us; an error says that it does not.
pub(crate) fn set(path: &Path, wanted: &Attributes) -> io::Result<()> {
    let there = read(path)?;
    let mut refused = None;
    for (name, _) in there.iter().filter(|(name, _)| !wanted.iter().any(|(kept, _)| kept == name)) {
        refused = lremovexattr(path, name.as_slice()).err().or(refused);
    }
    for attribute in wanted.iter().filter(|attribute| !there.contains(attribute)) {
        refused = lsetxattr(path, attribute.0.as_slice(), &attribute.1, XattrFlags::empty()).err().or(refused);
    }
    refused.map_or(Ok(()), |refused| Err(refused.into()))
}
