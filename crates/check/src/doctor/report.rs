//! What was examined, in sentences, as JSON, and as a line for monitoring.

use std::collections::BTreeMap;

use ombx_host::{
    device_counters::{is_error, is_throttling},
    host::HostState,
    node_set,
};
use ombx_launch::{
    launch::mpiexec,
    output::junit::{self, Outcome, TestCase},
};
use ombx_links::causes;
use ombx_record::{
    fact::{Fact, HostFacts},
    result::{ClockFacts, ClockProperties, Growth, Level, Mark, MarkCode, Place},
    unit::counted,
};
use ombx_show::{
    monitoring::{Figure, Status},
    wrapped,
};
use serde_json::{Value, json};

/// Maximum number of hosts that the text names.
const NAMED_HOSTS: usize = 8;
/// Default width of a line.
pub(super) const WIDTH: usize = 78;

/// What was examined, and the findings.
#[derive(Default)]
pub(super) struct Examination {
    pub(super) launcher: Option<String>,
    pub(super) ranks: Vec<Place>,
    /// Facts about the hosts of the ranks.
    pub(super) hosts: Vec<HostFacts>,
    /// Number of ranks on this host.
    pub(super) ranks_here: u32,
    /// Accelerators of this host, each in a clause.
    pub(super) devices: Vec<String>,
    /// Findings, the most severe first.
    pub(super) findings: Vec<Finding>,
}

/// What was examined of this host alone.
pub(super) struct ThisHost {
    pub(super) clock: ClockProperties,
    pub(super) host: HostState,
    /// Counters of errors since this host or a driver started.
    pub(super) errors: Vec<Growth>,
}

impl Examination {
    pub(super) fn json(&self, this_host: &ThisHost) -> Value {
        let findings: Vec<Value> = self
            .findings
            .iter()
            .map(|Finding { mark, .. }| {
                json!({"code": mark.code, "level": mark.level.name(), "what": mark.short, "advice": mark.advice})
            })
            .collect();
        json!({
            "mpi": mpiexec::library(),
            "launcher": self.launcher,
            "ranks": self.ranks,
            "hosts": self.hosts,
            "accelerators": self.devices,
            "clock": ClockFacts::from(this_host.clock),
            "errors_since_start": this_host.errors,
            "findings": findings,
        })
    }

    /// Returns the report for CI systems: a case for the answer, and one for each finding.
    pub(super) fn junit(&self) -> String {
        let case = |name: String, outcome, text| TestCase { class: "doctor".into(), name, outcome, text };
        let is_ready = self.findings_at(Level::Invalid).next().is_none();
        let answer = if is_ready { Outcome::Passed } else { Outcome::Failed(self.answer()) };
        let findings = self.findings.iter().map(|finding| {
            let text = match &finding.remedy {
                Some(remedy) => format!("{}: {remedy}", finding.fact),
                None => finding.fact.clone(),
            };
            let outcome = match finding.mark.level {
                Level::Note => Outcome::Passed,
                Level::Caution | Level::Invalid => Outcome::Failed(text.clone()),
            };
            case(finding.mark.code.to_string(), outcome, text)
        });
        junit::report(
            "ombx doctor",
            "doctor",
            [case("ready".into(), answer, self.answer())].into_iter().chain(findings),
        )
    }

