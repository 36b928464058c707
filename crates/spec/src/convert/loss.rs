//! What came of the plan in the other format, by reading both.

use std::fmt;

use ralphloop_core::ids::StoryId;
use ralphloop_core::plan::{Check, Plan, Story, Task, WorkState};

use super::draft::{Draft, Drafted, flat};
use super::{Abilities, Can, Ids};
use crate::document::Reading;

/// Stories that are named in one sentence, at most.
const NAMED: usize = 8;

/// Something that the format cannot say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// What it is, in words.
    pub what: &'static str,
    /// The stories, by the ids they had; none if it is about the whole work.
    pub stories: Vec<StoryId>,
    /// What came of it.
    pub kept: Kept,
}

/// What came of something that a format cannot say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kept {
    /// It stands in the file as text for people and agents.
    AsText,
    /// It decided the order of the stories.
    AsOrder,
    /// They are called differently now: the new names.
    Renamed(Vec<StoryId>),
    /// It was changed so that what matters more stays true; how, in words.
    Changed(&'static str),
    /// It is gone.
    No,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)?;
        if !self.stories.is_empty() {
            let new = match &self.kept {
                Kept::Renamed(new) => new.as_slice(),
                _ => &[],
            };
            let name = |(at, id): (usize, &StoryId)| match new.get(at) {
                Some(new) => format!("{id} is {new}"),
                None => id.to_string(),
            };
            let names: Vec<String> = self.stories.iter().enumerate().take(NAMED).map(name).collect();
            let more = self.stories.len().saturating_sub(NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            write!(f, " ({}{more})", names.join(", "))?;
        }
        match &self.kept {
            Kept::AsText => f.write_str(": kept as text only"),
            Kept::AsOrder => f.write_str(": kept as the order of the stories"),
            Kept::Renamed(_) => f.write_str(": new ids"),
            Kept::Changed(how) => write!(f, ": {how}"),
            Kept::No => f.write_str(": left out"),
        }
    }
}

/// Gathers losses, one for each kind and what came of it.
#[derive(Debug, Default)]
struct Losses(Vec<Loss>);

impl Losses {
    fn add(&mut self, what: &'static str, story: Option<&StoryId>, kept: Kept) {
        let known = self.0.iter_mut().find(|loss| loss.what == what && loss.kept == kept);
        match known {
            Some(loss) => loss.stories.extend(story.cloned()),
            None => self.0.push(Loss { what, stories: story.cloned().into_iter().collect(), kept }),
        }
    }
}

/// What the new reading lacks; an error if it is about what has to be done.
pub(super) fn compare(
    before: &Reading,
    draft: &Draft<'_>,
    after: &Reading,
    abilities: Abilities,
) -> Result<Vec<Loss>, String> {
    let new = &after.plan;
    if new.stories.len() != draft.stories.len() {
        return Err(format!("{} stories instead of {}", new.stories.len(), draft.stories.len()));
    }
    let mut losses = Losses::default();
    renamed(draft, &mut losses);
    for story in &draft.left_out {
        let what = if story.optional { "optional stories" } else { "skipped stories" };
        let how = "they would have to be done there, so only their text is in the file";
        let in_file = !matches!(abilities.ids, Ids::Task | Ids::Group);
        losses.add(what, Some(&story.id), if in_file { Kept::Changed(how) } else { Kept::No });
    }
    for epic in before.plan.stories.iter().filter(|story| story.kind == ralphloop_core::plan::StoryKind::Epic) {
        losses.add("epics", Some(&epic.id), Kept::Changed("their stories name them as their group"));
    }
    for (drafted, new) in draft.stories.iter().zip(&new.stories) {
        hold(drafted, new, abilities)?;
        of_story(drafted, new, abilities, &mut losses);
    }
    of_plan(&before.plan, new, &mut losses);
    Ok(losses.0)
}

fn renamed(draft: &Draft<'_>, losses: &mut Losses) {
    let changed = || draft.stories.iter().filter(|drafted| drafted.story.id != drafted.from.id);
    if changed().next().is_some() {
        losses.0.push(Loss {
            what: "ids",
            stories: changed().map(|drafted| drafted.from.id.clone()).collect(),
            kept: Kept::Renamed(changed().map(|drafted| drafted.story.id.clone()).collect()),
        });
    }
}

/// What must be the same: which stories there are, which are done, and which wait for which.
fn hold(drafted: &Drafted<'_>, new: &Story, abilities: Abilities) -> Result<(), String> {
    let wanted = &drafted.story;
    if new.id != wanted.id {
        return Err(format!("story {} is called {}", wanted.id, new.id));
    }
    if (new.state == WorkState::Done) != (wanted.state == WorkState::Done) {
        return Err(format!("story {} has another state", wanted.id));
    }
    if new.optional != wanted.optional {
        return Err(format!("it differs whether story {} has to be done", wanted.id));
    }
    if abilities.can(Can::Deps) && new.deps != wanted.deps {
        return Err(format!("story {} waits for other stories", wanted.id));
    }
    Ok(())
}

