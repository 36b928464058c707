//! A scripted model API on loopback, for real clients: it answers by script, and fails by script. It speaks the protocols of
//! Anthropic, `OpenAI` (both) and Google.
//!
//! The step of a conversation is read from the conversation itself, so that a client's retries and side calls
//! cannot advance it; only faults are counted by request.

mod completions;
mod conversation;
mod generate;
mod http;
mod messages;
mod protocol;
mod responses;
mod script;

use std::collections::HashMap;
use std::io::{self, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::Value;

pub use http::Request;
pub use script::{CacheUse, FaultKind, ModelScript, StoryScript, Turn};

use conversation::{Conversation, Step};
use protocol::{ErrorAnswer, Protocol};

/// How long a silent connection may keep a thread before a request has come.
const READ_PATIENCE: Duration = Duration::from_secs(30);

/// The running server. Dropping it closes every connection and joins every thread.
pub struct ModelApi {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

struct Shared {
    script: ModelScript,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    stopping: bool,
    requests: Vec<Request>,
    /// Main requests so far, by position of the story in the script.
    counts: HashMap<usize, usize>,
    /// Requests that were left without an answer.
    hung: usize,
    /// Our ends of open connections, by number, so that stopping can wake their threads.
    open: HashMap<u64, TcpStream>,
}

impl ModelApi {
    /// Serves `script` on a free port of 127.0.0.1.
    pub fn start(script: ModelScript) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared { script, state: Mutex::default(), changed: Condvar::new() });
        let server = Arc::clone(&shared);
        let accepting = thread::Builder::new().name("model-api".into()).spawn(move || server.accept(&listener))?;
        Ok(Self { address, shared, accepting: Some(accepting) })
    }

    /// The base address, without the path of any protocol.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every request so far, side calls included, in the order in which they came.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.lock().requests.clone()
    }

    /// Waits until `count` requests have come; false if they have not within `patience`.
    pub fn wait_for_requests(&self, count: usize, patience: Duration) -> bool {
        let (state, _) = self
            .shared
            .changed
            .wait_timeout_while(self.shared.lock(), patience, |s| s.requests.len() < count)
            .unwrap_or_else(PoisonError::into_inner);
        state.requests.len() >= count
    }

    /// Waits until a request has come that is not answered, as the script has it; false if none has within `patience`.
    pub fn wait_for_hang(&self, patience: Duration) -> bool {
        let shared = &self.shared;
        let waited = shared.changed.wait_timeout_while(shared.lock(), patience, |state| state.hung == 0);
        waited.unwrap_or_else(PoisonError::into_inner).0.hung > 0
    }
}

