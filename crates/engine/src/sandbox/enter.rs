//! Entering a confinement by namespaces, in the process that is about to become the program.
//!
//! It gets a mount namespace in which everything is read-only but what it may write, and a user namespace in which its rights
//! are those of an ordinary program. What is hidden lies below a mount that its own rights cannot take away: rights over
//! mounts are given up before the program begins, and a namespace that the program makes for itself inherits them locked.
use std::fs;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::Path;

use landlock::{Ruleset, RulesetAttr as _, Scope};
use nix::sched::{CloneFlags, unshare};
use rustix::fs::{CWD, FileType};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_change, move_mount, open_tree,
};
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::confinement::{Confinement, Network, Placed, What};
use super::lowlevel::{Deep, close_the_rest_on_exec, make_read_only, make_tree_read_only};
use super::{calls, doors};

/// The devices that every program needs and that lead to nobody else.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// A step that the system refused.
#[derive(Debug, thiserror::Error)]
#[error("{doing}: {source}")]
pub(crate) struct Refused {
    doing: String,
    source: io::Error,
}

/// Says what was done when the system refused.
trait While<T> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T, Refused>;
}

impl<T, E: Into<io::Error>> While<T> for Result<T, E> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T, Refused> {
        self.map_err(|error| Refused { doing: what(), source: error.into() })
    }
}

/// Confines this process, which has one thread and is about to become the program, and puts it into `cwd`. The doors of its
/// network are handed to who is at the other end of `outside`.
pub(crate) fn enter(confinement: &Confinement, cwd: &Path, outside: Option<BorrowedFd<'_>>) -> Result<(), Refused> {
    leave_the_machine(&confinement.network)?;
    match (confinement.network.doors(), outside) {
        ([], _) => {}
        (ports, Some(outside)) => doors::hand_out(ports, outside).doing(|| "opening the network's doors".to_owned())?,
        (_, None) => {
            return Err(io::Error::from(io::ErrorKind::NotConnected))
                .doing(|| "opening the network's doors".to_owned());
        }
    }
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .doing(|| "parting the mounts from the machine's".to_owned())?;
    // All are taken before any is covered.
    let taken: Vec<Option<OwnedFd>> = confinement.placed.iter().map(take).collect::<Result<_, _>>()?;
    let devices =
        DEVICES.map(|name| (name, open_tree(CWD, Path::new("/dev").join(name), OpenTreeFlags::OPEN_TREE_CLONE)));
    make_tree_read_only(Path::new("/")).doing(|| "making everything read-only".to_owned())?;
    for (placed, tree) in confinement.placed.iter().zip(&taken) {
        place(placed, tree.as_ref())?;
    }
    place_devices(devices)?;
    for placed in confinement.placed.iter().filter(|placed| matches!(placed.what, What::Empty { .. })) {
        make_read_only(placed.path()).doing(|| format!("closing {}", placed.path().display()))?;
    }
    // The old one lies below the mounts.
    std::env::set_current_dir("/").doing(|| "going to /".to_owned())?;
    std::env::set_current_dir(cwd).doing(|| format!("going to {}", cwd.display()))?;
    give_up_rights()?;
    keep_to_its_own()
}

/// Namespaces of its own. Who is root and may have no user namespace goes without: its rights are given up all the same.
fn leave_the_machine(network: &Network) -> Result<(), Refused> {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let mut spaces = CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWIPC;
    if network.is_own() {
        spaces |= CloneFlags::CLONE_NEWNET;
    }
    match unshare(spaces | CloneFlags::CLONE_NEWUSER) {
        Ok(()) => {
            // Without this the system takes no map of groups from an ordinary user.
            drop(fs::write("/proc/self/setgroups", "deny"));
            let map = |file: &str, id: u32| fs::write(file, format!("{id} {id} 1")).doing(|| format!("writing {file}"));
            map("/proc/self/uid_map", user.as_raw())?;
            map("/proc/self/gid_map", group.as_raw())?;
        }
        Err(_) if user.is_root() => unshare(spaces).doing(|| "making a mount namespace".to_owned())?,
        Err(error) => return Err(error).doing(|| "making a user namespace".to_owned()),
    }
    if network.is_own() {
        wake_loopback().doing(|| "starting the loopback network".to_owned())?;
    }
    Ok(())
}

/// A copy of what is to be placed, as it is on the machine.
fn take(placed: &Placed) -> Result<Option<OwnedFd>, Refused> {
    let What::From { source, writable } = &placed.what else { return Ok(None) };
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
    let source = Path::new(source);
    let tree = open_tree(CWD, source, flags).doing(|| format!("taking {}", source.display()))?;
    if !writable {
        super::lowlevel::make_copy_read_only(tree.as_fd(), Deep::Yes)
            .doing(|| format!("making {} read-only", source.display()))?;
    }
    Ok(Some(tree))
}

fn place(placed: &Placed, tree: Option<&OwnedFd>) -> Result<(), Refused> {
    let path = placed.path();
    let doing = || format!("placing {}", path.display());
    if placed.covers_nothing() {
        return Ok(());
    }
    match (&placed.what, tree) {
        (What::From { .. }, Some(tree)) => {
            // The place that it was taken from may be covered by now.
            let kind = rustix::fs::fstat(tree).map(|found| FileType::from_raw_mode(found.st_mode)).doing(doing)?;
            make_room(path, kind == FileType::Directory).doing(doing)?;
            put(tree, path).doing(doing)
        }
        (What::Empty { open }, _) => {
            make_room(path, true).doing(doing)?;
            let mode = if *open { c"mode=755,size=1m" } else { c"mode=000,size=1m" };
            let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
            mount("tmpfs", path, "tmpfs", flags, mode).doing(doing)
        }
        (What::From { .. }, None) => Ok(()),
    }
}

