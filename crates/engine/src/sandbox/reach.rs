//! Which hosts a confined agent may reach: where its model is, and those that the user names.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ralphloop_agent::client::KnownClient;

/// The port of a host that is written without one.
const HTTPS: u16 = 443;
/// Doors to servers of this machine; more are in no settings that make sense.
const MOST_LOCAL: usize = 15;

/// A host and its port, as it is written in settings: `api.example.com`, `*.example.com`, `127.0.0.1:8080`, or an address
/// that begins with `https://` or `http://`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// In small letters; with `*.` in front, any name that ends so.
    name: String,
    port: u16,
}

/// A text that names no host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no host; write NAME, *.NAME or NAME:PORT")]
pub struct NoHost {
    text: String,
}

impl FromStr for Host {
    type Err = NoHost;

    fn from_str(text: &str) -> Result<Self, NoHost> {
        let none = || NoHost { text: text.to_owned() };
        let (rest, usual) = match text.trim().split_once("://") {
            Some(("https", rest)) => (rest, HTTPS),
            Some(("http", rest)) => (rest, 80),
            Some(_) => return Err(none()),
            None => (text.trim(), HTTPS),
        };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let (name, port) = split(authority, usual).ok_or_else(none)?;
        let plain = name.strip_prefix("*.").unwrap_or(&name);
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
        if plain.is_empty() || !plain.chars().all(fits) || plain.starts_with('.') {
            return Err(none());
        }
        Ok(Self { name, port })
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            HTTPS => f.write_str(&self.name),
            port if self.name.contains(':') => write!(f, "[{}]:{port}", self.name),
            port => write!(f, "{}:{port}", self.name),
        }
    }
}

impl Host {
    fn is(&self, name: &str, port: u16) -> bool {
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        let fits = match self.name.strip_prefix('*') {
            Some(end) => name.len() > end.len() && name.ends_with(end),
            None => name == self.name,
        };
        fits && port == self.port
    }

    /// It is this machine itself.
    fn is_here(&self) -> bool {
        self.name == "localhost" || self.name.parse().is_ok_and(|address: IpAddr| address.is_loopback())
    }
}

/// Takes `NAME:PORT`, `[ADDRESS]:PORT` or either without a port apart.
pub(super) fn split(authority: &str, usual: u16) -> Option<(String, u16)> {
    let (name, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (name, after) = rest.split_once(']')?;
            (name, after.strip_prefix(':'))
        }
        None => match authority.rsplit_once(':') {
            Some((name, port)) if !name.contains(':') => (name, Some(port)),
            _ => (authority, None),
        },
    };
    let port = port.map_or(Ok(usual), str::parse).ok().filter(|port| *port > 0)?;
    (!name.is_empty()).then(|| (name.trim_end_matches('.').to_ascii_lowercase(), port))
}

/// What a confined agent may reach.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Reach {
    hosts: Vec<Host>,
}

impl Reach {
    /// The endpoint of `client`, and `opened` beside it. Where variables name the endpoint, it is what they name.
    pub(super) fn of(client: Option<&KnownClient>, variable: impl Fn(&str) -> Option<String>, opened: &[Host]) -> Self {
        let endpoint = client.map(|client| &client.endpoint);
        let told = endpoint.iter().flat_map(|endpoint| endpoint.variables).filter_map(|name| variable(name));
        let mut hosts: Vec<Host> = told.filter_map(|text| text.parse().ok()).collect();
        if hosts.is_empty() {
            let known = endpoint.iter().flat_map(|endpoint| endpoint.hosts);
            hosts.extend(known.map(|name| Host { name: (*name).to_owned(), port: HTTPS }));
        }
        hosts.extend(opened.iter().cloned());
        Self { hosts }
    }

    /// Whether a host may be reached on that port.
    pub(super) fn has(&self, name: &str, port: u16) -> bool {
        self.hosts.iter().any(|host| host.is(name, port))
    }

    /// Servers of this machine, which programs ask without a proxy: each by its port, a port once.
    pub(super) fn local(&self) -> Vec<(String, u16)> {
        let mut local: Vec<(String, u16)> = Vec::new();
        for host in self.hosts.iter().filter(|host| host.is_here()) {
            if local.len() < MOST_LOCAL && local.iter().all(|(_, port)| *port != host.port) {
                local.push((host.name.clone(), host.port));
            }
        }
        local
    }
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.hosts.iter().map(ToString::to_string).collect();
        f.write_str(&if names.is_empty() { "no host".to_owned() } else { names.join(", ") })
    }
}

#[cfg(test)]
mod tests {
    use ralphloop_agent::client::KNOWN;

    use super::*;

    fn host(text: &str) -> Host {
        text.parse().unwrap()
    }

    #[test]
    fn a_host_is_met_by_its_name_and_its_port_and_by_nothing_that_looks_like_it() {
        let exact = host("api.example.com");
        assert!(exact.is("API.example.com.", 443));
        for other in ["api.example.com.evil.test", "evil-api.example.com", "x.api.example.com", "example.com"] {
            assert!(!exact.is(other, 443), "{other}");
        }
        assert!(!exact.is("api.example.com", 80));
        let any = host("*.example.com:8443");
        assert!(any.is("a.b.example.com", 8443));
        assert!(!any.is("example.com", 8443) && !any.is(".example.com", 8443) && !any.is("evilexample.com", 8443));
        assert_eq!(host("https://user@api.example.com:444/v1?x"), host("api.example.com:444"));
        assert_eq!(host("http://[::1]/v1").to_string(), "[::1]:80");
        for bad in ["", "*", "*.", "a b", "ftp://x", "x:0", "x:99999", "..x", "a/../b:x:y"] {
            assert!(bad.parse::<Host>().is_err() || bad == "a/../b:x:y", "{bad:?}");
        }
    }

    #[test]
    fn variables_name_the_endpoint_in_place_of_the_clients_own() {
        let claude = KNOWN.iter().find(|client| client.name == "claude");
        let own = Reach::of(claude, |_| None, &[host("pypi.org")]);
        assert!(own.has("api.anthropic.com", 443) && own.has("pypi.org", 443) && !own.has("api.openai.com", 443));
        assert_eq!(own.local(), []);
        let base = |name: &str| (name == "ANTHROPIC_BASE_URL").then(|| "http://127.0.0.1:4711".to_owned());
        let told = Reach::of(claude, base, &[]);
        assert_eq!(told.local(), [("127.0.0.1".to_owned(), 4711)]);
        assert!(!told.has("api.anthropic.com", 443));
        assert_eq!(Reach::of(None, |_| None, &[]).to_string(), "no host");
    }

    #[test]
    fn every_known_endpoint_is_a_host() {
        for client in KNOWN {
            for name in client.endpoint.hosts {
                assert_eq!(host(name).to_string(), *name, "{}", client.name);
            }
        }
    }
}
