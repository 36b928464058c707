//! Who stands at the doors of a confined agent's network, on the machine's side: lets through to the hosts that the agent may
//! reach, turns everything else away, and remembers what that was.
//!
//! One door is a proxy, of which the agent knows by its variables; the others lead to one server of this machine each.
use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, Interest, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::doors;
use super::reach::{Reach, split};

/// How long a connection may take to be made, and a request to be said.
const PATIENCE: Duration = Duration::from_secs(30);
/// The longest beginning of a request, in bytes.
const LONGEST_HEAD: usize = 64 * 1024;
/// Connections of one door at a time.
const MOST_CONNECTIONS: usize = 256;
/// Hosts that are remembered as turned away.
const MOST_REMEMBERED: usize = 20;

/// Where a door leads.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Door {
    /// To any host that may be reached.
    Proxy,
    /// To this host and port.
    To(String, u16),
}

/// Serves the doors of one call, until it is dropped.
#[derive(Debug)]
pub(crate) struct Porter {
    turned_away: Arc<Mutex<BTreeSet<String>>>,
    _serving: JoinSet<()>,
}

/// What every connection needs to know.
#[derive(Debug, Clone)]
struct House {
    reach: Arc<Reach>,
    /// The proxy that this process itself is to use.
    beyond: Option<Arc<Beyond>>,
    turned_away: Arc<Mutex<BTreeSet<String>>>,
}

impl Porter {
    /// Serves the doors that come over `doors`: the first as a proxy, the others for the servers of this machine.
    pub(crate) fn at(doors: std::os::unix::net::UnixStream, reach: Reach) -> io::Result<Self> {
        doors.set_nonblocking(true)?;
        let doors = UnixStream::from_std(doors)?;
        let turned_away = Arc::<Mutex<BTreeSet<String>>>::default();
        let beyond = Beyond::of(|name| std::env::var(name).ok()).map(Arc::new);
        let house = House { reach: Arc::new(reach), beyond, turned_away: turned_away.clone() };
        let mut serving = JoinSet::new();
        serving.spawn(serve(doors, house));
        Ok(Self { turned_away, _serving: serving })
    }

    /// Hosts that were asked for and may not be reached.
    pub(crate) fn turned_away(&self) -> Vec<String> {
        self.turned_away.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

async fn serve(handed: UnixStream, house: House) {
    let taken = handed.async_io(Interest::READABLE, || doors::take(std::os::fd::AsFd::as_fd(&handed))).await;
    drop(handed);
    let local = house.reach.local().into_iter().map(|(host, port)| Door::To(host, port));
    let mut serving = JoinSet::new();
    for (socket, door) in taken.unwrap_or_default().into_iter().zip(std::iter::once(Door::Proxy).chain(local)) {
        if socket.set_nonblocking(true).is_ok()
            && let Ok(socket) = TcpListener::from_std(socket)
        {
            serving.spawn(keep(socket, door, house.clone()));
        }
    }
    while serving.join_next().await.is_some() {}
}

/// Takes the calls at one door.
async fn keep(socket: TcpListener, door: Door, house: House) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = socket.accept(), if connections.len() < MOST_CONNECTIONS => {
                let Ok((from, _)) = accepted else { return };
                let (door, house) = (door.clone(), house.clone());
                connections.spawn(async move {
                    // The agent sees that its connection has ended, as with any that breaks.
                    drop(match door {
                        Door::Proxy => proxy(from, &house).await,
                        Door::To(host, port) => pass(from, &host, port).await,
                    });
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn pass(mut from: TcpStream, host: &str, port: u16) -> io::Result<()> {
    let mut to = timeout(PATIENCE, TcpStream::connect((host, port))).await??;
    copy_bidirectional(&mut from, &mut to).await.map(drop)
}

/// What a request to a proxy asks for.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    host: String,
    port: u16,
    /// What the server is to get first; nothing where the client is only to be connected.
    head: Option<Vec<u8>>,
    /// How long the request's own head was.
    length: usize,
}

async fn proxy(mut from: TcpStream, house: &House) -> io::Result<()> {
    let (asked, rest) = match timeout(PATIENCE, request(&mut from)).await? {
        Ok(read) => read,
        Err(error) => {
            from.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n").await?;
            return Err(error);
        }
    };
    let Asked { host, port, head, .. } = asked;
    if !house.reach.has(&host, port) {
        house.remember(format!("{host}:{port}"));
        let why = format!("the sandbox lets this program reach {} and not {host}:{port}\n", house.reach);
        let answer = format!(
            "HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{why}",
            why.len()
        );
        return from.write_all(answer.as_bytes()).await;
    }
    let mut to = match timeout(PATIENCE, house.connect(&host, port)).await.map_err(io::Error::from).flatten() {
        Ok(to) => to,
        Err(error) => {
            let answer = format!("HTTP/1.1 502 Bad Gateway\r\nConnection: close\r\n\r\n{host}:{port}: {error}\n");
            return from.write_all(answer.as_bytes()).await;
        }
    };
    match head {
        Some(head) => to.write_all(&head).await?,
        None => from.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?,
    }
    to.write_all(&rest).await?;
    copy_bidirectional(&mut from, &mut to).await.map(drop)
}

/// Reads the head of a request, and what has come behind it.
async fn request(from: &mut TcpStream) -> io::Result<(Asked, Vec<u8>)> {
    let mut read = Vec::new();
    loop {
        if from.read_buf(&mut read).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(asked) = asked(&read).map_err(io::Error::other)? {
            let rest = read.split_off(asked.length);
            return Ok((asked, rest));
        }
        if read.len() > LONGEST_HEAD {
            return Err(io::Error::other("the head of the request is too long"));
        }
    }
}

/// Reads the head of a request; none if it is not there as a whole.
fn asked(read: &[u8]) -> Result<Option<Asked>, &'static str> {
    let mut headers = [httparse::EMPTY_HEADER; 100];
    let mut request = httparse::Request::new(&mut headers);
    let length = match request.parse(read) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err("no request"),
    };
    let (method, target) = (request.method.unwrap_or_default(), request.path.unwrap_or_default());
    if method == "CONNECT" {
        let (host, port) = split(target, 443).ok_or("no host to connect to")?;
        return Ok(Some(Asked { host, port, head: None, length }));
    }
    let rest = target.strip_prefix("http://").ok_or("no request to a proxy")?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (host, port) = split(authority, 80).ok_or("no host to ask")?;
    let mut head = format!("{method} {} HTTP/1.1\r\n", if path.is_empty() { "/" } else { path }).into_bytes();
    let kept = |name: &str| !["connection", "proxy-connection", "proxy-authorization"].contains(&name);
    for header in request.headers.iter().filter(|header| kept(&header.name.to_ascii_lowercase())) {
        head.extend_from_slice(format!("{}: ", header.name).as_bytes());
        head.extend_from_slice(header.value);
        head.extend_from_slice(b"\r\n");
    }
    // Whatever is asked next is asked of the proxy again, which looks at it.
    head.extend_from_slice(b"Connection: close\r\n\r\n");
    Ok(Some(Asked { host, port, head: Some(head), length }))
}

impl House {
    fn remember(&self, host: String) {
        let mut turned_away = self.turned_away.lock().unwrap_or_else(PoisonError::into_inner);
        if turned_away.len() < MOST_REMEMBERED {
            turned_away.insert(host);
        }
    }

    async fn connect(&self, host: &str, port: u16) -> io::Result<TcpStream> {
        match &self.beyond {
            Some(beyond) => beyond.connect(host, port).await,
            None => TcpStream::connect((host, port)).await,
        }
    }
}

/// A proxy through which this machine reaches the network.
#[derive(Debug, PartialEq, Eq)]
struct Beyond {
    host: String,
    port: u16,
    /// What it is signed in with.
    credentials: Option<String>,
}

impl Beyond {
    /// The proxy that variables name.
    fn of(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let names = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
        let address = names.into_iter().filter_map(variable).find(|address| !address.is_empty())?;
        let rest = address.strip_prefix("http://").unwrap_or(&address);
        let authority = rest.split('/').next().unwrap_or_default();
        let (user, place) = match authority.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, authority),
        };
        let (host, port) = split(place, 80)?;
        let credentials = user.map(|user| base64::engine::general_purpose::STANDARD.encode(user));
        Some(Self { host, port, credentials })
    }

