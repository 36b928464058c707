//! Which story is next, which can never start, and how the run ends when none is left.

use std::collections::{BTreeMap, BTreeSet};

use super::attempt::{Attempt, Phase};
use super::story::{StoryRecord, StoryState};
use super::{Activity, Run, Wait};
use crate::effect::{Effect, Ground};
use crate::graph::{cycle, in_rank, touched_files};
use crate::ids::{AgentId, AttemptId, CommitId, LaneId, StoryId};
use crate::outcome::{Bound, Outcome};
use crate::plan::{Plan, Story, StoryKind, WorkState};

impl Run {
    /// A record for every story of the plan that has none yet, or that was taken out and is back.
    pub(super) fn enrol_stories(&mut self) {
        for story in &self.plan.stories {
            let selected = self.policy.selects(story);
            match self.stories.get_mut(&story.id) {
                None => {
                    self.stories.insert(story.id.clone(), StoryRecord::first(story, selected));
                }
                Some(record) if record.taken_out => {
                    record.taken_out = false;
                    record.selected = selected;
                    if record.state == StoryState::Skipped && !record.is_put_aside() {
                        let first = StoryRecord::first(story, selected);
                        record.state = first.state;
                        record.reason = first.reason;
                    }
                }
                Some(_) => {}
            }
        }
    }

    /// A person's edits win, but for the commands of known stories: those are the ones read when the run started.
    pub(super) fn adopt_edits(&mut self, edited: &Plan) {
        let pinned: BTreeMap<StoryId, _> = self.plan.stories.iter().map(|s| (s.id.clone(), s.checks.clone())).collect();
        let mut plan = edited.clone();
        for story in &mut plan.stories {
            if let Some(checks) = pinned.get(&story.id) {
                story.checks.clone_from(checks);
            }
        }
        self.adopt(plan);
    }

    /// The plan as it reads now, but for the stories that are being worked on: what an attempt began with holds until it is
    /// over.
    pub(super) fn adopt(&mut self, mut plan: Plan) {
        let goes_on = |attempt: &&Attempt| !matches!(attempt.phase, Phase::Reverting { .. });
        for begun in self.attempts.values().filter(goes_on).filter_map(|a| self.plan.story(&a.id.story)) {
            match plan.stories.iter_mut().find(|s| s.id == begun.id) {
                Some(story) => story.clone_from(begun),
                None => plan.stories.push(begun.clone()),
            }
        }
        self.plan = plan;
        self.enrol_stories();
        self.stories.values_mut().for_each(StoryRecord::unblock);
    }

    /// Stories that were ticked or taken out of the spec are not begun.
    fn heed_the_plan(&mut self) {
        for (id, record) in &mut self.stories {
            let open = !record.state.passed() && record.state != StoryState::Running;
            match self.plan.stories.iter().find(|s| s.id == *id) {
                Some(story) if open && story.state == WorkState::Done => {
                    record.state = match record.state.clone() {
                        // A person has signed it.
                        StoryState::AwaitsSignOff { commit, ground } => StoryState::Landed { commit, ground },
                        _ => StoryState::DoneBefore,
                    };
                    record.reason = None;
                }
                None if open => {
                    record.selected = false;
                    record.taken_out = true;
                    if record.state == StoryState::Pending {
                        record.state = StoryState::Skipped;
                        record.reason = Some("it was taken out of the spec".to_owned());
                    }
                }
                _ => {}
            }
        }
    }

    /// Chooses stories for the lanes that are free and begins attempts, or ends the run.
    pub(super) fn select(&mut self) -> Vec<Effect> {
        if let Some(outcome) = self.asked_to_end() {
            return self.end(outcome);
        }
        self.activity = Activity::Working;
        self.heed_the_plan();
        self.heed_the_clock();
        self.skip_what_cannot_be_verified();
        if let Some((story, reason)) = self.stranded() {
            return self.strand(&story, reason);
        }
        self.block_dependants();
        let mut effects = self.call_the_held();
        while self.has_place() {
            let Some(story) = self.next_story() else { break };
            if let Some(outcome) = self.bound_reached() {
                // Whatever is under way may still land.
                return if self.is_idle() { self.end(outcome) } else { effects };
            }
            effects.extend(self.begin(story));
        }
        effects.extend(self.put_back_the_lost());
        if self.is_idle()
            && let Some(outcome) = self.stories_used_up()
        {
            return self.end(outcome);
        }
        let held = self.held();
        if !held.is_empty() {
            effects.extend(self.hold(&held));
            return effects;
        }
        if self.has_place()
            && let Some(waits) = self.rest()
        {
            effects.extend(waits);
            return effects;
        }
        if self.is_idle() {
            self.block_what_waits_for_itself();
            let outcome = self.final_outcome();
            return self.end(outcome);
        }
        effects
    }

