//! What agents and gates can see, write and reach.
//!
//! [`plan`] says what that is, from what is there; [`enter`] makes it so in the process that becomes the program, by
//! namespaces; [`calls`] refuses what these do not hold; [`bubblewrap`] has it made by that program where ours may not; [`trial`] finds out which of the two works
//! here, by trying to break out. [`reach`] says which hosts an agent may reach, through [`doors`] at which the [`porter`]
//! stands.
mod bubblewrap;
mod calls;
mod confinement;
mod doors;
mod enter;
mod lowlevel;
mod plan;
mod porter;
mod reach;
mod trial;
mod within;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ralphloop_agent::client::{Agent, Format, KNOWN, KnownClient};

pub(crate) use confinement::{Confinement, Network, Way};
#[cfg(test)]
pub(crate) use confinement::{Placed, What};
pub(crate) use enter::enter;
use plan::{Ground, Own};
pub(crate) use porter::Porter;
pub(crate) use reach::Reach;
pub use reach::{Host, NoHost};
pub use trial::{Tried, Unavailable};
pub(crate) use within::{DOORS, PUT_IN, STDERR, become_the_program};

use crate::files::{self, FileError};
use crate::git::Places;
use crate::process::{Call, Spawner, SupervisorProgram};

/// What somebody asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Choice {
    /// No sandbox.
    #[default]
    Off,
    /// This one, or no run.
    Asked(Level),
}

/// How much a confined program can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// It writes in its working tree, in a temporary folder of its own, and in the agent's own folders. It reads what is no
    /// secret, and reaches the network.
    Workspace,
    /// It also reads nothing but the system, its tools and its working tree. Agents reach their endpoint and no other host,
    /// gates none.
    Strict,
}

impl Level {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Workspace => "workspace",
            Self::Strict => "strict",
        }
    }
}

/// What a program is started for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Role<'a> {
    /// It writes the work.
    Agent(&'a Agent),
    /// It looks at it.
    Gate,
}

/// Who keeps a program inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mechanism {
    /// Our own process, by namespaces.
    Namespaces,
    /// Bubblewrap.
    Bubblewrap,
}

impl Mechanism {
    /// For people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::Bubblewrap => "bubblewrap",
        }
    }
}

/// What the user says of a sandbox beside its level.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Terms {
    /// Who is to keep programs inside; whoever can, if nobody is named.
    pub by: Option<Mechanism>,
    /// Also written.
    pub write: Vec<PathBuf>,
    /// Also read.
    pub read: Vec<PathBuf>,
    /// Hosts that agents also reach at the strict level.
    pub hosts: Vec<Host>,
}

/// A sandbox that was tried and holds.
#[derive(Debug, Clone)]
pub struct Sandbox {
    level: Level,
    mechanism: Mechanism,
    terms: Terms,
    blank: PathBuf,
    state: PathBuf,
}

/// Confines the program of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Confined {
    pub(crate) mechanism: Mechanism,
    pub(crate) confinement: Confinement,
    /// What is reached through the doors of its network, if that has any.
    pub(crate) reach: Option<Reach>,
}

impl Sandbox {
    /// A sandbox of that level for the repository whose runs are kept in `state`: by the mechanism that is named, or the first
    /// from which no attempt to break out succeeds.
    pub async fn open(level: Level, terms: Terms, state: &Path, spawner: &Spawner) -> Result<Self, Unavailable> {
        let mut refusals = Vec::new();
        for path in terms.write.iter().chain(&terms.read) {
            if !path.is_absolute() || home().is_some_and(|home| home.starts_with(path)) {
                return Err(Unavailable::TooWide { path: path.clone() });
            }
        }
        let blank = blank(state).map_err(Unavailable::File)?;
        let all = [Mechanism::Namespaces, Mechanism::Bubblewrap].into_iter();
        for mechanism in all.filter(|mechanism| terms.by.is_none_or(|by| by == *mechanism)) {
            let (terms, blank, state) = (terms.clone(), blank.clone(), state.to_owned());
            let sandbox = Self { level, mechanism, terms, blank, state };
            match sandbox.prove(spawner).await {
                Ok(()) => return Ok(sandbox),
                Err(why) => refusals.push((mechanism, why)),
            }
        }
        Err(Unavailable::NoMechanism { level, refusals })
    }

    /// Who keeps programs inside.
    pub fn mechanism(&self) -> Mechanism {
        self.mechanism
    }

