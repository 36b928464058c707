//! A confinement as arguments of bubblewrap: for systems that let that program, and not ours, make namespaces.
use std::ffi::OsString;
use std::path::Path;

use super::confinement::{Confinement, What};
use super::within;
use crate::process::SupervisorProgram;

/// The program.
pub(super) const PROGRAM: &str = "bwrap";
/// Where our own program is in there: its own folder may be out of sight, and this one is nobody's.
const OURS: &str = "/dev/ralphloop";

/// The call of `program` with `args` in `cwd`, confined: what to start instead. In there `ours` does first what that program
/// does not know of: it keeps signals inside, and opens the doors of the network. Then it becomes the program.
pub(crate) fn wrapped(
    confinement: &Confinement,
    cwd: &Path,
    program: OsString,
    args: Vec<OsString>,
    ours: &SupervisorProgram,
) -> (OsString, Vec<OsString>) {
    let mut all: Vec<OsString> = ["--unshare-user", "--unshare-ipc", "--cap-drop", "ALL"].map(Into::into).into();
    if confinement.network.is_own() {
        all.push("--unshare-net".into());
    }
    all.extend(["--ro-bind", "/", "/", "--dev", "/dev"].map(Into::into));
    for placed in &confinement.placed {
        match &placed.what {
            What::From { source, writable } => {
                all.push(if *writable { "--bind" } else { "--ro-bind" }.into());
                all.push(source.clone());
            }
            What::Empty { open } => {
                all.extend(["--perms", if *open { "0755" } else { "0000" }, "--tmpfs"].map(Into::into));
            }
        }
        all.push(placed.path.clone());
    }
    all.extend(["--ro-bind".into(), ours.program.clone().into(), OURS.into()]);
    for placed in confinement.placed.iter().filter(|placed| matches!(placed.what, What::Empty { .. })) {
        all.extend(["--remount-ro".into(), placed.path.clone()]);
    }
    all.extend(["--chdir".into(), cwd.as_os_str().to_owned(), "--".into()]);
    all.push(OURS.into());
    all.extend(ours.args.iter().cloned());
    all.push(within::FIRST.into());
    all.extend(confinement.network.doors().iter().map(|port| port.to_string().into()));
    all.extend([within::THEN.into(), program]);
    all.extend(args);
    (PROGRAM.into(), all)
}

#[cfg(test)]
mod tests {
    use super::super::confinement::{Network, Placed};
    use super::*;

    #[test]
    fn what_is_placed_comes_in_its_order_and_empty_folders_are_closed_at_the_end() {
        let read = |source: &str| What::From { source: source.into(), writable: false };
        let mut confinement = Confinement {
            placed: vec![
                Placed { path: "/home/a".into(), what: What::Empty { open: true } },
                Placed { path: "/home/a/tree".into(), what: What::From { source: "/w".into(), writable: true } },
                Placed { path: "/home/a/tree/.git".into(), what: read("/home/a/tree/.git") },
            ],
            network: Network::Own,
        };
        let ours = SupervisorProgram { program: "/opt/ralphloop".into(), args: vec!["__supervise".into()] };
        let line = |confinement: &Confinement| {
            let (program, args) =
                wrapped(confinement, Path::new("/home/a/tree"), "sh".into(), vec!["-c".into()], &ours);
            assert_eq!(program, "bwrap");
            args.iter().map(|arg| arg.to_str().unwrap()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            line(&confinement),
            "--unshare-user --unshare-ipc --cap-drop ALL --unshare-net --ro-bind / / --dev /dev --perms 0755 --tmpfs /home/a \
             --bind /w /home/a/tree --ro-bind /home/a/tree/.git /home/a/tree/.git --ro-bind /opt/ralphloop /dev/ralphloop --remount-ro /home/a --chdir /home/a/tree -- \
             /dev/ralphloop __supervise --within -- sh -c"
        );
        confinement.network = Network::Doors(vec![3128, 80]);
        let with_doors = line(&confinement);
        assert!(with_doors.ends_with("-- /dev/ralphloop __supervise --within 3128 80 -- sh -c"), "{with_doors}");
    }
}
