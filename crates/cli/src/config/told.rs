//! Settings that hold secrets: who is told of a run, and the key that signs it. They are never shown in full.

use std::str::FromStr as _;

use ralphloop_engine::notify::{self, Target};

use super::value::Value;

/// Somebody who is told. An address may hold a token, so it is shown without its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Destination {
    /// As it was written.
    text: String,
    /// What it means.
    pub(crate) target: Target,
}

impl Value for Destination {
    fn parse(text: &str) -> Result<Self, String> {
        let target = Target::from_str(text).map_err(|error| error.to_string())?;
        Ok(Self { text: text.to_owned(), target })
    }
    fn show(&self) -> String {
        self.target.to_string()
    }
    fn texts(&self) -> Vec<String> {
        vec![self.text.clone()]
    }
}

/// A key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Secret(pub(crate) notify::Secret);

impl Value for Secret {
    fn parse(text: &str) -> Result<Self, String> {
        String::parse(text).map(|key| Self(notify::Secret::new(key)))
    }
    fn show(&self) -> String {
        "(set, not shown)".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_kept_but_not_shown() {
        let slack = "https://hooks.slack.com/services/T0/B0/xyz";
        let told = Destination::parse(slack).unwrap();
        assert_eq!((told.show().as_str(), told.texts()), ("https://hooks.slack.com/…", vec![slack.to_owned()]));
        let key = Secret::parse("hunter2hunter2").unwrap();
        assert!(!key.show().contains("hunter2") && !format!("{key:?}").contains("hunter2"));
    }
}
