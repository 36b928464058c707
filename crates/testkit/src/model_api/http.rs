//! As much HTTP/1.1 as a model API on loopback needs: one request a connection, answered until the end of the stream.

use std::fmt::Write as _;
use std::io::{self, Read, Write};

/// The largest head that is read, in bytes.
const MAX_HEAD: usize = 64 * 1024;
/// The largest body that is read, in bytes: above what any client sends.
const MAX_BODY: usize = 64 * 1024 * 1024;

/// A request as it came in.
#[derive(Debug, Clone)]
pub struct Request {
    /// `POST`, `HEAD` …
    pub method: String,
    /// The path without its query.
    pub path: String,
    /// Names in lower case, values as sent.
    pub headers: Vec<(String, String)>,
    /// The whole body.
    pub body: Vec<u8>,
}

impl Request {
    /// The first header of that lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }
}

/// Reads one request; `None` if the peer closed before sending one.
pub(super) fn read_request(stream: &mut impl Read) -> io::Result<Option<Request>> {
    let mut bytes = Vec::new();
    let mut chunk = [0_u8; 16 * 1024];
    loop {
        if let Some((mut request, head_length)) = parse_head(&bytes)? {
            let length = body_length(&request)?;
            let mut body = bytes.split_off(head_length);
            while body.len() < length {
                let n = stream.read(&mut chunk)?;
                if n == 0 {
                    return Err(invalid("the body ended early"));
                }
                body.extend_from_slice(&chunk[..n]);
            }
            request.body = body;
            return Ok(Some(request));
        }
        if bytes.len() > MAX_HEAD {
            return Err(invalid("the head is too long"));
        }
        let n = stream.read(&mut chunk)?;
        if n == 0 {
            return if bytes.is_empty() { Ok(None) } else { Err(invalid("the head ended early")) };
        }
        bytes.extend_from_slice(&chunk[..n]);
    }
}

/// The request without its body and the head's length, once the head is complete.
fn parse_head(bytes: &[u8]) -> io::Result<Option<(Request, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; 128];
    let mut parsed = httparse::Request::new(&mut headers);
    let length = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(invalid(&format!("no HTTP request: {error}"))),
    };
    let path = parsed.path.unwrap_or_default();
    let request = Request {
        method: parsed.method.unwrap_or_default().to_owned(),
        path: path.split('?').next().unwrap_or_default().to_owned(),
        headers: parsed
            .headers
            .iter()
            .map(|h| (h.name.to_ascii_lowercase(), String::from_utf8_lossy(h.value).into_owned()))
            .collect(),
        body: Vec::new(),
    };
    Ok(Some((request, length)))
}

fn body_length(request: &Request) -> io::Result<usize> {
    if request.header("transfer-encoding").is_some() {
        return Err(invalid("a chunked request body is not understood"));
    }
    let Some(text) = request.header("content-length") else { return Ok(0) };
    let length = text.trim().parse::<usize>().map_err(|_| invalid("content-length is no number"))?;
    if length > MAX_BODY { Err(invalid("the body is too long")) } else { Ok(length) }
}

fn invalid(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// Writes a whole answer with a JSON body.
pub(super) fn respond(out: &mut impl Write, status: u16, headers: &[(&str, String)], body: &str) -> io::Result<()> {
    let head = head(status, "application/json", headers);
    write!(out, "{head}content-length: {}\r\n\r\n{body}", body.len())
}

/// Begins an answer of server-sent events; it lasts until the connection is closed.
pub(super) fn begin_events(out: &mut impl Write) -> io::Result<()> {
    let mut text = head(200, "text/event-stream", &[]);
    text.push_str("\r\n");
    out.write_all(text.as_bytes())
}

fn head(status: u16, content_type: &str, headers: &[(&str, String)]) -> String {
    let mut text = format!("HTTP/1.1 {status} scripted\r\nconnection: close\r\ncontent-type: {content_type}\r\n");
    for (name, value) in headers {
        // Writing to a string cannot fail.
        let _infallible = write!(text, "{name}: {value}\r\n");
    }
    text
}
