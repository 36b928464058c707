//! How the chosen agent is started, wherever it works: its program, its environment, its prompt, its limits.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use ralphloop_agent::client::PromptDelivery;
use tokio_util::sync::CancellationToken;

use crate::process::{Call, Environment, Limits, Ownership};
use crate::settings::Settings;

/// From TERM to KILL.
const GRACE: Duration = Duration::from_secs(5);

/// The call of the agent in `folder`, with the variables `own` on top of the inherited ones; it may take `time`.
pub(crate) fn call(
    settings: &Settings,
    folder: &Path,
    prompt: &str,
    own: &[(OsString, OsString)],
    time: Duration,
    cancel: CancellationToken,
) -> Call {
    let invocation = settings.agent.invocation();
    let times = settings.times;
    let environment = invocation.env_remove.iter().fold(Environment::inherited(), |env, name| env.remove(*name));
    let unset = invocation.env_default.iter().filter(|(name, _)| std::env::var_os(name).is_none());
    let environment = unset.fold(environment, |env, (name, value)| env.set(*name, *value));
    let environment = own.iter().fold(environment, |env, (name, value)| env.set(name, value));
    let call = Call::new(&invocation.program, folder).args(&invocation.arguments);
    let call = match invocation.prompt {
        PromptDelivery::Stdin => call.stdin_bytes(prompt.as_bytes()),
        PromptDelivery::Argument => call.arg(prompt),
    };
    call.environment(environment)
        .limits(Limits {
            total: time,
            first_output: Some(times.start),
            idle: Some(times.idle),
            exit_grace: times.exit_grace,
            grace: GRACE,
        })
        .ownership(Ownership::Supervised)
        .cancel(cancel)
}
