//! What the screen asks for is done here, beside it: nothing of it is waited for by the screen.

use std::path::PathBuf;
use std::time::Duration;

use ralphloop_engine::control;
use ralphloop_engine::follow::Follower;
use ralphloop_engine::journal;
use ralphloop_engine::process::Call;
use ralphloop_engine::runs::RunFolder;
use ralphloop_engine::start::Place;
use ralphloop_tui::mailbox::Sender;
use ralphloop_tui::{Msg, Request};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use super::ending;
use super::sheets::Sheets;

/// A journal that is written all the time is read this often: more could not be seen.
const LOOK_AGAIN: Duration = Duration::from_millis(25);

/// How long tmux has to take a text.
const HOLD: Duration = Duration::from_secs(5);

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
        if let Err(error) = self.try_to_tell().await {
            drop(self.screen.send(Msg::Note(error)));
        }
    }

    async fn try_to_tell(&self) -> Result<(), String> {
        let mut place = journal::Place::default();
        let path = self.folder.journal();
        let mut follower = Follower::of(&self.folder).map_err(|error| error.to_string())?;
        let mut looks = tokio::time::interval(LOOK_AGAIN);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut told = None;
        loop {
            looks.tick().await;
            // Asked first: what a process wrote before it ended is not missed.
            let alive = self.folder.live_process().is_some();
            for event in journal::read_after(&path, &mut place).map_err(|error| error.to_string())? {
                if self.screen.send(Msg::Event(Box::new(event))).is_err() {
                    return Ok(());
                }
            }
            if told != Some(alive) {
                told = Some(alive);
                drop(self.screen.send(Msg::Alive(alive)));
            }
            follower.wait().await.map_err(|error| error.to_string())?;
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
            Request::Skip(story) => self.ask(control::Request::Skip { story }, None).await,
            Request::Retry(story) => self.ask(control::Request::Retry { story }, None).await,
            Request::Guide(text) => self.ask(control::Request::Guide { text }, Some("noted for the next prompt")).await,
            Request::Hold(text) => self.hold(text).await,
            Request::MakeSheet(id) => Some(self.sheets.make(id, &self.folder, &self.place.repository).await),
            Request::ReadSheet { id, version, chunk } => self.sheets.read(id, version, chunk),
            Request::Offers => Some(Msg::Offers(match self.folder.fold() {
                Ok(folded) => ending::offers(&folded.run, &self.place, &self.cwd).await,
                Err(_) => Vec::new(),
            })),
            Request::Do(gesture) => {
                let said = match self.folder.fold() {
                    Ok(folded) => ending::carry_out(&gesture, &folded.run, &self.place, &self.cwd).await,
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

    /// tmux takes no text for the clipboard from a program that runs in it, unless it was told to; its own command is heard.
    async fn hold(&self, text: String) -> Option<Msg> {
        std::env::var_os("TMUX").filter(|name| !name.is_empty())?;
        let call = Call::new("tmux", &self.cwd).args(["load-buffer", "-w", "-"]).stdin_bytes(text).timeout(HOLD);
        // The terminal has been given it too.
        drop(self.place.spawner.run(call).await);
        None
    }

    async fn ask(&self, request: control::Request, said: Option<&str>) -> Option<Msg> {
        match control::ask(&self.folder.id, self.folder.path(), &request).await {
            Ok(()) => said.map(|said| Msg::Said(said.to_owned())),
            Err(error) => Some(Msg::Said(error.to_string())),
        }
    }
}
