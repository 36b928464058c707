//! The plan as a `prd.json`.

use ralphloop_core::plan::{Check, Story, Task, WorkState};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::draft::Draft;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Prd<'d> {
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<&'d str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    feature: Option<&'d str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    branch_name: Option<&'d str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'d str,
    #[serde(skip_serializing_if = "<[_]>::is_empty", rename = "technical_requirements")]
    technical_requirements: &'d [String],
    #[serde(skip_serializing_if = "Option::is_none", rename = "quality_checks")]
    quality_checks: Option<Map<String, Value>>,
    user_stories: Vec<PrdStory<'d>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PrdStory<'d> {
    id: &'d str,
    title: &'d str,
    #[serde(skip_serializing_if = "String::is_empty")]
    description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    acceptance_criteria: Option<Vec<Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subtasks: Option<Vec<Value>>,
    #[serde(skip_serializing_if = "Vec::is_empty", rename = "verification_steps")]
    verification_steps: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    complexity: Option<u8>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    depends_on: Vec<&'d str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<&'d str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    labels: &'d [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    requirements: &'d [String],
    #[serde(skip_serializing_if = "is_false")]
    optional: bool,
    #[serde(skip_serializing_if = "is_false", rename = "needs_no_change")]
    needs_no_change: bool,
    passes: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    notes: &'d str,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

/// The file.
pub(super) fn text(draft: &Draft<'_>) -> String {
    let gates: Map<String, Value> =
        draft.gates.iter().map(|gate| (gate.name.clone(), Value::from(gate.command.clone()))).collect();
    let prd = Prd {
        project: draft.project,
        feature: draft.title.filter(|title| draft.project != Some(*title)),
        branch_name: draft.branch,
        description: draft.context.proposal.as_str(),
        technical_requirements: &draft.context.constraints,
        quality_checks: (!gates.is_empty()).then_some(gates),
        user_stories: draft.stories.iter().map(|drafted| story(&drafted.story)).collect(),
    };
    // Maps with text keys and numbers that were read from a file are always JSON.
    serde_json::to_string_pretty(&prd).map(|text| text + "\n").unwrap_or_default()
}

fn story(story: &Story) -> PrdStory<'_> {
    let (steps, criteria): (Vec<&String>, Vec<&String>) =
        story.criteria.iter().filter(|text| !is_task(story, text)).partition(|text| text.starts_with(SENTENCE));
    let tasks: Vec<Value> = story.tasks.iter().map(|task| item(story, task)).collect();
    let hold = !story.tasks.is_empty() && story.tasks.iter().all(|task| story.criteria.contains(&task.text));
    let mut description = story.description.clone();
    let mut listed = None;
    if tasks.is_empty() {
        listed = (!criteria.is_empty()).then(|| criteria.iter().map(|text| json!(text)).collect());
    } else if !criteria.is_empty() {
        let lead = if description.is_empty() { "" } else { "\n\n" };
        description.push_str(&format!("{lead}Acceptance criteria:"));
        description.extend(criteria.iter().map(|text| format!("\n- {text}")));
    }
    let mut verification_steps: Vec<Value> = story.checks.iter().map(check).collect();
    verification_steps.extend(steps.iter().map(|text| json!(text[SENTENCE.len()..])));
    PrdStory {
        id: story.id.as_str(),
        title: &story.title,
        description,
        subtasks: (!hold && !tasks.is_empty()).then(|| tasks.clone()),
        acceptance_criteria: if hold { Some(tasks) } else { listed },
        verification_steps,
        priority: story.priority.map(|priority| number(priority.0)),
        complexity: story.complexity,
        depends_on: story.deps.iter().map(ralphloop_core::ids::StoryId::as_str).collect(),
        group: story.group.as_deref(),
        labels: &story.tags,
        requirements: &story.refs,
        optional: story.optional,
        needs_no_change: story.needs_no_change,
        passes: story.state == WorkState::Done,
        status: status(story.state),
        notes: &story.notes,
    }
}

/// How the reader shows a step that is a sentence.
const SENTENCE: &str = "Verify: ";

fn is_task(story: &Story, text: &str) -> bool {
    story.tasks.iter().any(|task| task.text == text)
}

/// A word for what the flag cannot say.
pub(super) fn status(state: WorkState) -> Option<&'static str> {
    match state {
        WorkState::Doing => Some("in_progress"),
        WorkState::Blocked => Some("blocked"),
        WorkState::Skipped => Some("skipped"),
        WorkState::Todo | WorkState::Done | WorkState::Other => None,
    }
}

/// A text where the task follows its story, else an object with a state of its own.
fn item(story: &Story, task: &Task) -> Value {
    let follows = if story.state == WorkState::Done { WorkState::Done } else { WorkState::Todo };
    let own = task.id.as_str().rsplit('/').next().unwrap_or_default();
    let declared = !task.id.as_str().contains('#') && !own.is_empty();
    if task.state == follows && !task.optional && !declared {
        return json!(task.text);
    }
    let mut object = Map::new();
    if declared {
        object.insert("id".into(), json!(own));
    }
    object.insert("text".into(), json!(task.text));
    object.insert("passes".into(), json!(task.state == WorkState::Done));
    if let Some(status) = status(task.state) {
        object.insert("status".into(), json!(status));
    }
    if task.optional {
        object.insert("optional".into(), json!(true));
    }
    Value::Object(object)
}

/// Whole ranks without a decimal point.
#[expect(clippy::cast_possible_truncation, reason = "only whole numbers of a size that a float holds exactly")]
fn number(rank: f64) -> Value {
    if rank.fract() == 0.0 && rank.abs() < 1e15 { json!(rank as i64) } else { json!(rank) }
}

fn check(check: &Check) -> Value {
    let mut out = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            out.insert(key.to_owned(), value);
        }
    };
    let list = |texts: &Vec<String>| (!texts.is_empty()).then(|| json!(texts));
    match check {
        Check::Shell { name, command, cwd, expect_output_contains, expect_files_glob, timeout } => {
            put("type", Some(json!("shell")));
            put("name", name.as_ref().map(|name| json!(name)));
            put("command", Some(json!(command)));
            put("cwd", cwd.as_ref().map(|cwd| json!(cwd)));
            put("expect_output_contains", list(expect_output_contains));
            put("expect_files_glob", list(expect_files_glob));
            put("timeout_secs", timeout.map(|timeout| json!(timeout.as_secs())));
        }
        Check::FileExists { name, path, glob } => {
            put("type", Some(json!("file_exists")));
            put("name", name.as_ref().map(|name| json!(name)));
            put("path", Some(json!(path)));
            put("glob", glob.then(|| json!(true)));
        }
        Check::Url { name, url, method, expect_status, expect_body_contains, timeout } => {
            put("type", Some(json!("url")));
            put("name", name.as_ref().map(|name| json!(name)));
            put("url", Some(json!(url)));
            put("method", Some(json!(method)));
            put("expect_status", Some(json!(expect_status)));
            put("expect_body_contains", list(expect_body_contains));
            put("timeout_secs", Some(json!(timeout.as_secs())));
        }
    }
    Value::Object(out)
}
