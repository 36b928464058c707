//! What a level means for a program: which folders it can write, which it cannot see, which network it has. Looks at what is
//! there, changes nothing.
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use super::Level;
use super::confinement::{Confinement, Network, Placed, What};
use crate::git::Places;

/// Below the home folder: what opens doors, or tells of the person. Nobody confined sees it.
const SECRETS: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".netrc",
    "_netrc",
    ".git-credentials",
    ".config/git/credentials",
    ".config/gh",
    ".config/hub",
    ".config/glab-cli",
    ".aws",
    ".azure",
    ".config/gcloud",
    ".config/doctl",
    ".config/fly",
    ".fly",
    ".config/heroku",
    ".oci",
    ".kube",
    ".docker",
    ".config/containers",
    ".config/rclone",
    ".s3cfg",
    ".boto",
    ".terraform.d",
    ".terraformrc",
    ".vault-token",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pypirc",
    ".config/pypoetry/auth.toml",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".gradle/gradle.properties",
    ".pgpass",
    ".my.cnf",
    ".password-store",
    ".config/op",
    ".config/sops",
    ".config/age",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".mozilla",
    ".thunderbird",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".bash_history",
    ".zsh_history",
    ".local/share/fish/fish_history",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
    ".config/ralphloop",
    // Key agents and engines of containers whose sockets lie in the home folder.
    ".1password",
    ".bitwarden-ssh-agent.sock",
    ".colima",
    ".lima",
    ".orbstack/run",
    ".rd",
    // Further sign-ins.
    ".authinfo",
    ".authinfo.gpg",
    ".cache/huggingface/token",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".config/gopass",
    ".config/hcloud",
    ".config/ngrok",
    ".config/stripe",
    ".databrickscfg",
    ".kaggle",
    ".local/share/atuin",
    ".msmtprc",
    ".ollama/id_ed25519",
    ".pulumi/credentials.json",
    ".subversion/auth",
    ".wrangler",
];

/// Files of the machine that root can read and nobody confined may.
const MACHINE_SECRETS: &[&str] = &[
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/krb5.keytab",
];

/// What of `/run` a program may need: how names are resolved, and the programs of some systems. All else there is sockets by
/// which others can be asked to do something.
const RUN: &[&str] = &[
    "/run/systemd/resolve/stub-resolv.conf",
    "/run/systemd/resolve/resolv.conf",
    "/run/resolvconf",
    "/run/NetworkManager/resolv.conf",
    "/run/NetworkManager/no-stub-resolv.conf",
    "/run/current-system",
    "/run/wrappers",
    "/run/opengl-driver",
];

/// What of the root folder can be read at the strict level: the system and its programs.
const SYSTEM: &[&str] = &[
    "bin", "boot", "dev", "etc", "gnu", "lib", "lib32", "lib64", "libx32", "nix", "opt", "proc", "run", "sbin", "snap",
    "sys", "tmp", "usr", "var",
];

/// Tools below the home folder that can be read at the strict level.
const TOOLS: &[&str] = &[
    ".asdf",
    ".bun",
    ".cargo/bin",
    ".cargo/config.toml",
    ".cargo/env",
    ".cargo/git",
    ".cargo/registry",
    ".deno",
    ".gitconfig",
    ".config/git",
    ".go",
    ".jenv",
    ".local/bin",
    ".local/share/fnm",
    ".local/share/mise",
    ".local/share/pnpm",
    ".local/share/uv",
    ".m2/repository",
    ".nix-profile",
    ".npm-global",
    ".nvm",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".sdkman",
    ".volta",
    "go",
];

/// What a plan is made from.
#[derive(Debug, Clone)]
pub(crate) struct Ground {
    /// The working tree that may be written.
    pub(crate) places: Places,
    /// Folders in it that are repositories of their own to git: submodules, also those that are not there yet.
    pub(crate) nested: Vec<PathBuf>,
    /// What the program has for temporary files, in place of the machine's folders for them.
    pub(crate) temporary: PathBuf,
    /// An empty file that nobody may read: what hidden files look like.
    pub(crate) blank: PathBuf,
    /// The state of all runs.
    pub(crate) state: PathBuf,
    pub(crate) home: Option<PathBuf>,
    /// Where the machine's temporary files are, beside `/tmp` and `/var/tmp`.
    pub(crate) machine_temporary: PathBuf,
    /// Where sockets of the user's programs are, ours among them.
    pub(crate) runtime: Vec<PathBuf>,
    /// What the user's variables name, and where programs listen: of these the sockets are doors, wherever they lie.
    pub(crate) sockets: Vec<PathBuf>,
    /// The search path of programs.
    pub(crate) path: OsString,
}