    /// The agents that are waited for: by calls that are held, and, if there is room, by stories that could begin otherwise.
    fn held(&self) -> Vec<AgentId> {
        let mut all: BTreeSet<AgentId> = self.held_for().into_iter().collect();
        if self.has_place() {
            let ready = self.plan.stories.iter().filter(|story| self.is_ready(story));
            all.extend(ready.flat_map(|story| self.candidates(&story.id)).cloned());
        }
        self.chain.iter().filter(|agent| all.contains(agent)).cloned().collect()
    }

    /// Waits for the first of the stories that are not to be tried again at once, if there is one.
    fn rest(&mut self) -> Option<Vec<Effect>> {
        let resting = self.stories.iter().filter(|(_, record)| record.selected && record.state == StoryState::Pending);
        let (story, rest) =
            resting.filter_map(|(id, record)| Some((id, record.rest?))).min_by_key(|(_, rest)| rest.until)?;
        let (until, span) = (rest.until, rest.until.since(self.last_at));
        let reason = format!("waiting before {story} is tried again");
        if let Some(max) = self.policy.budget.duration
            && self.active_time.saturating_add(span) > max
        {
            let reason =
                format!("a wait of {} s would outlast the {} s of the run: {reason}", span.as_secs(), max.as_secs());
            let outcome = Outcome::BoundReached { bound: Bound::Duration, reason, resume_at: Some(until) };
            return self.is_idle().then(|| self.end(outcome));
        }
        self.activity = Activity::Waiting(Wait { until, reason, span });
        Some(vec![Effect::Sleep { until }])
    }

    /// A story can be tried no further, since nobody is left that it could move up to.
    fn strand(&mut self, story: &StoryId, reason: String) -> Vec<Effect> {
        if let Some(record) = self.stories.get_mut(story) {
            record.state = StoryState::Failed;
            record.reason = Some(reason);
        }
        self.exhausted(story)
    }

    /// Another story may begin. The one whose turn it is to land leaves its place to the next: agents that could work wait
    /// for no landing.
    pub(super) fn has_place(&self) -> bool {
        let lands = self.policy.lanes() > 1 && self.first_in_line().is_some();
        self.attempts.len() < self.policy.lanes() + usize::from(lands)
    }

    /// An agent may be called for the attempt, which is held: of the others no more are at work than leave a place. One that
    /// comes back from the line finds its place taken.
    pub(super) fn may_work(&self, id: &AttemptId) -> bool {
        let lands = self.first_in_line().map(|attempt| &attempt.id);
        let others = self.attempts.values().filter(|a| a.id != *id && !a.rests() && Some(&a.id) != lands);
        others.count() < self.policy.lanes()
    }

    fn begin(&mut self, story: StoryId) -> Option<Effect> {
        let lane = self.free_lane();
        let record = self.stories.get_mut(&story)?;
        record.attempts += 1;
        record.state = StoryState::Running;
        let attempt = AttemptId { story: story.clone(), number: record.attempts };
        self.attempts.insert(story, Attempt::new(attempt.clone(), lane, self.baseline.clone()));
        Some(Effect::Begin { attempt, lane })
    }

    /// The lowest lane that nothing lives or lies in.
    fn free_lane(&self) -> LaneId {
        let used: BTreeSet<LaneId> =
            self.attempts.values().map(|a| a.lane).chain(self.unclean.values().map(|left| left.lane)).collect();
        // As many are used as there are attempts and leavings, so that one of the first of them, or the next, is free.
        (0..=u32::MAX).map(LaneId).find(|lane| !used.contains(lane)).unwrap_or(LaneId(u32::MAX))
    }

