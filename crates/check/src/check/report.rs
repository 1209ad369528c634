//! The result of a check: a table for people, one line for monitoring, and JSON.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    time::Duration,
};

use comfy_table::{Table, presets};
use ombx_launch::output::junit::{self, Outcome, TestCase};
use ombx_links::causes::{self, Cause};
use ombx_record::{
    fact::HostFacts,
    order::sort_by_number,
    result::{Growth, Metric},
    unit::Bytes,
};
use ombx_show::{
    CheckedLimit, OpenMetrics, Renderer as _,
    monitoring::{Figure, Status},
};
use serde_json::{Value, json};

use super::{
    judgement::{Finding, State},
    measurement::seconds,
};

/// Result of a check.
#[derive(Debug)]
pub(super) struct Report {
    /// Name of the file of expectations.
    pub(super) file: String,
    pub(super) findings: Vec<Finding>,
    /// Part of the CPUs that other processes used.
    pub(super) load: Option<f64>,
    pub(super) spent: Duration,
    /// What was done with a good day.
    pub(super) learnt: Option<String>,
}

impl Report {
    /// Returns the most important state.
    pub(super) fn state(&self) -> State {
        let errors = (!self.errors().is_empty()).then_some(State::Errors);
        self.findings.iter().map(|finding| finding.state).chain(errors).max().unwrap_or(State::Met)
    }

    /// Returns the errors of devices and protocols by which a host stands out, as in the verdict on links.
    fn errors(&self) -> Vec<Cause> {
        let mut errors = causes::Errors::default();
        let mut seen = BTreeSet::new();
        for (run, row) in self.findings.iter().filter_map(|one| Some((one.run.as_ref()?, one.row.as_ref()?)))
        {
            // A row can have several limits.
            if seen.insert((&run.id, &row.key)) {
                row.grown.iter().for_each(|one| errors.add(one, None));
            }
        }
        let runs = self.findings.iter().filter_map(|finding| finding.run.as_ref());
        let hosts: BTreeSet<&String> = runs.flat_map(|run| &run.places).map(|place| &place.host).collect();
        errors.findings(hosts.len(), &self.facts(|_| true))
    }

    /// Returns the facts about the hosts of some findings.
    fn facts(&self, is_chosen: impl Fn(&Finding) -> bool) -> Vec<HostFacts> {
        let chosen = self.findings.iter().filter(|finding| is_chosen(finding));
        let facts = chosen.filter_map(|finding| finding.run.as_ref()).flat_map(|run| &run.hosts);
        let facts =
            facts.flat_map(|group| group.hosts.iter().map(|host| (host.clone(), group.facts.clone())));
        HostFacts::grouped(facts.collect::<BTreeMap<_, _>>())
    }

    /// Returns the result in one sentence.
    pub(super) fn sentence(&self) -> String {
        let count = |state| self.findings.iter().filter(|finding| finding.state == state).count();
        let all = self.findings.len();
        let mut parts: Vec<String> = Vec::new();
        let mut findings: Vec<&Finding> =
            self.findings.iter().filter(|finding| finding.state != State::Met).collect();
        sort_by_number(&mut findings, |finding| -(finding.state as i64));
        parts.extend(findings.into_iter().map(sentence));
        if parts.is_empty() {
            parts.push(match all {
                0 => "no limit to judge".into(),
                1 => "1 limit is met".into(),
                _ => format!("{all} limits are met"),
            });
        } else if count(State::Met) > 0 {
            let met = count(State::Met);
            parts.push(format!("{met} limit{} met", if met == 1 { " is" } else { "s are" }));
        }
        if self.findings.iter().any(|finding| finding.limit.as_ref().is_some_and(|limit| limit.is_thin)) {
            parts.push("the baseline is thin: learn at least seven good days".into());
        }
        parts.extend(self.errors().into_iter().map(|error| error.text));
        parts.extend(self.causes().map(|causes| format!("possible cause: {causes}")));
        parts.extend(self.learnt.clone());
        parts.join("; ")
    }

    /// Returns what may explain limits that are missed: hosts that differ or are limited, and errors that their devices counted.
    fn causes(&self) -> Option<String> {
        let is_missed = |finding: &Finding| finding.state == State::Missed;
        let missed = self.findings.iter().filter(|finding| is_missed(finding));
        let grown =
            missed.filter_map(|finding| finding.row.as_ref()).flat_map(|row| row.grown.iter().cloned());
        causes::sentence(&causes::of_hosts(&self.facts(is_missed), &Growth::summed(grown)))
    }

