//! Where the stories are: the first known list of the file, or the lists of its phases.

use jsonc_parser::ast::{Object, Value};

use crate::error::{ErrorClass, SpecError};
use crate::json;
use crate::text::Text;

/// Names of the list of stories; the first one that is there counts.
const LISTS: &[&str] = &["userStories", "user_stories", "stories", "tasks", "items", "features", "issues"];

/// Names of lists whose members hold a list of stories.
const GROUPS: &[&str] = &["phases", "epics", "milestones", "sprints"];

/// Groups inside groups, at most.
const MAX_DEPTH: usize = 4;

/// A story as it stands in the file.
#[derive(Debug, Clone)]
pub(crate) struct Entry<'v, 'a> {
    pub object: &'v Object<'a>,
    /// The key under which it stands, where the list is an object.
    pub key: Option<&'v str>,
    /// The id of the phase that it stands in.
    pub parent: Option<String>,
}

/// The stories of the file in their order; may be none.
pub(crate) fn entries<'v, 'a>(text: &Text<'_>, root: &'v Value<'a>) -> Result<Vec<Entry<'v, 'a>>, SpecError> {
    let finder = Finder { text };
    match root {
        Value::Array(_) => finder.list(root, "the list", None),
        Value::Object(object) => match finder.below(object, None, 0)? {
            Some(entries) => Ok(entries),
            None => Err(finder.unrecognised("there is no list of stories in this file")),
        },
        other => Err(finder.unrecognised(format!("the file holds {}, not stories", json::kind_of(other)))),
    }
}

struct Finder<'t, 'a> {
    text: &'t Text<'a>,
}

impl Finder<'_, '_> {
    fn below<'v, 'a>(
        &self,
        object: &'v Object<'a>,
        parent: Option<&str>,
        depth: usize,
    ) -> Result<Option<Vec<Entry<'v, 'a>>>, SpecError> {
        if let Some((name, value)) = json::first(object, LISTS) {
            return self.list(value, name, parent).map(Some);
        }
        let Some((name, value)) = json::first(object, GROUPS).filter(|_| depth < MAX_DEPTH) else { return Ok(None) };
        let members = self.members(value, name)?;
        let mut all = if members.is_empty() { Some(Vec::new()) } else { None };
        for (key, member) in members {
            let Value::Object(group) = member else { continue };
            let id = key.map(str::to_owned).or_else(|| json::get(group, "id").and_then(json::word_of));
            if let Some(found) = self.below(group, id.as_deref().or(parent), depth + 1)? {
                all.get_or_insert_with(Vec::new).extend(found);
            }
        }
        Ok(all)
    }

    fn list<'v, 'a>(
        &self,
        value: &'v Value<'a>,
        name: &str,
        parent: Option<&str>,
    ) -> Result<Vec<Entry<'v, 'a>>, SpecError> {
        let members = self.members(value, name)?;
        if !members.is_empty() && !members.iter().any(|(_, member)| matches!(member, Value::Object(_))) {
            return Err(self.unrecognised(format!("{name} holds no objects, and a mere sentence cannot carry a state")));
        }
        let entry = |(key, member): (Option<&'v str>, &'v Value<'a>)| match member {
            Value::Object(object) => Ok(Entry { object, key, parent: parent.map(str::to_owned) }),
            other => Err(SpecError::new(
                ErrorClass::WrongType,
                self.text.file,
                format!("a member of {name} is {}, not a story", json::kind_of(other)),
            )
            .at(self.text.position(json::start(other)))
            .with_help(r#"write {"title": "…", "passes": false}"#)),
        };
        members.into_iter().map(entry).collect()
    }

    /// Members of a list, or of an object with their keys.
    fn members<'v, 'a>(
        &self,
        value: &'v Value<'a>,
        name: &str,
    ) -> Result<Vec<(Option<&'v str>, &'v Value<'a>)>, SpecError> {
        match value {
            Value::Array(array) => Ok(array.elements.iter().map(|element| (None, element)).collect()),
            Value::Object(object) => Ok(object.properties.iter().map(|p| (Some(p.name.as_str()), &p.value)).collect()),
            other => Err(SpecError::new(
                ErrorClass::WrongType,
                self.text.file,
                format!("{name} is {}, not a list of stories", json::kind_of(other)),
            )
            .at(self.text.position(json::start(other)))
            .with_help("put the stories into a list")),
        }
    }

    fn unrecognised(&self, message: impl Into<String>) -> SpecError {
        SpecError::new(ErrorClass::UnrecognisedShape, self.text.file, message)
            .with_help(r#"write {"userStories": [{"id": "US-001", "title": "…", "passes": false}]}"#)
    }
}
