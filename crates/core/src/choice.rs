//! Which agent to try first, by what earlier attempts came to: a posterior for each agent, role and difficulty, of which the
//! lower confidence bound ranks. Whoever nothing is known of keeps its place in the list.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ids::AgentId;
use crate::plan::Story;
use crate::units::Timestamp;

/// The role of an agent that works alone.
pub const ALONE: &str = "work";
/// What is believed before anything is known: as much as two attempts, one of which landed.
const PRIOR: f64 = 1.0;
/// How many standard deviations below the mean the bound lies.
const CAUTION: f64 = 0.5;
/// After that time an outcome counts half.
const HALF_LIFE: Duration = Duration::from_hours(30 * 24);
/// What an outcome on a story of another difficulty counts.
const ELSEWHERE: f64 = 0.25;

/// How hard a story looks before anybody has tried it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Difficulty {
    /// Little to do.
    Easy,
    /// As most are.
    Medium,
    /// Much to do, or said to be complex.
    Hard,
}

impl Difficulty {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Easy, Self::Medium, Self::Hard];

    /// That of a story: by its stated complexity, else by how many things it asks for.
    pub fn of(story: &Story) -> Self {
        let (size, easy, medium) = match story.complexity {
            Some(complexity) => (usize::from(complexity), 2, 3),
            None => (story.tasks.len() + story.criteria.len(), 3, 8),
        };
        match size {
            size if size <= easy => Self::Easy,
            size if size <= medium => Self::Medium,
            _ => Self::Hard,
        }
    }
}

impl fmt::Display for Difficulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Easy => "easy",
            Self::Medium => "medium",
            Self::Hard => "hard",
        })
    }
}

/// What one attempt came to that says something of its agent: it landed, or it was charged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// When.
    pub at: Timestamp,
    /// Who, with its model.
    pub agent: AgentId,
    /// As what.
    pub role: String,
    /// On what kind of story.
    pub difficulty: Difficulty,
    /// It landed.
    pub landed: bool,
}

/// How likely an agent's attempt is to land, as far as anybody knows: a Beta distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Posterior {
    landed: f64,
    failed: f64,
}

impl Posterior {
    /// What the evidence says of that agent in that role on such stories, older outcomes counting less.
    pub fn of(evidence: &[Evidence], (agent, role, difficulty): (&AgentId, &str, Difficulty), now: Timestamp) -> Self {
        let mut posterior = Self { landed: PRIOR, failed: PRIOR };
        for one in evidence.iter().filter(|one| one.agent == *agent && one.role == role) {
            // What is from the future was noted by a clock that went wrong.
            let age = now.since(one.at).as_secs_f64() / HALF_LIFE.as_secs_f64();
            let weight = 0.5_f64.powf(age) * if one.difficulty == difficulty { 1.0 } else { ELSEWHERE };
            *(if one.landed { &mut posterior.landed } else { &mut posterior.failed }) += weight;
        }
        posterior
    }

    /// The mean.
    pub fn mean(self) -> f64 {
        self.landed / (self.landed + self.failed)
    }

    /// What is likely at the least: it ranks, so that one that is hardly known is not preferred for its luck.
    pub fn bound(self) -> f64 {
        let all = self.landed + self.failed;
        let variance = self.landed * self.failed / (all * all * (all + 1.0));
        self.mean() - CAUTION * variance.sqrt()
    }
}

/// The agents in the order in which they are tried on such stories; those of whom the same is known keep their order.
pub fn order(agents: &[AgentId], evidence: &[Evidence], difficulty: Difficulty, now: Timestamp) -> Vec<AgentId> {
    let bound = |agent: &AgentId| Posterior::of(evidence, (agent, ALONE, difficulty), now).bound();
    let mut ranked: Vec<(f64, &AgentId)> = agents.iter().map(|agent| (bound(agent), agent)).collect();
    ranked.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    ranked.into_iter().map(|(_, agent)| agent.clone()).collect()
}

/// That order for stories of every difficulty.
pub fn orders(agents: &[AgentId], evidence: &[Evidence], now: Timestamp) -> [(Difficulty, Vec<AgentId>); 3] {
    Difficulty::ALL.map(|difficulty| (difficulty, order(agents, evidence, difficulty, now)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_750_000_000_000);

    fn outcome(agent: &str, landed: bool, days_ago: i64) -> Evidence {
        let at = Timestamp(NOW.0 - days_ago * 86_400_000);
        Evidence { at, agent: agent.into(), role: ALONE.to_owned(), difficulty: Difficulty::Medium, landed }
    }

    fn first(evidence: &[Evidence], difficulty: Difficulty) -> String {
        order(&["a".into(), "b".into(), "c".into()], evidence, difficulty, NOW)[0].to_string()
    }

    #[test]
    fn those_of_whom_nothing_is_known_keep_the_listed_order() {
        let agents: Vec<AgentId> = vec!["b".into(), "a".into(), "c".into()];
        assert_eq!(order(&agents, &[], Difficulty::Easy, NOW), agents);
    }

    #[test]
    fn one_that_failed_gives_way_and_one_that_landed_stays() {
        assert_eq!(first(&[outcome("a", false, 0)], Difficulty::Medium), "b");
        assert_eq!(first(&[outcome("a", true, 0)], Difficulty::Medium), "a");
        let both = [outcome("a", false, 0), outcome("b", true, 0)];
        assert_eq!(
            order(&["a".into(), "b".into(), "c".into()], &both, Difficulty::Medium, NOW),
            ["b", "c", "a"].map(AgentId::from)
        );
    }

    #[test]
    fn much_that_is_known_beats_one_lucky_try() {
        let mut evidence: Vec<Evidence> = (0..20).map(|n| outcome("b", n % 5 != 0, 0)).collect();
        evidence.push(outcome("a", true, 0));
        assert_eq!(first(&evidence, Difficulty::Medium), "b");
    }

    #[test]
    fn old_evidence_fades_and_that_of_other_stories_counts_less() {
        let old: Vec<Evidence> = (0..3).map(|_| outcome("a", false, 900)).chain([outcome("a", true, 0)]).collect();
        assert_eq!(first(&old, Difficulty::Medium), "a");
        let elsewhere = [outcome("a", false, 0), outcome("b", false, 0), outcome("b", false, 0)];
        let easy = order(&["b".into(), "a".into()], &elsewhere, Difficulty::Easy, NOW);
        assert_eq!(easy, ["a", "b"].map(AgentId::from), "it says something of easy ones, too");
        let hard = Posterior::of(&elsewhere, (&"a".into(), ALONE, Difficulty::Hard), NOW);
        assert!(hard.bound() > Posterior::of(&elsewhere, (&"a".into(), ALONE, Difficulty::Medium), NOW).bound());
    }

    #[test]
    fn another_role_is_another_matter() {
        let evidence = [Evidence { role: "planner".to_owned(), ..outcome("a", false, 0) }];
        assert_eq!(first(&evidence, Difficulty::Medium), "a");
    }

    #[test]
    fn a_storys_difficulty_is_what_it_says_or_how_much_it_asks_for() {
        let mut story = Story::new("S", "title");
        assert_eq!(Difficulty::of(&story), Difficulty::Easy);
        story.criteria = vec!["must hold".to_owned(); 9];
        assert_eq!(Difficulty::of(&story), Difficulty::Hard);
        story.complexity = Some(3);
        assert_eq!(Difficulty::of(&story), Difficulty::Medium);
    }
}
