//! Colours. Only the sixteen that every terminal has, so that the terminal's own theme holds; nothing is said by colour
//! alone.

use ratatui::style::{Color, Modifier, Style};

/// Which colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Theme {
    /// For a dark background.
    #[default]
    Dark,
    /// For a light background.
    Light,
    /// Black and white, bold and underlined, on whatever the terminal has.
    NoColor,
    /// Strong colours only, nothing dimmed.
    HighContrast,
}

impl Theme {
    fn color(self, dark: Color, light: Color, strong: Color) -> Style {
        match self {
            Self::Dark => Style::new().fg(dark),
            Self::Light => Style::new().fg(light),
            Self::HighContrast => Style::new().fg(strong).add_modifier(Modifier::BOLD),
            Self::NoColor => Style::new(),
        }
    }

    /// Something went well.
    pub(crate) fn good(self) -> Style {
        self.color(Color::Green, Color::Green, Color::LightGreen)
    }
    /// Something went wrong.
    pub(crate) fn bad(self) -> Style {
        self.color(Color::LightRed, Color::Red, Color::LightRed).add_modifier(Modifier::BOLD)
    }
    /// Something deserves a look.
    pub(crate) fn warn(self) -> Style {
        self.color(Color::Yellow, Color::Magenta, Color::LightYellow)
    }
    /// What happens just now.
    pub(crate) fn active(self) -> Style {
        self.color(Color::Cyan, Color::Blue, Color::LightCyan)
    }
    /// A heading.
    pub(crate) fn head() -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }
    /// What matters less.
    pub(crate) fn dim(self) -> Style {
        match self {
            Self::Dark | Self::Light => Style::new().fg(Color::DarkGray),
            Self::NoColor => Style::new().add_modifier(Modifier::DIM),
            Self::HighContrast => Style::new(),
        }
    }
    /// What is selected.
    pub(crate) fn selected() -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }
    /// A key in a hint.
    pub(crate) fn key(self) -> Style {
        self.active().add_modifier(Modifier::BOLD)
    }
}
