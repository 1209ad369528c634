//! Marks of rows and their levels.

/// How much a mark matters, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Level {
    /// A fact that explains a row; its figure holds.
    Note,
    /// The figure may be off by more than its interval says.
    #[default]
    Caution,
    /// No verdict may rest on the figure.
    Invalid,
}

impl Level {
    /// All levels in ascending order.
    pub const ALL: [Level; 3] = [Level::Note, Level::Caution, Level::Invalid];

    /// Returns the name that files and exports use.
    pub fn name(self) -> &'static str {
        match self {
            Level::Note => "note",
            Level::Caution => "caution",
            Level::Invalid => "invalid",
        }
    }

    /// Returns the level of this name.
    pub fn from_name(name: &str) -> Option<Level> {
        Level::ALL.into_iter().find(|level| level.name() == name)
    }
}

/// A mark: what could have disturbed a row, and how much that matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// How much it matters.
    pub level: Level,
    /// Stable code for programs, such as `preempted`.
    pub code: String,
    /// Text for the column `trust`, such as `preempted 12x`.
    pub short: String,
    /// Text that says what happened, then what to do.
    pub advice: String,
}

impl Mark {
    /// Returns a mark of this level from its code, its text in the column, and the advice.
    pub fn of(level: Level, code: &str, short: impl Into<String>, advice: impl Into<String>) -> Mark {
        Mark { level, code: code.into(), short: short.into(), advice: advice.into() }
    }

    /// Returns a note.
    pub fn note(code: &str, short: impl Into<String>, advice: impl Into<String>) -> Mark {
        Mark::of(Level::Note, code, short, advice)
    }

    /// Returns a caution.
    pub fn caution(code: &str, short: impl Into<String>, advice: impl Into<String>) -> Mark {
        Mark::of(Level::Caution, code, short, advice)
    }

    /// Returns a mark on which no verdict may rest.
    pub fn invalid(code: &str, short: impl Into<String>, advice: impl Into<String>) -> Mark {
        Mark::of(Level::Invalid, code, short, advice)
    }
}
