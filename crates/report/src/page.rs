//! Layout of the page: style sheet, script, content security policy, and the order of sections.

use std::collections::BTreeSet;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use ombx_estimate::text::plain;
use ombx_record::{
    runs::{hosts, library},
    unit::counted,
};

use crate::{
    Report, Source,
    run_list::RunList,
    section::{answer, comparison, curves, distributions, history, links, pipeline, provenance, rows},
};

/// Hosts up to which the title names each.
const MOST_HOSTS: usize = 3;
const STYLE: &str = include_str!("asset/page.css");
const SCRIPT: &str = include_str!("asset/page.js");
/// Content security policy. It allows the style sheet and the script above by their SHA-256, and nothing else.
const POLICY: &str = "default-src 'none'; base-uri 'none'; form-action 'none'; style-src \
                      'sha256-+GW7SdNtENRX7mkQzhTjSbt9J/urxXqw3czC1ipLcHM='; script-src \
                      'sha256-wvjBDbOCzJ3bnFbsYNtTGvNTbEKC6rEGfmYtcDloW04='";

/// Returns the HTML page of a report.
pub fn page(report: &Report<'_>) -> String {
    let Report { sources, samples, benchmarks, units, comparison, history } = *report;
    let runs = RunList::new(sources, units);
    let title = match (comparison, history) {
        (Some(sides), _) => format!("{} compared with {}", sides.new.label, sides.base.label),
        (None, Some(timeline)) => format!("Results of {}", timeline.name),
        (None, None) => title(sources, &runs),
    };
    let links = links::collect(&runs);
    let of_files = history.is_none() || !sources.is_empty();
    let sections: Vec<(&str, &str, Markup)> = [
        of_files.then(|| ("answer", "Answer", answer::section(&runs, &links, comparison))),
        history.map(|timeline| ("changes", "Changes", history::changes(timeline.history))),
        history.map(|timeline| ("history", "History", history::section(timeline.history))),
        comparison.map(|c| ("comparison", "Comparison", comparison::section(c))),
        curves::section(&runs).map(|section| ("curves", "Curves", section)),
        links::section(&runs, &links).map(|section| ("links", "Links", section)),
        pipeline::section(&runs).map(|section| ("pipeline", "Pipeline", section)),
        distributions::section(samples, benchmarks, units)
            .map(|section| ("distributions", "Distributions", section)),
        of_files.then(|| ("rows", "Rows", rows::section(&runs))),
        of_files.then(|| ("provenance", "Provenance", provenance::section(&runs))),
    ]
    .into_iter()
    .flatten()
    .collect();
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="generator" content={ "ombx " (env!("CARGO_PKG_VERSION")) };
                title { "ombx: " (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                a.skip href="#main" { "Skip to the results" }
                header.bar {
                    div {
                        strong { "ombx report" }
                        nav aria-label="Sections" { @for (id, name, _) in &sections { a href={ "#" (id) } { (name) } } }
                        button #theme type="button" hidden { "Dark theme" }
                    }
                }
                main #main {
                    h1 { (title) }
                    p.lead {
                        @if let Some(timeline) = history { (history::lead(timeline.history)) }
                        @if history.is_some() && of_files { ". The newest result of each setup: " }
                        @if of_files { (lead(&runs)) }
                    }
                    @for (_, _, section) in &sections { (section) }
                }
                footer { "Written by ombx " (env!("CARGO_PKG_VERSION")) ". The page is one file and loads nothing. MB is 10" sup { "6" } " bytes." }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
    .into_string()
    // Files may contain anything. The page has no other control characters than line feeds.
    .split('\n')
    .map(plain)
    .collect::<Vec<_>>()
    .join("\n")
}

/// Returns the names of the files, their hosts and the day of the first measurement.
fn title(sources: &[Source<'_>], runs: &RunList<'_>) -> String {
    let files = match sources {
        [one] => one.name.to_owned(),
        [one, rest @ ..] => format!("{} and {}", one.name, counted(rest.len(), "other file")),
        [] => return "no files".into(),
    };
    let all = || runs.entries.iter().map(|entry| &entry.run.run);
    let names: Vec<&str> = all().flat_map(hosts).collect::<BTreeSet<_>>().into_iter().collect();
    let places = match &names[..] {
        [] => String::new(),
        [first, .., last] if names.len() > MOST_HOSTS => {
            format!(" · {first} .. {last} ({})", counted(names.len(), "host"))
        }
        few => format!(" · {}", few.join(", ")),
    };
    let day = all().map(|run| history::date(&run.started)).min();
    format!("{files}{places}{}", day.map(|day| format!(" · {day}")).unwrap_or_default())
}

/// Returns one line with libraries, hosts and start time.
fn lead(runs: &RunList<'_>) -> String {
    let mut parts: Vec<String> = Vec::new();
    for entry in &runs.entries {
        let run = &entry.run.run;
        let hosts = hosts(run);
        let at = if let [host] = hosts[..] { host.to_owned() } else { counted(hosts.len(), "host") };
        let part = format!("{}, {} on {at}", library(run), counted(run.places.len(), "rank"));
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    let rest = parts.len().saturating_sub(3);
    parts.truncate(3);
    if rest > 0 {
        parts.push(format!("{rest} more"));
    }
    let started = runs.entries.first().map(|c| format!(" · {}", c.run.run.started)).unwrap_or_default();
    format!("{}{started}", parts.join(" · "))
}

#[cfg(test)]
mod tests {
    use base64::{Engine, engine::general_purpose::STANDARD};
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn the_content_security_policy_has_the_hashes_of_style_and_script() {
        for (kind, text) in [("style", STYLE), ("script", SCRIPT)] {
            let hash = format!("{kind}-src 'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
            assert!(POLICY.contains(&hash), "set this hash in page.rs: {hash}");
        }
    }

    #[test]
    fn text_of_a_file_brings_no_control_characters() {
        let golden = include_str!("../../record/tests/golden/one_launch.jsonl");
        let doctored = golden.replace("p2p.latency", "p2p\\u001b[2J\\u202elatency");
        let file = ombx_record::file::read(doctored.as_bytes()).unwrap().into();
        let sources = [Source { name: "a.jsonl", file: &file }];
        let html = page(&Report { sources: &sources, ..Report::default() });
        assert!(html.contains("p2p [2J latency"));
        assert!(html.chars().all(|c| c == '\n' || !c.is_control()));
    }
}
