//! The plan as the other format will say it: ids that it can carry, an order that keeps what it cannot.

use std::cmp::Ordering;
use std::collections::{BTreeSet, BinaryHeap, HashMap, HashSet};

use ralphloop_core::graph;
use ralphloop_core::ids::StoryId;
use ralphloop_core::plan::{Context, SpecGate, Story, StoryKind, Task, WorkState};

use super::{Abilities, Can, Ids};
use crate::backlog::natural;
use crate::document::Reading;
use crate::label::{self, Labelled};
use crate::words;

/// What is to be written.
#[derive(Debug)]
pub(super) struct Draft<'r> {
    pub title: Option<&'r str>,
    pub project: Option<&'r str>,
    pub branch: Option<&'r str>,
    pub gates: &'r [SpecGate],
    pub context: &'r Context,
    /// In the order in which they are written, in the new ids.
    pub stories: Vec<Drafted<'r>>,
    /// What the format cannot keep out of the work otherwise: text only.
    pub left_out: Vec<&'r Story>,
}

/// A story with what it was made from.
#[derive(Debug)]
pub(super) struct Drafted<'r> {
    pub story: Story,
    pub from: &'r Story,
    /// Optional tasks that the format would make necessary: text only.
    pub asides: Vec<Task>,
}

impl<'r> Draft<'r> {
    pub(super) fn of(reading: &'r Reading, abilities: Abilities) -> Self {
        let plan = &reading.plan;
        let stays = |story: &&Story| {
            (abilities.can(Can::Skips) || story.state != WorkState::Skipped)
                && (abilities.can(Can::OptionalStories) || !story.optional)
        };
        let work = plan.stories.iter().filter(|story| story.kind == StoryKind::Story);
        let (stories, left_out): (Vec<&Story>, Vec<&Story>) = work.partition(|story| stays(story));
        let ranks_fit = abilities.can(Can::Priorities) || abilities.can(Can::ThreePriorities) && in_three(&stories);
        let ordered = match (abilities.can(Can::Deps), ranks_fit) {
            (true, true) => stories,
            (true, false) => by_rank(stories),
            (false, ranks) => by_order(&stories, ranks),
        };
        let ids = new_ids(&ordered, abilities.ids);
        let groups: HashMap<&str, &str> = plan
            .stories
            .iter()
            .filter(|story| story.kind == StoryKind::Epic)
            .map(|epic| (epic.id.as_str(), epic.title.as_str()))
            .collect();
        let untitled = plan.title.as_deref().map_or_else(|| "Tasks".to_owned(), flat);
        let mut stories: Vec<Drafted<'_>> =
            ordered.into_iter().map(|story| drafted(story, &ids, &groups, abilities, &untitled)).collect();
        if abilities.can(Can::ThreePriorities) && !ranks_fit {
            for drafted in &mut stories {
                drafted.story.priority = None;
            }
        }
        Self {
            title: plan.title.as_deref(),
            project: reading.project.as_deref(),
            branch: plan.branch.as_deref(),
            gates: &plan.gates,
            context: &plan.context,
            stories,
            left_out,
        }
    }
}

fn drafted<'r>(
    from: &'r Story,
    ids: &HashMap<&'r StoryId, StoryId>,
    groups: &HashMap<&str, &str>,
    abilities: Abilities,
    untitled: &str,
) -> Drafted<'r> {
    let mut story = from.clone();
    story.id = ids.get(&from.id).cloned().unwrap_or_else(|| from.id.clone());
    story.title = if from.title.trim().is_empty() { untitled.to_owned() } else { flat(&from.title) };
    story.deps = from.deps.iter().filter_map(|dep| ids.get(dep).cloned()).collect();
    story.group = from.group.clone().or_else(|| {
        let parent = from.parent.as_deref()?;
        Some(groups.get(parent).copied().unwrap_or(parent).to_owned())
    });
    let mut asides = Vec::new();
    if !abilities.can(Can::OwnState) {
        let aside = |task: &Task| task.optional && task.state != WorkState::Done && !abilities.can(Can::OptionalTasks);
        (asides, story.tasks) = story.tasks.into_iter().partition(aside);
        said_by_tasks(&mut story, abilities);
    }
    Drafted { story, from, asides }
}

