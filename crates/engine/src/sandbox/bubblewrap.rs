//! A confinement as arguments of bubblewrap: for systems that let that program, and not ours, make namespaces.
use std::ffi::OsString;
use std::path::Path;

use super::confinement::{Confinement, Network, What};

/// The program.
pub(super) const PROGRAM: &str = "bwrap";

/// The call of `program` with `args` in `cwd`, confined: what to start instead.
pub(crate) fn wrapped(
    confinement: &Confinement,
    cwd: &Path,
    program: OsString,
    args: Vec<OsString>,
) -> (OsString, Vec<OsString>) {
    let mut all: Vec<OsString> = ["--unshare-user", "--unshare-ipc", "--cap-drop", "ALL"].map(Into::into).into();
    if confinement.network == Network::Own {
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
    for placed in confinement.placed.iter().filter(|placed| matches!(placed.what, What::Empty { .. })) {
        all.extend(["--remount-ro".into(), placed.path.clone()]);
    }
    all.extend(["--chdir".into(), cwd.as_os_str().to_owned(), "--".into(), program]);
    all.extend(args);
    (PROGRAM.into(), all)
}

#[cfg(test)]
mod tests {
    use super::super::confinement::Placed;
    use super::*;

    #[test]
    fn what_is_placed_comes_in_its_order_and_empty_folders_are_closed_at_the_end() {
        let confinement = Confinement {
            placed: vec![
                Placed { path: "/home/a".into(), what: What::Empty { open: true } },
                Placed { path: "/home/a/tree".into(), what: What::From { source: "/w".into(), writable: true } },
                Placed { path: "/home/a/tree/.git".into(), what: What::From { source: "/g".into(), writable: false } },
            ],
            network: Network::Own,
        };
        let (program, args) = wrapped(&confinement, Path::new("/home/a/tree"), "sh".into(), vec!["-c".into()]);
        let args: Vec<_> = args.iter().map(|arg| arg.to_str().unwrap()).collect();
        assert_eq!(program, "bwrap");
        assert_eq!(
            args.join(" "),
            "--unshare-user --unshare-ipc --cap-drop ALL --unshare-net --ro-bind / / --dev /dev --perms 0755 --tmpfs /home/a \
             --bind /w /home/a/tree --ro-bind /g /home/a/tree/.git --remount-ro /home/a --chdir /home/a/tree -- sh -c"
        );
    }
}
