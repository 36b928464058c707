//! The doors of a network that nobody else is in: sockets that listen inside, and are served from outside.
//!
//! A socket belongs to the network in which it was made. So the program's process makes them before it becomes the
//! program, hands them out and keeps none; who takes the calls, the [`porter`](super::porter), is on the machine's network.
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd as _, BorrowedFd};

use crate::descriptors;

/// What is said with them.
const DOORS: u8 = b'd';

/// Opens a door at each of these ports of this process's own loopback, and hands them to who is at the other end of
/// `outside`.
pub(super) fn hand_out(ports: &[u16], outside: BorrowedFd<'_>) -> io::Result<()> {
    let open = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port));
    let doors = ports.iter().take(descriptors::MOST).map(open).collect::<io::Result<Vec<_>>>()?;
    let fds: Vec<BorrowedFd<'_>> = doors.iter().map(|door| door.as_fd()).collect();
    descriptors::send(outside, DOORS, &fds)
}

/// Takes the doors that were handed out; none if the other side is gone.
pub(super) fn take(inside: BorrowedFd<'_>) -> io::Result<Vec<TcpListener>> {
    let handed = descriptors::receive(inside)?;
    Ok(handed.into_iter().flat_map(|(_, doors)| doors).map(TcpListener::from).collect())
}
