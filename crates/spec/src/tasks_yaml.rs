//! `tasks.yaml`: a list of mappings with titles, in the shapes that tools write.

pub(crate) mod marks;

use ralphloop_core::ids::StoryId;
use ralphloop_core::plan::{Context, Plan, Scheme, Story, Task, WorkId, WorkState};

use crate::document::{Document, ItemMarks, Reading, StoryMarks};
use crate::error::{Code, Diagnostic, ErrorClass, SpecError};
use crate::prd::{self, story::SEVERAL};
use crate::tasks_yaml::marks::Dialect;
use crate::text::Text;
use crate::words::{self, Rank};
use crate::yaml::{self, Content, Node};

/// Names of the list of stories; the first one that is there counts.
const LISTS: &[&str] = &["tasks", "userStories", "user_stories", "stories", "items", "features", "issues"];

const CRITERIA: &[&str] = &["acceptanceCriteria", "acceptance_criteria", "acceptance", "criteria", "subtasks", "steps"];

const DEPENDENCIES: &[&str] = &["dependsOn", "depends_on", "deps", "dependencies", "blockedBy", "blocked_by"];

const GROUPS: &[&str] = &["parallel_group", "parallelGroup", "group", "phase", "section", "milestone"];

/// Keys by which a mapping is known as a task.
const OF_A_TASK: &[&str] = &["title", "description", "passes", "passed", "complete", "completed", "done", "status"];

/// What a text inside a criterion may be called.
const TEXTS: &[&str] = &["text", "title", "description", "name"];

const TOOL_PROMPT: &str = "This work is described in a YAML list of tasks. What matters of it here is given above. Do not \
    edit that file: the tool that called you verifies the work and marks the task itself. Do not commit; the tool \
    commits what it has verified.\n";

/// The stories of the file, with their marks.
pub(crate) fn document(text: &Text<'_>) -> Result<Document, SpecError> {
    let root = yaml::parse(text, text.body, 0)?;
    let root =
        root.ok_or_else(|| SpecError::new(ErrorClass::EmptyFile, text.file, "the file holds nothing but comments"))?;
    let list = list(text, &root)?;
    let dialect = Dialect::of(text, list);
    let mut reader = Reader { text, dialect: &dialect, warnings: Vec::new() };
    let (mut stories, mut marks) = (Vec::new(), Vec::new());
    for (index, node) in list.iter().enumerate() {
        let (story, mark) = reader.story(node, index + 1)?;
        stories.push(story);
        marks.push(mark);
    }
    let warnings = reader.warnings;
    prd::settle_ids(text, &mut stories, &marks)?;
    prd::resolve_dependencies(&mut stories);
    prd::refuse_bad_graph(text, &stories)?;
    let top = |keys: &[&str]| {
        let metadata = root.get("metadata").and_then(|metadata| metadata.first_word(keys));
        metadata.or_else(|| root.first_word(keys)).map(str::to_owned)
    };
    let project = top(&["project", "projectName", "project_name", "name"]);
    let plan = Plan {
        title: project.clone(),
        branch: top(&["branch", "branchName", "branch_name"]),
        context: Context {
            proposal: root.first_word(&["description", "overview"]).unwrap_or_default().to_owned(),
            tool_prompt: TOOL_PROMPT.to_owned(),
            ..Context::default()
        },
        ..Plan::new(WorkId { scheme: Scheme::Yaml, id: text.file.to_owned() }, stories)
    };
    Ok(Document { reading: Reading::new(plan, project, warnings), marks })
}

fn list<'n>(text: &Text<'_>, root: &'n Node) -> Result<&'n [Node], SpecError> {
    let named = LISTS.iter().find_map(|key| root.entry(key)).map(|(_, value)| value);
    let Some(value) = named.or(Some(root).filter(|root| matches!(root.content, Content::List(_)))) else {
        return Err(SpecError::new(ErrorClass::UnrecognisedShape, text.file, "there is no list of tasks in this file")
            .with_help("write tasks: and below it - title: …"));
    };
    let is_map = |node: &Node| matches!(node.content, Content::Map(_));
    match &value.content {
        Content::List(list) if !list.is_empty() && !list.iter().any(is_map) => {
            let message = "the list of tasks holds no mappings, and a mere sentence cannot carry a state";
            Err(SpecError::new(ErrorClass::UnrecognisedShape, text.file, message)
                .at_line(value.line())
                .with_help("write - title: …"))
        }
        // Most files of this name are recipes of other tools.
        Content::List(list) if !list.is_empty() && !list.iter().any(|node| node.first(OF_A_TASK).is_some()) => {
            let message = "the list of tasks holds no mapping with a title";
            Err(SpecError::new(ErrorClass::UnrecognisedShape, text.file, message)
                .at_line(value.line())
                .with_help("write - title: …"))
        }
        Content::List(list) if !list.is_empty() => Ok(list),
        Content::List(_) => Err(no_tasks(text)),
        Content::Scalar { .. } if value.is_null() => Err(no_tasks(text)),
        _ => {
            let message = format!("the tasks are {}, not a list", value.kind());
            Err(SpecError::new(ErrorClass::WrongType, text.file, message).at_line(value.line()))
        }
    }
}

