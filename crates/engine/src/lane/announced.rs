//! What landings write into the spec in the user's checkout: for a moment it stands there and the run has not been told yet. Whoever
//! looks at the spec just then must not take it for a person's edit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use ralphloop_core::ids::StoryId;
use ralphloop_core::plan::{Plan, Story, WorkState};

/// Stories as the run writes them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ours {
    /// Ticked by landings.
    pub(crate) landed: BTreeSet<StoryId>,
    /// With a task that was added.
    pub(crate) mended: BTreeMap<StoryId, Story>,
}

impl Ours {
    /// Whether what was read is what was known, but for what the run has written itself. What a person does to a story that
    /// is done changes nothing.
    pub(crate) fn is_all_that_changed(&self, now: &Plan, known: &Plan) -> bool {
        let mut now = now.clone();
        let is_ours = |story: &Story| {
            (self.landed.contains(&story.id) && story.state == WorkState::Done)
                || self.mended.get(&story.id) == Some(story)
        };
        for story in now.stories.iter_mut().filter(|story| is_ours(story)) {
            if let Some(before) = known.story(&story.id) {
                story.clone_from(before);
            }
        }
        now == *known
    }
}

/// What was announced and not told.
#[derive(Debug, Default)]
pub struct Announced(Mutex<Ours>);

impl Announced {
    /// The story is about to be ticked.
    pub(super) fn landing(&self, story: &StoryId) {
        self.change(|ours| ours.landed.extend([story.clone()]));
    }

    /// The story is about to be written like this.
    pub(super) fn mending(&self, story: &Story) {
        self.change(|ours| ours.mended.extend([(story.id.clone(), story.clone())]));
    }

    /// It was not written after all.
    pub(super) fn withdraw(&self, story: &StoryId) {
        self.change(|ours| {
            ours.landed.remove(story);
            ours.mended.remove(story);
        });
    }

    /// What a run that knows this plan, and that these have landed, need not take for an edit. What it knows by now is
    /// forgotten here.
    pub(super) fn beside(&self, known: &Plan, mut landed: BTreeSet<StoryId>) -> Ours {
        let mut announced = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        announced.landed.retain(|story| !landed.contains(story));
        announced.mended.retain(|story, written| known.story(story) != Some(&*written));
        landed.extend(announced.landed.iter().cloned());
        Ours { landed, mended: announced.mended.clone() }
    }

    fn change(&self, how: impl FnOnce(&mut Ours)) {
        how(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str) -> Plan {
        let file = ralphloop_spec::SpecText::new("prd.json", text);
        let files = ralphloop_spec::SpecFiles::single(ralphloop_core::plan::Scheme::Prd, file);
        ralphloop_spec::read(&files).unwrap().plan
    }

    fn two(first: &str, second: &str) -> Plan {
        plan(&format!(r#"{{"userStories":[{{"id":"S1",{first}}},{{"id":"S2",{second}}}]}}"#))
    }

    #[test]
    fn only_what_the_run_writes_itself_is_no_edit() {
        let known = two(r#""title":"A","passes":false"#, r#""title":"B","passes":false"#);
        let ticked = two(r#""title":"A","passes":true"#, r#""title":"B","passes":false"#);
        let mended = two(r#""title":"A","passes":false"#, r#""title":"B, mended","passes":false"#);
        let edited = two(r#""title":"A","passes":false"#, r#""title":"B, by hand","passes":false"#);
        let announced = Announced::default();
        let same = |now: &Plan| announced.beside(&known, BTreeSet::new()).is_all_that_changed(now, &known);
        assert!(same(&known) && !same(&ticked) && !same(&mended));
        announced.landing(&"S1".into());
        announced.mending(mended.story(&"S2".into()).unwrap());
        assert!(same(&known) && same(&ticked) && same(&mended) && !same(&edited));
        announced.withdraw(&"S1".into());
        assert!(!same(&ticked) && same(&mended));
        // Once the run knows it, the same text is an edit if it comes back later.
        announced.beside(&mended, BTreeSet::new());
        assert!(!same(&mended));
    }
}