    /// The same call, confined to the folder `top`, as a gate is to a working tree.
    pub fn confine_to(&self, call: Call, top: &Path, temporary: &Path) -> Call {
        let git_dir = top.join(".git");
        let places = Places { top: top.to_owned(), project: top.to_owned(), common_dir: git_dir.clone(), git_dir };
        self.around(call, Role::Gate, &places, Vec::new(), temporary)
    }

    /// The same call, confined to the working tree at `places`, in which other repositories lie at `nested`, with `temporary`
    /// for temporary files.
    pub(crate) fn around(
        &self,
        call: Call,
        role: Role<'_>,
        places: &Places,
        nested: Vec<PathBuf>,
        temporary: &Path,
    ) -> Call {
        let home = home();
        let below = |path: &&str| home.as_ref().map(|home| home.join(path));
        let mut own = Own { writable: Vec::new(), readable: self.terms.read.clone(), ..Own::default() };
        let client = match role {
            Role::Agent(agent) => agent.client().or_else(|| spoken_like(agent)),
            Role::Gate => None,
        };
        if let Some(client) = client {
            own.writable.extend(client.folders.iter().filter_map(below));
            own.kept.extend(client.settings.iter().filter_map(below));
            make_missing(&own.writable);
            make_missing_settings(&own.kept);
        }
        if let Role::Agent(agent) = role {
            own.readable.extend(real_program(agent.invocation().program.as_ref()));
        }
        own.writable.extend(self.terms.write.iter().cloned());
        let others = KNOWN.iter().filter(|known| client.is_none_or(|client| client.name != known.name));
        own.hidden.extend(others.flat_map(|other| other.sign_in.files).filter_map(below));
        let ground = Ground {
            places: places.clone(),
            nested,
            temporary: temporary.to_owned(),
            blank: self.blank.clone(),
            state: self.state.clone(),
            home,
            machine_temporary: std::env::temp_dir(),
            runtime: runtime_folders(),
            sockets: sockets(),
            path: std::env::var_os("PATH").unwrap_or_default(),
        };
        let reach = match (self.level, role) {
            (Level::Strict, Role::Agent(agent)) => {
                let provider = agent.setup().and_then(|setup| setup.provider.url.parse().ok());
                let opened: Vec<_> = self.terms.hosts.iter().cloned().chain(provider).collect();
                Some(Reach::of(client, |name| std::env::var(name).ok(), &opened))
            }
            _ => None,
        };
        let network = match (self.level, &reach) {
            (Level::Workspace, _) => Network::Machine,
            (Level::Strict, None) => Network::Own,
            (Level::Strict, Some(reach)) => Network::Doors(ports(reach)),
        };
        let call = match network.doors().first() {
            Some(proxy) => told_of_the_proxy(call, *proxy),
            None => call,
        };
        let confinement = plan::plan(self.level, network, &ground, &own);
        // Who holds these asks for what is out of reach, and waits for an answer.
        let doors = [
            "SSH_AUTH_SOCK",
            "SSH_AGENT_PID",
            "DBUS_SESSION_BUS_ADDRESS",
            "GPG_AGENT_INFO",
            "DISPLAY",
            "WAYLAND_DISPLAY",
        ];
        let call = doors.into_iter().fold(call, Call::env_remove);
        // Claude Code asks for this word before it works for root.
        let call = match std::env::var_os("IS_SANDBOX") {
            Some(_) => call,
            None => call.env("IS_SANDBOX", "1"),
        };
        call.confined(Confined { mechanism: self.mechanism, confinement, reach })
    }
}

impl std::fmt::Display for Sandbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let level = self.level.as_str();
        write!(f, "the sandbox `{level}` (by {}) is around agents and gates", self.mechanism.as_str())
    }
}

impl Confined {
    /// Leaves out what covers something that is gone by now; whether there was any.
    pub(crate) fn forget_what_is_gone(&mut self) -> bool {
        self.confinement.forget_what_is_gone()
    }

    /// What is to be started, and how it comes inside.
    pub(crate) fn applied(
        self,
        cwd: &Path,
        program: OsString,
        args: Vec<OsString>,
        supervisor: &SupervisorProgram,
    ) -> (OsString, Vec<OsString>, Way) {
        match self.mechanism {
            Mechanism::Namespaces => (program, args, Way::GoesIn(self.confinement)),
            Mechanism::Bubblewrap => {
                let (program, args) = bubblewrap::wrapped(&self.confinement, cwd, program, args, supervisor);
                (program, args, Way::PutIn)
            }
        }
    }
}

