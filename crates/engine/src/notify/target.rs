//! Who is to be told: parsed from what the user wrote.

use std::fmt;

use ureq::http::Uri;

/// Somebody who is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A web hook: JSON of this project's own, signed if there is a key.
    Hook(Address),
    /// An incoming web hook of Slack.
    Slack(Address),
    /// A topic of an ntfy server.
    Ntfy {
        /// The server.
        server: Address,
        /// The topic.
        topic: String,
    },
    /// The desktop's notifications, through `notify-send`.
    Desktop,
    /// A command for `sh -c`, with the message on its standard input.
    Command(String),
}

/// An address of the web, with a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address(Uri);

/// A target that cannot be told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// Nothing was named.
    #[error("it is empty; name an address or a command")]
    Empty,
    /// No address.
    #[error("it is no address: {why}")]
    BadAddress {
        /// What is wrong.
        why: String,
    },
    /// An address of a kind that is not known; it is certainly no command.
    #[error("addresses that begin with `{scheme}://` are not known; write https://, ntfy://, desktop or a command")]
    UnknownScheme {
        /// What stands before `://`.
        scheme: String,
    },
    /// An ntfy address without a topic.
    #[error("the topic is missing; write ntfy://HOST/TOPIC")]
    NoTopic,
}

impl std::str::FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        if text.is_empty() {
            return Err(TargetError::Empty);
        }
        if text == "desktop" {
            return Ok(Self::Desktop);
        }
        let Some(scheme) = scheme_of(text) else { return Ok(Self::Command(text.to_owned())) };
        match scheme.as_str() {
            "http" | "https" => Self::of_web(Address::parse(text)?),
            "ntfy" => {
                let rest = text.get(scheme.len()..).unwrap_or_default();
                // As the apps of ntfy write it: `?secure=false` is plain HTTP.
                let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
                let scheme = if query.split('&').any(|part| part == "secure=false") { "http" } else { "https" };
                Self::ntfy(&Address::parse(&format!("{scheme}{rest}"))?)
            }
            _ => Err(TargetError::UnknownScheme { scheme }),
        }
    }
}

impl Target {
    fn of_web(address: Address) -> Result<Self, TargetError> {
        let host = address.host();
        if matches!(host, "hooks.slack.com" | "hooks.slack-gov.com") {
            return Ok(Self::Slack(address));
        }
        if host == "ntfy.sh" || host.starts_with("ntfy.") {
            return Self::ntfy(&address);
        }
        Ok(Self::Hook(address))
    }

    /// The last part of the path is the topic; what stands before it is where the server is.
    fn ntfy(address: &Address) -> Result<Self, TargetError> {
        let path = address.0.path().trim_end_matches('/');
        let (folder, topic) = path.rsplit_once('/').ok_or(TargetError::NoTopic)?;
        if topic.is_empty() {
            return Err(TargetError::NoTopic);
        }
        let authority = address.0.authority().map(ToString::to_string).unwrap_or_default();
        let server = Address::parse(&format!("{}://{authority}{folder}/", address.scheme()))?;
        Ok(Self::Ntfy { server, topic: topic.to_owned() })
    }
}

/// For people; what may be secret in an address is left out.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hook(address) | Self::Slack(address) => write!(f, "{}://{}/…", address.scheme(), address.place()),
            Self::Ntfy { server, topic } => write!(f, "ntfy://{}/{topic}", server.place()),
            Self::Desktop => f.write_str("desktop"),
            Self::Command(command) => {
                write!(f, "`{}`", ralphloop_agent::sanitize::one_line(command, 60))
            }
        }
    }
}

impl Address {
    /// Reads it.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        let bad = |why: String| TargetError::BadAddress { why };
        let uri: Uri = text.parse().map_err(|error: ureq::http::uri::InvalidUri| bad(error.to_string()))?;
        if uri.host().is_none_or(str::is_empty) {
            return Err(bad("the host is missing".to_owned()));
        }
        Ok(Self(uri))
    }

    pub(super) fn uri(&self) -> &Uri {
        &self.0
    }

    fn scheme(&self) -> &str {
        self.0.scheme_str().unwrap_or("https")
    }

    fn host(&self) -> &str {
        self.0.host().unwrap_or_default()
    }

    /// Host and port.
    fn place(&self) -> String {
        match self.0.port_u16() {
            Some(port) => format!("{}:{port}", self.host()),
            None => self.host().to_owned(),
        }
    }
}

/// What stands before `://`, small, if the text is one word that begins so.
fn scheme_of(text: &str) -> Option<String> {
    let (scheme, _) = text.split_once("://")?;
    let is_word = !scheme.is_empty() && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
    (is_word && !text.contains(char::is_whitespace)).then(|| scheme.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Target {
        text.parse().unwrap()
    }

    #[test]
    fn the_form_of_a_target_says_what_kind_it_is() {
        assert!(matches!(parse("https://hooks.slack.com/services/T0/B0/xyz"), Target::Slack(_)));
        assert!(matches!(parse("https://example.com/hook?x=1"), Target::Hook(_)));
        assert!(matches!(parse("http://127.0.0.1:8080"), Target::Hook(_)));
        assert!(matches!(parse("desktop"), Target::Desktop));
        assert_eq!(parse("mail -s done me"), Target::Command("mail -s done me".to_owned()));
        assert_eq!(
            parse("curl -d @- https://example.com"),
            Target::Command("curl -d @- https://example.com".to_owned())
        );
    }

    #[test]
    fn a_topic_of_ntfy_is_told_from_its_server() {
        let ntfy = |text: &str| match parse(text) {
            Target::Ntfy { server, topic } => (server.uri().to_string(), topic),
            other => panic!("{text}: {other:?}"),
        };
        let pair = |server: &str, topic: &str| (server.to_owned(), topic.to_owned());
        assert_eq!(ntfy("ntfy://ntfy.sh/builds"), pair("https://ntfy.sh/", "builds"));
        assert_eq!(ntfy("https://ntfy.sh/builds"), pair("https://ntfy.sh/", "builds"));
        assert_eq!(ntfy("ntfy://localhost:8080/builds?secure=false"), pair("http://localhost:8080/", "builds"));
        assert_eq!(ntfy("ntfy://u:p@example.com/sub/builds"), pair("https://u:p@example.com/sub/", "builds"));
        for text in ["ntfy://ntfy.sh", "ntfy://ntfy.sh/", "https://ntfy.sh/"] {
            assert_eq!(text.parse::<Target>(), Err(TargetError::NoTopic), "{text}");
        }
    }

    #[test]
    fn what_is_neither_a_known_address_nor_a_command_is_refused() {
        assert_eq!("  ".parse::<Target>(), Err(TargetError::Empty));
        assert_eq!("slack://x/y".parse::<Target>(), Err(TargetError::UnknownScheme { scheme: "slack".to_owned() }));
        for text in ["https://", "http:///path", "https://ho<st/"] {
            assert!(matches!(text.parse::<Target>(), Err(TargetError::BadAddress { .. })), "{text}");
        }
    }

    #[test]
    fn a_target_is_shown_without_what_may_be_secret_in_it() {
        let shown = |text: &str| parse(text).to_string();
        assert_eq!(shown("https://hooks.slack.com/services/T0/B0/xyz"), "https://hooks.slack.com/…");
        assert_eq!(shown("https://u:pw@example.com:8443/token?k=v"), "https://example.com:8443/…");
        assert_eq!(shown("ntfy://u:pw@example.com/builds"), "ntfy://example.com/builds");
    }
}