fn put(tree: &OwnedFd, path: &Path) -> rustix::io::Result<()> {
    move_mount(tree, "", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
}

/// Something to mount on; only below an empty folder or a temporary one is it not there yet.
fn make_room(path: &Path, is_folder: bool) -> io::Result<()> {
    if fs::symlink_metadata(path).is_ok() {
        return Ok(());
    }
    let above = path.parent().unwrap_or(Path::new("/"));
    let mut folders = fs::DirBuilder::new();
    folders.recursive(true).mode(0o755);
    if is_folder {
        return folders.create(path);
    }
    folders.create(above)?;
    fs::OpenOptions::new().write(true).create_new(true).open(path).map(drop)
}

/// A `/dev` without disks, terminals of others and the like.
fn place_devices(devices: [(&str, rustix::io::Result<OwnedFd>); DEVICES.len()]) -> Result<(), Refused> {
    let dev = Path::new("/dev");
    let doing = || "making /dev".to_owned();
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    mount("tmpfs", dev, "tmpfs", flags, c"mode=755,size=1m").doing(doing)?;
    for (name, device) in devices {
        let Ok(device) = device else { continue };
        let path = dev.join(name);
        fs::File::create(&path).doing(doing)?;
        put(&device, &path).doing(doing)?;
    }
    let folder = |name: &str| fs::create_dir(dev.join(name)).doing(doing);
    folder("shm")?;
    mount("tmpfs", dev.join("shm"), "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, c"mode=1777").doing(doing)?;
    folder("pts")?;
    // Terminals of its own; where the system has none to give, there are none.
    let terminals = c"newinstance,ptmxmode=0666,mode=0620";
    let _ = mount("devpts", dev.join("pts"), "devpts", MountFlags::NOSUID | MountFlags::NOEXEC, terminals);
    let links = [
        ("ptmx", "pts/ptmx"),
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
    ];
    for (name, to) in links {
        symlink(to, dev.join(name)).doing(doing)?;
    }
    make_read_only(dev).doing(doing)
}

/// No right beyond those of a file's owner, for this process and for whatever it starts.
fn give_up_rights() -> Result<(), Refused> {
    for right in (0..64).map(|bit| CapabilitySet::from_bits_retain(1 << bit)) {
        match rustix::thread::remove_capability_from_bounding_set(right) {
            Ok(()) => {}
            // Beyond the last one that this system knows.
            Err(rustix::io::Errno::INVAL) => break,
            Err(error) => return Err(error).doing(|| "giving up rights".to_owned()),
        }
    }
    // There are none on systems that are too old for it.
    let _ = rustix::thread::clear_ambient_capability_set();
    rustix::thread::set_no_new_privs(true).doing(|| "giving up the way to new rights".to_owned())?;
    let none = CapabilitySet::empty();
    rustix::thread::set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
        .doing(|| "giving up rights".to_owned())
}

/// The last step. The program gets none of the files that somebody had open who started the loop. Where the system can,
/// signals and nameless sockets of programs outside are out of reach; older ones leave it at the rest.
pub(super) fn keep_to_its_own() -> Result<(), Refused> {
    close_the_rest_on_exec().doing(|| "keeping open files outside".to_owned())?;
    let kept = || -> Result<(), landlock::RulesetError> {
        Ruleset::default().scope(Scope::Signal)?.scope(Scope::AbstractUnixSocket)?.create()?.restrict_self()?;
        Ok(())
    };
    kept().map_err(|error| Refused { doing: "keeping signals inside".to_owned(), source: io::Error::other(error) })?;
    calls::refuse().doing(|| "refusing system calls".to_owned())
}

/// Starts the loopback device of a fresh network: one message of rtnetlink(7), which sets the device's flag to be up.
fn wake_loopback() -> io::Result<()> {
    const RTM_NEWLINK: u16 = 16;
    const NLM_F_REQUEST: u16 = 1;
    const IFF_UP: u32 = 1;
    const LOOPBACK: u32 = 1;
    let mut message = Vec::with_capacity(32);
    message.extend_from_slice(&32_u32.to_ne_bytes());
    message.extend_from_slice(&RTM_NEWLINK.to_ne_bytes());
    message.extend_from_slice(&NLM_F_REQUEST.to_ne_bytes());
    // Sequence and sender; then family, padding, and kind of device: unspecified.
    message.extend_from_slice(&[0; 12]);
    message.extend_from_slice(&LOOPBACK.to_ne_bytes());
    message.extend_from_slice(&IFF_UP.to_ne_bytes());
    message.extend_from_slice(&IFF_UP.to_ne_bytes());
    // Without a protocol it is that of routing: NETLINK_ROUTE is 0.
    let socket = rustix::net::socket(rustix::net::AddressFamily::NETLINK, rustix::net::SocketType::RAW, None)?;
    rustix::net::send(&socket, &message, rustix::net::SendFlags::empty())?;
    Ok(())
}
