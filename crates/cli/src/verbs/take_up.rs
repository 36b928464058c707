//! Whether an unfinished run is gone on with. On a terminal it is asked, with what there is to know; elsewhere it follows
//! from the flags, and is said.

use std::io::{self, BufRead as _, IsTerminal as _};
use std::path::PathBuf;

use ralphloop_core::ids::StoryId;
use ralphloop_core::outcome::Outcome;
use ralphloop_core::policy;
use ralphloop_core::run::{Activity, Attempt, Phase, Run, StoryState};
use ralphloop_engine::git::{FindingKind, Severity, attempt_ref};
use ralphloop_engine::journal::JournalError;
use ralphloop_engine::runs::{RunFolder, StateFolder};
use ralphloop_engine::settings::{OnDirty, Settings};
use ralphloop_engine::start::{self, Place, TakingUp, WorkReading};

use super::launch::Prepared;
use super::{repository, spec, trust};
use crate::arguments::ViewArguments;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::{self, HEAD, count, one_line, styled};
use crate::view::status::{RunState, outcome_text};
use crate::view::summary;

/// Changed files that are named; more are counted.
const NAMED: usize = 5;

/// What the flags say.
#[derive(Debug, Clone)]
pub(crate) enum Wish {
    /// Nothing: an unfinished run of the same work is gone on with, or not.
    Open,
    /// To go on with one, if there is one.
    Resume,
    /// To begin a new one.
    Fresh,
    /// This one.
    Run(RunFolder),
    /// This one, to try a story of it again.
    Retry(RunFolder, StoryId),
}

/// Whoever answers before a run begins.
pub(crate) trait Asker: Send {
    /// Tells what there is to know before the next question.
    fn tell(&mut self, text: &str);
    /// Asks until one of the answers is given, by its letter; the first is the usual one, the last that of nobody.
    fn ask(&mut self, question: &str, answers: &[(char, &str)]) -> Result<char, CliError>;
}

/// Decides how the work is taken up; nothing is started if that is not wanted. Without an asker there is nobody to ask.
pub(crate) async fn decide(
    wish: Wish,
    mut asker: Option<&mut dyn Asker>,
    prepared: &mut Prepared,
    place: &Place,
) -> Result<Option<TakingUp>, CliError> {
    if !may_begin(again(&mut asker), prepared, place)? {
        return Ok(None);
    }
    let state = StateFolder::of(&place.repository.places().common_dir);
    let (folder, run) = match wish {
        Wish::Fresh => return Ok(clean_tree(asker, &mut prepared.settings, place).await?.then_some(TakingUp::Never)),
        Wish::Retry(folder, story) => {
            let run = folder.fold().map_err(|error| repository::damaged(&error))?.run;
            // What an interrupted attempt left cannot be told from changes, and is kept and put back.
            let ready = run.attempts().len() > 0 || clean_tree(asker, &mut prepared.settings, place).await?;
            return Ok(ready.then_some(TakingUp::Retry(folder, story)));
        }
        Wish::Run(folder) => {
            let run = folder.fold().map_err(|error| repository::damaged(&error))?.run;
            (folder, run)
        }
        Wish::Open | Wish::Resume => {
            let unfinished = start::unfinished_run(&state, &prepared.work);
            match unfinished.map_err(|error| spec::not_started(&error, &prepared.work))? {
                Some(found) => found,
                None => {
                    return Ok(clean_tree(asker, &mut prepared.settings, place).await?.then_some(TakingUp::Unfinished));
                }
            }
        }
    };
    // One that is at work is refused, with who works on it; one that is finished, with its end.
    if folder.live_process().is_some() || matches!(run.activity(), Activity::Ended(Outcome::Complete)) {
        return Ok(Some(TakingUp::Run(folder)));
    }
    let facts = Facts::of(&folder, &run, place).await;
    let Some(asker) = asker.as_mut() else {
        output::talk(&format!("going on with {}\n", facts.in_one_line()));
        return Ok(Some(TakingUp::Run(folder)));
    };
    asker.tell(&facts.text());
    let answers = [
        ('r', "resume: go on with it"),
        ('n', "begin a new run of what is left"),
        ('s', "show its summary first"),
        ('q', "quit, and leave everything as it is"),
    ];
    loop {
        match asker.ask("Go on?", &answers)? {
            's' => asker.tell(&summary::text(&run, None)),
            'n' => return Ok(Some(TakingUp::Never)),
            // Whether changes are an interrupted attempt's cannot be told, so that all of them are kept and put back.
            'r' if !facts.under_way.is_empty() => return Ok(Some(TakingUp::Run(folder))),
            'r' => {
                let clean = clean_tree(Some(&mut **asker), &mut prepared.settings, place).await?;
                return Ok(clean.then_some(TakingUp::Run(folder)));
            }
            _ => return Ok(None),
        }
    }
}

