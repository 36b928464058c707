//! Notifications: a run tells somebody who does not watch that it has ended, or that it waits for a provider's limit.
//!
//! They run beside the loop and are fed by its events as a view is. Each target has its messages delivered one after the
//! other; whatever becomes of that changes neither the run nor its exit code, and delays its end by seconds at most.
mod message;
mod send;
mod target;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ralphloop_agent::redact::Redactor;
use ralphloop_core::event::Event;
use ralphloop_core::run::Run;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use target::{Address, Target, TargetError};

use crate::process::Spawner;
use message::{Kind, Message};
use send::Sender;

/// What one try to deliver may take.
const TRY: Duration = Duration::from_secs(10);
/// How long is waited before each further try.
const BACKOFF: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(3)];
/// How long a process whose run has ended goes on delivering.
const AT_THE_END: Duration = Duration::from_secs(13);

/// The key with which web hooks are signed. Never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The key, as it was written.
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Who is told, and how.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Notify {
    /// Each of these.
    pub targets: Vec<Target>,
    /// Signs what web hooks are sent.
    pub secret: Option<Secret>,
}

/// What notifications need of the run's surroundings.
#[derive(Debug)]
pub struct Notifier {
    /// Who is told.
    pub notify: Notify,
    /// Starts commands.
    pub spawner: Spawner,
    /// Where commands run.
    pub project: PathBuf,
    /// Takes secrets out of what is sent.
    pub redactor: Redactor,
    /// Where it is said that a notification failed.
    pub notes: mpsc::UnboundedSender<String>,
}

impl Notifier {
    /// Tells the targets of what happens in `run`, until `end` comes and its last message is delivered or given up. `end`
    /// says why the run broke off, if it did. When `leave` is cancelled, nothing more is waited for.
    pub async fn watch(
        self,
        mut run: Run,
        mut events: mpsc::UnboundedReceiver<Event>,
        mut end: oneshot::Receiver<Option<String>>,
        leave: CancellationToken,
    ) {
        if self.notify.targets.is_empty() {
            return;
        }
        let Self { notify, spawner, project, redactor, notes } = self;
        let shared = Arc::new(Shared { sender: Sender { spawner, project, secret: notify.secret }, redactor, notes });
        let (deadline, _) = watch::channel(None);
        let mut workers = JoinSet::new();
        let queues: Vec<_> = notify
            .targets
            .into_iter()
            .map(|target| {
                let (queue, messages) = mpsc::unbounded_channel();
                let worker = Worker {
                    shared: Arc::clone(&shared),
                    target,
                    messages,
                    deadline: deadline.subscribe(),
                    leave: leave.clone(),
                    has_complained: false,
                };
                workers.spawn(worker.work());
                queue
            })
            .collect();
        let tell = |message: Message| {
            let message = Arc::new(message.redacted(&shared.redactor));
            for queue in &queues {
                // A worker ends with its queue, and not before.
                drop(queue.send(Arc::clone(&message)));
            }
        };
        let mut last = None;
        let broke = loop {
            tokio::select! {
                biased;
                Some(event) = events.recv() => {
                    let before = run.activity().clone();
                    drop(run.step(&event));
                    match Message::about(&run, &before) {
                        // Who hears of the end may start the next run, so this one has to have let go first.
                        Some(message) if message.event == Kind::Ended => last = Some(message),
                        Some(message) => tell(message),
                        None => {}
                    }
                }
                why = &mut end => break why.unwrap_or_default(),
            }
        };
        let broke_off = broke.map(|why| Message::broke_off(&run, why, crate::clock::now()));
        if let Some(message) = broke_off.or(last) {
            tell(message);
        }
        drop(queues);
        deadline.send_replace(Some(Instant::now() + AT_THE_END));
        while let Some(ended) = workers.join_next().await {
            if let Err(error) = ended {
                drop(shared.notes.send(format!("a notification broke: {error}")));
            }
        }
    }
}

/// What the workers of all targets use.
struct Shared {
    sender: Sender,
    redactor: Redactor,
    notes: mpsc::UnboundedSender<String>,
}

/// Delivers to one target.
struct Worker {
    shared: Arc<Shared>,
    target: Target,
    messages: mpsc::UnboundedReceiver<Arc<Message>>,
    /// When everything has to be over, once the run has ended.
    deadline: watch::Receiver<Option<Instant>>,
    leave: CancellationToken,
    has_complained: bool,
}

impl Worker {
    async fn work(mut self) {
        let mut next = self.messages.recv().await;
        while let Some(message) = next {
            next = match self.deliver(&message).await {
                Some(newer) => Some(newer),
                None => self.messages.recv().await,
            };
        }
    }

    /// Delivers a message, or gives up. A newer message is better than a further try of this one, and is returned.
    async fn deliver(&mut self, message: &Message) -> Option<Arc<Message>> {
        for pause in BACKOFF.into_iter().map(Some).chain([None]) {
            let limit = self.limit();
            if limit.is_zero() || self.leave.is_cancelled() {
                self.complain("there was no time left for it");
                return None;
            }
            let failure = match self.shared.sender.send(&self.target, message, limit, &self.leave).await {
                Ok(()) => return None,
                Err(failure) => failure,
            };
            self.complain(&failure.why);
            let (true, Some(pause)) = (failure.may_pass, pause) else { return None };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                Some(newer) = self.messages.recv() => return Some(newer),
                () = self.leave.cancelled() => return None,
            }
        }
        None
    }

    /// What a try may take now.
    fn limit(&self) -> Duration {
        self.deadline.borrow().map_or(TRY, |deadline| deadline.saturating_duration_since(Instant::now()).min(TRY))
    }

    /// Says what went wrong, the first time.
    fn complain(&mut self, why: &str) {
        if std::mem::replace(&mut self.has_complained, true) {
            return;
        }
        let why = self.shared.redactor.redact_text(why);
        drop(self.shared.notes.send(format!("the notification to {} failed: {why}", self.target)));
    }
}
