//! Trying a sandbox: what it has to refuse is attempted in it, and what it has to allow.
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Level, Mechanism, Sandbox};
use crate::files::FileError;
use crate::process::{Call, Spawner};

/// How long the attempts may take together.
const PATIENCE: Duration = Duration::from_secs(20);

/// What is attempted, as a line for a shell, and what of it: each line says `NAME in` if it got what it wanted. `$top` is the
/// working tree, `$outside` a folder beside it, `$state` where runs are kept, `$home` the home folder.
const ATTEMPTS: &[(&str, &str)] = &[
    ("writing beside the working tree", r#"echo x > "$outside/written""#),
    ("replacing a file beside the working tree", r#"mv -f "$top/inside" "$outside/there""#),
    (
        "removing a file beside the working tree",
        r#"test -e "$outside/there" && rm -f "$outside/there" && ! test -e "$outside/there""#,
    ),
    ("writing git's configuration", r#"echo x >> "$top/.git/config""#),
    ("adding a hook", r#"mkdir -p "$top/.git/hooks" && echo x > "$top/.git/hooks/pre-commit""#),
    ("moving git's folder away", r#"mv "$top/.git" "$top/git""#),
    ("reading what runs have kept", r#"ls -l "$state/sandbox/blank""#),
    ("writing into the home folder", r#"echo x > "$home/.ralphloop-was-here""#),
    ("mounting over what is read-only", r#"mount -t tmpfs x "$outside""#),
    ("taking a mount away", r#"umount "$top/.git""#),
    ("reading the variables of a process outside", r#"cat "/proc/$outsider/environ" >/dev/null"#),
    ("reading the files of a process outside", r#"cd "/proc/$outsider/root" && ls >/dev/null"#),
    ("leaving a program that gives away the user's rights", r#"chmod 4755 "$top/written" && test -u "$top/written""#),
    ("changing the limits of a process outside", r#"prlimit --pid "$outsider" --core=0:0"#),
    ("having control groups of its own", "unshare --user --cgroup true"),
];

/// No sandbox of the level that was asked for.
#[derive(Debug, thiserror::Error)]
pub enum Unavailable {
    /// Nothing here can make one.
    #[error("{}", told(*.level, .refusals))]
    NoMechanism {
        /// What was asked for.
        level: Level,
        /// What was tried, and why it does not do.
        refusals: Vec<(Mechanism, String)>,
    },
    /// A folder was opened that holds everything.
    #[error(
        "{} cannot be opened to the sandbox: it is no absolute path, or holds the home folder; name the folders in it that are \
         needed",
        .path.display()
    )]
    TooWide {
        /// The folder.
        path: PathBuf,
    },
    /// A file that a sandbox needs.
    #[error(transparent)]
    File(FileError),
}

fn told(level: Level, refusals: &[(Mechanism, String)]) -> String {
    let tried: Vec<String> = refusals.iter().map(|(mechanism, why)| format!("{}: {why}", mechanism.as_str())).collect();
    format!("the sandbox `{}` cannot be had on this machine ({})", level.as_str(), tried.join("; "))
}

impl Unavailable {
    /// What helps, one way a line.
    pub fn remedies(&self) -> Vec<String> {
        let Self::NoMechanism { .. } = self else { return Vec::new() };
        let setting = |file: &str| std::fs::read_to_string(Path::new("/proc/sys").join(file)).unwrap_or_default();
        let mut ways = Vec::new();
        if setting("kernel/apparmor_restrict_unprivileged_userns").trim() == "1" {
            ways.push("install bubblewrap with its AppArmor profile, or `sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`".to_owned());
        }
        if setting("kernel/unprivileged_userns_clone").trim() == "0" {
            ways.push("`sudo sysctl kernel.unprivileged_userns_clone=1` lets users make namespaces".to_owned());
        }
        if setting("user/max_user_namespaces").trim() == "0" {
            ways.push("`sudo sysctl user.max_user_namespaces=10000` lets users make namespaces".to_owned());
        }
        if ways.is_empty() {
            ways.push(
                "in a container: let it make user namespaces, with docker `--security-opt seccomp=unconfined`"
                    .to_owned(),
            );
        }
        ways.push(
            "or `--sandbox off`, which lets agents and gates do whatever you can; a container or a virtual machine then has to \
             keep them"
                .to_owned(),
        );
        ways
    }
}

/// What came of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// What was attempted.
    pub what: &'static str,
    /// It succeeded, which it must not.
    pub broke_out: bool,
}

impl Sandbox {
    /// Tries it; the error says what is wrong with it.
    pub(super) async fn prove(&self, spawner: &Spawner) -> Result<(), String> {
        let tried = self.attempts(spawner).await?;
        match tried.iter().find(|tried| tried.broke_out) {
            Some(tried) => Err(format!("it does not hold: {} succeeded", tried.what)),
            None => Ok(()),
        }
    }

    /// Tries to break out of it, in every way that a shell can in a moment.
    pub async fn attempts(&self, spawner: &Spawner) -> Result<Vec<Tried>, String> {
        let text = |error: std::io::Error| error.to_string();
        let ground = tempfile::Builder::new().prefix("trial-").tempdir_in(self.state.join("sandbox")).map_err(text)?;
        let root = std::fs::canonicalize(ground.path()).map_err(text)?;
        let (top, outside, temporary) = (root.join("work"), root.join("outside"), root.join("tmp"));
        for folder in [&top.join(".git"), &outside, &temporary] {
            std::fs::create_dir_all(folder).map_err(text)?;
        }
        for file in [top.join(".git/config"), top.join("inside"), outside.join("there")] {
            std::fs::write(file, "").map_err(text)?;
        }
        let mut script = String::from("echo x > written && cat written >/dev/null && echo works\n");
        for (number, (_, attempt)) in ATTEMPTS.iter().enumerate() {
            script.push_str(&format!("( {attempt} ) 2>/dev/null && echo {number}\n"));
        }
        script.push_str("exit 0\n");
        let call = Call::shell(&script, &top)
            .timeout(PATIENCE)
            .env("top", &top)
            .env("outside", &outside)
            .env("state", &self.state)
            .env("home", super::home().unwrap_or_else(|| outside.clone()))
            .env("outsider", std::process::id().to_string());
        let call = self.confine_to(call, &top, &temporary);
        let output = spawner.run(call).await.map_err(|error| error.to_string())?;
        let said = output.stdout.text();
        if !said.lines().any(|line| line == "works") {
            let why = output.stderr.text();
            let why = why.lines().next().unwrap_or("nothing can be written in the working tree");
            return Err(format!("programs do not work in it: {why}"));
        }
        let broke = |number: usize| said.lines().any(|line| line == number.to_string());
        Ok(ATTEMPTS.iter().enumerate().map(|(at, (what, _))| Tried { what, broke_out: broke(at) }).collect())
    }
}
