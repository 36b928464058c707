//! The two system calls of the sandbox that have no safe interface.
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use nix::libc;
use rustix::fs::CWD;

/// Whether mounts below are meant too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deep {
    Yes,
    No,
}

/// Makes the mount at `path` read-only.
pub(super) fn make_read_only(path: &Path) -> io::Result<()> {
    set_read_only(CWD, &CString::new(path.as_os_str().as_bytes())?, Deep::No)
}

/// Makes the mount at `path` and all below it read-only.
pub(super) fn make_tree_read_only(path: &Path) -> io::Result<()> {
    set_read_only(CWD, &CString::new(path.as_os_str().as_bytes())?, Deep::Yes)
}

/// Makes a copy of mounts, which is at no path yet, read-only.
pub(super) fn make_copy_read_only(copy: BorrowedFd<'_>, deep: Deep) -> io::Result<()> {
    set_read_only(copy, c"", deep)
}

#[expect(unsafe_code, reason = "mount_setattr(2) has no safe interface")]
fn set_read_only(at: BorrowedFd<'_>, path: &std::ffi::CStr, deep: Deep) -> io::Result<()> {
    let mut flags = 0;
    if path.is_empty() {
        flags |= libc::AT_EMPTY_PATH;
    }
    if deep == Deep::Yes {
        flags |= libc::AT_RECURSIVE;
    }
    let attributes = libc::mount_attr { attr_set: libc::MOUNT_ATTR_RDONLY, attr_clr: 0, propagation: 0, userns_fd: 0 };
    // SAFETY: the path ends with a zero byte, the attributes are a whole `mount_attr` whose size is given, both live until
    // the call is over, and the kernel writes to neither.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            at.as_raw_fd(),
            path.as_ptr(),
            flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Nothing but the three standard streams is open once this process becomes another program.
#[expect(unsafe_code, reason = "close_range(2) has no safe interface")]
pub(super) fn close_the_rest_on_exec() -> io::Result<()> {
    const FIRST: libc::c_uint = 3;
    // SAFETY: the call takes three numbers. No descriptor is closed by it, so that none whose owner still lives is gone:
    // each is marked to be closed when this process becomes another program, which has no owners.
    let result = unsafe { libc::syscall(libc::SYS_close_range, FIRST, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
