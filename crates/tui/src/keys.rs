//! Keys: what each does, by default and as the settings say. The help and the documentation are made from the table.

use std::collections::BTreeMap;
use std::fmt;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A key that was pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Hash)]
pub struct Press {
    /// Which.
    pub code: KeyCode,
    /// With Ctrl.
    pub ctrl: bool,
    /// With Alt.
    pub alt: bool,
}

impl Press {
    /// As the terminal reports it. Shift is part of a letter already.
    pub fn of(event: KeyEvent) -> Self {
        let code = match event.code {
            // A letter with Ctrl comes in either case.
            KeyCode::Char(c) if event.modifiers.contains(KeyModifiers::CONTROL) => {
                KeyCode::Char(c.to_ascii_lowercase())
            }
            code => code,
        };
        Self {
            code,
            ctrl: event.modifiers.contains(KeyModifiers::CONTROL),
            alt: event.modifiers.contains(KeyModifiers::ALT),
        }
    }

    /// A key without Ctrl or Alt.
    pub const fn plain(code: KeyCode) -> Self {
        Self { code, ctrl: false, alt: false }
    }
}

const NAMED: &[(&str, KeyCode)] = &[
    ("enter", KeyCode::Enter),
    ("esc", KeyCode::Esc),
    ("tab", KeyCode::Tab),
    ("shift-tab", KeyCode::BackTab),
    ("up", KeyCode::Up),
    ("down", KeyCode::Down),
    ("left", KeyCode::Left),
    ("right", KeyCode::Right),
    ("pgup", KeyCode::PageUp),
    ("pgdn", KeyCode::PageDown),
    ("home", KeyCode::Home),
    ("end", KeyCode::End),
    ("space", KeyCode::Char(' ')),
    ("backspace", KeyCode::Backspace),
];

impl fmt::Display for Press {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ctrl {
            f.write_str("ctrl-")?;
        }
        if self.alt {
            f.write_str("alt-")?;
        }
        match (NAMED.iter().find(|(_, code)| *code == self.code), self.code) {
            (Some((name, _)), _) => f.write_str(name),
            (None, KeyCode::Char(c)) => write!(f, "{c}"),
            (None, code) => write!(f, "{code}"),
        }
    }
}

impl std::str::FromStr for Press {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mut rest, mut ctrl, mut alt) = (text.trim(), false, false);
        loop {
            match (rest.strip_prefix("ctrl-"), rest.strip_prefix("alt-")) {
                (Some(after), _) if !after.is_empty() => (rest, ctrl) = (after, true),
                (_, Some(after)) if !after.is_empty() => (rest, alt) = (after, true),
                _ => break,
            }
        }
        let mut chars = rest.chars();
        let code = match (NAMED.iter().find(|(name, _)| *name == rest), chars.next(), chars.next()) {
            (Some((_, code)), ..) => *code,
            (None, Some(c), None) => KeyCode::Char(c),
            _ => return Err(format!("`{text}` is no key: write a character, ctrl-x, or one of {}", names())),
        };
        Ok(Self { code, ctrl, alt })
    }
}

