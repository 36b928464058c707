//! One story of a `prd.json`.

use std::fmt::Write as _;

use jsonc_parser::ast::{Object, Value};
use ralphloop_core::ids::StoryId;
use ralphloop_core::plan::{Priority, Story, WorkState};

use crate::document::{ItemMarks, StoryMarks};
use crate::error::{Code, Diagnostic, ErrorClass, SpecError};
use crate::json;
use crate::prd::done::{self, Dialect, Level};
use crate::prd::list::Entry;
use crate::prd::{checks, criteria};
use crate::text::Text;
use crate::words::{self, Rank};

/// Marks a dependency text that may name several stories until all ids are known; no id can hold it.
pub(crate) const SEVERAL: &str = "\0";

const DEPENDENCIES: &[&str] = &["dependsOn", "depends_on", "deps", "dependencies", "blockedBy", "blocked_by"];

/// Reads stories and gathers what is worth saying about them.
pub(crate) struct Reader<'t, 'a> {
    pub text: &'t Text<'a>,
    pub dialect: &'t Dialect,
    pub warnings: Vec<Diagnostic>,
}

impl Reader<'_, '_> {
    /// The story at a position of the list, from 1.
    pub(crate) fn read(&mut self, entry: &Entry<'_, '_>, position: usize) -> Result<(Story, StoryMarks), SpecError> {
        let object = entry.object;
        let line = self.text.line(object.range.start);
        let declared = match entry.key {
            Some(key) => Some(key.trim().to_owned()).filter(|key| !key.is_empty()),
            None => self.id(object)?,
        };
        let id: StoryId = declared.clone().unwrap_or_else(|| format!("s{position}")).into();
        let (title, description) = self.title(object, id.as_str())?;
        let done = done::read(self.text, self.dialect, object, Level::Story)?;
        for (code, message) in done.warnings {
            self.warn(code, line, format!("story {:?}: {message}", id.as_str()));
        }
        let criteria = criteria::read(self, object, &id, done.state)?;
        let open = criteria.tasks.iter().zip(&criteria.marks).find(|(task, marks)| {
            !marks.marks.is_empty() && !task.optional && !matches!(task.state, WorkState::Done | WorkState::Skipped)
        });
        if let (WorkState::Done, Some((task, _))) = (done.state, open) {
            let message = format!("story {:?} is marked done, but its criterion {} is open", id.as_str(), task.id);
            self.warn(Code::ParentDoneChildOpen, line, message);
        }
        let mut words = criteria.words;
        words.extend(checks::sentences(object).into_iter().map(|(_, sentence)| format!("Verify: {sentence}")));
        let story = Story {
            description: with_more(description, &criteria.more),
            state: done.state,
            optional: json::is_true(object, "optional"),
            priority: self.priority(object, &id, line),
            complexity: complexity(object),
            parent: entry.parent.clone(),
            deps: self.dependencies(object)?,
            group: json::first(
                object,
                &["group", "gate", "phase", "section", "milestone", "sprint", "parallelGroup", "parallel_group"],
            )
            .and_then(|(_, value)| json::word_of(value)),
            tags: json::first(object, &["labels", "tags"]).map(|(_, value)| json::texts_of(value)).unwrap_or_default(),
            refs: json::first(object, &["requirements", "refs"])
                .map(|(_, value)| json::texts_of(value))
                .unwrap_or_default(),
            line: Some(line),
            tasks: criteria.tasks,
            criteria: words,
            checks: checks::checks(object),
            sign_off: checks::by_hand(object),
            needs_no_change: ["needs_no_change", "needsNoChange", "noCode", "no_code"]
                .iter()
                .any(|key| json::is_true(object, key)),
            notes: json::get(object, "notes").map(json::texts_of).unwrap_or_default().join("\n"),
            ..Story::new(id, title)
        };
        let own = ItemMarks { marks: done.marks, declared: declared.is_some() };
        Ok((story, StoryMarks { own, tasks: criteria.marks }))
    }

    fn id(&self, object: &Object<'_>) -> Result<Option<String>, SpecError> {
        match json::get(object, "id") {
            None => Ok(None),
            Some(value @ (Value::StringLit(_) | Value::NumberLit(_))) => Ok(json::word_of(value)),
            Some(other) => Err(self.wrong(other, "id", "a text or a number")),
        }
    }

