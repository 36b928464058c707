//! What stands on the disk where a worktree is or is to be, and the next step towards what is wanted there.
//!
//! A process may die between any two steps, and others begin and end runs in the same repository meanwhile. So no step relies
//! on one that is remembered: each is chosen by what is seen, again and again, until none is left to do.

/// A folder that may hold a worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tree {
    /// There is none.
    Missing,
    /// It is being made or taken away, or that was cut off. Nothing is in it that nothing else keeps.
    Partial,
    /// It can be worked in.
    Whole,
}

/// What is seen of the place of a run's worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// It is in the run's own folder and goes with the run.
    Own(Tree),
    /// It is one of the numbered places of a pool, which outlive runs.
    Pooled {
        /// A mark beside it says that it is this run's. Nobody else uses it then.
        is_marked: bool,
        /// What is there.
        tree: Tree,
        /// A lane of this run leads to it.
        is_linked: bool,
    },
}

/// What becomes of a worktree that is whole once its run is done with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Afterwards {
    /// It stays for the next run, if it is in a pool.
    Kept,
    /// It is taken away.
    Removed,
}

/// One change on the disk. Each is done whole or, if the process dies in it, seen as not done or as half made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Mark a place of the pool that is nobody's as the run's: this one, or another if there is none here.
    Take,
    /// Take away what is left of a partial one.
    Clear,
    /// Make the worktree, if the disk has room for it.
    Make,
    /// Let the lane lead to the place.
    Link,
    /// Say that the worktree is to go, unless it holds something that nothing else keeps: it is a partial one from then on.
    Condemn,
    /// Let the lane lead nowhere.
    Unlink,
    /// Take the mark away, so that any run may use the place.
    GiveBack,
}

impl Seen {
    /// The next step until an attempt can begin there.
    pub fn to_open(self) -> Option<Step> {
        match self {
            Self::Pooled { is_marked: false, .. } => Some(Step::Take),
            Self::Own(Tree::Partial) | Self::Pooled { tree: Tree::Partial, .. } => Some(Step::Clear),
            Self::Own(Tree::Missing) | Self::Pooled { tree: Tree::Missing, .. } => Some(Step::Make),
            Self::Pooled { tree: Tree::Whole, is_linked: false, .. } => Some(Step::Link),
            Self::Own(Tree::Whole) | Self::Pooled { tree: Tree::Whole, is_linked: true, .. } => None,
        }
    }

    /// The next step until the run has nothing there any more. What attempts did there is put back or kept before.
    pub fn to_close(self, afterwards: Afterwards) -> Option<Step> {
        match self {
            Self::Own(Tree::Missing) | Self::Pooled { is_marked: false, is_linked: false, .. } => None,
            Self::Own(Tree::Partial) | Self::Pooled { is_marked: true, tree: Tree::Partial, .. } => Some(Step::Clear),
            Self::Own(Tree::Whole) => Some(Step::Condemn),
            Self::Pooled { is_marked: true, tree: Tree::Whole, .. } if afterwards == Afterwards::Removed => {
                Some(Step::Condemn)
            }
            // The link goes before the mark: once that is gone somebody else may work here, and no lane of the run leads there.
            Self::Pooled { is_linked: true, .. } => Some(Step::Unlink),
            Self::Pooled { .. } => Some(Step::GiveBack),
        }
    }