fn no_tasks(text: &Text<'_>) -> SpecError {
    SpecError::new(ErrorClass::NoTasks, text.file, "the list of tasks is empty")
        .with_help("write at least one task with a title; an empty list is not the same as finished work")
}

struct Reader<'t, 'a> {
    text: &'t Text<'a>,
    dialect: &'t Dialect,
    warnings: Vec<Diagnostic>,
}

impl Reader<'_, '_> {
    fn story(&mut self, node: &Node, position: usize) -> Result<(Story, StoryMarks), SpecError> {
        let line = node.line();
        if !matches!(node.content, Content::Map(_)) {
            let message = format!("a task is {}, not a mapping with a title", node.kind());
            return Err(self.fault(ErrorClass::WrongType, line, message));
        }
        let declared = node.get("id").and_then(Node::word).map(str::to_owned);
        let id = declared.clone().unwrap_or_else(|| format!("s{position}"));
        if let Some(title) = node.get("title").filter(|title| !matches!(title.content, Content::Scalar { .. })) {
            let message = format!("the title of the task {id:?} is {}, not a text", title.kind());
            return Err(self.fault(ErrorClass::WrongType, title.line(), message));
        }
        let description = node.first_word(&["description"]).unwrap_or_default().to_owned();
        let Some(title) = node.first_word(&["title"]).or(description.lines().next()).map(str::to_owned) else {
            let message = format!("the task {id:?} has neither a title nor a description");
            return Err(self.fault(ErrorClass::MissingField, line, message));
        };
        let done = marks::read(self.text, self.dialect, node);
        for (code, message) in done.warnings {
            self.warn(code, line, format!("task {id:?}: {message}"));
        }
        let (tasks, task_marks) = self.criteria(node, &id, done.state);
        let story = Story {
            description,
            state: done.state,
            optional: node.is_true("optional"),
            priority: self.priority(node, &id, line),
            complexity: node.first_word(&["complexity"]).and_then(words::complexity),
            deps: dependencies(node),
            group: node.first_word(GROUPS).map(str::to_owned),
            tags: node.first(&["labels", "tags"]).map(Node::words).unwrap_or_default(),
            line: Some(line),
            criteria: tasks.iter().map(|task| task.text.clone()).collect(),
            tasks,
            notes: node.first_word(&["notes"]).unwrap_or_default().to_owned(),
            ..Story::new(id, title)
        };
        let own = ItemMarks { marks: done.marks, declared: declared.is_some() };
        Ok((story, StoryMarks { own, tasks: task_marks }))
    }

    fn criteria(&mut self, node: &Node, story: &str, state: WorkState) -> (Vec<Task>, Vec<ItemMarks>) {
        let follow = if state == WorkState::Done { WorkState::Done } else { WorkState::Todo };
        let items: &[Node] = match node.first(CRITERIA).map(|node| (&node.content, node)) {
            Some((Content::List(list), _)) => list,
            Some((Content::Scalar { .. }, one)) => std::slice::from_ref(one),
            _ => &[],
        };
        let mut tasks: Vec<Task> = Vec::new();
        for item in items {
            let text = criterion(item);
            if text.is_empty() {
                self.warn(Code::EmptyTask, item.line(), "this criterion has no text".into());
            }
            tasks.push(Task {
                state: follow,
                line: Some(item.line()),
                ..Task::new(format!("{story}#{}", tasks.len() + 1), text)
            });
        }
        let marks = tasks.iter().map(|_| ItemMarks::default()).collect();
        (tasks, marks)
    }

    fn priority(&mut self, node: &Node, id: &str, line: u32) -> Option<ralphloop_core::plan::Priority> {
        let word = node.first_word(&["priority"])?;
        match words::rank(word) {
            Rank::Known(priority) => Some(priority),
            Rank::None => None,
            Rank::Unknown => {
                let message = format!("task {id:?}: the priority {word:?} has no known meaning; it comes last");
                self.warn(Code::UnknownPriority, line, message);
                None
            }
        }
    }

    fn fault(&self, class: ErrorClass, line: u32, message: String) -> SpecError {
        SpecError::new(class, self.text.file, message).at_line(line).with_help("write - title: …")
    }

    fn warn(&mut self, code: Code, line: u32, message: String) {
        self.warnings.push(Diagnostic::warning(code, self.text.file, Some(line), message));
    }
}

/// The text of a criterion; a line with a colon in it is a mapping to YAML and a sentence to its writer.
fn criterion(item: &Node) -> String {
    match &item.content {
        Content::Map(entries) => match (item.first_word(TEXTS), entries.as_slice()) {
            (Some(text), _) => text.to_owned(),
            (None, [(key, value)]) => {
                format!("{}: {}", key.word().unwrap_or_default(), value.word().unwrap_or_default())
            }
            (None, _) => String::new(),
        },
        _ => item.word().unwrap_or_default().to_owned(),
    }
}

fn dependencies(node: &Node) -> Vec<StoryId> {
    let values = DEPENDENCIES.iter().filter_map(|key| node.get(key));
    let ids = values.flat_map(|value| match &value.content {
        Content::List(_) => value.words().into_iter().map(StoryId).collect(),
        _ => value.words().into_iter().map(|several| StoryId(format!("{SEVERAL}{several}"))).collect::<Vec<_>>(),
    });
    ids.collect()
}
