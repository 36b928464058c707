//! Dependencies between stories: names that nobody has, and rings.

use std::collections::{HashMap, HashSet};

use ralphloop_core::plan::{Story, WorkState};

use crate::error::{Code, Diagnostic, ErrorClass, SpecError};

/// A dependency that names no story: the story that has it, and the name.
pub(crate) fn unknown(stories: &[Story]) -> Vec<(&Story, &str)> {
    let known: HashSet<&str> = stories.iter().map(|story| story.id.as_str()).collect();
    let all = stories.iter().flat_map(|story| story.deps.iter().map(move |dep| (story, dep.as_str())));
    all.filter(|(_, dep)| !known.contains(dep)).collect()
}

/// The rings among stories that are not done, each once, written from its first story in the file on.
fn cycles(stories: &[Story]) -> Vec<Vec<&Story>> {
    let index: HashMap<&str, usize> = stories.iter().enumerate().map(|(at, s)| (s.id.as_str(), at)).collect();
    let open = |at: &usize| stories[*at].state != WorkState::Done;
    let next: Vec<Vec<usize>> = stories
        .iter()
        .map(|story| story.deps.iter().filter_map(|dep| index.get(dep.as_str()).copied()).filter(open).collect())
        .collect();

    let mut rings = Vec::new();
    let mut finished = vec![false; stories.len()];
    for start in (0..stories.len()).filter(open) {
        walk(start, &next, &mut finished, &mut rings);
    }
    rings.into_iter().map(|ring| ring.into_iter().map(|at| &stories[at]).collect()).collect()
}

/// Depth first without recursion: a step back onto the path closes a ring.
fn walk(start: usize, next: &[Vec<usize>], finished: &mut [bool], rings: &mut Vec<Vec<usize>>) {
    if finished[start] {
        return;
    }
    let mut path = vec![start];
    let mut cursor = vec![0];
    let mut on_path = HashSet::from([start]);
    while let (Some(at), Some(step)) = (path.last().copied(), cursor.last_mut()) {
        let Some(target) = next[at].get(*step).copied() else {
            finished[at] = true;
            on_path.remove(&at);
            path.pop();
            cursor.pop();
            continue;
        };
        *step += 1;
        if on_path.contains(&target) {
            let from = path.iter().position(|member| *member == target).unwrap_or(0);
            rings.push(rotated(&path[from..]));
        } else if !finished[target] {
            path.push(target);
            cursor.push(0);
            on_path.insert(target);
        }
    }
}

fn rotated(ring: &[usize]) -> Vec<usize> {
    let first = ring.iter().enumerate().min_by_key(|(_, member)| **member).map_or(0, |(at, _)| at);
    ring[first..].iter().chain(&ring[..first]).copied().collect()
}

/// An error that spells out every ring among stories that are not done.
pub(crate) fn refuse_cycles(file: &str, stories: &[Story]) -> Result<(), SpecError> {
    let cycles = cycles(stories);
    let Some(ring) = cycles.first() else { return Ok(()) };
    let each = cycles.iter().map(|ring| spelled(ring)).collect::<Vec<_>>().join("; ");
    let message = format!("these stories wait for each other and none can start: {each}");
    let mut error = SpecError::new(ErrorClass::DependencyCycle, file, message);
    error.line = ring.first().and_then(|story| story.line);
    Err(error.with_help("remove one of these dependencies"))
}

/// A warning for every dependency that names no story, where that holds nothing up.
pub(crate) fn unknown_warnings(file: &str, stories: &[Story]) -> Vec<Diagnostic> {
    let warning = |(story, dep): (&Story, &str)| {
        let message = format!(
            "story {:?} depends on {dep:?}, which is not in this file; it is not waited for",
            story.id.as_str()
        );
        Diagnostic::warning(Code::UnknownDependency, file, story.line, message)
    };
    unknown(stories).into_iter().map(warning).collect()
}

/// `B → D → C → B`.
fn spelled(ring: &[&Story]) -> String {
    let ids = ring.iter().chain(ring.first()).map(|story| story.id.as_str());
    ids.collect::<Vec<_>>().join(" → ")
}