    /// Returns the answer, then the findings by level, then what was examined, in lines of at most this width.
    pub(super) fn sentences(&self, this_host: &ThisHost, width: usize) -> String {
        let mut text = format!("{}\n", self.answer());
        for (level, title) in [
            (Level::Invalid, "Figures would be wrong:"),
            (Level::Caution, "Figures may be disturbed:"),
            (Level::Note, "Good to know:"),
        ] {
            let of_level: Vec<&Finding> = self.findings_at(level).collect();
            if !of_level.is_empty() {
                text += &format!("\n{title}\n");
            }
            for Finding { fact, remedy, .. } in of_level {
                match remedy {
                    Some(remedy) => {
                        text += &paragraph(width, "  - ", &sentence(&capital(fact)));
                        text += &paragraph(width, "    What to do: ", remedy);
                    }
                    // The message of an error may begin with the name of a program, which stays as it is.
                    None => text += &paragraph(width, "  - ", &sentence(fact)),
                }
            }
        }
        text += &format!("\n{}", paragraph(width, "Examined: ", &self.examined(this_host)));
        text += &paragraph(width, "Errors: ", &errors(&this_host.errors));
        let mut networks: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for HostFacts { hosts, facts } in &self.hosts {
            if let Some(network) = facts.get("network").and_then(Fact::known) {
                networks.entry(network).or_default().extend(hosts.iter().map(String::as_str));
            }
        }
        for (network, hosts) in networks.iter().take(NAMED_HOSTS) {
            text += &paragraph(
                width,
                "Network: ",
                &format!("{}: {network}.", node_set::fold(hosts.iter().copied())),
            );
        }
        let more = networks.len().saturating_sub(NAMED_HOSTS);
        if more > 0 {
            text += &paragraph(width, "Network: ", &format!("{more} more are in --format json."));
        }
        text
    }

    /// Returns the status, a sentence and figures for monitoring.
    pub(super) fn monitoring(&self, this_host: &ThisHost) -> (Status, String, Vec<Figure>) {
        let count = |level| self.findings_at(level).count();
        let status = match (count(Level::Invalid), count(Level::Caution)) {
            (1.., _) => Status::Critical,
            (0, 1..) => Status::Warning,
            (0, 0) => Status::Ok,
        };
        let found = self.findings.iter().filter(|finding| finding.mark.level != Level::Note);
        let found: Vec<&str> = found.map(|finding| finding.fact.as_str()).collect();
        let text = if found.is_empty() { self.answer() } else { found.join("; ") };
        let part = |label: &str, part: Option<f64>| part.map(|part| Figure::new(label, part * 100.0, "%"));
        let mut figures = vec![
            Figure::new("invalid", count(Level::Invalid) as f64, ""),
            Figure::new("cautions", count(Level::Caution) as f64, ""),
            Figure::new("notes", count(Level::Note) as f64, ""),
            Figure::new("ranks", self.ranks.len() as f64, ""),
            Figure::new("clock_reading", this_host.clock.overhead_ns as f64 / 1e3, "us"),
        ];
        figures.extend(part("foreign_load", this_host.host.foreign));
        figures.extend(part("stolen", this_host.host.stolen));
        figures.extend(
            this_host.host.shared_free.map(|free| Figure::new("shared_memory_free", free as f64, "B")),
        );
        (status, text, figures)
    }

    fn findings_at(&self, level: Level) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| finding.mark.level == level)
    }

    fn answer(&self) -> String {
        match (self.findings_at(Level::Invalid).count(), self.findings_at(Level::Caution).count()) {
            (0, 0) => "This system is ready to measure.".into(),
            (0, cautions) => {
                format!(
                    "This system can measure, but {} may disturb the figures.",
                    counted(cautions, "thing")
                )
            }
            (invalid, _) => {
                format!("This system is not ready to measure: {} must be changed.", counted(invalid, "thing"))
            }
        }
    }

    fn examined(&self, ThisHost { clock, host, .. }: &ThisHost) -> String {
        let mut parts = vec![mpiexec::library()];
        parts.extend(self.launcher.as_ref().map(|launcher| format!("ranks started by {launcher}")));
        let mut hosts: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        self.ranks.iter().for_each(|place| hosts.entry(&place.host).or_default().push(&place.cpus));
        let named = hosts.iter().take(NAMED_HOSTS).map(|(host, cpus)| {
            let ranks = counted(cpus.len(), "rank");
            let mut cpus = cpus.clone();
            cpus.dedup();
            format!("{ranks} on {host} (CPUs {})", cpus.join(" and "))
        });
        parts.extend(named);
        let more = hosts.len().saturating_sub(NAMED_HOSTS);
        parts.extend((more > 0).then(|| format!("{more} more hosts")));
        parts.extend(self.devices.iter().cloned());
        parts.push(format!("{} clock with {} ns per reading", clock.source, clock.overhead_ns));
        parts.extend(
            host.foreign.map(|part| format!("{:.0}% of the CPUs busy with other work", part * 100.0)),
        );
        format!("{}.", parts.join(", "))
    }
}

