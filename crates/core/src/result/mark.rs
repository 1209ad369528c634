//! Marks of rows and their levels.

use serde::{Deserialize, Serialize};

/// How much a mark matters, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
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

    /// Returns the level of an effect on a median, if this much is tolerated: an interval contains it, or the user asked for no more.
    pub fn of_effect(effect: f64, tolerated: f64) -> Level {
        if effect > INVALID * tolerated {
            Level::Invalid
        } else if effect > tolerated {
            Level::Caution
        } else {
            Level::Note
        }
    }

    /// Returns the level of this name.
    pub fn from_name(name: &str) -> Option<Level> {
        Level::ALL.into_iter().find(|level| level.name() == name)
    }
}

/// A mark: what could have disturbed a row, and how much that matters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Mark {
    /// How much it matters.
    pub level: Level,
    /// Stable code for programs, such as `preempted`.
    pub code: String,
    /// Text for the column `trust`, such as `preempted 12x`.
    pub short: String,
    /// Text that says what happened, then what to do.
    pub advice: String,
    /// Largest possible effect on the median, as a fraction of it; `None` if it has no bound.
    #[serde(default, skip_serializing_if = "is_unbounded")]
    pub effect: Option<f64>,
}

fn is_unbounded(effect: &Option<f64>) -> bool {
    !effect.is_some_and(f64::is_finite)
}

/// Number of times that an effect must exceed what is tolerated before no verdict may rest on the row.
const INVALID: f64 = 5.0;

impl Mark {
    /// Returns a mark of this level from its code, its text in the column, and the advice.
    pub fn of(level: Level, code: &str, short: impl Into<String>, advice: impl Into<String>) -> Mark {
        Mark { level, code: code.into(), short: short.into(), advice: advice.into(), effect: None }
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
