//! How the screen looks and which keys it obeys: the table `[screen]`.

use std::collections::BTreeMap;

use clap::ValueEnum;
use ralphloop_tui::keys::Keymap;
use ralphloop_tui::theme::Theme;
use serde_json::Value as Json;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::table::{Fault, table_of};
use super::value::{Form, Raw, Value, value_by_name};

/// Which colours the screen uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScreenTheme {
    /// For a dark background; none if `NO_COLOR` is set
    Auto,
    /// For a dark background
    Dark,
    /// For a light background
    Light,
    /// Bold, dim and inverse only
    None,
    /// Strong colours, nothing dimmed
    HighContrast,
}
value_by_name!(ScreenTheme);

impl ScreenTheme {
    /// The theme, given whether the environment wants no colours.
    pub(crate) fn theme(self, no_color: bool) -> Theme {
        match self {
            Self::Auto if no_color => Theme::NoColor,
            Self::Auto | Self::Dark => Theme::Dark,
            Self::Light => Theme::Light,
            Self::None => Theme::NoColor,
            Self::HighContrast => Theme::HighContrast,
        }
    }
}

/// Keys of the user's own: actions with the keys that they have instead of their own. Known to be usable.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ScreenKeys(BTreeMap<String, Vec<String>>);

impl ScreenKeys {
    fn usable(bindings: BTreeMap<String, Vec<String>>) -> Result<Self, ralphloop_tui::keys::Unusable> {
        Keymap::with(&bindings).map(|_| Self(bindings))
    }

    /// All keys as they hold.
    pub(crate) fn keymap(&self) -> Keymap {
        // What is kept here was tried when it was read.
        Keymap::with(&self.0).unwrap_or_default()
    }
}

/// In text, a line an action: `stop = q ctrl-q`.
impl Value for ScreenKeys {
    const FORM: Form = Form::Many;

    fn parse(text: &str) -> Result<Self, String> {
        let mut bindings = BTreeMap::new();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let (action, keys) = line.split_once('=').ok_or_else(|| format!("write ACTION = KEY, not `{line}`"))?;
            let keys = keys.split_whitespace().map(str::to_owned).collect();
            if bindings.insert(action.trim().to_owned(), keys).is_some() {
                return Err(format!("`{}` is bound twice", action.trim()));
            }
        }
        Self::usable(bindings).map_err(|error| error.why)
    }
    fn show(&self) -> String {
        if self.0.is_empty() {
            return "none".to_owned();
        }
        self.texts().join("\n")
    }
    fn json(&self) -> Json {
        Json::Object(self.0.iter().map(|(action, keys)| (action.clone(), Json::from(keys.clone()))).collect())
    }
    fn texts(&self) -> Vec<String> {
        self.0.iter().map(|(action, keys)| format!("{action} = {}", keys.join(" "))).collect()
    }
    fn read(raw: Raw<'_>) -> Result<Self, String> {
        match raw {
            Raw::Variable(text) => Self::parse(text),
            Raw::Flags(texts) => Self::parse(&texts.join("\n")),
            Raw::Toml(_) => Err("write a table: { stop = \"q\" }".to_owned()),
        }
    }
}

/// Reads `keys` of a file, where each mistake has its place.
pub(super) fn keys(value: &Spanned<DeValue<'_>>) -> Result<ScreenKeys, Fault> {
    let fault = |message: &str, span, label: String| Fault { message: message.to_owned(), span, label, hint: None };
    let DeValue::Table(table) = value.get_ref() else {
        let label = "write a table: { stop = \"q\" }".to_owned();
        return Err(fault("the keys of the screen are a table", value.span(), label));
    };
    let mut bindings = BTreeMap::new();
    for (action, keys) in table {
        let keys = <Vec<String> as Value>::read(Raw::Toml(keys.get_ref()))
            .map_err(|problem| fault("a key of the screen is not readable", keys.span(), problem))?;
        bindings.insert(action.get_ref().to_string(), keys);
    }
    ScreenKeys::usable(bindings).map_err(|error| {
        let place = table.iter().find(|(action, _)| *action.get_ref() == error.action.as_str());
        let span = place.map_or(value.span(), |(action, keys)| action.span().start..keys.span().end);
        fault("the keys of the screen cannot be used so", span, error.why)
    })
}

/// The entries of the table, if it is one.
pub(super) fn table<'a>(value: &'a Spanned<DeValue<'a>>) -> Result<&'a DeTable<'a>, Fault> {
    table_of(value, "'screen' is a table", "[screen] and below it theme = \"light\"")
}
