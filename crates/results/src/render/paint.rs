//! Colours of text output.

use anstyle::{AnsiColor, Style};

/// Whether text output is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Paint {
    /// Plain text.
    #[default]
    Plain,
    /// Bold headings, yellow marks, red failures.
    Coloured,
}

impl Paint {
    pub(super) fn heading(self, text: &str) -> String {
        self.with(Style::new().bold(), text)
    }

    pub(super) fn good(self, text: &str) -> String {
        self.with(AnsiColor::Green.on_default(), text)
    }

    pub(super) fn warning(self, text: &str) -> String {
        self.with(AnsiColor::Yellow.on_default(), text)
    }

    pub(super) fn bad(self, text: &str) -> String {
        self.with(AnsiColor::Red.on_default().bold(), text)
    }

    fn with(self, style: Style, text: &str) -> String {
        match self {
            Paint::Coloured if !text.is_empty() => format!("{style}{text}{style:#}"),
            _ => text.to_owned(),
        }
    }
}
