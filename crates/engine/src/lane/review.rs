//! A reviewer looks at proven work: in an empty folder, since all that it is to see stands in its prompt.

use std::path::Path;

use ralphloop_agent::client::Agent;
use ralphloop_agent::prompt::review::{self, ReviewInput};
use ralphloop_core::event::Fact;
use ralphloop_core::evidence::{AgentEnd, AgentReport};
use ralphloop_core::ids::AttemptId;
use ralphloop_core::plan::Story;
use ralphloop_core::review::{Opinion, ReviewReport, opinion};
use ralphloop_core::run::Run;
use tokio_util::sync::CancellationToken;

use super::agent::{Site, With, carry_out, gone};
use super::{Parts, tree};
use crate::git;
use crate::settings::Settings;
use crate::transcript;

/// A review, with all that it needs of the run.
pub(super) struct Review {
    round: u32,
    with: With,
    story: Option<Story>,
    earlier: Vec<String>,
    passed: Vec<String>,
}

impl Review {
    /// The review of an attempt's work.
    pub(super) fn of(
        (attempt, round): (&AttemptId, u32),
        (earlier, passed): (Vec<String>, Vec<String>),
        run: &Run,
        settings: &Settings,
        project: &Path,
    ) -> Self {
        let agent: &Agent = settings.reviewer.as_ref().unwrap_or(settings.agents.first());
        let with = With::of(agent.clone().away_from(project), run, settings);
        Self { round, with, story: run.plan().story(&attempt.story).cloned(), earlier, passed }
    }
}

pub(super) async fn run(parts: &Parts, attempt: AttemptId, review: Review, cancel: CancellationToken) {
    let (round, agent) = (review.round, review.with.agent.id());
    let report = match look(parts, &attempt, &review, cancel).await {
        Ok(report) => report,
        // It says nothing of the work, and is no objection.
        Err(message) => report_of(gone(AgentEnd::Internal { message }), "", false),
    };
    parts.shared.say(Fact::ReviewEnded { attempt, round, agent, report: Box::new(report) });
}

async fn look(
    parts: &Parts,
    attempt: &AttemptId,
    review: &Review,
    cancel: CancellationToken,
) -> Result<ReviewReport, String> {
    let story = review.story.as_ref().ok_or_else(|| format!("the plan has no story {}", attempt.story))?;
    let diff = parts.shared.redact_text(&diff(parts, attempt).await?);
    let (passed, earlier) = (&review.passed, &review.earlier);
    let prompt = review::build(&ReviewInput { story, diff: &diff, passed, earlier }).map_err(|e| e.to_string())?;
    let before = parts.repository.tree_id().await.map_err(|e| e.to_string())?;
    let mut scratch = tempfile::Builder::new();
    scratch.prefix("ralphloop-review-");
    // Who is confined sees the lane's temporary files and no others.
    let scratch = match &parts.shared.sandbox {
        Some(_) => scratch.tempdir_in(&parts.temporary),
        None => scratch.tempdir(),
    };
    let scratch = scratch.map_err(|e| e.to_string())?;
    let site = Site {
        attempt,
        folder: scratch.path(),
        transcript: transcript::path_of_review(parts.shared.folder.path(), attempt, review.round),
        heard_as: None,
        started: Fact::ReviewStarted { attempt: attempt.clone(), round: review.round, agent: review.with.agent.id() },
    };
    let (report, message) = carry_out(parts, &review.with, &prompt, site, cancel).await;
    let after = parts.repository.tree_id().await.map_err(|e| e.to_string())?;
    Ok(report_of(report, &parts.shared.redact_text(&message), before != after))
}

fn report_of(report: AgentReport, message: &str, touched: bool) -> ReviewReport {
    let opinion = match report.end {
        AgentEnd::Finished => opinion(message),
        _ => Opinion::Unclear { said: String::new() },
    };
    ReviewReport { end: report.end, opinion, usage: report.usage, took: report.took, model: report.model, touched }
}

/// What the attempt has changed, as a patch.
async fn diff(parts: &Parts, attempt: &AttemptId) -> Result<String, String> {
    let checkpoint = tree::load(parts, attempt).await?;
    let reference = format!("{}-review", git::attempt_ref(&parts.shared.folder.id, attempt));
    let kept = parts.repository.keep(&checkpoint, &reference, "what a reviewer sees").await;
    let kept = kept.map_err(|e| e.to_string())?;
    let patch = parts.repository.diff(kept.commit.as_str()).await.map_err(|e| e.to_string());
    parts.repository.let_go(&reference).await.map_err(|e| e.to_string())?;
    let mut patch = String::from_utf8_lossy(&patch?).into_owned();
    for path in kept.not_kept {
        patch.push_str(&format!("\n[{} changed too; it is too large to be shown]\n", path.display()));
    }
    Ok(patch)
}