    /// Returns the table for people: the findings, then the sentence.
    pub(super) fn table(&self) -> String {
        let mut text = String::new();
        if self.findings.iter().any(|finding| finding.row.is_some()) {
            let mut table = Table::new();
            table.load_style(presets::NOTHING).set_header([
                "benchmark",
                "size",
                "median (95 %)",
                "limit",
                "result",
            ]);
            for finding in &self.findings {
                let size = finding.row.as_ref().and_then(|row| row.bytes);
                table.add_row([
                    finding.name.clone(),
                    size.map_or("-".into(), |bytes| Bytes(bytes).to_string()),
                    finding.figure().unwrap_or_else(|| "n/a".into()),
                    finding.limit.as_ref().map_or("-".into(), |limit| limit.text.clone()),
                    result(finding),
                ]);
            }
            let lines = table.lines().map(|line| format!("{}\n", line.trim_end()));
            text = lines.collect::<String>() + "\n";
        }
        format!("{text}{}: {}\n", self.status_word(), self.sentence())
    }

    fn status_word(&self) -> &'static str {
        match (self.state(), self.state().status()) {
            (State::Busy, _) => "SKIPPED",
            (_, Status::Ok) => "OK",
            (_, Status::Warning) => "WARNING",
            (_, Status::Critical) => "CRITICAL",
            (_, Status::Unknown) => "UNKNOWN",
        }
    }

    /// Returns the figures for monitoring, each name once.
    pub(super) fn figures(&self) -> Vec<Figure> {
        let count = |state| self.findings.iter().filter(|finding| finding.state == state).count() as f64;
        let mut figures = vec![
            Figure::new("limits", self.findings.len() as f64, ""),
            Figure::new("missed", count(State::Missed), ""),
            Figure::new("undecided", count(State::Undecided), ""),
        ];
        figures.extend(self.load.map(|load| Figure::new("foreign_load", load * 100.0, "%")));
        figures.push(Figure::new("duration", self.spent.as_secs_f64(), "s"));
        for finding in &self.findings {
            let Some((row, headline)) = finding.row.as_ref().and_then(|row| Some((row, row.headline()?)))
            else {
                continue;
            };
            let size = row.bytes.map(|bytes| format!("_{}", Bytes(bytes))).unwrap_or_default();
            let name = finding.name.replace([' ', '='], "_");
            let limit = finding.limit.as_ref().map(|limit| plain(limit.value));
            let (label, unit, critical) = match row.metric {
                Metric::Latency => (format!("{name}{size}"), "us", limit),
                Metric::Bandwidth => {
                    (format!("{name}{size}_mb_per_s"), "", limit.map(|limit| format!("{limit}:")))
                }
            };
            // A row with two limits has one figure, with the first.
            if figures.iter().all(|figure| figure.label != label) {
                figures.push(Figure { critical, ..Figure::new(label, headline.value, unit) });
            }
        }
        figures
    }

    /// Returns the text of the file for Prometheus.
    pub(super) fn gauges(&self) -> io::Result<Vec<u8>> {
        let (mut gauges, mut text) = (OpenMetrics::default(), Vec::new());
        gauges.check_result(self.state().name(), &State::TABLE.map(|(.., name)| name));
        for finding in &self.findings {
            if let (Some(run), Some(row), Some(limit)) = (&finding.run, &finding.row, &finding.limit) {
                let kind = if limit.is_relative { "baseline" } else { "absolute" };
                let is_missed = finding.state == State::Missed;
                gauges.check_row(run, row, CheckedLimit { kind, value: limit.value, is_missed });
            }
        }
        gauges.finish(&mut text)?;
        Ok(text)
    }

    /// Returns the report for CI systems: a case for each limit.
    pub(super) fn junit(&self) -> String {
        let cases = self.findings.iter().map(|finding| {
            let why = sentence(finding);
            let size = finding.row.as_ref().and_then(|row| row.bytes);
            let size = size.map(|bytes| format!(" {}", Bytes(bytes))).unwrap_or_default();
            TestCase {
                class: self.file.clone(),
                name: format!("{}{size}", finding.name),
                outcome: match finding.state {
                    State::Met => Outcome::Passed,
                    State::Missed | State::Wrong => Outcome::Failed(why.clone()),
                    State::Broken => Outcome::Broken(why.clone()),
                    State::Undecided | State::Errors | State::Busy | State::NoVerdict => {
                        Outcome::Skipped(why.clone())
                    }
                },
                text: why,
            }
        });
        let errors = self.errors().into_iter().map(|error| TestCase {
            class: self.file.clone(),
            name: format!("errors of {}", error.host),
            outcome: Outcome::Failed(error.text.clone()),
            text: error.text,
        });
        junit::report("ombx check", &self.file, cases.chain(errors))
    }

    pub(super) fn json(&self) -> Value {
        let findings: Vec<Value> = self.findings.iter().map(of_finding).collect();
        json!({
            "file": self.file,
            "result": self.state().name(),
            "exit_code": self.state().exit_code(),
            "sentence": self.sentence(),
            "causes": self.causes(),
            "errors": self.errors().into_iter().map(|error| error.text).collect::<Vec<_>>(),
            "foreign_load": self.load,
            "seconds": self.spent.as_secs_f64(),
            "findings": findings,
        })
    }
}