/// The door of the proxy, where programs know it, and one at the port of each server of this machine.
fn ports(reach: &Reach) -> Vec<u16> {
    const PROXY: u16 = 3128;
    let local: Vec<u16> = reach.local().into_iter().map(|(_, port)| port).collect();
    let proxy = (PROXY..=u16::MAX).find(|port| !local.contains(port)).unwrap_or(PROXY);
    std::iter::once(proxy).chain(local).collect()
}

/// Programs find a proxy by these; what is on their own loopback they ask themselves.
fn told_of_the_proxy(call: Call, port: u16) -> Call {
    let proxy = format!("http://127.0.0.1:{port}");
    let names = ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"];
    let call = names.into_iter().fold(call, |call, name| call.env(name, &proxy));
    let call = ["ALL_PROXY", "all_proxy"].into_iter().fold(call, Call::env_remove);
    let call = ["NO_PROXY", "no_proxy"].into_iter().fold(call, |call, name| call.env(name, "localhost,127.0.0.1,::1"));
    // Without this, programs on Node.js know of no proxy.
    call.env("NODE_USE_ENV_PROXY", "1")
}

fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
}

/// By which programs outside can be asked: what variables name, and what is listened at just now.
fn sockets() -> Vec<PathBuf> {
    let named = std::env::vars_os().flat_map(|(_, value)| plan::places_in(&value));
    // Without it those are known that variables name.
    let list = std::fs::read("/proc/net/unix").unwrap_or_default();
    let listening = plan::listening(&String::from_utf8_lossy(&list));
    named.chain(listening.into_iter().filter(|path| is_within_reach(path))).collect()
}

/// Whether the program comes to that path by the rights that it keeps. Root sees more than that, and cannot cover it once it
/// has given the other rights up.
fn is_within_reach(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let others: Vec<u32> =
        rustix::process::getgroups().unwrap_or_default().iter().map(|group| group.as_raw()).collect();
    let lets_through = |folder: &Path| {
        std::fs::metadata(folder).is_ok_and(|found| {
            let class = match found.uid() == user {
                true => 0o100,
                false if found.gid() == group || others.contains(&found.gid()) => 0o010,
                false => 0o001,
            };
            found.mode() & class != 0
        })
    };
    std::fs::canonicalize(path).is_ok_and(|real| real.ancestors().skip(1).all(lets_through))
}

/// Where control sockets are: ours, and those of the user's other programs.
fn runtime_folders() -> Vec<PathBuf> {
    let named = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_absolute());
    named.into_iter().collect()
}

/// The client whose output a program of the user's writes: it is that one in other clothes, as far as anybody can tell.
fn spoken_like(agent: &Agent) -> Option<&'static KnownClient> {
    KNOWN.iter().find(|client| agent.format != Format::Text && client.name == agent.format.as_str())
}

/// The folder that a program really lies in, and the package around it.
fn real_program(program: &std::ffi::OsStr) -> Vec<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&paths).map(|folder| folder.join(program)).find(|path| path.is_file());
    let real = found.and_then(|path| std::fs::canonicalize(path).ok());
    real.and_then(|path| path.parent().map(Path::to_owned)).into_iter().collect()
}

/// Folders that the agent would make for itself, and cannot make where the home folder is read-only.
fn make_missing(folders: &[PathBuf]) {
    for folder in folders.iter().filter(|folder| folder.extension().is_none()) {
        // One that cannot be made, the agent could not make either.
        drop(files::create_private_dir(folder));
    }
}

/// Settings that are not there could be made from inside, and would name what a later session runs. So they are there, and
/// say nothing.
fn make_missing_settings(settings: &[PathBuf]) {
    for path in settings.iter().filter(|path| std::fs::symlink_metadata(path).is_err()) {
        // One that cannot be made, the agent could not make either.
        drop(match path.extension().and_then(std::ffi::OsStr::to_str) {
            None => files::create_private_dir(path),
            Some("json" | "jsonc") => files::write_new(path, b"{}\n"),
            Some(_) => files::write_new(path, b""),
        });
    }
}

/// The file that stands in for hidden ones.
fn blank(state: &Path) -> Result<PathBuf, FileError> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let folder = state.join("sandbox");
    files::create_private_dir(&folder)?;
    let path = folder.join("blank");
    match std::fs::OpenOptions::new().write(true).create_new(true).mode(0o000).open(&path) {
        Ok(_) => Ok(path),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(path),
        Err(error) => Err(FileError::new("create", &path, error)),
    }
}
