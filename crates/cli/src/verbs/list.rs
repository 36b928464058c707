//! `list`: the work that is written down here.

use ralphloop_engine::work::{self, Found};
use ralphloop_spec::Reading;
use serde_json::{Value, json};

use super::spec::Progress;
use crate::arguments::ListArguments;
use crate::error::CliError;
use crate::exit::Exit;
use crate::host::Host;
use crate::output;

/// One piece of work, as far as it can be read.
struct Row {
    found: Found,
    reading: Result<Reading, String>,
}

pub(super) fn list(arguments: &ListArguments, host: &Host) -> Result<Exit, CliError> {
    if arguments.json {
        output::json(&Value::Array(rows(host)))?;
        return Ok(Exit::DONE);
    }
    let rows = found(host);
    if rows.is_empty() {
        output::talk(&format!("no work found here; it could be {}\n", super::spec::KINDS));
    } else {
        let cells: Vec<Vec<String>> = rows.iter().map(Row::cells).collect();
        output::data(&output::table(&["WORK", "STORIES", "TASKS", "STATE", "TITLE"], &cells))?;
    }
    Ok(Exit::DONE)
}

fn found(host: &Host) -> Vec<Row> {
    work::find(&host.cwd).into_iter().map(Row::read).collect()
}

/// The work that is found here, as JSON.
pub(crate) fn rows(host: &Host) -> Vec<Value> {
    found(host).iter().map(Row::json).collect()
}

impl Row {
    fn read(found: Found) -> Self {
        let reading = work::load(&found.work)
            .map_err(|error| error.to_string())
            .and_then(|files| ralphloop_spec::read(&files).map_err(|error| error.to_string()));
        Self { found, reading }
    }

    /// Why it cannot be run, if it cannot.
    fn reason(&self) -> Option<String> {
        if !self.found.missing.is_empty() {
            return Some(self.found.missing.join(", "));
        }
        self.reading.as_ref().err().cloned()
    }

    fn state(&self) -> String {
        match (&self.reading, self.reason()) {
            _ if self.found.archived => "archived".to_owned(),
            (Ok(reading), _) if reading.all_done => "complete".to_owned(),
            (_, None) => "ready".to_owned(),
            (Err(_), Some(reason)) if self.found.missing.is_empty() => format!("unreadable: {reason}"),
            (_, Some(reason)) => format!("not ready: {reason}"),
        }
    }

    fn title(&self) -> Option<&str> {
        let reading = self.reading.as_ref().ok()?;
        reading.plan.title.as_deref().or(reading.project.as_deref())
    }

    fn cells(&self) -> Vec<String> {
        let fraction = |(done, total): (usize, usize)| format!("{done}/{total}");
        let progress = self.reading.as_ref().ok().map(Progress::of);
        let count = |part: fn(Progress) -> (usize, usize)| progress.map_or("–".to_owned(), |p| fraction(part(p)));
        vec![
            self.found.work.id.to_string(),
            count(|progress| progress.stories),
            count(|progress| progress.tasks),
            output::cut(&output::one_line(&self.state()), 60),
            output::cut(&output::one_line(self.title().unwrap_or("")), 60),
        ]
    }

    fn json(&self) -> Value {
        let work = &self.found.work;
        let progress = self.reading.as_ref().ok().map(Progress::of);
        json!({
            "work": work.id.to_string(),
            "scheme": work.id.scheme.as_str(),
            "id": work.id.id,
            "title": self.title(),
            "path": work.main.display().to_string(),
            "done": progress.map(|progress| progress.stories.0),
            "total": progress.map(|progress| progress.stories.1),
            "tasks_done": progress.map(|progress| progress.tasks.0),
            "tasks_total": progress.map(|progress| progress.tasks.1),
            "ready": self.reason().is_none() && !self.found.archived,
            "complete": self.reading.as_ref().is_ok_and(|reading| reading.all_done),
            "archived": self.found.archived,
            "reason": self.reason(),
        })
    }
}
