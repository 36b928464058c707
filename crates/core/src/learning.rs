//! What agents learned, carried into later prompts: each sentence once, not too many, the best first.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::ids::StoryId;
use crate::plan::Story;

/// How many are kept.
const MOST: usize = 200;
/// What more repetitions than these are worth no more.
const OFTEN: u32 = 5;
/// Nor more words in common with a story.
const NEAR: usize = 3;
/// Words this short say nothing.
const SHORT: usize = 3;

/// One sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Learning {
    /// The sentence, as it was first said.
    pub text: String,
    /// How often it was said.
    pub times: u32,
    /// The story at which it was first said, if it was at one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub story: Option<StoryId>,
}

/// All that is kept, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Learnings {
    list: Vec<Learning>,
}

impl Learnings {
    /// Adds what was just said. A sentence that is known counts once more, however it is spelled.
    pub fn add(&mut self, text: &str, story: Option<&StoryId>) {
        self.take(Learning { text: text.trim().to_owned(), times: 1, story: story.cloned() }, |known, _| known + 1);
    }

    /// Takes in what somebody else has kept.
    pub fn merge<'a>(&mut self, others: impl IntoIterator<Item = &'a Learning>) {
        for other in others {
            self.take(other.clone(), u32::max);
        }
    }

    fn take(&mut self, new: Learning, times: impl Fn(u32, u32) -> u32) {
        let said = key(&new.text);
        if said.is_empty() {
            return;
        }
        if let Some(known) = self.list.iter_mut().find(|known| key(&known.text) == said) {
            known.times = times(known.times, new.times);
            return;
        }
        self.list.push(new);
        if self.list.len() > MOST {
            // Of those that were said least often, the oldest; never the newest, which had no time to be said again.
            let old = &self.list[..MOST];
            let least = old.iter().enumerate().min_by_key(|(at, learning)| (learning.times, *at));
            if let Some((at, _)) = least {
                self.list.remove(at);
            }
        }
    }

    /// All, oldest first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Learning> {
        self.list.iter()
    }

    /// All, those first that are likely to matter for `story`: said at it or near it, said often, said lately.
    pub fn ranked(&self, story: Option<&Story>) -> Vec<&str> {
        let about = story.map(words_of).unwrap_or_default();
        let near = |learning: &Learning| {
            if story.is_some_and(|story| learning.story.as_ref() == Some(&story.id)) {
                return NEAR;
            }
            words(&learning.text).intersection(&about).count().min(NEAR)
        };
        let mut ranked: Vec<(usize, &Learning)> = self.list.iter().enumerate().collect();
        ranked.sort_by_cached_key(|(at, learning)| {
            let weight = near(learning) + usize::try_from(learning.times.min(OFTEN)).unwrap_or_default();
            std::cmp::Reverse((weight, *at))
        });
        ranked.into_iter().map(|(_, learning)| learning.text.as_str()).collect()
    }
}

/// What two spellings of one sentence have in common.
fn key(text: &str) -> String {
    const AROUND: &[char] = &['.', ',', ';', ':', '!', '?', '"', '\'', '`', '*', '_', '(', ')', '[', ']'];
    let words = text.split_whitespace().map(|word| word.trim_matches(AROUND)).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

fn words(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().count() > SHORT);
    words.map(str::to_lowercase).collect()
}

fn words_of(story: &Story) -> BTreeSet<String> {
    let mut all = words(&story.title);
    all.extend(words(&story.description));
    story.tasks.iter().for_each(|task| all.extend(words(&task.text)));
    story.criteria.iter().for_each(|criterion| all.extend(words(criterion)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned(texts: &[&str]) -> Learnings {
        let mut learnings = Learnings::default();
        for text in texts {
            learnings.add(text, None);
        }
        learnings
    }

    #[test]
    fn b38_the_same_sentence_is_kept_once_however_it_is_spelled() {
        let learnings = learned(&["Tests need Redis.", "tests  need redis", "**Tests** need `redis`!", "   "]);
        assert_eq!(
            learnings.iter().map(|l| (l.text.as_str(), l.times)).collect::<Vec<_>>(),
            [("Tests need Redis.", 3)]
        );
        assert_eq!(learned(&["use C", "use C++", "use c++."]).iter().len(), 2);
    }

    #[test]
    fn what_is_said_at_a_story_or_near_it_or_often_comes_first() {
        let mut learnings = learned(&["brew tea", "brew tea", "wires hang loose", "be brief"]);
        learnings.add("sockets are live", Some(&"S1".into()));
        learnings.add("doors squeak", Some(&"S2".into()));
        let story = Story { description: "Hang the wires".to_owned(), ..Story::new("S1", "Lamp") };
        assert_eq!(
            learnings.ranked(Some(&story)),
            ["sockets are live", "wires hang loose", "brew tea", "doors squeak", "be brief"]
        );
        assert_eq!(
            learnings.ranked(None),
            ["brew tea", "doors squeak", "sockets are live", "be brief", "wires hang loose"]
        );
    }

    #[test]
    fn there_is_a_bound_and_what_was_said_once_goes_first() {
        let mut learnings = learned(&["old and often", "old and often"]);
        for number in 0..2 * MOST {
            learnings.add(&format!("number {number}"), None);
        }
        assert_eq!(learnings.iter().len(), MOST);
        let texts: Vec<&str> = learnings.iter().map(|learning| learning.text.as_str()).collect();
        assert_eq!(texts[0], "old and often");
        assert_eq!(texts[MOST - 1], format!("number {}", 2 * MOST - 1));
    }

    #[test]
    fn what_others_kept_is_taken_in_and_counted_once() {
        let mut here = learned(&["a lamp", "a lamp"]);
        let there = learned(&["A lamp!", "a cord"]);
        here.merge(there.iter());
        here.merge(there.iter());
        assert_eq!(here.iter().map(|l| (l.text.as_str(), l.times)).collect::<Vec<_>>(), [("a lamp", 2), ("a cord", 1)]);
    }
}
