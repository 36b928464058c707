//! The doors of a network that nobody else is in: sockets that listen inside, and are served from outside.
//!
//! A socket belongs to the network in which it was made. So the program's process makes them before it becomes the
//! program, hands them out and keeps none; who takes the calls, the [`porter`](super::porter), is on the machine's network.
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd as _, BorrowedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};

/// The most doors that a network has.
const MOST: usize = 16;

/// Opens a door at each of these ports of this process's own loopback, and hands them to who is at the other end of
/// `outside`.
pub(super) fn hand_out(ports: &[u16], outside: BorrowedFd<'_>) -> io::Result<()> {
    let open = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port));
    let doors = ports.iter().take(MOST).map(open).collect::<io::Result<Vec<_>>>()?;
    let fds: Vec<BorrowedFd<'_>> = doors.iter().map(|door| door.as_fd()).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(&fds)) {
        return Err(io::Error::other("no room for the doors"));
    }
    sendmsg(outside, &[IoSlice::new(b"d")], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Takes the doors that were handed out; none if the other side is gone.
pub(super) fn take(inside: BorrowedFd<'_>) -> io::Result<Vec<TcpListener>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0_u8];
    recvmsg(inside, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let mut doors = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = message {
            doors.extend(fds.map(TcpListener::from));
        }
    }
    Ok(doors)
}