impl Drop for ModelApi {
    fn drop(&mut self) {
        {
            let mut state = self.shared.lock();
            state.stopping = true;
            for stream in state.open.values() {
                drop(stream.shutdown(Shutdown::Both));
            }
            self.shared.changed.notify_all();
        }
        // The accepting thread sees `stopping` at its next connection: this one.
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.accepting.take() {
            drop(thread.join());
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        let mut workers: Vec<JoinHandle<()>> = Vec::new();
        for (number, stream) in (0_u64..).zip(listener.incoming()) {
            if self.lock().stopping {
                break;
            }
            let Ok(stream) = stream else { continue };
            let Ok(ours) = stream.try_clone() else { continue };
            self.lock().open.insert(number, ours);
            let server = Arc::clone(self);
            let worker = thread::Builder::new().name(format!("model-api-{number}")).spawn(move || {
                // A peer that went away, or was sent away, is part of what is played here.
                drop(server.serve(stream, number));
                server.lock().open.remove(&number);
            });
            workers.extend(worker);
            workers.retain(|w| !w.is_finished());
        }
        for worker in workers {
            drop(worker.join());
        }
    }

    fn serve(&self, mut stream: TcpStream, number: u64) -> io::Result<()> {
        stream.set_read_timeout(Some(READ_PATIENCE))?;
        let Some(request) = http::read_request(&mut stream)? else { return Ok(()) };
        {
            let mut state = self.lock();
            state.requests.push(request.clone());
            self.changed.notify_all();
        }
        match (request.method.as_str(), request.path.as_str()) {
            ("HEAD", _) => http::respond(&mut stream, 200, &[], ""),
            ("POST", "/v1/messages/count_tokens") => http::respond(&mut stream, 200, &[], r#"{"input_tokens":1000}"#),
            ("POST", path) if path.ends_with(":countTokens") => {
                http::respond(&mut stream, 200, &[], r#"{"totalTokens":1000}"#)
            }
            ("GET", "/v1/models") => http::respond(&mut stream, 200, &[], r#"{"data":[],"has_more":false}"#),
            ("POST", path) if let Some(protocol) = Protocol::of(path) => {
                self.converse(stream, number, &request, protocol)
            }
            _ => fail(&mut stream, &Protocol::Messages.error(404, "not_found_error", "no such path")),
        }
    }

    fn converse(&self, mut stream: TcpStream, number: u64, request: &Request, protocol: Protocol) -> io::Result<()> {
        let Ok(body) = serde_json::from_slice::<Value>(&request.body) else {
            return fail(&mut stream, &protocol.error(400, "invalid_request_error", "the body is no JSON"));
        };
        let talk = Conversation { cache: self.script.cache, ..protocol.read(&body) };
        let say = |text: &str| vec![Step::Say(text.to_owned())];
        if talk.is_side_call() {
            return send(&mut stream, protocol, &talk, &say("Scripted side answer"));
        }
        let Some((position, story)) = self.script.find(&talk.prompt) else {
            return send(&mut stream, protocol, &talk, &say("The scripted model does not know this prompt."));
        };
        let count = {
            let mut state = self.lock();
            let count = state.counts.entry(position).or_default();
            *count += 1;
            *count
        };
        let steps = story.turn(talk.steps).map_or_else(|| say("Nothing is scripted."), |turn| talk.steps(turn));
        match story.fault_at(count) {
            None => send(&mut stream, protocol, &talk, &steps),
            Some(fault) => self.break_with(fault, stream, number, protocol, &protocol.events(&talk, &steps)),
        }
    }

    fn break_with(
        &self,
        fault: &FaultKind,
        mut stream: TcpStream,
        number: u64,
        protocol: Protocol,
        events: &[String],
    ) -> io::Result<()> {
        match fault {
            FaultKind::RateLimit { retry_after } => fail(&mut stream, &protocol.rate_limit(*retry_after)),
            FaultKind::UsageLimit { resets_in } => fail(&mut stream, &protocol.usage_limit(*resets_in)),
            FaultKind::Hang => {
                self.wait_until_stopped_or_closed(&stream);
                Ok(())
            }
            FaultKind::HangMidStream => {
                half(&mut stream, events)?;
                self.wait_until_stopped_or_closed(&stream);
                Ok(())
            }
            FaultKind::Reset => self.reset(stream, number),
            FaultKind::ResetMidStream => {
                half(&mut stream, events)?;
                self.reset(stream, number)
            }
            FaultKind::Cut => half(&mut stream, events),
            FaultKind::Status(529) => fail(&mut stream, &protocol.error(529, "overloaded_error", "Overloaded")),
            FaultKind::Status(402) => {
                fail(&mut stream, &protocol.error(402, "billing_error", "nothing is left to pay with"))
            }
            FaultKind::Status(404) => {
                fail(&mut stream, &protocol.error(404, "not_found_error", "model: scripted does not exist"))
            }
            FaultKind::Status(status) => {
                fail(&mut stream, &protocol.error(*status, "api_error", "Internal server error"))
            }
            FaultKind::Unauthorized => {
                fail(&mut stream, &protocol.error(401, "authentication_error", "invalid x-api-key"))
            }
            FaultKind::PromptTooLong => {
                let message = "prompt is too long: 250000 tokens > 200000 maximum";
                fail(&mut stream, &protocol.error(400, "invalid_request_error", message))
            }
        }
    }

    /// Closes with RST, for which no other handle on the socket may be left.
    fn reset(&self, stream: TcpStream, number: u64) -> io::Result<()> {
        self.lock().open.remove(&number);
        socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
        drop(stream);
        Ok(())
    }

    /// A client that gives up closes its end, and stopping shuts ours: either ends the read.
    fn wait_until_stopped_or_closed(&self, stream: &TcpStream) {
        self.lock().hung += 1;
        self.changed.notify_all();
        let mut byte = [0_u8; 1];
        while !self.lock().stopping {
            if stream.set_read_timeout(None).is_err() || !matches!(stream.peek(&mut byte), Ok(n) if n > 0) {
                return;
            }
            // Pipelined bytes would make the peek return at once; nobody sends any, and none are wanted.
            if io::Read::read(&mut &*stream, &mut byte).is_err() {
                return;
            }
        }
    }
}

fn fail(stream: &mut TcpStream, error: &ErrorAnswer) -> io::Result<()> {
    http::respond(stream, error.status, &error.headers, &error.body)
}

fn send(stream: &mut TcpStream, protocol: Protocol, talk: &Conversation, steps: &[Step]) -> io::Result<()> {
    if !talk.stream {
        return http::respond(stream, 200, &[], &protocol.whole(talk, steps));
    }
    http::begin_events(stream)?;
    protocol.events(talk, steps).iter().try_for_each(|event| stream.write_all(event.as_bytes()))
}

/// The first half of a streamed answer.
fn half(stream: &mut TcpStream, events: &[String]) -> io::Result<()> {
    http::begin_events(stream)?;
    events[..events.len() / 2].iter().try_for_each(|event| stream.write_all(event.as_bytes()))
}
