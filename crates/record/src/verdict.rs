//! The verdict on the links of a sweep, as result files keep it.

use serde::{Deserialize, Serialize};

/// Part of a machine that can be slow.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Component {
    /// Links from a group of hosts to others of its level (from 0).
    GroupBetween(usize, u32),
    /// Links inside a group of hosts, but not inside one of a lower level.
    GroupWithin(usize, u32),
    /// Links from a host to other hosts.
    HostBetween(u32),
    /// Links inside a host.
    HostWithin(u32),
    /// Links of one rank, whose host as a whole is not slow.
    Rank(u32),
    /// A link, in both directions if the traffic is directed.
    Link(u32, u32),
    /// One direction of a link.
    OneWay(u32, u32),
}

impl Component {
    /// Returns whether the links of the component are inside a host or group.
    pub fn is_inside(&self) -> bool {
        matches!(self, Component::GroupWithin(..) | Component::HostWithin(_))
    }

    /// Returns whether the component is a single link.
    pub fn is_link(&self) -> bool {
        self.link().is_some()
    }

    /// Returns the ends of a single link.
    pub fn link(&self) -> Option<[u32; 2]> {
        match *self {
            Component::Link(a, b) | Component::OneWay(a, b) => Some([a, b]),
            _ => None,
        }
    }
}

/// Conclusion of a verdict, which decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Conclusion {
    /// Nothing is slow, or all links meet what the user demands of them.
    Clear,
    /// Something is slow, or a demand is missed.
    Slow,
    /// A host counted more errors than others, or sends packets that arrive damaged.
    Errors,
    /// A link is slow in some of its measurements.
    Unsteady,
    /// Links take longer together than alone: they share a bottleneck.
    Shared,
    /// Nothing can be concluded.
    None,
}

impl Conclusion {
    /// All conclusions.
    pub const ALL: [Conclusion; 6] = [
        Conclusion::Clear,
        Conclusion::Slow,
        Conclusion::Errors,
        Conclusion::Unsteady,
        Conclusion::Shared,
        Conclusion::None,
    ];

    /// Returns whether something is wrong with the links.
    pub const fn is_finding(self) -> bool {
        match self {
            Conclusion::Slow | Conclusion::Errors | Conclusion::Unsteady | Conclusion::Shared => true,
            Conclusion::Clear | Conclusion::None => false,
        }
    }

    /// Returns the name in result files.
    pub const fn name(self) -> &'static str {
        match self {
            Conclusion::Clear => "clear",
            Conclusion::Slow => "slow",
            Conclusion::Errors => "errors",
            Conclusion::Unsteady => "unsteady",
            Conclusion::Shared => "shared",
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
    /// What does not work as it should: hosts, or links with the hosts of their two ends. All of them, or none if these are more than
    /// [`MOST_NAMED`] or not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub about: Vec<Vec<String>>,
}

/// The largest number of hosts and links of a sentence. With names of 30 characters, their line has less than 64 KiB.
pub const MOST_NAMED: usize = 900;

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
        let sentence = Sentence::new(conclusion, why);
        Verdict { conclusion, sentences: vec![sentence], missed: 0, slow: Vec::new(), nameable: Vec::new() }
    }

    /// Returns the slow components.
    pub fn components(&self) -> Vec<Component> {
        self.slow.iter().map(|slow| slow.component.clone()).collect()
    }

    /// Returns the lines of the verdict for a terminal. Evidence is indented.
    pub fn lines(&self) -> Vec<String> {
        self.sentences.iter().flat_map(Sentence::lines).collect()
    }

    /// Returns the lines of the verdict for a terminal, without evidence.
    pub fn lines_without_evidence(&self) -> Vec<String> {
        self.sentences.iter().map(Sentence::line).collect()
    }
}

impl Sentence {
    /// Returns a sentence without evidence.
    pub fn new(conclusion: Conclusion, text: impl Into<String>) -> Sentence {
        Sentence { conclusion, text: text.into(), evidence: Vec::new(), about: Vec::new() }
    }

    /// Returns the line of the sentence, and one for each piece of evidence.
    fn lines(&self) -> Vec<String> {
        let mut lines = vec![self.line()];
        lines.extend(self.evidence.iter().map(|line| format!("  {line}")));
        lines
    }

    /// Returns the line of the sentence.
    fn line(&self) -> String {
        let start = if self.conclusion == Conclusion::None { "no verdict" } else { "verdict" };
        format!("{start}: {}", self.text)
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
    /// What may explain it, such as `h3: eth0 speed 1 Gbit/s, others 10 Gbit/s`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,
}

/// Links of a slow component, and the ordinary ones that they are compared with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Evidence {
    /// Median ratio of the links of the component to the ordinary ones; `None` without ordinary ones.
    pub factor: Option<f64>,
    /// Slowest links of the component and their ratios to the ordinary ones.
    pub links: Vec<([u32; 2], f64)>,
    /// Number of links of the component.
    pub count: usize,
    /// Ordinary links next to their median time.
    pub typical: Vec<[u32; 2]>,
    /// Number of ordinary links.
    pub ordinary: usize,
    /// Median time of the ordinary links in nanoseconds.
    pub ordinary_ns: f64,
    /// Whether links of the component were measured again alone.
    pub measured_again: bool,
}
