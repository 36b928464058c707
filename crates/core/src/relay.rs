//! A relay: several roles work on a story one after the other, in the same tree, and hand a bounded baton on.

use serde::{Deserialize, Serialize};

use crate::ids::AgentId;

/// How many bytes of what earlier roles said a baton holds; what was said last is kept longest.
pub const BATON: usize = 6000;
/// How much of one note is kept beside a newer one, in bytes.
const OLDER: usize = 1500;
/// How much of what a role says is compared with what the one before said.
const COMPARED: usize = 280;

/// One runner of a relay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Role {
    /// What it is called: `planner`.
    pub name: String,
    /// Who takes it; whoever works on the story if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// What it is told of its part, if that is the user's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
}

/// Who works on a story one after the other, and how often.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relay {
    /// In this order; never empty.
    pub roles: Vec<Role>,
    /// How often all of them may have their turn in one attempt.
    pub rounds: u32,
}

/// What a role hands on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Whose it is.
    pub role: String,
    /// In which round, from 1.
    pub round: u32,
    /// It says that the whole story is complete.
    pub complete: bool,
    /// Its final message, bounded.
    pub text: String,
}

/// The part of one role in a relay, as its agent is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leg {
    /// Who runs it.
    pub role: Role,
    /// All roles, by name.
    pub team: Vec<String>,
    /// Which of them it is, from 0.
    pub place: usize,
    /// The round, from 1.
    pub round: u32,
    /// Of so many at most.
    pub rounds: u32,
    /// What earlier ones hand on, the oldest first.
    pub baton: Vec<Note>,
}

impl Leg {
    /// It is the last of its round: what it claims counts.
    pub fn closes_the_round(&self) -> bool {
        self.place + 1 >= self.team.len()
    }

    /// Whose turn is next, if the round goes on or another one may begin.
    pub fn next(&self) -> Option<&str> {
        match self.team.get(self.place + 1) {
            Some(name) => Some(name),
            None if self.round < self.rounds => self.team.first().map(String::as_str),
            None => None,
        }
    }
}

/// The last note of every role, the oldest first, within [`BATON`] bytes.
pub fn baton(notes: &[Note]) -> Vec<Note> {
    let mut kept: Vec<Note> = Vec::new();
    let mut room = BATON;
    for note in notes.iter().rev() {
        let said = note.text.trim();
        if said.is_empty() || kept.iter().any(|newer| newer.role == note.role) {
            continue;
        }
        let most = if kept.is_empty() { room } else { room.min(OLDER) };
        let text = tail(said, most);
        if text.is_empty() {
            break;
        }
        room -= text.len();
        kept.push(Note { text: text.to_owned(), ..note.clone() });
    }
    kept.reverse();
    kept
}

/// The end of a text, cut between characters; what a message says last is what it comes to.
fn tail(text: &str, most: usize) -> &str {
    if text.len() <= most { text } else { &text[text.ceil_char_boundary(text.len() - most)..] }
}

/// Whether two roles said the same: by their letters and digits alone, and by how they begin.
pub fn says_the_same(one: &str, other: &str) -> bool {
    let bare = |text: &str| -> String {
        text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).take(COMPARED).collect()
    };
    let (one, other) = (bare(one), bare(other));
    !one.is_empty() && one == other
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(role: &str, round: u32, text: &str) -> Note {
        Note { role: role.to_owned(), round, complete: false, text: text.to_owned() }
    }

    #[test]
    fn a_baton_holds_the_last_note_of_every_role_in_order() {
        let notes = [note("planner", 1, "plan"), note("coder", 1, "done"), note("planner", 2, "new plan")];
        let texts: Vec<String> = baton(&notes).into_iter().map(|note| note.text).collect();
        assert_eq!(texts, ["done", "new plan"]);
        assert!(baton(&[note("planner", 1, "  \n")]).is_empty(), "nothing is handed on that says nothing");
    }

    #[test]
    fn the_newest_note_is_kept_longest_and_older_ones_are_cut_first() {
        let long = "x".repeat(2 * BATON);
        let kept = baton(&[note("planner", 1, &long), note("coder", 1, &long)]);
        assert_eq!(kept.iter().map(|n| n.text.len()).collect::<Vec<_>>(), [BATON]);
        let kept = baton(&[note("planner", 1, &long), note("coder", 1, "short")]);
        assert_eq!(kept.iter().map(|n| n.text.len()).collect::<Vec<_>>(), [OLDER, 5]);
    }

    #[test]
    fn what_differs_in_marks_and_letter_case_alone_is_the_same() {
        assert!(says_the_same("**Nothing** is left.", "nothing IS left"));
        assert!(!says_the_same("nothing is left", "one thing is left"));
        assert!(!says_the_same("...", "!"), "silence is no agreement");
        let begins = "a".repeat(COMPARED);
        assert!(says_the_same(&format!("{begins} one"), &format!("{begins} two")));
    }

    #[test]
    fn a_baton_is_bounded_whatever_is_said() {
        for length in (0..40).map(|n| n * 331) {
            let notes: Vec<Note> =
                (0..9).map(|n| note(&format!("role {}", n % 6), 1, &"ä€".repeat(length / 5 + n))).collect();
            let kept = baton(&notes);
            assert!(kept.iter().map(|note| note.text.len()).sum::<usize>() <= BATON);
            assert!(kept.len() <= 6);
        }
    }
}
