//! What attempts came to, over all runs of the repository: a line each, from which `--choose` ranks agents. It is derived
//! data: whoever deletes it loses experience alone, and a line that cannot be read is passed over.

use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use ralphloop_core::choice::{ALONE, Difficulty, Evidence, orders};
use ralphloop_core::event::Fact;
use ralphloop_core::ids::{AgentId, AttemptId};
use ralphloop_core::run::Run;
use ralphloop_core::units::Timestamp;

use crate::files::{self, Access};
use crate::runs::StateFolder;

/// How much of the file is read, from its end: some thousands of outcomes; what is older no longer counts for anything.
const READ: u64 = 1 << 20;
/// A file that is longer is cut to its end.
const LONGEST: u64 = 4 << 20;

/// The outcomes of the attempts in a repository.
#[derive(Debug, Clone)]
pub struct Outcomes {
    path: PathBuf,
}

/// Who works on an attempt, before a fact that may decide about it.
#[derive(Debug)]
pub struct Undecided {
    attempt: AttemptId,
    workers: Vec<(String, AgentId)>,
    charged: u32,
}

impl Outcomes {
    /// Those kept in that folder.
    pub fn of(state: &StateFolder) -> Self {
        Self::at(state.path())
    }

    fn at(folder: &Path) -> Self {
        Self { path: folder.join("outcomes.jsonl") }
    }

    /// Where they are kept.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is known, the oldest first, and how many lines could not be read.
    pub fn read(&self) -> (Vec<Evidence>, usize) {
        let text = self.end().unwrap_or_default();
        let mut unread = 0;
        let read = |line: &[u8]| {
            let read = serde_json::from_slice(line).ok();
            unread += usize::from(read.is_none());
            read
        };
        let evidence = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).filter_map(read).collect();
        (evidence, unread)
    }

    /// The last whole lines of the file.
    fn end(&self) -> std::io::Result<Vec<u8>> {
        let mut file = std::fs::File::open(&self.path)?;
        let from = file.metadata()?.len().saturating_sub(READ);
        file.seek(SeekFrom::Start(from))?;
        let mut text = Vec::new();
        file.take(READ).read_to_end(&mut text)?;
        if from > 0 {
            let whole = text.iter().position(|byte| *byte == b'\n').map_or(text.len(), |end| end + 1);
            text.drain(..whole);
        }
        Ok(text)
    }

    /// The order for each difficulty in which the evidence would have these agents tried.
    pub fn orders(&self, agents: &[AgentId], now: Timestamp) -> Vec<(Difficulty, Vec<AgentId>)> {
        orders(agents, &self.read().0, now).into()
    }

    /// What is to be remembered of the attempt before a fact that may end it.
    pub(crate) fn before(run: &Run, fact: &Fact) -> Option<Undecided> {
        let (Fact::Landed { attempt, .. } | Fact::Reverted { attempt, .. }) = fact else { return None };
        let under_way = run.attempt(attempt)?;
        let workers = match under_way.runners() {
            [] => under_way.agent.iter().map(|agent| (ALONE.to_owned(), agent.clone())).collect(),
            runners => runners.to_vec(),
        };
        let charged = run.record(&attempt.story).map_or(0, |record| record.charged);
        Some(Undecided { attempt: attempt.clone(), workers, charged })
    }

    /// Notes what the attempt came to, if that says anything of its agents.
    pub(crate) fn note(&self, before: &Undecided, run: &Run, at: Timestamp) -> std::io::Result<()> {
        let story = &before.attempt.story;
        let (Some(record), Some(asked)) = (run.record(story), run.plan().story(story)) else { return Ok(()) };
        let landed = record.state.commit().is_some();
        if !landed && record.charged <= before.charged {
            return Ok(());
        }
        let difficulty = Difficulty::of(asked);
        let mut lines = String::new();
        for (role, agent) in &before.workers {
            let one = Evidence { at, agent: agent.clone(), role: role.clone(), difficulty, landed };
            lines.push_str(&serde_json::to_string(&one)?);
            lines.push('\n');
        }
        self.append(lines.as_bytes())
    }

    fn append(&self, lines: &[u8]) -> std::io::Result<()> {
        if std::fs::metadata(&self.path).is_ok_and(|known| known.len() > LONGEST) {
            let rest = self.end()?;
            files::write_derived(&self.path, &rest, Access::Private).map_err(std::io::Error::other)?;
        }
        let mut options = std::fs::OpenOptions::new();
        let mut file = options.append(true).create(true).read(true).mode(0o600).open(&self.path)?;
        // A line that was torn by a kill is closed, so that the next is whole.
        let mut last = [b'\n'];
        if file.metadata()?.len() > 0 {
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
        }
        let torn: &[u8] = if last == [b'\n'] { b"" } else { b"\n" };
        file.write_all(&[torn, lines].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_torn_or_no_outcome_is_passed_over_and_the_next_line_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let outcomes = Outcomes::at(folder.path());
        assert_eq!(outcomes.read(), (Vec::new(), 0));
        let one = Evidence {
            at: Timestamp(7),
            agent: "claude:opus".into(),
            role: ALONE.to_owned(),
            difficulty: Difficulty::Hard,
            landed: true,
        };
        let line = serde_json::to_string(&one).unwrap();
        std::fs::write(outcomes.path(), format!("{line}\n\u{0}\u{1}\n{{\"at\":1}}\n{}", &line[..9])).unwrap();
        outcomes.append(format!("{line}\n").as_bytes()).unwrap();
        assert_eq!(outcomes.read(), (vec![one.clone(), one], 3));
    }

    #[test]
    fn a_file_without_end_is_read_from_its_end_and_cut() {
        let folder = tempfile::tempdir().unwrap();
        let outcomes = Outcomes::at(folder.path());
        let line = "{\"at\":7,\"agent\":\"a\",\"role\":\"work\",\"difficulty\":\"easy\",\"landed\":false}\n";
        std::fs::write(outcomes.path(), line.repeat(5 << 20 >> 6)).unwrap();
        let (evidence, unread) = outcomes.read();
        assert!(evidence.len() > 1000 && unread == 0, "{} {unread}", evidence.len());
        outcomes.append(line.as_bytes()).unwrap();
        assert!(std::fs::metadata(outcomes.path()).unwrap().len() <= READ + 100);
    }
}
