//! What is printed at every end of a run: how it ended, what passed, what did not and why, what it took, where the
//! work is, and what a person should do next.

use std::fmt::Write as _;

use ralphloop_core::outcome::Outcome;
use ralphloop_core::plan::Scheme;
use ralphloop_core::run::{Activity, Run, StoryRecord, StoryState};

use super::lines;
use super::status::{outcome_text, worked};
use super::{branch_name, rfc3339, short};
use crate::output::{BAD, GOOD, HEAD, WARN, count, one_line, styled};

/// The summary of a run that has ended, or whose process ends now.
/// `offer` says what closing the work would do: it is offered where every story of it has passed.
pub(crate) fn text(run: &Run, offer: Option<&str>) -> String {
    let mut out = String::new();
    let outcome = match run.activity() {
        Activity::Ended(outcome) | Activity::Ending(outcome) => Some(outcome),
        _ => None,
    };
    let how = outcome.map_or_else(|| "interrupted".to_owned(), outcome_text);
    let style = match outcome {
        Some(Outcome::Complete) => GOOD,
        Some(Outcome::Failed | Outcome::Environment { .. }) => BAD,
        _ => WARN,
    };
    let _ = writeln!(out, "{} {}: {}", styled(HEAD, "Run"), run.id(), styled(style, &one_line(&how)));
    stories(run, &mut out);
    let usage = run.usage();
    let tokens = match (usage.input_tokens, usage.output_tokens) {
        (None, None) => "tokens unknown".to_owned(),
        (input, output) => format!("{} tokens in, {} out", input.unwrap_or(0), output.unwrap_or(0)),
    };
    let without = super::without_uncounted(run.uncounted_calls(), run.unpriced_calls());
    let cost = usage.money_in_words().map_or_else(|| "cost unknown".to_owned(), |c| format!("cost {c}{without}"));
    let iterations = count(usize::try_from(run.calls()).unwrap_or(usize::MAX), "iteration", "iterations");
    let _ = writeln!(out, "Took {}, {iterations}, {tokens}, {cost}.", worked(run));
    for agent in run.chain().iter().filter(|_| run.chain().len() > 1) {
        if let Some(away) = run.away(agent) {
            let _ = writeln!(out, "{}: {}", one_line(agent.as_str()), one_line(away.reason()));
        }
    }
    // What awaits a signature may have landed in an earlier run.
    let landed = |r: &StoryRecord| r.attempts > 0 && r.state.commit().is_some();
    let made = |r: &StoryRecord| usize::from(landed(r)) + usize::from(r.mended_by.is_some());
    let commits = count(run.records().map(|(_, record)| made(record)).sum(), "commit", "commits");
    let _ = writeln!(out, "Branch {}: {commits} of this run.", one_line(branch_name(run.branch())));
    for line in next_steps(run, outcome, offer) {
        let _ = writeln!(out, "{} {line}", styled(HEAD, "Next:"));
    }
    out
}