/// Boxes are all that says whether the story is done.
fn said_by_tasks(story: &mut Story, abilities: Abilities) {
    let done = story.state == WorkState::Done;
    let own_box = abilities.ids == Ids::Box;
    for task in story.tasks.iter_mut().filter(|task| done && !task.optional) {
        task.state = WorkState::Done;
    }
    let required = || story.tasks.iter().filter(|task| !task.optional);
    let open = required().any(|task| task.state != WorkState::Done);
    if own_box || open || done && required().next().is_some() {
        return;
    }
    let lead = if story.tasks.is_empty() { "" } else { "Finish: " };
    story.tasks.push(Task {
        state: if done { WorkState::Done } else { WorkState::Todo },
        ..Task::new(format!("{}#{}", story.id, story.tasks.len() + 1), format!("{lead}{}", story.title))
    });
}

/// Blanks and line ends as single blanks.
pub(super) fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The ids that the format can carry: all as they are, or where one of them cannot stand there, all by position.
fn new_ids<'r>(stories: &[&'r Story], ids: Ids) -> HashMap<&'r StoryId, StoryId> {
    let fits = |story: &&Story| match ids {
        Ids::Any => true,
        Ids::Heading => reads(story, label::heading),
        Ids::Box => reads(story, label::task),
        Ids::Task => prefix_of_task(story.id.as_str()).is_some(),
        Ids::Group => is_group(story.id.as_str()) && reads(story, label::heading),
    };
    let apart = match ids {
        Ids::Any | Ids::Heading => true,
        Ids::Box => !nested(stories),
        Ids::Task => {
            // A backlog has one prefix.
            let prefixes = stories.iter().filter_map(|story| prefix_of_task(story.id.as_str()));
            let one: HashSet<String> = prefixes.map(str::to_lowercase).collect();
            let mut seen = HashSet::new();
            one.len() < 2 && stories.iter().all(|story| seen.insert(story.id.as_str().to_lowercase()))
        }
        // Groups come in the order of their numbers.
        Ids::Group => stories.is_sorted_by(|a, b| natural(a.id.as_str(), b.id.as_str()) == Ordering::Less),
    };
    let keep = apart && stories.iter().all(fits);
    let by_position = |position: usize| match ids {
        Ids::Any | Ids::Heading | Ids::Box => position.to_string(),
        Ids::Task => format!("task-{position}"),
        Ids::Group => format!("1.{position}"),
    };
    let new = |(index, story): (usize, &&'r Story)| {
        (&story.id, if keep { story.id.clone() } else { StoryId(by_position(index + 1)) })
    };
    stories.iter().enumerate().map(new).collect()
}

/// `task-7`, `BACK-12.1`: a prefix of letters, and a number.
pub(super) fn prefix_of_task(id: &str) -> Option<&str> {
    let (prefix, number) = id.rsplit_once('-')?;
    let letters = !prefix.is_empty() && prefix.bytes().all(|b| b.is_ascii_alphabetic());
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    (letters && number.split('.').all(digits)).then_some(prefix)
}

/// `4.2`.
fn is_group(id: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    id.split_once('.').is_some_and(|(area, group)| digits(area) && digits(group))
}

/// Every rank is one of the three that have a word of their own.
fn in_three(stories: &[&Story]) -> bool {
    stories.iter().filter_map(|story| story.priority).all(|priority| words::three(priority).is_some())
}

/// In the order in which they are taken, as far as ranks decide it.
fn by_rank(mut stories: Vec<&Story>) -> Vec<&Story> {
    stories.sort_by(|a, b| graph::rank(a, b));
    stories
}