fn names() -> String {
    NAMED.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

macro_rules! actions {
    ($( $name:ident $word:literal [$($key:literal),*] $help:literal; )+) => {
        /// What a key can do.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Action {
            $( #[doc = $help] $name, )+
        }

        /// Every action: its name in the settings, its keys, what it does.
        pub const TABLE: &[(Action, &str, &[&str], &str)] =
            &[$( (Action::$name, $word, &[$($key),*], $help) ),+];
    };
}

actions! {
    Quit "quit" ["q", "ctrl-c"]
        "Stop the run and leave once its agent has ended; three times within 3 s: leave at once. Closes the view of a run that somebody else started";
    Detach "detach" ["d"] "Close the screen; the run goes on without it";
    Stop "stop" ["x"] "Stop the run: the agent is asked to end, its attempt is put back and kept, what has landed stays";
    Pause "pause" ["p"] "Pause the run after the present attempt";
    Guide "guide" ["g"] "Write a sentence for the agent's next prompt";
    Up "up" ["up", "k"] "One line up";
    Down "down" ["down", "j"] "One line down";
    PageUp "page-up" ["pgup", "ctrl-b"] "One page up";
    PageDown "page-down" ["pgdn", "ctrl-f", "space"] "One page down";
    Top "top" ["home"] "To the beginning";
    Bottom "bottom" ["end", "G"] "To the end, and follow what comes";
    Previous "previous-story" ["left", "h", "K"] "The story before";
    Next "next-story" ["right", "l", "J"] "The story after";
    Follow "follow" ["f"] "Select the story that is being worked on, and go on doing so";
    NextTab "next-tab" ["tab"] "The next tab";
    PreviousTab "previous-tab" ["shift-tab"] "The tab before";
    Older "older" ["["] "The call of the agent before, or the attempt before; among files, the file before";
    Newer "newer" ["]"] "The next call of the agent, or the next attempt; among files, the next file";
    Accept "accept" ["enter"] "Open or close what is marked; choose";
    ExpandAll "expand-all" ["o"] "Open or close all tool calls and thoughts";
    Search "search" ["/"] "Search in the transcript";
    FindNext "find-next" ["n"] "The next place that was searched for";
    FindPrevious "find-previous" ["N"] "The place before";
    Copy "copy" ["y"] "Copy what is marked into the clipboard";
    Export "export" ["e"] "Write the whole transcript into a text file";
    Ending "ending" ["E"] "Once the run is over: what becomes of its commits";
    Start "start" ["R"] "Before a run: begin it";
    Change "change" ["c"] "Before a run: change the agent, its model, how many stories at once, and the attempts";
    Help "help" ["?"] "Show every key";
    Back "back" ["esc"] "Close what is open";
    Redraw "redraw" ["ctrl-l"] "Draw everything anew";
    Suspend "suspend" ["ctrl-z"] "Stop the program until the shell goes on with it (fg)";
}

/// Which key does what.
#[derive(Debug, Clone)]
pub struct Keymap {
    keys: BTreeMap<Action, Vec<Press>>,
}

impl Default for Keymap {
    fn default() -> Self {
        let keys = TABLE.iter().map(|(action, _, keys, _)| {
            // The table's own keys are checked by a test.
            (*action, keys.iter().filter_map(|key| key.parse().ok()).collect())
        });
        Self { keys: keys.collect() }
    }
}

impl Keymap {
    /// Gives an action these keys instead of its own. A key that another action had is taken from it.
    ///
    /// # Errors
    /// The action or a key is not known; in words.
    pub fn bind(&mut self, action: &str, keys: &[String]) -> Result<(), String> {
        let Some((action, ..)) = TABLE.iter().find(|(_, name, ..)| *name == action) else {
            let known = TABLE.iter().map(|(_, name, ..)| *name).collect::<Vec<_>>().join(", ");
            return Err(format!("there is no action `{action}`; there are {known}"));
        };
        let presses = keys.iter().map(|key| key.parse()).collect::<Result<Vec<Press>, String>>()?;
        for (other, taken) in &mut self.keys {
            if other != action {
                taken.retain(|key| !presses.contains(key));
            }
        }
        self.keys.insert(*action, presses);
        Ok(())
    }

    /// What a key does.
    pub fn action(&self, press: Press) -> Option<Action> {
        self.keys.iter().find_map(|(action, keys)| keys.contains(&press).then_some(*action))
    }

    /// The keys of an action.
    pub fn keys(&self, action: Action) -> &[Press] {
        self.keys.get(&action).map_or(&[], Vec::as_slice)
    }

    /// The first key of an action, as it is shown.
    pub(crate) fn name(&self, action: Action) -> String {
        self.keys(action).first().map_or_else(|| "(no key)".to_owned(), ToString::to_string)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_the_table_is_one_and_does_one_thing() {
        let mut seen = BTreeMap::new();
        for (action, name, keys, _) in TABLE {
            for key in *keys {
                let press: Press = key.parse().unwrap_or_else(|error| panic!("{name}: {error}"));
                assert_eq!(press.to_string(), *key);
                assert_eq!(seen.insert((*key).to_owned(), name), None, "{key}");
                assert_eq!(Keymap::default().action(press), Some(*action));
            }
        }
    }

    #[test]
    fn a_rebound_key_does_its_new_thing_only() {
        let mut keys = Keymap::default();
        keys.bind("pause", &["q".to_owned(), "ctrl-p".to_owned()]).unwrap();
        assert_eq!(keys.action("q".parse().unwrap()), Some(Action::Pause));
        assert_eq!(keys.action("p".parse().unwrap()), None);
        assert_eq!(keys.action("ctrl-c".parse().unwrap()), Some(Action::Quit));
        assert!(keys.bind("fly", &[]).unwrap_err().contains("there is no action `fly`"));
        assert!(keys.bind("pause", &["F99".to_owned()]).unwrap_err().contains("`F99` is no key"));
    }
}