    /// The next step until nothing is there of a run whose process is dead but what attempts may have worked in. That is
    /// adopted when the run is gone on with, or put right first.
    pub fn to_tidy(self, afterwards: Afterwards) -> Option<Step> {
        match self {
            Self::Own(Tree::Whole) | Self::Pooled { is_marked: true, tree: Tree::Whole, is_linked: true } => None,
            _ => self.to_close(afterwards),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREES: [Tree; 3] = [Tree::Missing, Tree::Partial, Tree::Whole];

    /// Everything that can be seen.
    fn all() -> Vec<Seen> {
        let mut all = Vec::new();
        for tree in TREES {
            all.push(Seen::Own(tree));
            for (is_marked, is_linked) in [(false, false), (false, true), (true, false), (true, true)] {
                all.push(Seen::Pooled { is_marked, tree, is_linked });
            }
        }
        all
    }

    /// What is seen after a step that succeeds.
    fn after(seen: Seen, step: Step) -> Seen {
        match (seen, step) {
            (Seen::Own(_), Step::Clear) => Seen::Own(Tree::Missing),
            (Seen::Own(_), Step::Condemn) => Seen::Own(Tree::Partial),
            (Seen::Own(_), Step::Make) => Seen::Own(Tree::Whole),
            (Seen::Pooled { tree, .. }, Step::Take) => Seen::Pooled { is_marked: true, tree, is_linked: false },
            (Seen::Pooled { is_marked, is_linked, .. }, Step::Clear) => {
                Seen::Pooled { is_marked, tree: Tree::Missing, is_linked }
            }
            (Seen::Pooled { is_marked, is_linked, .. }, Step::Condemn) => {
                Seen::Pooled { is_marked, tree: Tree::Partial, is_linked }
            }
            (Seen::Pooled { is_marked, is_linked, .. }, Step::Make) => {
                Seen::Pooled { is_marked, tree: Tree::Whole, is_linked }
            }
            (Seen::Pooled { is_marked, tree, .. }, Step::Link) => Seen::Pooled { is_marked, tree, is_linked: true },
            (Seen::Pooled { is_marked, tree, .. }, Step::Unlink) => Seen::Pooled { is_marked, tree, is_linked: false },
            (Seen::Pooled { tree, is_linked, .. }, Step::GiveBack) => {
                Seen::Pooled { is_marked: false, tree, is_linked }
            }
            (seen, step) => panic!("{step:?} is no step for {seen:?}"),
        }
    }

    /// The steps from `seen` on, and what is seen at their end.
    fn steps(mut seen: Seen, next: impl Fn(Seen) -> Option<Step>) -> (Vec<Step>, Seen) {
        let mut steps = Vec::new();
        while let Some(step) = next(seen) {
            steps.push(step);
            seen = after(seen, step);
            assert!(steps.len() < 10, "{steps:?} has no end");
        }
        (steps, seen)
    }

    #[test]
    fn from_whatever_is_seen_a_lane_comes_to_a_whole_worktree_that_is_its_runs() {
        for seen in all() {
            let (_, end) = steps(seen, Seen::to_open);
            let ready = Seen::Pooled { is_marked: true, tree: Tree::Whole, is_linked: true };
            assert!(end == Seen::Own(Tree::Whole) || end == ready, "{seen:?} comes to {end:?}");
        }
    }

    #[test]
    fn from_whatever_is_seen_a_run_comes_to_have_nothing_there() {
        for seen in all() {
            let (removed, end) = steps(seen, |seen| seen.to_close(Afterwards::Removed));
            let is_nobodys = matches!(end, Seen::Pooled { is_marked: false, is_linked: false, .. });
            assert!(end == Seen::Own(Tree::Missing) || is_nobodys, "{seen:?} comes to {end:?}");
            let (kept, _) = steps(seen, |seen| seen.to_close(Afterwards::Kept));
            if let Seen::Pooled { is_marked: true, tree: Tree::Whole, .. } = seen {
                assert!(removed.contains(&Step::Condemn) && !kept.contains(&Step::Condemn), "{removed:?} {kept:?}");
            }
        }
    }

    #[test]
    fn no_lane_leads_to_a_place_that_anybody_may_take() {
        for seen in all() {
            for afterwards in [Afterwards::Kept, Afterwards::Removed] {
                let (steps, _) = steps(seen, |seen| seen.to_close(afterwards));
                let last = |wanted| steps.iter().rposition(|step| *step == wanted);
                assert!(last(Step::Unlink) <= last(Step::GiveBack) || last(Step::GiveBack).is_none(), "{steps:?}");
            }
        }
    }

    #[test]
    fn of_a_dead_run_nothing_is_touched_that_attempts_may_have_worked_in() {
        let worked_in = [Seen::Own(Tree::Whole), Seen::Pooled { is_marked: true, tree: Tree::Whole, is_linked: true }];
        for seen in all() {
            for afterwards in [Afterwards::Kept, Afterwards::Removed] {
                let (steps, _) = steps(seen, |seen| seen.to_tidy(afterwards));
                assert_eq!(
                    steps.is_empty(),
                    worked_in.contains(&seen) || seen.to_close(afterwards).is_none(),
                    "{seen:?}"
                );
            }
        }
    }
}