    /// The first story in rank that can start. Where several lanes are in use, one that shares no file with what is under
    /// way goes before one that does.
    fn next_story(&self) -> Option<StoryId> {
        let ready: Vec<&Story> = in_rank(&self.plan).into_iter().filter(|story| self.can_begin(story)).collect();
        let busy: BTreeSet<&str> =
            self.attempts.keys().filter_map(|id| self.plan.story(id)).flat_map(|story| self.files_of(story)).collect();
        let apart = ready.iter().find(|story| busy.is_empty() || self.files_of(story).is_disjoint(&busy));
        apart.or(ready.first()).map(|story| story.id.clone())
    }

    /// The files that a story says it is about, and those that its attempts have changed so far.
    fn files_of<'r>(&'r self, story: &'r Story) -> BTreeSet<&'r str> {
        let shown = self.stories.get(&story.id).into_iter().flat_map(|record| &record.shown);
        touched_files(story).into_iter().chain(shown.map(String::as_str)).collect()
    }

    /// An attempt of the story was seen to have changed these.
    pub(super) fn note_files(&mut self, story: &StoryId, files: &[String]) {
        if let Some(record) = self.stories.get_mut(story) {
            record.shown.extend(files.iter().cloned());
        }
    }

    fn can_begin(&self, story: &Story) -> bool {
        self.is_ready(story) && self.agent_for(&story.id).is_some() && (self.is_begun(story) || self.may_begin_more())
    }

    pub(super) fn is_begun(&self, story: &Story) -> bool {
        self.stories.get(&story.id).is_some_and(|record| record.attempts > 0)
    }

    pub(super) fn is_ready(&self, story: &Story) -> bool {
        self.stories.get(&story.id).is_some_and(|r| r.selected && r.state == StoryState::Pending && r.rest.is_none())
            && story.deps.iter().all(|dep| self.stories.get(dep).is_none_or(|d| d.state.passed()))
    }

    /// With `require_verify`, a story that no gate and no check can prove is not run.
    fn skip_what_cannot_be_verified(&mut self) {
        if !self.policy.require_verify || !self.policy.gates.is_empty() {
            return;
        }
        for story in self.plan.stories.iter().filter(|s| s.checks.is_empty()) {
            if let Some(record) = self.stories.get_mut(&story.id)
                && record.selected
                && record.state == StoryState::Pending
            {
                record.state = StoryState::Skipped;
                record.reason = Some("no gate and no check can verify it, and --require-verify is set".to_owned());
            }
        }
    }

    /// A pending story that waits for something which will not land in this run is blocked, and so are those that
    /// wait for it.
    fn block_dependants(&mut self) {
        self.stories.values_mut().for_each(StoryRecord::unblock);
        loop {
            let hopeless = |dep: &StoryId| {
                self.stories.get(dep).is_some_and(|d| match d.state {
                    StoryState::Failed
                    | StoryState::Blocked
                    | StoryState::Skipped
                    | StoryState::AwaitsSignOff { .. } => true,
                    StoryState::Pending => !d.selected,
                    StoryState::Running | StoryState::Landed { .. } | StoryState::DoneBefore => false,
                })
            };
            let blocked = self.plan.stories.iter().find_map(|story| {
                let record = self.stories.get(&story.id)?;
                if !record.selected || record.state != StoryState::Pending {
                    return None;
                }
                story.deps.iter().find(|dep| hopeless(dep)).map(|dep| (story.id.clone(), dep.clone()))
            });
            let Some((story, dep)) = blocked else { return };
            let why = match self.stories.get(&dep) {
                Some(record) if matches!(record.state, StoryState::AwaitsSignOff { .. }) => "awaits a sign-off",
                Some(record) if !record.taken_out => "has not landed",
                _ => "is not in the spec",
            };
            if let Some(record) = self.stories.get_mut(&story) {
                let reason = format!("it depends on {dep}, which {why}");
                record.block(dep, reason);
            }
        }
    }