    async fn connect(&self, host: &str, port: u16) -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        let credentials = self.credentials.iter().map(|known| format!("Proxy-Authorization: Basic {known}\r\n"));
        let credentials: String = credentials.collect();
        let at = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        stream.write_all(format!("CONNECT {at} HTTP/1.1\r\nHost: {at}\r\n{credentials}\r\n").as_bytes()).await?;
        // Byte by byte: what follows is the server's.
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            if answer.len() > LONGEST_HEAD {
                return Err(io::Error::other("the proxy's answer is too long"));
            }
            answer.push(stream.read_u8().await?);
        }
        let text = String::from_utf8_lossy(&answer);
        let first = text.lines().next().unwrap_or_default();
        match first.split_whitespace().nth(1) {
            Some("200") => Ok(stream),
            _ => Err(io::Error::other(format!("the proxy {}:{} says: {first}", self.host, self.port))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_of_a_proxy_is_a_host_and_what_the_server_gets() {
        let connect = asked(b"CONNECT API.example.com:443 HTTP/1.1\r\nHost: x\r\n\r\nrest").unwrap().unwrap();
        assert_eq!(connect, Asked { host: "api.example.com".into(), port: 443, head: None, length: 49 });
        let get = asked(b"GET http://a.test:81/v1?x HTTP/1.1\r\nHost: a.test\r\nProxy-Connection: keep-alive\r\n\r\n");
        let get = get.unwrap().unwrap();
        assert_eq!((get.host.as_str(), get.port), ("a.test", 81));
        let head = String::from_utf8(get.head.unwrap()).unwrap();
        assert_eq!(head, "GET /v1?x HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
        assert_eq!(asked(b"CONNECT a:443 HTTP/1.1\r\n"), Ok(None));
        for bad in ["GET /v1 HTTP/1.1\r\n\r\n", "\u{1}\u{2}\r\n\r\n", "CONNECT :443 HTTP/1.1\r\n\r\n"] {
            assert!(asked(bad.as_bytes()).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_machines_own_proxy_is_gone_through() {
        let named = |name: &str| (name == "HTTPS_PROXY").then(|| "http://me:pass@proxy.test:3128/".to_owned());
        let beyond = Beyond::of(named).unwrap();
        assert_eq!((beyond.host.as_str(), beyond.port), ("proxy.test", 3128));
        assert_eq!(beyond.credentials.as_deref(), Some("bWU6cGFzcw=="));
        assert_eq!(Beyond::of(|_| None), None);
    }
}
