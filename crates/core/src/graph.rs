//! Which story comes when: dependencies, order, and stages for display.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::ids::StoryId;
use crate::plan::{Plan, Story, StoryKind, WorkState};

/// The complexity of a story that states none: the middle.
const MIDDLE_COMPLEXITY: u8 = 3;

/// Which of two stories is taken first: by priority (none is last), then complexity; equal ones keep their file order.
pub fn rank(a: &Story, b: &Story) -> Ordering {
    let priority = |s: &Story| s.priority.map_or(f64::INFINITY, |p| p.0);
    priority(a)
        .total_cmp(&priority(b))
        .then_with(|| a.complexity.unwrap_or(MIDDLE_COMPLEXITY).cmp(&b.complexity.unwrap_or(MIDDLE_COMPLEXITY)))
}

/// The stories in the order in which they are taken if nothing depended on anything.
pub fn in_rank(plan: &Plan) -> Vec<&Story> {
    let mut stories: Vec<&Story> = plan.stories.iter().collect();
    stories.sort_by(|a, b| rank(a, b));
    stories
}

/// Whether the work still wants this story done.
pub fn wanted(story: &Story) -> bool {
    story.kind == StoryKind::Story
        && !story.optional
        && matches!(story.state, WorkState::Todo | WorkState::Doing | WorkState::Other)
}

/// The files that a story names in its text and its tasks: what stands in backticks and looks like a path.
pub fn touched_files(story: &Story) -> BTreeSet<&str> {
    let texts = [story.title.as_str(), story.description.as_str(), story.notes.as_str()];
    let tasks = story.tasks.iter().map(|task| task.text.as_str());
    texts
        .into_iter()
        .chain(tasks)
        .chain(story.criteria.iter().map(String::as_str))
        .flat_map(|text| text.split('`').skip(1).step_by(2).map(str::trim))
        .filter(|word| looks_like_a_path(word))
        .collect()
}

fn looks_like_a_path(word: &str) -> bool {
    let (stem, extension) = word.rsplit_once('.').unwrap_or((word, ""));
    !word.contains(char::is_whitespace)
        && !word.ends_with('/')
        && !stem.is_empty()
        && (1..=8).contains(&extension.len())
        && extension.chars().all(char::is_alphanumeric)
        && !word.starts_with("http")
}

/// The wanted stories in stages: each holds those whose wanted dependencies all stand in earlier ones, in rank order.
/// Stories on a cycle are in no stage; [`cycle`] names them.
pub fn stages(plan: &Plan) -> Vec<Vec<StoryId>> {
    let ranked: Vec<&Story> = in_rank(plan).into_iter().filter(|story| wanted(story)).collect();
    let place: HashMap<&StoryId, usize> = ranked.iter().enumerate().map(|(at, story)| (&story.id, at)).collect();
    let mut waits_for = vec![0_usize; ranked.len()];
    let mut followers: Vec<Vec<usize>> = vec![Vec::new(); ranked.len()];
    for (at, story) in ranked.iter().enumerate() {
        for before in story.deps.iter().filter_map(|dep| place.get(dep)) {
            waits_for[at] += 1;
            followers[*before].push(at);
        }
    }
    let mut stages = Vec::new();
    let mut stage: Vec<usize> = (0..ranked.len()).filter(|at| waits_for[*at] == 0).collect();
    while !stage.is_empty() {
        let mut next = Vec::new();
        for follower in stage.iter().flat_map(|at| &followers[*at]) {
            waits_for[*follower] -= 1;
            if waits_for[*follower] == 0 {
                next.push(*follower);
            }
        }
        next.sort_unstable();
        stages.push(stage.into_iter().map(|at| ranked[at].id.clone()).collect());
        stage = next;
    }
    stages
}

/// A dependency cycle among unfinished stories, in the order in which each depends on the next, the first repeated at
/// the end.
pub fn cycle(stories: &[Story]) -> Option<Vec<StoryId>> {
    let open: BTreeMap<&StoryId, &Story> =
        stories.iter().filter(|s| s.state != WorkState::Done).map(|s| (&s.id, s)).collect();
    let mut finished: BTreeSet<&StoryId> = BTreeSet::new();
    for start in stories {
        // Depth-first along dependencies; `path` holds the way from `start`, with the next dependency of each to look at.
        let mut path: Vec<(&StoryId, usize)> = vec![(&start.id, 0)];
        let mut on_path: BTreeSet<&StoryId> = BTreeSet::from([&start.id]);
        while let Some((id, next)) = path.last_mut() {
            let id = *id;
            let dep = open.get(id).filter(|_| !finished.contains(id)).and_then(|s| s.deps.get(*next));
            *next += 1;
            match dep {
                None => {
                    finished.insert(id);
                    on_path.remove(id);
                    path.pop();
                }
                Some(dep) => {
                    if !on_path.insert(dep) {
                        let at = path.iter().position(|(id, _)| *id == dep).unwrap_or(0);
                        let mut found: Vec<StoryId> = path[at..].iter().map(|(id, _)| (*id).clone()).collect();
                        found.push(dep.clone());
                        return Some(found);
                    }
                    path.push((dep, 0));
                }
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{plan, story};

    fn ids(stage: &[StoryId]) -> Vec<&str> {
        stage.iter().map(StoryId::as_str).collect()
    }

    #[test]
    fn stages_follow_dependencies_and_rank() {
        let plan = plan(vec![
            story("c").after(&["a"]),
            story("a").priority(2.0),
            story("b").priority(1.0),
            story("done").done(),
            story("d").after(&["done", "c"]),
        ]);
        let stages = stages(&plan);
        assert_eq!(stages.iter().map(|s| ids(s)).collect::<Vec<_>>(), [vec!["b", "a"], vec!["c"], vec!["d"]]);
    }

    #[test]
    fn a_cycle_is_spelled_out() {
        let plan = plan(vec![
            story("a").done(),
            story("b").after(&["a", "d"]),
            story("c").after(&["b"]),
            story("d").after(&["c"]),
        ]);
        assert_eq!(ids(&cycle(&plan.stories).unwrap()), ["b", "d", "c", "b"]);
        assert_eq!(stages(&plan), Vec::<Vec<StoryId>>::new());
    }

    #[test]
    fn a_cycle_among_finished_stories_is_none() {
        let plan =
            plan(vec![story("a").after(&["b"]).done(), story("b").after(&["a"]).done(), story("c").after(&["a"])]);
        assert_eq!(cycle(&plan.stories), None);
    }
}