    /// What is pending although nothing can start waits for itself: a person's edit made a cycle.
    fn block_what_waits_for_itself(&mut self) {
        let way = cycle(&self.plan.stories)
            .map_or(String::new(), |way| way.iter().map(StoryId::as_str).collect::<Vec<_>>().join(" → "));
        for story in &self.plan.stories {
            if let Some(record) = self.stories.get_mut(&story.id)
                && record.selected
                && record.state == StoryState::Pending
                && let Some(dep) = story.deps.first()
            {
                record.block(dep.clone(), format!("it waits for itself, or for a story that does: {way}"));
            }
        }
    }

    /// All that is left is for a person to sign, or waits for that: the run pauses for that person.
    fn awaits_sign_off(&self) -> Option<Outcome> {
        let unsigned: Vec<&StoryId> =
            self.plan.stories.iter().map(|story| &story.id).filter(|id| self.is_unsigned(id)).collect();
        let first = unsigned.first()?;
        let left = self.stories.iter().filter(|(_, record)| record.selected && !record.state.passed());
        for (id, record) in left {
            let mut waits_for = (id, record);
            // A chain that is longer than the plan goes round.
            for _ in 0..self.stories.len() {
                let Some(next) = waits_for.1.waits_for.as_ref() else { break };
                waits_for = (next, self.stories.get(next)?);
            }
            if !self.is_unsigned(waits_for.0) {
                return None;
            }
        }
        let named = unsigned.iter().map(|id| id.as_str()).collect::<Vec<_>>().join(", ");
        let awaits = if unsigned.len() == 1 { "awaits a sign-off" } else { "await a sign-off" };
        Some(Outcome::Paused {
            reason: format!(
                "{named} {awaits}: look at what landed, then `ralphloop sign {first}` says that it is done, and `ralphloop \
                 retry {first}` has it done again"
            ),
        })
    }

    fn is_unsigned(&self, story: &StoryId) -> bool {
        self.stories.get(story).is_some_and(|record| matches!(record.state, StoryState::AwaitsSignOff { .. }))
    }

    /// Takes in what landed in earlier runs and is not signed, unless it was asked for by name.
    pub(super) fn know_unsigned(&mut self, unsigned: &[(StoryId, CommitId)]) {
        for (story, commit) in unsigned.iter().filter(|(story, _)| !self.policy.only.contains(story)) {
            if let Some(record) = self.stories.get_mut(story)
                && record.state == StoryState::Pending
            {
                // Which checks there were then, nobody knows.
                record.land(self.plan.story(story), commit.clone(), Ground::Verified);
            }
        }
    }

    /// How the run ends when no story can be started.
    fn final_outcome(&self) -> Outcome {
        let selected = || self.stories.iter().filter(|(_, r)| r.selected);
        if selected().all(|(_, r)| r.state.passed()) && self.stories.values().any(|r| r.state.passed()) {
            return Outcome::Complete;
        }
        if let Some(outcome) = self.awaits_sign_off() {
            return outcome;
        }
        let only_skipped = selected().all(|(_, r)| r.state == StoryState::Skipped);
        if selected().any(|(_, r)| !r.state.passed()) && (self.calls > 0 || !only_skipped) {
            return Outcome::Failed;
        }
        if let Some(reason) = selected().find_map(|(_, r)| r.reason.clone()) {
            return Outcome::NothingToDo { reason };
        }
        Outcome::NothingToDo { reason: "no story of the work is open".to_owned() }
    }
}

impl StoryRecord {
    /// Of a story that the run sees for the first time.
    pub(super) fn first(story: &Story, selected: bool) -> Self {
        let (state, reason) = match story.state {
            WorkState::Done => (StoryState::DoneBefore, None),
            _ if selected => (StoryState::Pending, None),
            WorkState::Blocked => (StoryState::Blocked, Some("the spec says that it is blocked".to_owned())),
            WorkState::Skipped => (StoryState::Skipped, Some("the spec says that it is not to be done".to_owned())),
            _ if story.kind == StoryKind::Epic => (StoryState::Skipped, Some("it only groups others".to_owned())),
            _ if story.needs_sign_off() => {
                (StoryState::Skipped, Some("a person would have to sign it, and --skip-manual is set".to_owned()))
            }
            _ if story.optional => (StoryState::Skipped, Some("it is optional".to_owned())),
            _ => (StoryState::Pending, Some("it was not selected".to_owned())),
        };
        Self::new(state, selected, reason)
    }
}
