//! What the role of a relay is told of its part, before the story itself.

use minijinja::value::Serde;
use ralphloop_core::relay::{BATON, Leg};
use serde::Serialize;

use super::view::Fenced;
use super::{PromptError, environment, template_error};

const NAME: &str = "relay";
const RELAY: &str = include_str!("templates/relay.md");

/// The roles that need no description of the user's own: what they are called, and what they are told.
pub const ROLES: [(&str, &str); 5] = [
    (
        "planner",
        "Change no file. Read what matters here, then write down how the story is to be done: which files change and how, in \
         small steps that can each be checked, which cases are easily forgotten, and by what one sees that it is done.",
    ),
    (
        "coder",
        "Do the story, by the plan if there is one and where it is right. Write the tests that belong to it, and run what will \
         be checked.",
    ),
    (
        "reviewer",
        "Look at what was changed as somebody who did not write it: is every point of the story there, is anything wrong, \
         missing or needlessly complicated? Mend small faults yourself. Name the others, each with its file and what is wrong.",
    ),
    (
        "tester",
        "Find out whether the work does what the story says: use it, try its borders and what a careless user would do, and add \
         the tests that are missing. Mend what is plainly broken; name what is not yours to mend.",
    ),
    (
        "refactorer",
        "The work is there. Make it simpler without changing what it does: names, duplication, dead code, only in what belongs \
         to this story. Run the tests before and after.",
    ),
];

/// The built-in instructions of a role of that name.
pub fn instructions_of(role: &str) -> Option<&'static str> {
    ROLES.iter().find(|(name, _)| *name == role).map(|(_, instructions)| *instructions)
}

#[derive(Serialize)]
struct View<'a> {
    role: &'a str,
    team: String,
    round: u32,
    rounds: u32,
    instructions: &'a str,
    baton: Vec<Said<'a>>,
    next: Option<&'a str>,
    closes: bool,
    another: bool,
}

#[derive(Serialize)]
struct Said<'a> {
    role: &'a str,
    round: u32,
    complete: bool,
    said: Fenced<'a>,
}

/// What stands before the story.
pub(super) fn part(leg: &Leg) -> Result<String, PromptError> {
    let own = leg.role.instructions.as_deref().map(str::trim).filter(|own| !own.is_empty());
    let view = View {
        role: &leg.role.name,
        team: leg.team.join(", "),
        round: leg.round,
        rounds: leg.rounds,
        instructions: own.or_else(|| instructions_of(&leg.role.name)).unwrap_or("Do your part of the story."),
        baton: leg
            .baton
            .iter()
            .map(|note| Said {
                role: &note.role,
                round: note.round,
                complete: note.complete,
                said: Fenced::cut(&note.text, BATON),
            })
            .collect(),
        next: leg.next(),
        closes: leg.closes_the_round(),
        another: leg.round < leg.rounds,
    };
    let render = || {
        let mut templates = environment()?;
        templates.add_template(NAME, RELAY)?;
        templates.get_template(NAME)?.render(Serde(&view))
    };
    render().map_err(|error: minijinja::Error| template_error(NAME, &error))
}

#[cfg(test)]
mod tests {
    use ralphloop_core::relay::{Note, Role};

    use super::*;

    fn leg(place: usize, round: u32) -> Leg {
        let team = ["planner", "coder", "tester"];
        Leg {
            role: Role { name: team[place].to_owned(), agent: None, instructions: None },
            team: team.map(str::to_owned).to_vec(),
            place,
            round,
            rounds: 2,
            baton: Vec::new(),
        }
    }

    #[test]
    fn a_role_is_told_its_part_who_comes_next_and_what_was_handed_on() {
        let note = Note { role: "planner".to_owned(), round: 1, complete: true, text: "use ``` well".to_owned() };
        let said = part(&Leg { baton: vec![note], ..leg(1, 1) }).unwrap();
        for words in ["# Your part: coder", "planner, coder, tester", "Do the story", "handed on to the tester"] {
            assert!(said.contains(words), "{words:?} is not in\n{said}");
        }
        assert!(said.contains("who holds the story to be complete:\n\n````\nuse ``` well\n````"), "{said}");
        assert!(said.contains("others say after you") && !said.contains("another round"), "{said}");
    }

    #[test]
    fn only_the_last_of_a_round_may_say_that_the_story_is_complete() {
        let first = part(&leg(2, 1)).unwrap();
        assert!(first.contains("the work is checked") && first.contains("another round begins"), "{first}");
        assert!(first.contains("handed on to the planner"), "{first}");
        let last = part(&leg(2, 2)).unwrap();
        assert!(last.contains("the work is checked") && !last.contains("another round"), "{last}");
        assert!(!last.contains("handed on to"), "{last}");
    }

    #[test]
    fn instructions_of_the_users_own_take_the_place_of_those_that_are_built_in() {
        let mut leg = leg(0, 1);
        leg.role.instructions = Some("Draw a picture first.".to_owned());
        let said = part(&leg).unwrap();
        assert!(said.contains("Draw a picture first.") && !said.contains("Change no file"), "{said}");
    }
}