/// Whether the commands that the repository and the work bring may be run.
pub(crate) fn may_begin(
    asker: Option<&mut dyn Asker>,
    prepared: &mut Prepared,
    place: &Place,
) -> Result<bool, CliError> {
    // Of a work that cannot be read nothing is judged: it is not run.
    prepared.judged = WorkReading::of(&prepared.work).ok();
    let plan = prepared.judged.as_ref().map(WorkReading::plan);
    let brought = trust::brought(&prepared.config, plan, &prepared.work.project);
    trust::may_begin(&prepared.config, &brought, &place.repository.places().common_dir, asker)
}

/// The same asker, who is asked again later.
pub(crate) fn again<'a>(asker: &'a mut Option<&mut dyn Asker>) -> Option<&'a mut dyn Asker> {
    asker.as_mut().map(|asker| &mut **asker as &mut dyn Asker)
}

/// The journal of a run is damaged or gone: a new run of the same work can be begun.
pub(crate) fn instead_of_damaged(
    folder: &RunFolder,
    error: &JournalError,
    asker: Option<&mut dyn Asker>,
) -> Result<bool, CliError> {
    let Some(asker) = asker.filter(|_| !matches!(error, JournalError::Newer { .. })) else {
        return Err(repository::damaged(error));
    };
    asker.tell(&format!(
        "{} cannot be gone on with: {}\n  what it landed stays, and what an interrupted attempt left is kept and put back first\n",
        styled(HEAD, &format!("Run {}", folder.id)),
        one_line(&error.to_string())
    ));
    let answers = [('n', "begin a new run of the same work"), ('q', "quit, and leave everything as it is")];
    Ok(asker.ask("Begin anew?", &answers)? == 'n')
}

/// How the program ends if nothing is started because that was chosen.
pub(crate) fn left_alone() -> Exit {
    output::talk("nothing was started\n");
    Exit::PERSON
}

/// Who can be asked on this terminal, if anybody can.
pub(crate) fn on_terminal(asks: bool) -> Option<Terminal> {
    asks.then_some(Terminal)
}

