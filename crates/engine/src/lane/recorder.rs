//! A transcript that is written beside the reading of the stream: what packs and stores it is a thread of its own, which
//! the reader waits for only when it is far behind.

use std::path::PathBuf;

use ralphloop_agent::redact::Redactor;
use ralphloop_core::units::Timestamp;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::clock;
use crate::transcript::{DEFAULT_MAX_BYTES, Stream, TranscriptError, Writer};

/// So many pieces of the stream may wait to be written.
const WAITING: usize = 16;

enum Order {
    Write { stream: Stream, bytes: Vec<u8>, at: Timestamp },
    Flush,
}

/// Writes a transcript. If it is dropped, what was handed over is still written.
#[derive(Debug)]
pub(super) struct Recorder {
    orders: mpsc::Sender<Order>,
    writing: JoinHandle<Result<(), TranscriptError>>,
}

/// The transcript can't be written on; [`Recorder::finish`] says why.
#[derive(Debug)]
pub(super) struct Broken;

impl Recorder {
    /// Begins the transcript at `path`, which must not exist.
    pub(super) fn begin(path: PathBuf, redactor: Redactor) -> Result<Self, TranscriptError> {
        let writer = Writer::masked(path, redactor, DEFAULT_MAX_BYTES)?;
        let (orders, waiting) = mpsc::channel(WAITING);
        Ok(Self { orders, writing: tokio::task::spawn_blocking(|| write(writer, waiting)) })
    }

    /// Adds what came on a stream just now.
    pub(super) async fn write(&self, stream: Stream, bytes: Vec<u8>) -> Result<(), Broken> {
        self.orders.send(Order::Write { stream, bytes, at: clock::now() }).await.map_err(|_| Broken)
    }

    /// Makes what came so far readable for others. A failure shows with the next write.
    pub(super) async fn flush(&self) {
        drop(self.orders.send(Order::Flush).await);
    }

    /// Waits until everything is written, or says why that can't be.
    pub(super) async fn finish(self) -> Result<(), TranscriptError> {
        drop(self.orders);
        match self.writing.await {
            Ok(result) => result,
            Err(error) => std::panic::resume_unwind(
                error.try_into_panic().unwrap_or_else(|error| Box::new(format!("the runtime ended: {error}"))),
            ),
        }
    }
}

fn write(mut writer: Writer, mut orders: mpsc::Receiver<Order>) -> Result<(), TranscriptError> {
    while let Some(order) = orders.blocking_recv() {
        match order {
            Order::Write { stream, bytes, at } => writer.write(stream, &bytes, at)?,
            Order::Flush => writer.flush(clock::now())?,
        }
    }
    writer.finish(clock::now()).map(drop)
}
