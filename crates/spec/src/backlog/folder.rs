//! A whole backlog: the tasks of the folder as one piece of work.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};

use ralphloop_core::ids::StoryId;
use ralphloop_core::plan::{Context, Plan, Scheme, Story, WorkId, WorkState};

use crate::document::Reading;
use crate::error::{Code, Diagnostic, ErrorClass, SpecError};
use crate::graph;
use crate::source::{SpecFiles, SpecText};
use crate::text::Text;
use crate::yaml::{self, Node};

/// The settings of a backlog.
const CONFIG: &[&str] = &["config.yml", "config.yaml"];

/// A task with its place in the order of the board.
struct Placed {
    ordinal: f64,
    story: Story,
}

/// The tasks of the folder, in the order of the board: by ordinal, then by id.
pub(crate) fn folder(files: &SpecFiles) -> Result<Reading, SpecError> {
    let (mut placed, mut warnings): (Vec<Placed>, _) = (Vec::new(), Vec::new());
    let config = config(&files.beside);
    // What stands last on the board is finished, whatever the project calls it.
    let done = config.as_ref().and_then(|config| config.get("statuses")?.words().pop());
    for file in files.stories() {
        match task(file, done.as_deref()) {
            Ok((task, said)) => {
                placed.push(task);
                warnings.extend(said);
            }
            // Whoever keeps notes beside the tasks knows that they are none.
            Err(error) if matches!(error.class, ErrorClass::MissingFrontMatter | ErrorClass::EmptyFile) => {
                let message = format!("{}; it is left out", error.message);
                warnings.push(Diagnostic::warning(Code::UnreadableCompanion, &error.file, error.line, message));
            }
            Err(error) => return Err(error),
        }
    }
    placed.sort_by(|a, b| {
        a.ordinal.total_cmp(&b.ordinal).then_with(|| natural(a.story.id.as_str(), b.story.id.as_str()))
    });
    let mut stories: Vec<Story> = placed.into_iter().map(|placed| placed.story).collect();
    if stories.is_empty() {
        return Err(SpecError::new(ErrorClass::NoTasks, files.name(), "there is no task in this backlog")
            .with_help("write one with backlog task create"));
    }
    refuse_double_ids(&stories)?;
    let aside: Vec<String> = files.beside.iter().filter_map(|file| id_of_name(&file.path)).collect();
    warnings.extend(resolve_dependencies(&mut stories, &aside));
    graph::refuse_cycles(files.name(), &stories)?;
    let plan = Plan {
        title: config
            .as_ref()
            .and_then(|config| config.first_word(&["project_name", "projectName"]))
            .map(str::to_owned),
        context: Context { tool_prompt: super::tool_prompt(&format!("{}/tasks", files.name())), ..Context::default() },
        ..Plan::new(WorkId { scheme: Scheme::Backlog, id: files.name().to_owned() }, stories)
    };
    Ok(Reading::new(plan, None, warnings))
}

fn task(file: &SpecText, done: Option<&str>) -> Result<(Placed, Vec<Diagnostic>), SpecError> {
    let text = Text::decode(&file.path, &file.bytes)?;
    let front = super::front::read(&text)?;
    if front.root.first_word(&["id"]).is_none() {
        return Err(SpecError::new(ErrorClass::MissingField, text.file, "this task has no id")
            .at_line(front.root.line())
            .with_help("write id: … into its front matter, as its file is called"));
    }
    let ordinal = front.root.first_word(&["ordinal"]).and_then(|word| word.parse().ok());
    let Reading { plan, warnings, .. } = super::document(&text)?.reading;
    let is_done = done.is_some() && front.root.first_word(&["status"]) == done;
    let story = plan.stories.into_iter().next().map(|story| Story {
        file: Some(file.path.clone()),
        state: if is_done { WorkState::Done } else { story.state },
        ..story
    });
    let story = story.ok_or_else(|| SpecError::new(ErrorClass::NoTasks, text.file, "there is no task in this file"))?;
    let ordinal = ordinal.filter(|ordinal: &f64| ordinal.is_finite()).unwrap_or(f64::INFINITY);
    Ok((Placed { ordinal, story }, warnings))
}

