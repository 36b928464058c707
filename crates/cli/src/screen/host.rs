//! What the screen asks for is done here, beside it: nothing of it is waited for by the screen.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use ralphloop_core::ids::AttemptId;
use ralphloop_core::run::StoryState;
use ralphloop_engine::control;
use ralphloop_engine::git::Repository;
use ralphloop_engine::journal;
use ralphloop_engine::runs::RunFolder;
use ralphloop_tui::{Msg, Request};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;

/// How often the journal is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// Every so many looks it is asked whether the run's process is alive.
const ALIVE: u32 = 5;
/// Lines of a diff beyond this are not shown.
const LONGEST_DIFF: usize = 20_000;

/// What is needed to answer.
#[derive(Debug, Clone)]
pub(super) struct Host {
    pub(super) folder: RunFolder,
    pub(super) repository: Arc<Repository>,
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
            Request::Skip(story) => self.ask(control::Request::Skip { story }, None).await,
            Request::Retry(story) => self.ask(control::Request::Retry { story }, None).await,
            Request::Guide(text) => self.ask(control::Request::Guide { text }, Some("noted for the next prompt")).await,
            Request::Diff(attempt) => {
                let lines = self.diff(&attempt).await;
                Some(Msg::Diff { attempt, lines })
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

    async fn diff(&self, attempt: &AttemptId) -> Result<Vec<String>, String> {
        let run = self.folder.fold().map_err(|error| error.to_string())?.run;
        let record = run.record(&attempt.story).ok_or("the run does not know the story any more")?;
        let bytes = if let Some(lane) = run.lane_of(attempt) {
            let worktree = self.folder.worktree(lane);
            let top: PathBuf = if worktree.exists() { worktree } else { self.repository.places().top.clone() };
            self.live(&top).await?
        } else {
            let kept = record.kept.iter().find(|(number, _)| *number == attempt.number).map(|(_, kept)| kept.clone());
            let commit = match (&record.state, kept) {
                (_, Some(kept)) => kept,
                (StoryState::Landed { commit, .. }, None) if attempt.number == record.attempts => commit.to_string(),
                _ => return Ok(Vec::new()),
            };
            self.repository.diff(&commit).await.map_err(|error| error.to_string())?
        };
        let text = String::from_utf8_lossy(&bytes);
        let mut lines: Vec<String> = text.lines().take(LONGEST_DIFF + 1).map(str::to_owned).collect();
        if lines.len() > LONGEST_DIFF {
            lines.truncate(LONGEST_DIFF);
            lines.push(format!("… longer than {LONGEST_DIFF} lines: `ralphloop diff` shows all of it"));
        }
        Ok(lines)
    }

    /// What is changed in a working tree just now; new files by name.
    async fn live(&self, top: &Path) -> Result<Vec<u8>, String> {
        let git = self.repository.git();
        let diff = ["diff", "--no-ext-diff", "--no-textconv", "--no-color", "HEAD"];
        let changed = git.read(top).args(diff).run().await.map_err(|error| error.to_string())?;
        let others = ["ls-files", "--others", "--exclude-standard"];
        let new = git.read(top).args(others).run().await.map_err(|error| error.to_string())?;
        let mut text = changed.stdout;
        for name in String::from_utf8_lossy(&new.stdout).lines() {
            text.extend(format!("diff --git new file {name}\n").bytes());
            if let Ok(content) = std::fs::read_to_string(top.join(name)) {
                text.extend(content.lines().take(LONGEST_DIFF).flat_map(|line| format!("+{line}\n").into_bytes()));
            }
        }
        Ok(text)
    }
}
