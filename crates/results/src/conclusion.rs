//! Verdicts as data, for result files and programs: what is concluded, and what is slow.

use serde::{Deserialize, Serialize};

use crate::verdict::{Component, Evidence};

/// Conclusion of a verdict, which decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Conclusion {
    /// Nothing is slow, or all links meet what the user demands of them.
    Clear,
    /// Something is slow, or a demand is missed.
    Slow,
    /// Nothing can be concluded.
    None,
}

impl Conclusion {
    /// All conclusions.
    pub const ALL: [Conclusion; 3] = [Conclusion::Clear, Conclusion::Slow, Conclusion::None];

    /// Returns the conclusion with a name.
    pub fn of_name(name: &str) -> Option<Conclusion> {
        Conclusion::ALL.into_iter().find(|conclusion| conclusion.name() == name)
    }

    /// Returns the name in result files.
    pub const fn name(self) -> &'static str {
        match self {
            Conclusion::Clear => "clear",
            Conclusion::Slow => "slow",
            Conclusion::None => "none",
        }
    }
}

/// Sentence of a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sentence {
    /// Conclusion that it supports.
    pub conclusion: Conclusion,
    /// What is concluded; for [`Conclusion::None`], why nothing can be.
    pub text: String,
    /// What the sentence rests on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
}

/// What is concluded about the links of a sweep. It is computed when the sweep ends, is kept in the result file, and is all that is shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verdict {
    /// What is concluded.
    pub conclusion: Conclusion,
    /// Sentences with their evidence, the most important first.
    pub sentences: Vec<Sentence>,
    /// Number of demands that are missed: expectations and the reference.
    #[serde(default)]
    pub missed: usize,
    /// Slow parts, the slowest first.
    pub slow: Vec<SlowPart>,
    /// For each message size, the slow link that would have been named.
    #[serde(default)]
    pub nameable: Vec<Nameable>,
}

impl Verdict {
    /// Returns the verdict on a run that did not measure everything.
    pub fn incomplete(why: impl Into<String>) -> Verdict {
        let conclusion = Conclusion::None;
        let sentence = Sentence { conclusion, text: why.into(), evidence: Vec::new() };
        Verdict { conclusion, sentences: vec![sentence], missed: 0, slow: Vec::new(), nameable: Vec::new() }
    }

    /// Returns the slow components.
    pub fn components(&self) -> Vec<Component> {
        self.slow.iter().map(|slow| slow.component.clone()).collect()
    }

    /// Returns the lines of the verdict for a terminal. Evidence is indented.
    pub fn lines(&self) -> Vec<String> {
        let lines = |sentence: &Sentence| {
            let start = if sentence.conclusion == Conclusion::None { "no verdict" } else { "verdict" };
            let mut lines = vec![format!("{start}: {}", sentence.text)];
            lines.extend(sentence.evidence.iter().map(|line| format!("  {line}")));
            lines
        };
        self.sentences.iter().flat_map(lines).collect()
    }
}

/// The fastest slow link that would have been named at a message size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Nameable {
    /// Message size.
    pub bytes: u64,
    /// Ratio of its time to the time of comparable links.
    pub factor: f64,
}

/// Slow part of a machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SlowPart {
    /// Kind of the part: `group`, `group_inside`, `host`, `host_inside`, `rank`, `link` or `direction`.
    pub part: String,
    /// Noun and name of a group, such as `switch s1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Names of its hosts; of a link, those of its two ends.
    pub hosts: Vec<String>,
    /// Its ranks; of a link, its two ends. None of a host or a group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<u32>,
    /// Ratio of its time to the time of comparable parts.
    pub factor: f64,
    /// Message size with the largest factor.
    pub bytes: u64,
    /// The part by numbers: of ranks, or of hosts and groups in the order of the lowest ranks that they have.
    pub component: Component,
    /// Links that show it.
    pub evidence: Evidence,
}