/// The number of one is the beginning of another's, which makes the other a task of it.
fn nested(stories: &[&Story]) -> bool {
    let ids: HashSet<&str> = stories.iter().map(|story| story.id.as_str()).collect();
    ids.iter().any(|id| id.match_indices('.').any(|(at, _)| ids.contains(&id[..at])))
}

/// The label reads back as the id, and the rest as the title.
fn reads(story: &Story, label: impl Fn(&str) -> Option<Labelled>) -> bool {
    let title = flat(&story.title);
    label(&headed(story.id.as_str(), &title)).is_some_and(|found| found.id == story.id.as_str() && found.text == title)
}

/// How a story begins: `1. Title`, `US-001: Title`.
pub(super) fn headed(id: &str, title: &str) -> String {
    let number = id.starts_with(|c: char| c.is_ascii_digit());
    format!("{id}{} {title}", if number { "." } else { ":" })
}

/// A story that waits for nothing any more; the greatest is to come first.
#[derive(Debug)]
struct Ready<'r> {
    story: &'r Story,
    index: usize,
}

impl Ord for Ready<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        graph::rank(other.story, self.story).then(other.index.cmp(&self.index))
    }
}

impl PartialOrd for Ready<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ready<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ready<'_> {}

/// What a heading of a fix plan can say: whether its stories must be done, and a whole rank.
pub(super) fn urgency(story: &Story) -> (bool, f64) {
    let rank = story.priority.map_or(f64::INFINITY, |priority| priority.0);
    (story.optional, if rank.fract() == 0.0 { rank } else { f64::INFINITY })
}

/// The order in which the stories are taken, for a format whose only order is that of the file. Where the format has
/// ranks and nothing depends on anything, only stories of one rank come to stand together.
fn by_order<'r>(stories: &[&'r Story], has_ranks: bool) -> Vec<&'r Story> {
    let index: HashMap<&StoryId, usize> = stories.iter().enumerate().map(|(at, story)| (&story.id, at)).collect();
    if has_ranks && !depends(stories, &index) {
        let mut sorted = stories.to_vec();
        sorted.sort_by(|a, b| urgency(a).partial_cmp(&urgency(b)).unwrap_or(Ordering::Equal));
        return sorted;
    }
    let mut waits: Vec<BTreeSet<usize>> = Vec::with_capacity(stories.len());
    let mut followers: Vec<Vec<usize>> = vec![Vec::new(); stories.len()];
    for (at, story) in stories.iter().enumerate() {
        let before: BTreeSet<usize> =
            story.deps.iter().filter_map(|dep| index.get(dep).copied()).filter(|before| *before != at).collect();
        for before in &before {
            followers[*before].push(at);
        }
        waits.push(before);
    }
    let mut ready: BinaryHeap<Ready<'_>> = BinaryHeap::new();
    let is_ready = |at: usize| Ready { story: stories[at], index: at };
    ready.extend((0..stories.len()).filter(|at| waits[*at].is_empty()).map(is_ready));
    let mut placed = vec![false; stories.len()];
    let mut out = Vec::with_capacity(stories.len());
    while let Some(Ready { story, index: at }) = ready.pop() {
        placed[at] = true;
        out.push(story);
        for follower in std::mem::take(&mut followers[at]) {
            waits[follower].remove(&at);
            if waits[follower].is_empty() {
                ready.push(is_ready(follower));
            }
        }
    }
    // Finished stories may wait for each other; they keep their place at the end.
    out.extend(stories.iter().enumerate().filter(|(at, _)| !placed[*at]).map(|(_, story)| *story));
    out
}

/// A story depends on another one of them.
fn depends(stories: &[&Story], index: &HashMap<&StoryId, usize>) -> bool {
    stories.iter().any(|story| story.deps.iter().any(|dep| index.contains_key(dep)))
}

impl Draft<'_> {
    /// The order of the file stands for dependencies, so that ranks must not change it.
    pub(super) fn order_stands_for_deps(&self, abilities: Abilities) -> bool {
        !abilities.can(Can::Deps) && self.stories.iter().any(|drafted| !drafted.story.deps.is_empty())
    }
}
