//! `agents stats`: what attempts came to, and what `--choose` makes of that.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ralphloop_core::choice::{ALONE, Difficulty, Evidence, Posterior, orders};
use ralphloop_core::ids::AgentId;
use ralphloop_core::units::Timestamp;
use ralphloop_engine::clock;
use ralphloop_engine::outcomes::Outcomes;
use serde_json::{Value, json};

use super::super::{repository, settings};
use crate::config::{self, Layer};
use crate::error::CliError;
use crate::exit::Exit;
use crate::host::Host;
use crate::output::{self, one_line};

/// What is known of one agent in one role on one kind of story.
struct Row {
    agent: AgentId,
    role: String,
    difficulty: Difficulty,
    landed: usize,
    failed: usize,
    posterior: Posterior,
}

pub(super) fn stats(as_json: bool, host: &Host) -> Result<Exit, CliError> {
    let (config, warnings) = config::load(&host.cwd, &host.environment, Layer::default())?;
    for warning in warnings {
        output::warn(&warning);
    }
    let outcomes = Outcomes::of(&repository::state(host)?);
    let (evidence, unread) = outcomes.read();
    if unread > 0 {
        output::warn(&format!("{unread} lines of {} cannot be read and do not count", outcomes.path().display()));
    }
    let now = clock::now();
    let rows = rows(&evidence, now);
    let chain = settings::agents(&config)?.ids();
    let orders = orders(&chain, &evidence, now);
    if as_json {
        let by_difficulty: BTreeMap<String, Vec<&str>> = orders
            .iter()
            .map(|(difficulty, order)| (difficulty.to_string(), order.iter().map(AgentId::as_str).collect()))
            .collect();
        let rows: Vec<Value> = rows.iter().map(json_of).collect();
        output::json(&json!({ "choose": config.settings.choose, "outcomes": rows, "order": by_difficulty }))?;
    } else {
        output::data(&text(&rows))?;
        output::talk(&explained(&orders, &chain, &evidence, now, config.settings.choose));
    }
    Ok(Exit::DONE)
}

fn rows(evidence: &[Evidence], now: Timestamp) -> Vec<Row> {
    let mut counts: BTreeMap<(&AgentId, &str, Difficulty), (usize, usize)> = BTreeMap::new();
    for one in evidence {
        let (landed, failed) = counts.entry((&one.agent, &one.role, one.difficulty)).or_default();
        *(if one.landed { landed } else { failed }) += 1;
    }
    let row = |((agent, role, difficulty), (landed, failed)): ((&AgentId, &str, Difficulty), _)| Row {
        posterior: Posterior::of(evidence, (agent, role, difficulty), now),
        agent: agent.clone(),
        role: role.to_owned(),
        difficulty,
        landed,
        failed,
    };
    counts.into_iter().map(row).collect()
}

fn json_of(row: &Row) -> Value {
    json!({
        "agent": row.agent,
        "role": row.role,
        "difficulty": row.difficulty,
        "landed": row.landed,
        "failed": row.failed,
        "mean": row.posterior.mean(),
        "bound": row.posterior.bound(),
    })
}

fn text(rows: &[Row]) -> String {
    if rows.is_empty() {
        return "No attempt of an agent has landed or failed in this repository yet.\n".to_owned();
    }
    let name = |row: &Row| one_line(row.agent.as_str());
    let width = rows.iter().map(|row| name(row).len()).max().unwrap_or(0).max("agent".len());
    let role_width = rows.iter().map(|row| row.role.len()).max().unwrap_or(0).max("role".len());
    let mut text = format!("{:<width$}  {:<role_width$}  stories  landed  failed  likely  at least\n", "agent", "role");
    for row in rows {
        let (mean, bound) = (row.posterior.mean() * 100.0, row.posterior.bound() * 100.0);
        let _ = writeln!(
            text,
            "{:<width$}  {:<role_width$}  {:<7}  {:>6}  {:>6}  {mean:>5.0}%  {bound:>7.0}%",
            name(row),
            one_line(&row.role),
            row.difficulty,
            row.landed,
            row.failed,
        );
    }
    text
}

/// Why the agents are tried in that order.
fn explained(
    orders: &[(Difficulty, Vec<AgentId>)],
    chain: &[AgentId],
    evidence: &[Evidence],
    now: Timestamp,
    on: bool,
) -> String {
    if chain.len() < 2 {
        return "With one agent alone there is nothing to choose; name several with --agent A,B.\n".to_owned();
    }
    let mut text = String::new();
    for (difficulty, order) in orders {
        let one = |agent: &AgentId| {
            let bound = Posterior::of(evidence, (agent, ALONE, *difficulty), now).bound() * 100.0;
            let known = evidence.iter().any(|one| one.agent == *agent && one.role == ALONE);
            let why = if known { "" } else { ", nothing is known" };
            format!("{} (at least {bound:.0}%{why})", one_line(agent.as_str()))
        };
        let names: Vec<String> = order.iter().map(one).collect();
        let _ = writeln!(text, "{difficulty} stories: {}", names.join(", then "));
    }
    text.push_str(if on {
        "Older outcomes count less, those of stories of another difficulty a quarter.\n"
    } else {
        "That is what --choose would do; it is off, so agents are tried in the order in which they are listed.\n"
    });
    text
}