    /// Title and description; the first line of the description where there is no title.
    fn title(&self, object: &Object<'_>, id: &str) -> Result<(String, String), SpecError> {
        for key in ["title", "name", "description"] {
            if let Some(value) = json::get(object, key)
                && !matches!(value, Value::StringLit(_))
            {
                return Err(self.wrong(value, key, "a text"));
            }
        }
        let description = json::first_text(object, &["description"]).unwrap_or_default();
        if let Some(title) = json::first_text(object, &["title", "name"]) {
            return Ok((title, description));
        }
        match description.lines().next() {
            Some(first) => Ok((first.trim().to_owned(), description)),
            None => Err(SpecError::new(
                ErrorClass::MissingField,
                self.text.file,
                format!("the story {id:?} has neither a title nor a description"),
            )
            .at(self.text.position(object.range.start))
            .with_help("give it a title")),
        }
    }

    fn priority(&mut self, object: &Object<'_>, id: &StoryId, line: u32) -> Option<Priority> {
        let value = json::get(object, "priority")?;
        let rank = match value {
            Value::StringLit(lit) => words::rank(&lit.value),
            Value::NumberLit(number) => words::rank(number.value),
            _ => Rank::Unknown,
        };
        match rank {
            Rank::Known(priority) => Some(priority),
            Rank::None => None,
            Rank::Unknown => {
                let shown = json::word_of(value).unwrap_or_else(|| json::kind_of(value).to_owned());
                let message =
                    format!("story {:?}: the priority {shown:?} has no known meaning; it comes last", id.as_str());
                self.warn(Code::UnknownPriority, line, message);
                None
            }
        }
    }

    fn dependencies(&self, object: &Object<'_>) -> Result<Vec<StoryId>, SpecError> {
        let mut all = Vec::new();
        for key in DEPENDENCIES {
            match json::get(object, key) {
                None => {}
                Some(Value::StringLit(lit)) if is_nothing(&lit.value) => {}
                Some(Value::StringLit(lit)) => all.push(format!("{SEVERAL}{}", lit.value).into()),
                Some(Value::NumberLit(number)) => all.push(number.value.into()),
                Some(Value::Array(array)) => {
                    for element in &array.elements {
                        let named = match element {
                            Value::Object(object) => json::first(object, &["id", "story"]).map(|(_, value)| value),
                            other => Some(other),
                        };
                        match named {
                            Some(Value::NullKeyword(_)) => {}
                            Some(value @ (Value::StringLit(_) | Value::NumberLit(_))) => {
                                all.extend(json::word_of(value).map(StoryId));
                            }
                            _ => return Err(self.wrong(element, key, "a list of ids")),
                        }
                    }
                }
                Some(other) => return Err(self.wrong(other, key, "a list of ids")),
            }
        }
        Ok(all)
    }

    pub(crate) fn warn(&mut self, code: Code, line: u32, message: String) {
        self.warnings.push(Diagnostic::warning(code, self.text.file, Some(line), message));
    }

    fn wrong(&self, value: &Value<'_>, key: &str, wanted: &str) -> SpecError {
        let message = format!("{key} is {}, not {wanted}", json::kind_of(value));
        SpecError::new(ErrorClass::WrongType, self.text.file, message)
            .at(self.text.position(json::start(value)))
            .with_help(format!("write {wanted}"))
    }
}

fn is_nothing(text: &str) -> bool {
    matches!(text.trim().to_lowercase().as_str(), "" | "-" | "none" | "null" | "n/a")
}

fn complexity(object: &Object<'_>) -> Option<u8> {
    match json::get(object, "complexity")? {
        Value::NumberLit(number) => number.value.parse().ok().and_then(words::complexity_number),
        other => json::text_of(other).and_then(|word| words::complexity(&word)),
    }
}

fn with_more(mut description: String, more: &[(String, Vec<String>)]) -> String {
    for (name, texts) in more {
        if !description.is_empty() {
            description.push_str("\n\n");
        }
        let _infallible = write!(description, "{name}:");
        for text in texts {
            let _infallible = write!(description, "\n- {text}");
        }
    }
    description
}