/// Returns the counters of errors in a sentence.
fn errors(errors: &[Growth]) -> String {
    let counts = errors.iter().map(|one| format!("{} {} {}", one.device, one.counter, one.by));
    match counts.collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => "this host has counted none since it started.".into(),
        some => {
            format!("since this host or the driver started, {some}; an old count may be of a repaired fault.")
        }
    }
}

/// Returns a clause as a sentence.
fn sentence(clause: &str) -> String {
    format!("{}.", clause.trim_end_matches('.'))
}

/// Returns a clause with a capital letter.
fn capital(clause: &str) -> String {
    let mut characters = clause.chars();
    characters.next().into_iter().flat_map(char::to_uppercase).chain(characters).collect()
}

/// Returns a paragraph of lines. All but the first are indented as far as the text of a finding.
fn paragraph(width: usize, start: &str, text: &str) -> String {
    let first = start.trim_start();
    let (indent, words) = match first.strip_prefix("- ") {
        Some(_) => (start.len(), text.to_owned()),
        None => (start.len() - first.len(), format!("{first}{text}")),
    };
    let mut lines =
        wrapped(&words, width.saturating_sub(indent)).into_iter().map(|line| " ".repeat(indent) + &line);
    let mut all = lines.next().unwrap_or_default();
    all.replace_range(..indent, &start[..indent]);
    lines.fold(all, |all, line| all + "\n" + &line) + "\n"
}

/// A mark, what it says about this system, and what to do.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) mark: Mark,
    /// What was found, without a full stop.
    pub(super) fact: String,
    /// What to do; `None` if the fact says it.
    pub(super) remedy: Option<String>,
}

impl Finding {
    /// Returns the finding of a mark whose advice says everything: `fact: remedy`.
    pub(super) fn of_advice(mark: Mark) -> Finding {
        let text = mark.advice.clone();
        Finding::split(mark, &text)
    }

    /// Returns the finding of a mark whose short text is the fact. Its advice says why it matters, then what to do.
    pub(super) fn of_mark(mark: Mark) -> Finding {
        let text = format!("{}: {}", mark.short, mark.advice);
        Finding::split(mark, &text)
    }

    /// Returns the findings about hosts whose devices do less than they can, or that differ from most hosts.
    pub(super) fn of_hosts(hosts: &[HostFacts]) -> impl Iterator<Item = Finding> {
        causes::of_hosts(hosts, &[]).into_iter().map(|cause| {
            let why = "a job is as fast as its slowest host";
            Finding::of_mark(Mark::new(MarkCode::DifferingHosts, cause.to_string(), why))
        })
    }

    /// Returns the findings about counters of errors that grew while the doctor looked. They stand still while hardware is healthy.
    pub(super) fn of_errors(grown: &[Growth]) -> impl Iterator<Item = Finding> {
        let errors = grown.iter().filter(|one| is_error(one) && !is_throttling(one));
        errors.map(|one| {
            let why = "errors were counted in these seconds, and each may delay a message";
            let text = format!("{} on {}", one, one.host);
            Finding::of_mark(Mark::new(MarkCode::DeviceErrors, text, why).at(Level::Caution))
        })
    }

    /// Returns the finding of a failure: its advice is the message of an error.
    pub(super) fn of_error(mark: Mark) -> Finding {
        let fact = mark.advice.clone();
        Finding { mark, fact, remedy: None }
    }

