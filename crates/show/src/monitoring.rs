//! One line for monitoring systems that run plugins, such as Nagios and Icinga: a status, a sentence, and figures.
//!
//! Source: Monitoring Plugins Development Guidelines, sections 2 (output and return codes) and 2.6 (performance data).

use std::fmt::Write;

use ombx_estimate::text::plain;

/// Maximum length of the sentence in characters. Transports such as NRPE cut long lines.
const LONGEST_TEXT: usize = 600;

/// Status of a service. Its number is the exit code of a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Nothing is wrong.
    Ok,
    /// Something should be looked at.
    Warning,
    /// Something is broken, or misses a limit of the user.
    Critical,
    /// Nothing can be said.
    Unknown,
}

impl Status {
    /// Returns the exit code.
    pub const fn code(self) -> u8 {
        self as u8
    }

    const fn name(self) -> &'static str {
        match self {
            Status::Ok => "OK",
            Status::Warning => "WARNING",
            Status::Critical => "CRITICAL",
            Status::Unknown => "UNKNOWN",
        }
    }
}

/// One figure of the performance data.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Name without blanks, quotation marks and equals signs.
    pub label: String,
    /// Value.
    pub value: f64,
    /// Unit of the guidelines: `us`, `B`, `%`, or nothing for a number.
    pub unit: &'static str,
    /// Range outside of which the status is critical: `2` is 0 to 2, `11000:` is at least 11000.
    pub critical: Option<String>,
}

impl Figure {
    /// Returns a figure without limits.
    pub fn new(label: impl Into<String>, value: f64, unit: &'static str) -> Figure {
        Figure { label: label.into(), value, unit, critical: None }
    }
}

/// Returns the line of a service: `OMBX LINKS OK - text | label=value[unit];;[critical];0 ..`, with its end.
pub fn line(service: &str, status: Status, text: &str, figures: &[Figure]) -> String {
    // A vertical bar begins the figures.
    let text: String = plain(text).replace('|', "/").chars().take(LONGEST_TEXT).collect();
    let mut line = format!("OMBX {} {} - {}", service.to_uppercase(), status.name(), text.trim());
    for (at, Figure { label, value, unit, critical }) in figures.iter().enumerate() {
        let start = if at == 0 { " |" } else { "" };
        let value = format!("{value:.3}");
        let value = value.trim_end_matches('0').trim_end_matches('.');
        let critical = critical.as_deref().unwrap_or_default();
        let _ = write!(line, "{start} {label}={value}{unit};;{critical};0");
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use crate::monitoring::*;

    #[test]
    fn a_line_has_status_text_and_figures() {
        let limited = Figure { critical: Some("2".into()), ..Figure::new("slowest_8", 1.25, "us") };
        let figures = [Figure::new("links", 12.0, ""), limited];
        assert_eq!(
            line("links", Status::Warning, "n1 | n2\nis slow", &figures),
            "OMBX LINKS WARNING - n1 / n2 is slow | links=12;;;0 slowest_8=1.25us;;2;0\n"
        );
        assert_eq!(line("doctor", Status::Ok, "ready", &[]), "OMBX DOCTOR OK - ready\n");
        let codes = [Status::Ok, Status::Warning, Status::Critical, Status::Unknown].map(Status::code);
        assert_eq!(codes, [0, 1, 2, 3]);
    }

    #[test]
    fn a_long_text_is_cut_and_its_figures_are_kept() {
        let text = line("links", Status::Critical, &"slow ".repeat(1000), &[Figure::new("slow", 9.0, "")]);
        assert!(text.len() < LONGEST_TEXT + 100 && text.ends_with("slow | slow=9;;;0\n"), "{text}");
    }
}