fn refuse_double_ids(stories: &[Story]) -> Result<(), SpecError> {
    let mut seen: HashMap<String, &Story> = HashMap::new();
    for story in stories {
        if let Some(other) = seen.insert(story.id.as_str().to_lowercase(), story) {
            let file = |story: &Story| story.file.clone().unwrap_or_default();
            let message = format!("the id {} is also that of {}", story.id, file(other));
            return Err(SpecError::new(ErrorClass::DuplicateId, &file(story), message)
                .at_line(1)
                .with_help("give one of them another id: `backlog doctor` does that"));
        }
    }
    Ok(())
}

/// Ids are compared without case. One that is nowhere else may carry the prefix of before a renaming.
fn resolve_dependencies(stories: &mut [Story], aside: &[String]) -> Vec<Diagnostic> {
    let known: BTreeMap<String, StoryId> =
        stories.iter().map(|story| (story.id.as_str().to_lowercase(), story.id.clone())).collect();
    let mut by_number: BTreeMap<&str, Option<&StoryId>> = BTreeMap::new();
    for (id, story) in &known {
        // A number that two prefixes share names nobody.
        by_number.entry(number(id)).and_modify(|found| *found = None).or_insert(Some(story));
    }
    let mut warnings = Vec::new();
    for story in stories {
        for dep in &mut story.deps {
            let lower = dep.as_str().to_lowercase();
            let is_aside = aside.contains(&lower);
            let renamed = || by_number.get(number(&lower)).copied().flatten();
            if let Some(found) = known.get(&lower).or_else(|| if is_aside { None } else { renamed() }) {
                found.clone_into(dep);
            } else if !is_aside {
                let message =
                    format!("{} depends on {dep}, which is not in this backlog; it is not waited for", story.id);
                let file = story.file.as_deref().unwrap_or_default();
                warnings.push(Diagnostic::warning(Code::UnknownDependency, file, Some(1), message));
            }
        }
    }
    warnings
}

/// `12.1` of `back-12.1`.
fn number(id: &str) -> &str {
    id.rsplit_once('-').map_or(id, |(_, number)| number)
}

/// The id that a task's file carries in its name, lower case.
fn id_of_name(path: &str) -> Option<String> {
    let name = path.rsplit('/').next()?.strip_suffix(".md")?;
    Some(name.split(" - ").next().unwrap_or(name).trim().to_lowercase())
}

/// The settings of the backlog, if they can be read.
fn config(beside: &[SpecText]) -> Option<Node> {
    let config = beside.iter().find(|file| CONFIG.iter().any(|name| file.path.ends_with(name)))?;
    let text = Text::decode(&config.path, &config.bytes).ok()?;
    yaml::parse(&text, text.body, 0).ok()?
}

/// Numbers inside ids by their value: `task-9` before `task-10`.
pub(crate) fn natural(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    while !a.is_empty() && !b.is_empty() {
        let (part_a, part_b) = (leading(a), leading(b));
        let order = match (part_a.parse::<u64>(), part_b.parse::<u64>()) {
            (Ok(a), Ok(b)) => a.cmp(&b),
            _ => part_a.cmp(part_b),
        };
        if order != Ordering::Equal {
            return order;
        }
        (a, b) = (&a[part_a.len()..], &b[part_b.len()..]);
    }
    a.len().cmp(&b.len())
}

/// The digits at the start, or all up to the first digit.
fn leading(text: &str) -> &str {
    let digits = text.starts_with(|c: char| c.is_ascii_digit());
    let end = text.find(|c: char| c.is_ascii_digit() != digits).unwrap_or(text.len());
    &text[..end]
}