fn of_finding(finding: &Finding) -> Value {
    let row = finding.row.as_ref();
    let headline = row.and_then(|row| row.headline());
    json!({
        "name": finding.name,
        "key": row.map(|row| &row.key),
        "bytes": row.and_then(|row| row.bytes),
        "unit": row.map(|row| row.metric.unit()),
        "median": headline.map(|headline| headline.value),
        "ci95": headline.and_then(|headline| headline.ci95),
        "limit": finding.limit.as_ref().map(|limit| limit.value),
        "limit_text": finding.limit.as_ref().map(|limit| &limit.text),
        "thin_baseline": finding.limit.as_ref().is_some_and(|limit| limit.is_thin),
        "result": finding.state.name(),
        "measured": finding.measured,
        "why": finding.why,
    })
}

/// Returns the result of a limit in a few words.
fn result(finding: &Finding) -> String {
    if let (None, Some(why)) = (&finding.row, &finding.why) {
        return why.clone();
    }
    let mut text = finding.state.name().to_owned();
    if finding.measured > 1 {
        text += " (measured twice)";
    }
    finding.why.iter().fold(text, |text, why| format!("{text}: {why}"))
}

/// Returns a clause about a limit that is not met.
fn sentence(finding: &Finding) -> String {
    let size = finding.row.as_ref().and_then(|row| row.bytes);
    let size = size.map(|bytes| format!(" at {} bytes", Bytes(bytes))).unwrap_or_default();
    let limit = finding.limit.as_ref().map(|limit| format!("limit {}", limit.text));
    let facts: Vec<String> = finding.figure().into_iter().chain(limit).collect();
    let facts = if facts.is_empty() { String::new() } else { format!(": {}", facts.join(", ")) };
    format!("{}{size}{facts}: {}", finding.name, result(finding))
}

