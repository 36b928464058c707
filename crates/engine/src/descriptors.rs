//! Descriptors that are handed from one process to another: over a local socket, with one byte that says what they are
//! (unix(7), `SCM_RIGHTS`).

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};

/// The most that are handed over at once.
pub(crate) const MOST: usize = 16;

/// Hands them over.
///
/// # Errors
/// There are more than [`MOST`], or nobody is there.
pub(crate) fn send(socket: BorrowedFd<'_>, byte: u8, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other("no room for the descriptors"));
    }
    sendmsg(socket, &[IoSlice::new(&[byte])], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Takes what was handed over; none once the other side is gone.
pub(crate) fn receive(socket: BorrowedFd<'_>) -> io::Result<Option<(u8, Vec<OwnedFd>)>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0_u8];
    let received = recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    if received.bytes == 0 {
        return Ok(None);
    }
    let mut descriptors = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    Ok(Some((byte[0], descriptors)))
}
