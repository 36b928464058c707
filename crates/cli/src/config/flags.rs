//! Settings as flags, made from the list of settings.

use clap::builder::ValueParser;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use super::keys::{KEYS, Key, Layer, Reach};
use super::origin::Origin;
use super::value::{Form, Raw};

impl Args for Layer {
    fn augment_args(command: Command) -> Command {
        KEYS.iter().filter(|key| key.reach == Reach::Flag).fold(command, |command, key| command.arg(argument(key)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Layer {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut layer = Self::default();
        layer.update_from_arg_matches(matches)?;
        Ok(layer)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for key in KEYS.iter().filter(|key| key.reach == Reach::Flag) {
            if matches.value_source(key.name) != Some(ValueSource::CommandLine) {
                continue;
            }
            let texts: Vec<String> = matches.get_many(key.name).unwrap_or_default().cloned().collect();
            self.set(key.name, Raw::Flags(&texts), Origin::Flag(format!("--{}", key.flag()))).map_err(|problem| {
                clap::Error::raw(clap::error::ErrorKind::ValueValidation, format!("--{}: {problem}\n", key.flag()))
            })?;
        }
        Ok(())
    }
}

fn argument(key: &'static Key) -> Arg {
    let check = |text: &str| (key.check)(Raw::Flags(&[text.to_owned()])).map(|()| text.to_owned());
    let argument = Arg::new(key.name)
        .long(key.flag())
        .value_name(key.value_name)
        .help(help(key))
        .help_heading(key.heading)
        .value_parser(ValueParser::from(check))
        .allow_negative_numbers(key.form != Form::Switch)
        .hide_possible_values(true);
    match key.form {
        Form::One => argument.action(ArgAction::Set).overrides_with(key.name),
        Form::Many => argument.action(ArgAction::Append),
        Form::Switch => argument
            .action(ArgAction::Set)
            .overrides_with(key.name)
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true"),
    }
}

fn help(key: &Key) -> String {
    let sentence = key.help.trim();
    match key.form {
        Form::Switch => sentence.to_owned(),
        Form::Many => format!("{sentence} May be given more than once. [default: {}]", key.default_text()),
        Form::One => format!("{sentence} [default: {}]", key.default_text()),
    }
}