/// Folders that somebody has decided about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Own {
    /// Written by the program: the agent's own, and those that the user names.
    pub(crate) writable: Vec<PathBuf>,
    /// Read by the program though something above is hidden.
    pub(crate) readable: Vec<PathBuf>,
    /// In the writable ones: not written all the same.
    pub(crate) kept: Vec<PathBuf>,
    /// Not seen: the sign-in of other agents.
    pub(crate) hidden: Vec<PathBuf>,
}

/// The confinement of a program at a level.
pub(crate) fn plan(level: Level, network: Network, ground: &Ground, own: &Own) -> Confinement {
    let mut plan = Plan { placed: BTreeMap::new(), blank: &ground.blank };
    let Places { top, common_dir, .. } = &ground.places;
    if level == Level::Strict {
        plan.limit_reading(ground);
    }
    plan.hide_doors(ground);
    for path in &own.readable {
        plan.read(path);
    }
    let temporary = [Path::new("/tmp"), Path::new("/var/tmp"), &ground.machine_temporary];
    for at in temporary {
        plan.put(at, What::From { source: ground.temporary.clone().into(), writable: true });
    }
    // Programs and a home folder that lie among the machine's temporary files are still there.
    let home = ground.home.iter().filter(|_| level == Level::Workspace).cloned();
    let visible = std::env::split_paths(&ground.path).chain(home);
    for folder in visible.filter(|folder| temporary.iter().any(|temporary| folder.starts_with(temporary))) {
        plan.read(&folder);
    }
    // That of a linked working tree lies in it, and is closed too: git writes through links that it finds there, and does
    // what files say that were not there before.
    plan.read(common_dir);
    plan.hide(&ground.state);
    plan.write(&ground.temporary);
    plan.write(top);
    plan.read(&top.join(".git"));
    for nested in &ground.nested {
        plan.keep_repository(nested, top);
    }
    for included in included(common_dir) {
        plan.keep(&included, top);
    }
    own.writable.iter().for_each(|path| plan.write(path));
    own.kept.iter().for_each(|path| plan.read(path));
    // What is hidden is hidden whatever is said of the folders around it.
    own.hidden.iter().for_each(|path| plan.hide(path));
    for secret in MACHINE_SECRETS {
        plan.hide(Path::new(secret));
    }
    ground.sockets.iter().for_each(|path| plan.hide_socket(path));
    plan.finish(network)
}

/// The absolute paths that the value of a variable names: `/run/agent`, `unix:///run/docker.sock`,
/// `unix:path=/run/bus,guid=0f`, `/tmp/tmux-0/default,123,0`.
pub(super) fn places_in(value: &OsStr) -> Vec<PathBuf> {
    let parts = value.as_bytes().split(|byte| matches!(byte, b',' | b';' | b':' | b'='));
    let places = parts.filter(|part| part.starts_with(b"/"));
    places.map(|part| PathBuf::from(OsStr::from_bytes(part))).collect()
}

/// Where programs of the machine listen, by the system's own list (`/proc/net/unix`, `proc_net(5)`): a path is the last field,
/// after seven others.
pub(super) fn listening(list: &str) -> Vec<PathBuf> {
    let path = |line: &str| line.split_once(" /").map(|(_, path)| Path::new("/").join(path));
    list.lines().filter_map(path).collect()
}