/// Formats a limit for performance data.
fn plain(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Returns the sentence about a host that is too busy.
pub(super) fn busy(load: f64, most: f64) -> String {
    format!(
        "not measured, because other processes use {:.0} % of the CPUs (the limit is {:.0} %: key busy of \
         the file): repeat it later",
        load * 100.0,
        most * 100.0
    )
}

/// Returns the sentence about a check that has learnt a day.
pub(super) fn learnt(path: &std::path::Path, spent: Duration) -> String {
    format!("learnt in {}: {}", seconds(spent), path.display())
}

#[cfg(test)]
mod tests {
    use ombx_record::result::{Measurement, Run};

    use super::*;
    use crate::check::judgement::Limit;

    fn report(states: &[State]) -> Report {
        let limit = Limit { text: "<5us".into(), value: 5.0, is_relative: false, is_thin: false };
        let finding = |state: &State| Finding {
            limit: Some(limit.clone()),
            measured: 2,
            why: None,
            ..Finding::without_row("b".into(), *state, String::new())
        };
        Report {
            file: "f.toml".into(),
            findings: states.iter().map(finding).collect(),
            load: Some(0.25),
            spent: Duration::from_secs(1),
            learnt: None,
        }
    }

    #[test]
    fn the_sentence_begins_with_the_worst() {
        let of = |states: &[State]| report(states).sentence();
        assert_eq!(of(&[]), "no limit to judge");
        assert_eq!(of(&[State::Met; 2]), "2 limits are met");
        assert_eq!(
            of(&[State::Met, State::Undecided, State::Missed]),
            "b: limit <5us: missed (measured twice); b: limit <5us: undecided (measured twice); 1 limit is met"
        );
        let busy = Finding::without_row("f.toml".into(), State::Busy, busy(0.43, 0.1));
        let skipped = Report { findings: vec![busy], ..report(&[]) };
        assert_eq!(
            skipped.table(),
            "SKIPPED: f.toml: not measured, because other processes use 43 % of the CPUs (the limit is 10 \
             %: key busy of the file): repeat it later\n"
        );
    }

    #[test]
    fn a_host_with_more_errors_than_others_is_a_finding() {
        let ranks = ["n1", "n2", "n3", "n4"].map(|host| json!({"host": host, "cpus": "0", "online": 1}));
        let run = json!({
            "run": "1", "argv": [], "started": "", "version": "", "profile": "release", "fabric": "mpi", "library": "",
            "ranks": ranks,
            "clock": {"source": "tsc", "resolution_ns": 1, "overhead_ns": 9},
        });
        let run: Run = serde_json::from_value(run).unwrap();
        let with = |counted: usize| {
            let mut report = report(&[State::Met; 12]);
            for (at, finding) in report.findings.iter_mut().enumerate() {
                let [host, device, counter] = ["n2", "Tcp", "InErrs"].map(String::from);
                let grown = Growth { host, device, counter, by: 30 };
                let key = format!("b/bytes={at}");
                let grown = if at < counted { vec![grown] } else { Vec::new() };
                finding.row = Some(Measurement { grown, ..Measurement::new("b", key, Metric::Latency, 4) });
                finding.run = Some(run.clone());
            }
            report
        };
        let report = with(12);
        assert_eq!((report.state(), report.state().exit_code()), (State::Errors, 13));
        let said = report.sentence();
        let error =
            "wrong checksums: n2 counted Tcp InErrs +360, others 0; a guess: cable, port or adapter of n2";
        assert!(said.contains(error), "{said}");
        assert!(report.junit().contains("errors of n2"), "{}", report.junit());
        assert!(report.table().contains("WARNING: "), "{}", report.table());
        assert_eq!(with(2).state(), State::Met, "two rows are chance");
    }

    #[test]
    fn a_missed_limit_has_causes_and_a_met_one_has_none() {
        let text = |state| {
            let run = json!({
                "run": "1", "argv": [], "started": "", "version": "", "profile": "release", "fabric": "mpi", "library": "", "ranks": [],
                "clock": {"source": "tsc", "resolution_ns": 1, "overhead_ns": 9},
                "hosts": [{"hosts": ["n1"], "facts": {"eth0 PCIe": "8.0 GT/s x4 of 8.0 GT/s x8"}}],
            });
            let mut report = report(&[state]);
            report.findings[0].run = Some(serde_json::from_value(run).unwrap());
            report.sentence()
        };
        assert!(text(State::Missed).ends_with("; possible cause: n1: eth0 PCIe 8.0 GT/s x4 of 8.0 GT/s x8"));
        assert!(!text(State::Met).contains("cause"));
    }

    #[test]
    fn the_worst_state_decides() {
        assert_eq!(report(&[]).state(), State::Met);
        assert_eq!(report(&[State::Missed, State::Met, State::NoVerdict]).state(), State::Missed);
        assert_eq!(report(&[State::Missed]).json()["exit_code"], 9);
        let junit = report(&[State::Missed, State::Met, State::Broken, State::Undecided]).junit();
        for part in ["failures=\"1\"", "errors=\"1\"", "<skipped message=\"b: limit &lt;5us: undecided"] {
            assert!(junit.contains(part), "{part}\n{junit}");
        }
        let figures = report(&[State::Missed, State::Met]).figures();
        assert!(figures.contains(&Figure::new("missed", 1.0, "")), "{figures:?}");
        assert!(figures.contains(&Figure::new("foreign_load", 25.0, "%")), "{figures:?}");
        assert_eq!([0.001, 5.0, 35.216_437].map(plain), ["0.001", "5", "35.216437"]);
    }
}