fn of_story(drafted: &Drafted<'_>, new: &Story, abilities: Abilities, losses: &mut Losses) {
    let old = drafted.from;
    let text = flat(&format!("{}\n{}\n{}", new.title, new.description, new.notes));
    let has = |part: &str| text.contains(&flat(part));
    let kept = |all: bool| if all { Kept::AsText } else { Kept::No };
    let mut lost = |what, kept| losses.add(what, Some(&old.id), kept);

    if new.title != drafted.story.title {
        lost("titles", Kept::Changed("they read differently"));
    }
    if new.state != drafted.story.state && !(new.state == WorkState::Doing && old.state == WorkState::Todo) {
        lost("states beyond open and done", Kept::No);
    }
    if old.deps.len() > drafted.story.deps.len() {
        lost("dependencies on what is not in this work", Kept::No);
    }
    if !abilities.can(Can::Deps) && !drafted.story.deps.is_empty() {
        lost("dependencies", Kept::AsOrder);
    }
    if new.priority != old.priority {
        let both = abilities.can(Can::Deps) && abilities.can(Can::Priorities);
        lost("priorities", if both { Kept::No } else { Kept::AsOrder });
    }
    if new.complexity != old.complexity {
        lost("complexities", kept(has("Complexity: ")));
    }
    if new.group != drafted.story.group && drafted.story.group.is_some() {
        lost("groups", kept(drafted.story.group.as_deref().is_some_and(has)));
    }
    if new.tags != old.tags {
        lost("labels", kept(old.tags.iter().all(|tag| has(tag))));
    }
    if new.refs != old.refs {
        lost("references to requirements", kept(old.refs.iter().all(|reference| has(reference))));
    }
    if new.needs_no_change != old.needs_no_change {
        lost("that no file has to change", kept(has("No file has to change")));
    }
    if !old.notes.is_empty() && flat(&new.notes) != flat(&old.notes) {
        lost("notes", kept(has(&old.notes)));
    }
    let missing: Vec<&Check> = old.checks.iter().filter(|check| !new.checks.contains(check)).collect();
    if !missing.is_empty() {
        lost("checks that only some formats can run", kept(missing.iter().all(|check| has(check.label()))));
    }
    if !has(&old.description) && flat(&old.description) != new.title {
        lost("descriptions", Kept::Changed("they read differently"));
    }
    let item = |wanted: &str| {
        let wanted = flat(wanted);
        new.tasks.iter().any(|task| flat(&task.text) == wanted)
            || new.criteria.iter().any(|criterion| flat(criterion) == wanted)
    };
    let criteria: Vec<&String> = old.criteria.iter().filter(|criterion| !item(criterion)).collect();
    if !criteria.is_empty() {
        lost("criteria", kept(criteria.iter().all(|criterion| has(criterion))));
    }
    of_tasks(drafted, new, &has, &mut lost);
}

fn of_tasks(drafted: &Drafted<'_>, new: &Story, has: &dyn Fn(&str) -> bool, lost: &mut dyn FnMut(&'static str, Kept)) {
    let old = &drafted.from.tasks;
    if !drafted.asides.is_empty() {
        lost(
            "optional tasks that are open",
            if drafted.asides.iter().all(|task| has(&task.text)) { Kept::AsText } else { Kept::No },
        );
    }
    let wanted = &drafted.story.tasks;
    if new.tasks.len() != wanted.len() || wanted.iter().zip(&new.tasks).any(|(a, b)| flat(&a.text) != flat(&b.text)) {
        lost("texts of tasks", Kept::Changed("they read differently"));
        return;
    }
    let pairs = || wanted.iter().zip(&new.tasks);
    let ticked = |task: &Task| old.iter().any(|from| from.id == task.id && from.state != WorkState::Done);
    if wanted.iter().any(|task| task.state == WorkState::Done && ticked(task)) {
        lost("open tasks of stories that are done", Kept::Changed("they are ticked, or the story would count as open"));
    }
    if wanted.len() > old.len() {
        lost("boxes", Kept::Changed("a story without one that says how it stands got one"));
    }
    if pairs().any(|(a, b)| (a.state == WorkState::Done) != (b.state == WorkState::Done)) {
        lost("which tasks of an open story are done", Kept::No);
    } else if pairs().any(|(a, b)| a.state != b.state) {
        lost("states of tasks beyond open and done", Kept::No);
    }
    if pairs().any(|(a, b)| a.optional != b.optional) {
        lost("which tasks are optional", Kept::No);
    }
    if pairs().any(|(a, b)| a.parent.is_some() != b.parent.is_some()) {
        lost("tasks within tasks", Kept::Changed("they stand beside each other"));
    }
    if pairs().any(|(a, b)| a.tags != b.tags || a.refs != b.refs || a.deps != b.deps) {
        lost("labels, references and dependencies of tasks", Kept::No);
    }
}

fn of_plan(old: &Plan, new: &Plan, losses: &mut Losses) {
    let mut lost = |what, is_lost: bool, kept| {
        if is_lost {
            losses.add(what, None, kept);
        }
    };
    let (had, has) = (&old.context, &new.context);
    lost("the branch", old.branch.is_some() && new.branch != old.branch, Kept::No);
    lost("the commands that check every story", old.gates != new.gates && !old.gates.is_empty(), Kept::No);
    let beside = Kept::Changed("left out; such files are read if they stand beside it");
    lost("the proposal", !had.proposal.is_empty() && flat(&had.proposal) != flat(&has.proposal), beside.clone());
    lost("the design", !had.design.is_empty() && had.design != has.design, beside.clone());
    lost("constraints", had.constraints != has.constraints, Kept::No);
    lost("requirements with their scenarios", !had.requirements.is_empty() && has.requirements.is_empty(), beside);
    lost("the context of the project", !had.project.is_empty() && had.project != has.project, Kept::No);
}
