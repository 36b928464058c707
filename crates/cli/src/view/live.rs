//! A run on a terminal: what happened, line by line, and below it one line that is written over in place and says what
//! happens now. It is a courtesy: nothing is told only there.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use anstyle::{AnsiColor, Style};
use ralphloop_agent::event::AgentEvent;
use ralphloop_agent::plan;
use ralphloop_core::event::{Event, Fact};
use ralphloop_core::evidence::{CheckResult, Usage};
use ralphloop_core::run::{Activity, Run, StoryState};
use ralphloop_engine::notice::TalkNotice;
use tokio::sync::mpsc::{Receiver, UnboundedReceiver};

use super::{clock, lines, rfc3339, whole_span};
use crate::output::{self, BAD, DIM, GOOD, WARN, one_line, styled};

/// How often the time in the line moves.
const TICK: Duration = Duration::from_secs(1);
/// The width of a terminal that does not tell its own.
const USUAL_WIDTH: usize = 80;
/// The line at the bottom.
const NOW: Style = AnsiColor::Cyan.on_default();

/// Whether the standard error is a terminal that can write over a line.
pub(crate) fn possible() -> bool {
    io::stderr().is_terminal() && std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb")
}

/// Shows a run until its last event; `run` is the run after `first`.
pub(crate) async fn watch(
    first: &Event,
    mut run: Run,
    mut state: UnboundedReceiver<Event>,
    mut talk: Receiver<TalkNotice>,
) {
    let mut live = Live::new(&run);
    live.event(first, &run);
    let mut tick = tokio::time::interval(TICK);
    loop {
        tokio::select! {
            biased;
            event = state.recv() => {
                let Some(event) = event else { break };
                drop(run.step(&event));
                live.event(&event, &run);
            }
            Some(notice) = talk.recv() => live.talk(notice),
            _ = tick.tick() => live.draw(&run),
        }
    }
    live.erase();
}

struct Live {
    began: Instant,
    /// How long the run had been at work before.
    before: Duration,
    /// What the present call of the agent has used so far.
    call: Usage,
    /// What the agent does just now: a tool call, another try.
    doing: Option<String>,
    /// What the agent plans, in brief.
    plan: Option<String>,
    drawn: bool,
}

impl Live {
    fn new(run: &Run) -> Self {
        let before = run.active_time();
        Self { began: Instant::now(), before, call: Usage::default(), doing: None, plan: None, drawn: false }
    }

    fn event(&mut self, event: &Event, run: &Run) {
        self.doing = None;
        if matches!(event.fact, Fact::AgentEnded { .. }) {
            self.call = Usage::default();
            self.plan = None;
        }
        let time = styled(DIM, &clock(event.at));
        let style = style(event, run);
        let text: String = lines::of(event, run)
            .iter()
            .map(|line| {
                let style = if line.starts_with(lines::OUTPUT) { DIM } else { style };
                format!("{time}  {}\n", styled(style, line))
            })
            .collect();
        if !text.is_empty() {
            self.erase();
            output::talk(&text);
        }
        self.draw(run);
    }

    fn talk(&mut self, notice: TalkNotice) {
        match notice.event {
            AgentEvent::Usage { so_far } => self.call = so_far,
            AgentEvent::ToolStarted { name, input, .. } => self.doing = Some(one_line(&format!("{name} {input}"))),
            AgentEvent::Plan { steps } => self.plan = Some(one_line(&plan::in_brief(&steps))),
            AgentEvent::Retrying { attempt, of, why, .. } => {
                self.doing = Some(one_line(&format!("tries again ({attempt} of {of}): {why}")));
            }
            _ => {}
        }
    }

    fn draw(&mut self, run: &Run) {
        self.erase();
        let text = output::cut(&self.text(run), width().saturating_sub(1));
        if !text.is_empty() {
            output::talk(&styled(NOW, &text));
            self.drawn = true;
        }
    }

