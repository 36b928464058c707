//! The engine's part of the world: a task is added to the spec that mends another.

use ralphloop_core::effect::FixTask;
use ralphloop_core::event::Fact;
use ralphloop_core::ids::{AttemptId, CallNumber, CommitId, TaskId};
use ralphloop_core::plan::Task;

use super::lane::Slot;
use super::rng::Rng;
use super::scenario::Faults;
use super::world::{Breach, World};

impl World {
    pub(crate) fn add_fix_task(
        &mut self,
        rng: &mut Rng,
        faults: &Faults,
        (attempt, slot): (AttemptId, Slot),
        fix: &FixTask,
    ) -> Result<Fact, Breach> {
        self.quiet(slot, "a task is added")?;
        let task = TaskId(format!("{}a", fix.of));
        if self.mended.contains(&attempt.story)
            && let Some(story) = self.story(&attempt.story)
        {
            let story = Box::new(story.clone());
            self.checkpoints.remove(&attempt);
            return Ok(Fact::FixTaskAdded { attempt, task, story, commit: None });
        }
        self.at_home(&attempt, slot)?;
        if !self.checkpoints.contains(&attempt) {
            return Err(format!("{attempt}: a task is added without a checkpoint"));
        }
        if self.lane(slot).is_dirty() {
            return Err(format!("{attempt}: a task is added in a lane that holds work"));
        }
        if let Some(fact) = self.bars_commit(rng, faults, &attempt, slot) {
            return Ok(fact);
        }
        let head = self.head();
        if self.lane(slot).base != Some(head) {
            return Err(format!("{attempt}: a task is added on an old commit"));
        }
        let refusal = match rng.below(4) {
            _ if !rng.chance(faults.git * 4) => None,
            0 => Some(Fact::LandingFailed { attempt: attempt.clone(), why: "cannot sign".to_owned() }),
            1 => Some(Fact::NoFixTask { attempt: attempt.clone(), why: "no letter is left".to_owned() }),
            2 if slot != 0 => Some(Fact::LandingBlocked { attempt: attempt.clone(), why: "tasks.md".to_owned() }),
            _ => {
                let (by, output) = ("commit-msg".to_owned(), "no".to_owned());
                Some(Fact::LandingRefused { attempt: attempt.clone(), call: CallNumber(0), by, output })
            }
        };
        if let Some(refusal) = refusal {
            self.lane(slot).refusal = Some(refusal.clone());
            return Ok(refusal);
        }
        let Some(story) = self.plan.stories.iter_mut().find(|story| story.id == attempt.story) else {
            return Ok(Fact::NoFixTask { attempt, why: "the story is no longer in the spec".to_owned() });
        };
        story.tasks.push(Task { mends: Some(fix.of.clone()), ..super::scenario::task(task.0.as_str()) });
        let story = Box::new(story.clone());
        self.mended.insert(attempt.story.clone());
        let work = self.heads.last().copied().unwrap_or(0);
        self.heads.push(work);
        let commit = Some(CommitId(format!("fix of {}", attempt.story)));
        self.lane(slot).resident = None;
        self.checkpoints.remove(&attempt);
        Ok(Fact::FixTaskAdded { attempt, task, story, commit })
    }
}