/// The files that git's configuration includes, as far as they are there. Whoever writes one of them has commands run where
/// git is called next, which is outside.
fn included(common_dir: &Path) -> Vec<PathBuf> {
    let mut files = vec![common_dir.join("config")];
    let mut at = 0;
    // Git itself follows them to a depth of ten.
    while let Some(file) = files.get(at).filter(|_| at < 100).cloned() {
        at += 1;
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        for line in text.lines() {
            // No other section of git's has a path that is a file of settings; one file more that is kept harms nobody.
            let Some((_, value)) = line.split_once('=').filter(|(name, _)| name.trim().eq_ignore_ascii_case("path"))
            else {
                continue;
            };
            let value = value.trim().trim_matches('"');
            let found = file.parent().and_then(|folder| std::fs::canonicalize(folder.join(value)).ok());
            files.extend(found.filter(|found| found.is_file() && !files.contains(found)));
        }
    }
    files.split_off(1)
}

struct Plan<'a> {
    placed: BTreeMap<PathBuf, What>,
    blank: &'a Path,
}

impl Plan<'_> {
    fn put(&mut self, path: &Path, what: What) {
        if let Ok(real) = std::fs::canonicalize(path) {
            self.placed.insert(real, what);
        }
    }

    fn itself(&mut self, path: &Path, writable: bool) {
        // What is not there cannot be placed, and cannot be made either.
        if let Ok(real) = std::fs::canonicalize(path) {
            let source = real.clone().into();
            self.placed.insert(real, What::From { source, writable });
        }
    }

    fn read(&mut self, path: &Path) {
        self.itself(path, false);
    }

    fn write(&mut self, path: &Path) {
        self.itself(path, true);
    }

    /// Read and not written, wherever it lies in the working tree; and no folder around it is moved away to put another in
    /// its place.
    fn keep(&mut self, path: &Path, top: &Path) {
        let inner: Vec<&Path> =
            path.ancestors().skip(1).take_while(|around| *around != top && around.starts_with(top)).collect();
        let Ok(source) = std::fs::canonicalize(path) else { return };
        if !source.starts_with(top) {
            return;
        }
        for around in inner {
            let source = around.as_os_str().to_owned();
            self.placed.entry(around.to_owned()).or_insert(What::From { source, writable: true });
        }
        self.placed.insert(source.clone(), What::From { source: source.into(), writable: false });
    }

    /// A repository in the working tree: its files are written, what makes it a repository is not. Git looks into it whenever
    /// it looks at the working tree, and does what its configuration says.
    fn keep_repository(&mut self, folder: &Path, top: &Path) {
        let git = folder.join(".git");
        if std::fs::symlink_metadata(&git).is_ok() {
            self.keep(&git, top);
        } else {
            self.keep(folder, top);
        }
    }

    /// A socket that a variable names, unless it is out of sight already, or somebody has opened it.
    fn hide_socket(&mut self, path: &Path) {
        let Ok(real) = std::fs::canonicalize(path) else { return };
        let is_socket = std::fs::symlink_metadata(&real).is_ok_and(|found| found.file_type().is_socket());
        let around = real.ancestors().find_map(|around| Some((around, self.placed.get(around)?)));
        let is_as_it_is = match around {
            None => true,
            Some((around, What::From { source, .. })) => around != real && Path::new(source) == around,
            Some((_, What::Empty { .. })) => false,
        };
        if is_socket && is_as_it_is {
            self.hide(&real);
        }
    }

    fn hide(&mut self, path: &Path) {
        let what = if path.is_dir() {
            What::Empty { open: false }
        } else {
            What::From { source: self.blank.to_owned().into(), writable: false }
        };
        self.put(path, what);
    }

    /// Secrets, and the sockets by which programs outside can be told what to do.
    fn hide_doors(&mut self, ground: &Ground) {
        if let Some(home) = &ground.home {
            for secret in SECRETS {
                self.hide(&home.join(secret));
            }
        }
        self.hide(Path::new("/run"));
        ground.runtime.iter().for_each(|folder| self.hide(folder));
        for path in RUN {
            self.read(Path::new(path));
        }
    }

    /// Nothing but the system, its programs and the tools in the home folder.
    fn limit_reading(&mut self, ground: &Ground) {
        for entry in std::fs::read_dir("/").into_iter().flatten().filter_map(Result::ok) {
            let is_system = entry.file_name().to_str().is_some_and(|name| SYSTEM.contains(&name));
            if !is_system && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                self.hide(&entry.path());
            }
        }
        self.hide(Path::new("/var"));
        let Some(home) = &ground.home else { return };
        self.hide(home);
        for tool in TOOLS {
            self.read(&home.join(tool));
        }
        for folder in std::env::split_paths(&ground.path).filter(|folder| folder.is_absolute()) {
            // What belongs to programs of a folder `bin` is beside it.
            let around = folder.parent().filter(|around| folder.ends_with("bin") && around.starts_with(home));
            self.read(around.filter(|around| *around != home).unwrap_or(&folder));
        }
    }

    fn finish(self, network: Network) -> Confinement {
        let paths: Vec<&PathBuf> = self.placed.keys().collect();
        let opened: Vec<bool> = paths
            .iter()
            .enumerate()
            .map(|(at, path)| paths.get(at + 1).is_some_and(|next| next.starts_with(path)))
            .collect();
        let placed = self.placed.into_iter().zip(opened).map(|((path, what), has_below)| {
            let what = match what {
                What::Empty { .. } => What::Empty { open: has_below },
                from @ What::From { .. } => from,
            };
            Placed { path: path.into(), what }
        });
        Confinement { placed: placed.collect(), network }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_places_that_variables_name_are_found_in_every_writing() {
        for (value, places) in [
            ("/home/u/.agent/sock", &["/home/u/.agent/sock"][..]),
            ("unix:///home/u/docker.sock", &["///home/u/docker.sock"]),
            ("unix:path=/home/u/bus,guid=0f", &["/home/u/bus"]),
            ("/tmp/tmux-0/default,123,0", &["/tmp/tmux-0/default"]),
            ("/bin:/usr/bin", &["/bin", "/usr/bin"]),
            ("words, and a/path", &[]),
        ] {
            let places: Vec<PathBuf> = places.iter().map(PathBuf::from).collect();
            assert_eq!(places_in(OsStr::new(value)), places, "{value}");
        }
    }

    #[test]
    fn where_programs_listen_is_read_from_the_systems_list() {
        let list = "Num       RefCount Protocol Flags    Type St Inode Path\n\
                    ffff8881: 00000002 00000000 00010000 0001 01 17437 /home/u/a b.sock\n\
                    ffff8882: 00000002 00000000 00010000 0001 01 17438 @/tmp/nameless\n\
                    ffff8883: 00000003 00000000 00000000 0001 03 17439\n";
        assert_eq!(listening(list), [PathBuf::from("/home/u/a b.sock")]);
    }

    #[test]
    fn where_the_users_sockets_are_is_out_of_sight() {
        let folder = tempfile::tempdir().unwrap();
        let top = std::fs::canonicalize(folder.path()).unwrap();
        for name in ["tree/.git", "runtime", "tmp"] {
            std::fs::create_dir_all(top.join(name)).unwrap();
        }
        let git = top.join("tree/.git");
        let places =
            Places { top: top.join("tree"), project: top.join("tree"), git_dir: git.clone(), common_dir: git.clone() };
        let ground = Ground {
            places,
            nested: Vec::new(),
            temporary: top.join("tmp"),
            blank: top.join("blank"),
            state: git.join("ralphloop"),
            home: None,
            machine_temporary: top.join("tmp"),
            runtime: vec![top.join("runtime")],
            sockets: Vec::new(),
            path: OsString::new(),
        };
        let plan = plan(Level::Workspace, Network::Machine, &ground, &Own::default());
        let runtime = plan.placed.iter().find(|placed| placed.path() == top.join("runtime"));
        assert_eq!(runtime.map(|placed| &placed.what), Some(&What::Empty { open: false }));
    }

    #[test]
    fn files_that_gits_configuration_includes_are_found_also_one_by_another() {
        let folder = tempfile::tempdir().unwrap();
        let top = std::fs::canonicalize(folder.path()).unwrap();
        let write = |name: &str, text: &str| {
            std::fs::create_dir_all(top.join(name).parent().unwrap()).unwrap();
            std::fs::write(top.join(name), text).unwrap();
        };
        write(
            ".git/config",
            "[core]\n\tbare = false\n[include]\n\tpath = ../one\n[includeIf \"x\"]\n Path=\"../none\"\n",
        );
        write("one", "[include]\n\tpath = sub/two\n");
        write("sub/two", "[include]\n\tpath = ../one\n");
        assert_eq!(included(&top.join(".git")), [top.join("one"), top.join("sub/two")]);
    }
}
