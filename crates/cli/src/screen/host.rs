//! What the screen asks for is done here, beside it: nothing of it is waited for by the screen.

use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::time::Duration;

use ralphloop_engine::control;
use ralphloop_engine::journal;
use ralphloop_engine::runs::RunFolder;
use ralphloop_engine::start::Place;
use ralphloop_tui::{Msg, Request};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;

use super::ending;
use super::sheets::Sheets;

/// How often the journal is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// Every so many looks it is asked whether the run's process is alive.
const ALIVE: u32 = 5;

/// What is needed to answer.
#[derive(Debug, Clone)]
pub(super) struct Host {
    pub(super) folder: RunFolder,
    pub(super) place: Place,
    /// The folder that the program was called in.
    pub(super) cwd: PathBuf,
    pub(super) sheets: Sheets,
    pub(super) screen: Sender<Msg>,
}

impl Host {
    /// Tells the screen what the journal tells, until it is gone.
    pub(super) async fn tell(self) {
        let mut place = journal::Place::default();
        let path = self.folder.journal();
        let mut looks = tokio::time::interval(LOOK_AGAIN);
        let mut alive = None;
        for look in 0_u32.. {
            looks.tick().await;
            // Asked first: what a process wrote before it ended is not missed.
            let now = look.is_multiple_of(ALIVE).then(|| self.folder.live_process().is_some());
            match journal::read_after(&path, &mut place) {
                Ok(events) => {
                    for event in events {
                        if self.screen.send(Msg::Event(Box::new(event))).is_err() {
                            return;
                        }
                    }
                }
                Err(error) => return drop(self.screen.send(Msg::Note(error.to_string()))),
            }
            if now.is_some() && now != alive {
                alive = now;
                drop(self.screen.send(Msg::Alive(now == Some(true))));
            }
        }
    }

    /// Does what is asked for, until the screen is gone.
    pub(super) async fn serve(self, mut asked: UnboundedReceiver<Request>) {
        let mut tasks = JoinSet::new();
        loop {
            tokio::select! {
                request = asked.recv() => match request {
                    Some(request) => drop(tasks.spawn(self.clone().answer(request))),
                    None => break,
                },
                Some(_) = tasks.join_next() => {}
            }
        }
        // What was asked of the run still gets there.
        while tasks.join_next().await.is_some() {}
    }

    async fn answer(self, request: Request) {
        let msg = match request {
            Request::Stop(_) => self.ask(control::Request::Stop { now: true }, None).await,
            Request::Hurry => self.ask(control::Request::Hurry, None).await,
            Request::Pause => {
                let said = "the run pauses after the present attempt; `ralphloop resume` goes on";
                self.ask(control::Request::Pause, Some(said)).await
            }
            Request::Guide(text) => self.ask(control::Request::Guide { text }, Some("noted for the next prompt")).await,
            Request::MakeSheet(id) => Some(self.sheets.make(id, &self.folder, &self.place.repository).await),
            Request::ReadSheet { id, version, chunk } => self.sheets.read(id, version, chunk),
            Request::Offers => Some(Msg::Offers(match self.folder.fold() {
                Ok(folded) => ending::offers(&folded.run, &self.place, &self.cwd).await,
                Err(_) => Vec::new(),
            })),
            Request::Do(gesture) => {
                let said = match self.folder.fold() {
                    Ok(folded) => ending::carry_out(gesture, &folded.run, &self.place, &self.cwd).await,
                    Err(error) => Err(error.to_string()),
                };
                Some(Msg::Done { gesture, said })
            }
            _ => None,
        };
        if let Some(msg) = msg {
            drop(self.screen.send(msg));
        }
    }

    async fn ask(&self, request: control::Request, said: Option<&str>) -> Option<Msg> {
        match control::ask(&self.folder.id, self.folder.path(), &request).await {
            Ok(()) => said.map(|said| Msg::Said(said.to_owned())),
            Err(error) => Some(Msg::Said(error.to_string())),
        }
    }
}