fn stories(run: &Run, out: &mut String) {
    let group = |title: &str, out: &mut String, pick: &dyn Fn(&StoryState) -> bool| {
        let chosen: Vec<_> = run.records().filter(|(_, r)| pick(&r.state)).collect();
        if chosen.is_empty() {
            return;
        }
        let _ = writeln!(out, "{} ({}):", styled(HEAD, title), chosen.len());
        for (story, record) in chosen {
            let _ = write!(out, "  {}  {}", one_line(story.id.as_str()), one_line(&story.title));
            if let (Some(commit), Some(ground)) = (record.state.commit(), record.state.ground()) {
                let _ = write!(out, "  {}{}", short(commit.as_str()), ground_text(ground));
            }
            out.push('\n');
            if !record.state.passed()
                && let Some(reason) = &record.reason
            {
                let _ = writeln!(out, "      {}", one_line(reason));
            }
            if let Some((number, reference)) = record.kept.last()
                && !record.state.is_on_branch()
            {
                let _ = writeln!(
                    out,
                    "      its work is kept: `ralphloop diff '{}#{number}'` ({reference})",
                    one_line(story.id.as_str())
                );
            }
            if let Some(reviewed) = &record.reviewed {
                let _ = writeln!(out, "      review: {}", one_line(&reviewed.to_string()));
            }
            for note in &record.notes {
                let _ = writeln!(out, "      note: {}", one_line(note));
            }
        }
    };
    group("Passed", out, &|s| matches!(s, StoryState::Landed { .. }));
    group("Awaiting sign-off", out, &|s| matches!(s, StoryState::AwaitsSignOff { .. }));
    group("Failed", out, &|s| matches!(s, StoryState::Failed));
    group("Blocked", out, &|s| matches!(s, StoryState::Blocked));
    group("Skipped", out, &|s| matches!(s, StoryState::Skipped));
    if let Some(taken_out) = lines::taken_out(run) {
        out.push_str(&format!("{taken_out}\n"));
    }
    group("Remaining", out, &|s| matches!(s, StoryState::Pending | StoryState::Running));
    let before = run.records().filter(|(_, r)| matches!(r.state, StoryState::DoneBefore)).count();
    if before > 0 {
        let _ = writeln!(out, "Done before: {before}.");
    }
}

pub(crate) fn ground_text(ground: ralphloop_core::effect::Ground) -> &'static str {
    use ralphloop_core::effect::Ground;
    match ground {
        Ground::Verified => "",
        Ground::Unverified => " (unverified: no gate and no check exists)",
        Ground::NoSignal => " (no signal, but all boxes ticked and checks passed)",
        Ground::NoChange => " (no change of files: proven by its checks)",
    }
}

fn next_steps(run: &Run, outcome: Option<&Outcome>, offer: Option<&str>) -> Vec<String> {
    let resume = format!("`ralphloop resume {}`", run.id());
    match outcome {
        Some(Outcome::Complete) => {
            let name = branch_name(run.branch());
            let mut steps =
                vec![format!("look at the commits: `git log {}..{}`", short(run.base().as_str()), one_line(name))];
            let landed = run.records().filter(|(_, r)| matches!(r.state, StoryState::Landed { .. })).count();
            let id = run.id();
            match landed {
                0 => {}
                1 => steps.push(format!("or `ralphloop pr {id}` opens a pull request")),
                _ => steps.push(format!(
                    "or `ralphloop squash {id}` makes one commit of them, `ralphloop pr {id}` opens a pull request"
                )),
            }
            let work = &run.plan().work;
            if let Some(offer) = offer.filter(|_| run.records().all(|(_, r)| r.state.passed())) {
                let by_hand = match work.scheme {
                    Scheme::OpenSpec => format!(", as `openspec archive {}` does", one_line(&work.id)),
                    _ => String::new(),
                };
                let work = one_line(&work.to_string());
                steps.push(format!("the work is done: `ralphloop run {work} --finish` {offer}{by_hand}"));
            }
            steps
        }
        Some(Outcome::Failed) => {
            vec!["read why with `ralphloop log`, mend the story or its checks, then `ralphloop run` again".to_owned()]
        }
        Some(Outcome::NothingToDo { .. }) => Vec::new(),
        Some(Outcome::Paused { .. })
            if run.records().any(|(_, r)| matches!(r.state, StoryState::AwaitsSignOff { .. })) =>
        {
            vec![format!("look at it, sign it or send it back, then {resume}")]
        }
        Some(Outcome::Paused { .. } | Outcome::Environment { .. }) => {
            vec![format!("put right what the first line says, then {resume}")]
        }
        Some(Outcome::Stopped { .. }) | None => vec![format!("{resume} goes on where it stopped")],
        Some(Outcome::BoundReached { resume_at, .. }) => match resume_at {
            Some(at) => vec![format!("{resume} after {}", rfc3339(*at))],
            None => vec![format!("{resume} with a higher bound")],
        },
    }
}