/// Whether there is somebody to ask.
pub(crate) fn can_ask(view: ViewArguments) -> bool {
    // Who asks for the screen by name wants to see it, not a question before it.
    !view.json && !view.headless && !view.tui && io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// What there is to know before a run is gone on with.
struct Facts {
    heading: String,
    stories: String,
    /// The attempts under way, what they were doing, and where what they left will be kept.
    under_way: Vec<String>,
    left: Vec<PathBuf>,
    nothing_left: bool,
}

impl Facts {
    async fn of(folder: &RunFolder, run: &Run, place: &Place) -> Self {
        let state = RunState::of(run, false);
        let how = match run.activity() {
            Activity::Ended(outcome) => outcome_text(outcome),
            _ => "it was cut off, and its process is gone".to_owned(),
        };
        let is_open = |state: &StoryState| matches!(state, StoryState::Pending | StoryState::Running);
        let stories = |wanted: &dyn Fn(&StoryState) -> bool| run.records().filter(|(_, r)| wanted(&r.state)).count();
        let (passed, open) = (stories(&StoryState::passed), stories(&is_open));
        let say = |attempt: &Attempt| {
            let doing = match attempt.phase {
                Phase::Checking(_) => "its checks were cut short".to_owned(),
                _ => one_line(&ralphloop_tui::doing(attempt, run)),
            };
            let kept = attempt_ref(run.id(), &attempt.id);
            format!(
                "{} was under way ({doing}): what it left in the tree is kept at {kept} and put back, then its story is tried again",
                one_line(&attempt.id.to_string())
            )
        };
        let under_way: Vec<String> = run.attempts().map(say).collect();
        let mut left = Vec::new();
        for attempt in run.attempts() {
            left.extend(changed(&folder.checkpoint_name(&attempt.id), place).await);
        }
        Self {
            heading: format!("run {} of {} ({}): {}", run.id(), run.plan().work, state.as_str(), how),
            stories: format!(
                "{passed} of {} passed, {open} left to do",
                count(run.records().count(), "story", "stories")
            ),
            nothing_left: open == 0 && under_way.is_empty(),
            under_way,
            left,
        }
    }

    fn text(&self) -> String {
        let mut text = format!("{}\n  {}\n", styled(HEAD, &one_line(&self.heading)), one_line(&self.stories));
        if self.nothing_left {
            text.push_str(
                "  nothing is left to do in it: going on gives stories that failed or are blocked another chance\n",
            );
        }
        for under_way in &self.under_way {
            text.push_str(&format!("  {under_way}\n"));
        }
        if !self.left.is_empty() {
            text.push_str(&format!("  changed since its checkpoint: {}\n", named(&self.left)));
        }
        text
    }

    fn in_one_line(&self) -> String {
        let under_way: String = self.under_way.iter().map(|text| format!("; {text}")).collect();
        format!("{}; {}{under_way}", one_line(&self.heading), self.stories)
    }
}

/// The files that differ from a checkpoint; none if that cannot be told.
async fn changed(checkpoint: &str, place: &Place) -> Vec<PathBuf> {
    let Ok(Some(checkpoint)) = place.repository.find_checkpoint(checkpoint).await else { return Vec::new() };
    let inspection = place.repository.inspect(&checkpoint).await;
    inspection.map(|seen| seen.changes.into_iter().map(|change| change.path).collect()).unwrap_or_default()
}

fn named(paths: &[PathBuf]) -> String {
    let mut text: Vec<String> = paths.iter().take(NAMED).map(|path| one_line(&path.display().to_string())).collect();
    if paths.len() > NAMED {
        text.push(format!("and {} more", paths.len() - NAMED));
    }
    text.join(", ")
}

/// Asks what becomes of uncommitted changes of the user, if there are any; whether the tree is ready now. Without anybody
/// to ask, the start says what is wrong.
async fn clean_tree(asker: Option<&mut dyn Asker>, settings: &mut Settings, place: &Place) -> Result<bool, CliError> {
    let Some(asker) = asker else { return Ok(true) };
    if settings.on_dirty == OnDirty::Worktree || settings.place == policy::Place::Worktrees {
        return Ok(true);
    }
    loop {
        let findings = place.repository.preflight().await;
        let findings = findings.map_err(|error| CliError::environment(error.to_string()))?;
        let mut refusals = findings.iter().filter(|finding| finding.severity == Severity::Refusal);
        // Whatever else is wrong is told by the start, with the command that mends it.
        let (Some(dirty), None) = (refusals.next(), refusals.next()) else { return Ok(true) };
        if dirty.kind != FindingKind::Dirty {
            return Ok(true);
        }
        asker.tell(&format!("{}\n", one_line(&dirty.message)));
        let answers = [
            ('a', "look again: they are committed or set aside now"),
            ('c', "commit them to the current branch, as they are"),
            ('w', "leave them, and let the agent work in a worktree without them"),
            ('q', "quit, and leave everything as it is"),
        ];
        match asker.ask("What becomes of them?", &answers)? {
            'a' => {}
            'c' => {
                if let Some(why) = commit(place).await? {
                    asker.tell(&format!("git did not commit them: {why}\n"));
                }
            }
            'w' => {
                settings.on_dirty = OnDirty::Worktree;
                return Ok(true);
            }
            _ => return Ok(false),
        }
    }
}

/// Commits what is tracked and changed, through the user's own hooks. Why git did not, if it did not.
async fn commit(place: &Place) -> Result<Option<String>, CliError> {
    let git = place.repository.git();
    let message = "--message=Work in progress";
    let answer =
        git.commit(&place.repository.places().top).args(["commit", "--quiet", "--all", message]).answer().await;
    match answer {
        Ok(answer) => Ok((!answer.success()).then(|| answer.message())),
        Err(error) => Err(CliError::environment(error.to_string())),
    }
}

/// Asks on the terminal, line by line.
#[derive(Debug)]
pub(crate) struct Terminal;

impl Asker for Terminal {
    fn tell(&mut self, text: &str) {
        output::talk(text);
    }

    fn ask(&mut self, question: &str, answers: &[(char, &str)]) -> Result<char, CliError> {
        let (Some((usual, _)), Some((nobody, _))) = (answers.first(), answers.last()) else {
            return Err(CliError::usage("there is nothing to answer"));
        };
        for (letter, means) in answers {
            output::talk(&format!("  [{letter}] {means}\n"));
        }
        loop {
            output::talk(&format!("{question} [{usual}] "));
            let mut line = String::new();
            let read = io::stdin().lock().read_line(&mut line);
            if read.map_err(|error| CliError::environment("the answer could not be read").cause(&error))? == 0 {
                output::talk("\n");
                return Ok(*nobody);
            }
            match line.trim().chars().next().map(|letter| letter.to_ascii_lowercase()) {
                None => return Ok(*usual),
                Some(letter) if answers.iter().any(|(known, _)| *known == letter) => return Ok(letter),
                Some(_) => {}
            }
        }
    }
}
