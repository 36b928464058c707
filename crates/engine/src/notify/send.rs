//! One try to deliver a message.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use hmac::{Hmac, KeyInit as _, Mac as _};
use ralphloop_agent::{redact, sanitize};
use serde_json::json;
use sha2::Sha256;
use tokio_util::sync::CancellationToken;
use ureq::http::Uri;

use super::message::Message;
use super::{Secret, Target};
use crate::process::{Call, Capture, Environment, Exit, Limits, Ownership, SpawnError, Spawner};
use crate::requests;

/// From TERM to KILL for a command that takes too long.
const GRACE: Duration = Duration::from_secs(1);
/// Of a command's output, so much is kept, in bytes.
const OUTPUT: usize = 2048;
/// Columns of an explanation.
const COLUMNS: usize = 200;
/// The exit code by which a command asks to be tried again: `EX_TEMPFAIL` of sysexits(3). Any other failure may come from a
/// command that has told somebody already.
const TRY_AGAIN: i32 = 75;
/// The header of a web hook's signature.
const SIGNATURE: &str = "X-Ralphloop-Signature";

/// A message that was not delivered.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) why: String,
    /// Another try may succeed.
    pub(super) may_pass: bool,
}

impl Failure {
    fn for_good(why: impl Into<String>) -> Self {
        Self { why: why.into(), may_pass: false }
    }

    fn for_now(why: impl Into<String>) -> Self {
        Self { why: why.into(), may_pass: true }
    }
}

/// Delivers messages.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) spawner: Spawner,
    pub(super) project: PathBuf,
    pub(super) secret: Option<Secret>,
}

impl Sender {
    /// Tries once, for `limit` at most; `leave` ends it at once.
    pub(super) async fn send(
        &self,
        target: &Target,
        message: &Message,
        limit: Duration,
        leave: &CancellationToken,
    ) -> Result<(), Failure> {
        match target {
            Target::Command(command) => {
                let call = Call::shell(command, &self.project)
                    .environment(without_secrets(std::env::vars_os()))
                    .stdin_bytes(message.text());
                self.call(call, limit, leave).await
            }
            Target::Desktop => {
                let urgency = if message.is_urgent() { "critical" } else { "normal" };
                let call = Call::new("notify-send", &self.project)
                    .args(["--app-name=ralphloop", "--urgency", urgency, "--"])
                    .args([message.title(), escaped(&message.details())])
                    .ownership(Ownership::Supervised);
                self.call(call, limit, leave).await
            }
            Target::Hook(address) => {
                let body = json_bytes(message)?;
                let signature = self.secret.as_ref().map(|secret| signature(secret, &body));
                post(Post { address: address.uri().clone(), body, signature, limit }, leave).await
            }
            Target::Slack(address) => {
                let body = json_bytes(&slack(message))?;
                post(Post { address: address.uri().clone(), body, signature: None, limit }, leave).await
            }
            Target::Ntfy { server, topic } => {
                let body = json_bytes(&ntfy(topic, message))?;
                post(Post { address: server.uri().clone(), body, signature: None, limit }, leave).await
            }
        }
    }

    async fn call(&self, call: Call, limit: Duration, leave: &CancellationToken) -> Result<(), Failure> {
        let call = call
            .limits(Limits { grace: GRACE, ..Limits::total(limit) })
            .capture(Capture::HeadTail { head: 0, tail: OUTPUT })
            .cancel(leave.clone());
        let output = self.spawner.run(call).await.map_err(|error| match error {
            SpawnError::NotFound { program, .. } => {
                Failure::for_good(format!("{} is not installed", program.to_string_lossy()))
            }
            other => Failure::for_good(other.to_string()),
        })?;
        if output.success() {
            return Ok(());
        }
        let said = output.stderr.text();
        let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let colon = if last.is_empty() { "" } else { ": " };
        let why = format!("it {}{colon}{}", output.exit, sanitize::one_line(last, COLUMNS));
        Err(Failure { why, may_pass: output.exit == Exit::Code(TRY_AGAIN) })
    }
}

/// The environment without variables that look secret.
fn without_secrets(ours: impl IntoIterator<Item = (OsString, OsString)>) -> Environment {
    ours.into_iter()
        .filter(|(name, value)| redact::is_secret(&name.to_string_lossy(), value.as_encoded_bytes()))
        .fold(Environment::inherited(), |environment, (name, _)| environment.remove(name))
}

fn json_bytes(value: &impl serde::Serialize) -> Result<Vec<u8>, Failure> {
    serde_json::to_vec(value).map_err(|error| Failure::for_good(error.to_string()))
}

/// <https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks>
fn slack(message: &Message) -> serde_json::Value {
    json!({ "text": escaped(&message.text()), "mrkdwn": false })
}

/// <https://docs.ntfy.sh/publish/#publish-as-json>
fn ntfy(topic: &str, message: &Message) -> serde_json::Value {
    let (priority, tag) = if message.is_urgent() { (4, "warning") } else { (3, "robot") };
    json!({
        "topic": topic,
        "title": message.title(),
        "message": message.details().trim_end(),
        "priority": priority,
        "tags": [tag],
    })
}

/// The three characters that Slack and desktops take for markup.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// `sha256=` and the HMAC of the body.
fn signature(secret: &Secret, body: &[u8]) -> String {
    use std::fmt::Write as _;
    #[expect(clippy::expect_used, reason = "HMAC takes keys of any length")]
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_str().as_bytes()).expect("a key of any length");
    mac.update(body);
    mac.finalize().into_bytes().iter().fold("sha256=".to_owned(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A request to be made.
struct Post {
    address: Uri,
    body: Vec<u8>,
    signature: Option<String>,
    limit: Duration,
}

async fn post(post: Post, leave: &CancellationToken) -> Result<(), Failure> {
    let made = requests::make("notification", || post.send(), leave).await;
    made.unwrap_or_else(|error| Err(Failure::for_good(error.to_string())))
}

impl Post {
    fn send(self) -> Result<(), Failure> {
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .timeout_global(Some(self.limit))
            .http_status_as_error(false)
            // Nobody is told but who was named.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("ralphloop/", env!("CARGO_PKG_VERSION")))
            .build()
            .into();
        let mut request = agent.post(self.address).header("content-type", "application/json");
        if let Some(signature) = self.signature {
            request = request.header(SIGNATURE, signature);
        }
        let response = request.send(self.body).map_err(|error| match error {
            ureq::Error::BadUri(_) | ureq::Error::Http(_) | ureq::Error::Tls(_) => Failure::for_good(error.to_string()),
            error => Failure::for_now(error.to_string()),
        })?;
        let status = response.status();
        if status.is_success() {
            return Ok(());
        }
        let may_pass = status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429);
        Err(Failure { why: format!("it answered {status}"), may_pass })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_the_hmac_that_others_compute() {
        // RFC 4231, test case 2.
        assert_eq!(
            signature(&Secret::new("Jefe"), b"what do ya want for nothing?"),
            "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }

    #[test]
    fn a_command_does_not_get_variables_that_look_secret() {
        let ours = ["API_KEY=k", "DATABASE_URL=postgres://u:pw@h/db", "HOME=/h", "EDITOR=vi"];
        let ours = ours.map(|pair| pair.split_once('=').map(|(n, v)| (n.into(), v.into())).unwrap());
        let wanted = Environment::inherited().remove("API_KEY").remove("DATABASE_URL");
        assert_eq!(without_secrets(ours), wanted);
    }

    #[test]
    fn what_others_take_for_markup_is_escaped() {
        assert_eq!(escaped("a <!channel> & b"), "a &lt;!channel&gt; &amp; b");
    }
}
