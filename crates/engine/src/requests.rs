//! Requests to addresses of the web.

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// Why a request has no outcome.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unanswered {
    /// Nobody waits for it any more.
    #[error("it was not waited for")]
    Cancelled,
    /// Its thread could not be started, or broke.
    #[error("it could not be made: {0}")]
    Broke(String),
}

/// Makes a request, and waits for its outcome until `cancel`. The client blocks, so each request has a thread of its own; it
/// ends by the request's own time limit, and a process that does not want to wait for it ends without it.
pub(crate) async fn make<T: Send + 'static>(
    name: &str,
    request: impl FnOnce() -> T + Send + 'static,
    cancel: &CancellationToken,
) -> Result<T, Unanswered> {
    let (answer, answered) = oneshot::channel();
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || drop(answer.send(request())))
        .map_err(|error| Unanswered::Broke(error.to_string()))?;
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(Unanswered::Cancelled),
        answer = answered => answer.map_err(|_| Unanswered::Broke("the client broke".to_owned())),
    }
}