    /// Takes the line away. The terminal alone knows what to do with the codes, so that they go past the stream that
    /// takes colours out.
    fn erase(&mut self) {
        if std::mem::take(&mut self.drawn) {
            let mut terminal = io::stderr().lock();
            // If nobody can see it any more, that is no reason to stop.
            drop(terminal.write_all(b"\r\x1b[2K").and_then(|()| terminal.flush()));
        }
    }

    /// What matters most stands first: a narrow terminal cuts the end.
    fn text(&self, run: &Run) -> String {
        let mut attempts = run.attempts();
        let (place, what) = match (run.activity(), attempts.len()) {
            (Activity::Ended(_), _) => return String::new(),
            (_, 1) => {
                let Some(attempt) = attempts.next() else { return String::new() };
                let stories = &run.plan().stories;
                let at = stories.iter().position(|story| story.id == attempt.id.story);
                let title = at.and_then(|at| stories.get(at)).map(|story| one_line(&story.title)).unwrap_or_default();
                let doing = self.doing.as_ref().map_or_else(String::new, |doing| format!(": {doing}"));
                let place = format!("story {} of {}", at.map_or(0, |at| at + 1), stories.len());
                let plan = self.plan.as_ref().map_or_else(String::new, |plan| format!(" · plan: {plan}"));
                (place, format!("{title} · {}{doing}{plan}", one_line(&ralphloop_tui::doing(attempt, run))))
            }
            (_, several @ 2..) => {
                let each = attempts
                    .map(|a| format!("{}: {}", one_line(a.id.story.as_str()), one_line(&ralphloop_tui::doing(a, run))));
                (format!("{several} stories at once"), each.collect::<Vec<_>>().join(" · "))
            }
            (Activity::Waiting(wait), _) => {
                ("waiting".to_owned(), format!("until {}: {}", rfc3339(wait.until), one_line(&wait.reason)))
            }
            (Activity::CheckingPlan | Activity::Working, _) => ("between stories".to_owned(), String::new()),
            (Activity::Ending(_), _) => return String::new(),
        };
        let stopping = if run.stopping() { " · stopping after this attempt" } else { "" };
        let cost = run.usage().plus(self.call).money().map_or_else(String::new, |cost| format!(" · {cost}"));
        let time = whole_span(self.before + self.began.elapsed());
        let what = if what.is_empty() { String::new() } else { format!(" · {what}") };
        format!("{place} · {time}{cost}{stopping}{what}")
    }
}

/// Green for what was proven, red for what failed, yellow for what waits for somebody.
fn style(event: &Event, run: &Run) -> Style {
    match &event.fact {
        Fact::Landed { .. } | Fact::CheckFinished { result: CheckResult::Passed, .. } => GOOD,
        Fact::CheckFinished { .. }
        | Fact::NoFixTask { .. }
        | Fact::LandingRefused { .. }
        | Fact::LandingFailed { .. }
        | Fact::CheckpointFailed { .. }
        | Fact::LaneFailed { .. }
        | Fact::MergeFailed { .. }
        | Fact::LandingBlocked { .. }
        | Fact::Trespassed { .. }
        | Fact::RepositoryBroken { .. }
        | Fact::RevertFailed { .. } => BAD,
        Fact::Reverted { attempt, .. } => match run.record(&attempt.story).map(|record| &record.state) {
            Some(StoryState::Failed) => BAD,
            _ => WARN,
        },
        Fact::FixTaskAdded { .. }
        | Fact::StopRequested { .. }
        | Fact::PauseRequested
        | Fact::SkipRequested { .. }
        | Fact::RetryRequested { .. } => WARN,
        _ => Style::new(),
    }
}

fn width() -> usize {
    rustix::termios::tcgetwinsize(io::stderr())
        .ok()
        .map(|size| usize::from(size.ws_col))
        .filter(|columns| *columns > 0)
        .unwrap_or(USUAL_WIDTH)
}