    fn split(mark: Mark, text: &str) -> Finding {
        let (fact, remedy) = match text.rsplit_once(": ") {
            Some((fact, remedy)) => (fact.to_owned(), Some(remedy.to_owned())),
            None => (text.to_owned(), None),
        };
        Finding { mark, fact, remedy }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn this_host() -> ThisHost {
        let clock = ClockProperties { source: "tsc", resolution_ns: 1, overhead_ns: 9 };
        let host = HostState { foreign: Some(0.25), ..HostState::default() };
        ThisHost { clock, host, errors: Vec::new() }
    }

    fn with(findings: Vec<Finding>) -> Examination {
        let place = |cpus: &str| Place {
            host: "n1".into(),
            cpus: cpus.into(),
            online: 2,
            governor: None,
            quota: None,
        };
        let ranks = vec![place("0"), place("1")];
        let launcher = Some("mpiexec".into());
        Examination { launcher, ranks, ranks_here: 2, findings, ..Examination::default() }
    }

    fn load() -> Finding {
        let advice = "other processes run here: wait";
        Finding::of_mark(Mark::with_advice(MarkCode::ForeignLoad, "25% of the CPUs are busy", advice))
    }

    fn debug() -> Finding {
        Finding::of_advice(Mark::new(MarkCode::DebugBuild, "debug build", "this is a debug build"))
    }

    fn error() -> Finding {
        let error = "mpiexec failed; its last line is: no host";
        Finding::of_error(Mark::with_advice(MarkCode::Launcher, "cannot start ranks", error))
    }

    #[test]
    fn errors_that_are_counted_meanwhile_are_findings() {
        let grown = |counter: &str| {
            let [host, device, counter] = ["n4", "Tcp", counter].map(String::from);
            Growth { host, device, counter, by: 3 }
        };
        let found = Finding::of_errors(&[grown("InErrs"), grown("RetransSegs")]).collect::<Vec<_>>();
        let text = with(found).sentences(&this_host(), WIDTH);
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("Tcp InErrs +3 on n4: errors were counted in these seconds"), "{text}");
        assert!(!words.contains("RetransSegs"), "{text}");
    }

    #[test]
    fn findings_are_sentences_after_the_answer() {
        let text = with(vec![debug(), error(), load()]).sentences(&this_host(), WIDTH);
        let expected = "This system is not ready to measure: 2 things must be changed.\n\nFigures would be wrong:\n\
                        \x20 - This is a debug build.\n    What to do: build with --release\n\
                        \x20 - mpiexec failed; its last line is: no host.\n\nFigures may be disturbed:\n\
                        \x20 - 25% of the CPUs are busy: other processes run here.\n    What to do: wait\n\n";
        assert!(text.starts_with(expected), "{text}");
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("2 ranks on n1 (CPUs 0 and 1), tsc clock with 9 ns per reading"), "{text}");
        assert!(!text.contains("debug_build") && !text.contains("foreign_load"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(
            with(vec![])
                .sentences(&this_host(), WIDTH)
                .starts_with("This system is ready to measure.\n\nExamined: ")
        );
    }

    #[test]
    fn the_status_for_monitoring_is_that_of_the_worst_finding() {
        let status = |findings| with(findings).monitoring(&this_host());
        let note = Finding::of_advice(Mark::new(MarkCode::Governor, "g", "CPUs change frequency"));
        let (ok, text, figures) = status(vec![note]);
        assert_eq!((ok, text.as_str()), (Status::Ok, "This system is ready to measure."));
        assert!(figures.contains(&Figure::new("foreign_load", 25.0, "%")), "{figures:?}");
        assert!(figures.contains(&Figure::new("notes", 1.0, "")), "{figures:?}");
        let (warning, text, _) = status(vec![load()]);
        assert_eq!(
            (warning, text.as_str()),
            (Status::Warning, "25% of the CPUs are busy: other processes run here")
        );
        assert_eq!(status(vec![debug(), load()]).0, Status::Critical);
        let junit = with(vec![debug(), load()]).junit();
        assert!(junit.contains("failures=\"3\"") && junit.contains("name=\"foreign_load\""), "{junit}");
        assert!(with(Vec::new()).junit().contains("failures=\"0\""));
    }
}
