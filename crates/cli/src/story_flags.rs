//! Stories told by flags: what stands behind a `--story` belongs to it.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

/// A story as a person tells it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ToldStory {
    pub(crate) title: String,
    /// What must hold.
    pub(crate) criteria: Vec<String>,
    /// Commands that tell whether it holds.
    pub(crate) checks: Vec<String>,
}

/// `--story TITLE --criterion TEXT --check COMMAND --story …`.
#[derive(Debug, Clone, Default)]
pub(crate) struct StoryFlags(pub(crate) Vec<ToldStory>);

const STORY: &str = "story";
const CRITERION: &str = "criterion";
const CHECK: &str = "check";

impl Args for StoryFlags {
    fn augment_args(command: Command) -> Command {
        let flag = |name: &'static str, value: &'static str, help: &'static str| {
            Arg::new(name).long(name).value_name(value).help(help).action(ArgAction::Append)
        };
        command
            .arg(flag(STORY, "TITLE", "A story; may be given more than once"))
            .arg(flag(CRITERION, "TEXT", "What must hold for the story before it is done").requires(STORY))
            .arg(flag(CHECK, "COMMAND", "A command that tells whether the story before it is done").requires(STORY))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for StoryFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut told: Vec<(usize, &str, &String)> = Vec::new();
        for name in [STORY, CRITERION, CHECK] {
            let places = matches.indices_of(name).into_iter().flatten();
            let values = matches.get_many::<String>(name).into_iter().flatten();
            told.extend(places.zip(values).map(|(place, value)| (place, name, value)));
        }
        told.sort_by_key(|(place, _, _)| *place);
        let mut stories: Vec<ToldStory> = Vec::new();
        for (_, name, value) in told {
            match (name, stories.last_mut()) {
                (STORY, _) => stories.push(ToldStory { title: value.clone(), ..ToldStory::default() }),
                (CRITERION, Some(story)) => story.criteria.push(value.clone()),
                (_, Some(story)) => story.checks.push(value.clone()),
                (_, None) => {
                    let message = format!("--{name} belongs to the --story before it, and there is none\n");
                    return Err(clap::Error::raw(clap::error::ErrorKind::MissingRequiredArgument, message));
                }
            }
        }
        Ok(Self(stories))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Vec<ToldStory>, String> {
        let command = StoryFlags::augment_args(Command::new("new"));
        let matches = command.try_get_matches_from([&["new"], words].concat()).map_err(|error| error.to_string())?;
        StoryFlags::from_arg_matches(&matches).map(|flags| flags.0).map_err(|error| error.to_string())
    }

    #[test]
    fn criteria_and_checks_belong_to_the_story_before_them() {
        let words = ["--story", "A", "--check", "make a", "--story", "B", "--criterion", "b", "--criterion", "c"];
        let stories = read(&words).unwrap();
        assert_eq!(stories.iter().map(|story| story.title.as_str()).collect::<Vec<_>>(), ["A", "B"]);
        assert_eq!((&stories[0].checks, &stories[1].criteria), (&vec!["make a".into()], &vec!["b".into(), "c".into()]));
    }

    #[test]
    fn a_criterion_before_every_story_is_refused() {
        assert!(read(&["--criterion", "x", "--story", "A"]).unwrap_err().contains("--story before it"));
    }
}
