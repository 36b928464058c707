//! Which of the known agents are here, which versions they are, and whether they look signed in: all that can be told
//! without asking a provider.

use std::path::PathBuf;
use std::time::Duration;

use ralphloop_agent::builtin::Key;
use ralphloop_agent::client::{KNOWN, KnownClient, SignIn};
use tokio::task::JoinSet;

use crate::gates::find::on_path;
use crate::process::{Call, Output, Spawner};

/// A known agent, as it is found on this machine.
#[derive(Debug, Clone)]
pub struct Found {
    /// The agent.
    pub client: &'static KnownClient,
    /// Its program is on the path.
    pub here: bool,
    /// The first line of what it says to `--version`; none if it is not here or does not say.
    pub version: Option<String>,
    /// The variable or file by which it looks signed in.
    pub signed_in_by: Option<String>,
}

/// Looks for every known agent at once, and asks those that are here for their versions: `timeout` for each.
pub async fn look(spawner: &Spawner, folder: &std::path::Path, timeout: Duration) -> Vec<Found> {
    let mut asked = JoinSet::new();
    for (place, client) in KNOWN.iter().enumerate() {
        let (spawner, folder) = (spawner.clone(), folder.to_owned());
        asked.spawn(async move {
            let here = is_here(client);
            let version = match here {
                true if client.is_built_in() => Some(own_version()),
                true => version(&spawner, folder, timeout, client.program).await,
                false => None,
            };
            (place, Found { client, here, version, signed_in_by: signed_in_by(&client.sign_in) })
        });
    }
    let mut found = asked.join_all().await;
    found.sort_by_key(|(place, _)| *place);
    found.into_iter().map(|(_, found)| found).collect()
}

/// The agent that is taken if none is named: the first known one that is here, else the first. Never the built-in one, of
/// which nobody can know with whose model it is to work.
pub fn usual() -> &'static KnownClient {
    KNOWN.iter().find(|client| !client.is_built_in() && is_here(client)).unwrap_or(&KNOWN[0])
}

/// Whether the program of a known agent is here.
pub fn is_here(client: &KnownClient) -> bool {
    client.is_built_in() || on_path(client.program)
}

/// What the built-in agent says of its version.
pub(crate) fn own_version() -> String {
    concat!("ralphloop ", env!("CARGO_PKG_VERSION")).to_owned()
}

/// The first line of what a program says to `--version`, if it says something in time.
pub(crate) async fn version(spawner: &Spawner, folder: PathBuf, timeout: Duration, program: &str) -> Option<String> {
    let call = Call::new(program, &folder).arg("--version").timeout(timeout);
    let output = spawner.run(call).await.ok().filter(Output::success)?;
    let text = output.stdout.text();
    let line = text.lines().find(|line| !line.trim().is_empty())?;
    Some(ralphloop_agent::sanitize::one_line(line, 80))
}

/// What a sign-in shows by: the name of a variable, or the path of a file.
pub(crate) fn signed_in_by(sign_in: &SignIn) -> Option<String> {
    if let Some(variable) = sign_in.variables.iter().find(|name| is_set(name)) {
        return Some((*variable).to_owned());
    }
    let home = std::env::home_dir().unwrap_or_else(|| PathBuf::from("/"));
    sign_in.files.iter().map(|file| home.join(file)).find(|file| file.is_file()).map(|file| file.display().to_string())
}

/// What the key of a provider shows by, without running anything.
pub fn key_from(key: &Key) -> Option<String> {
    match key {
        Key::None => Some("no key, which it does not want".to_owned()),
        Key::Variables(names) => names.iter().find(|name| is_set(name)).cloned(),
        Key::Command(command) => Some(format!("`{command}`, which is run when it works")),
    }
}

fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}
