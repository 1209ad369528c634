//! Provenance of each run: command, time, software, hosts, options and environment.

use std::collections::BTreeMap;

use maud::{Markup, html};
use ombx_core::system::placement::Placement;
use ombx_results::{file::RunOutcome, run_info::library};

use crate::runs::{RunEntry, RunList, count};

/// Maximum number of ranks for which the list is initially open.
const MAX_OPEN_RANKS: usize = 16;

pub(crate) fn section(runs: &RunList<'_>) -> Markup {
    html! {
        section #provenance aria-labelledby="provenance-h" {
            h2 #provenance-h { "Provenance" }
            @for entry in &runs.entries { (of_run(entry)) }
        }
    }
}

fn of_run(entry: &RunEntry<'_>) -> Markup {
    let (run, launches) = (&entry.run.run, entry.launches());
    let ended = match (entry.run.end, entry.outcome()) {
        (None, _) => "without an end record".to_owned(),
        (Some((_, tally)), outcome) => {
            let word = match outcome {
                RunOutcome::Complete => "complete",
                RunOutcome::Interrupted => "interrupted",
                RunOutcome::Broken => "broken",
            };
            format!("{word}, {}", count(tally.cases as usize, "row"))
        }
    };
    let clock = format!(
        "{}, resolution {} ns, {} ns per reading",
        run.clock.source, run.clock.resolution_ns, run.clock.overhead_ns
    );
    let words: Vec<String> = run.argv.iter().map(|word| shell_word(word)).collect();
    html! {
        h3 { (entry.name) }
        div.wide role="group" aria-label={ "Provenance of " (entry.name) } {
            table.pairs { tbody {
                tr { th scope="row" { "run" } td {
                    code { (run.id) }
                    @if launches > 1 { ", the first of " (launches) " launches" }
                } }
                tr { th scope="row" { "command" } td { code { (words.join(" ")) } } }
                tr { th scope="row" { "started" } td { (run.started) } }
                tr { th scope="row" { "ended" } td { (ended) } }
                tr { th scope="row" { "ombx" } td { (run.version) ", " (run.profile) " build" } }
                tr { th scope="row" { "fabric" } td { (run.fabric) ": " (library(run)) } }
                tr { th scope="row" { "clock" } td { (clock) } }
                tr { th scope="row" { "ranks" } td { (count(run.places.len(), "rank")) ", " (Placement::of(&run.places).name()) } }
                (list("plan", &run.plan))
                (list("environment", &run.env))
            } }
        }
        @if library(run) != run.library.trim() {
            details { summary { "Version text of the library" } pre.wide { code { (run.library) } } }
        }
        details open[run.places.len() <= MAX_OPEN_RANKS] {
            summary { "Ranks and hosts" }
            div.wide role="group" aria-label="Ranks and hosts" {
                table {
                    thead { tr {
                        th scope="col" { "rank" } th.word scope="col" { "host" } th.word scope="col" { "may use CPUs" }
                        th scope="col" { "CPUs online" } th.word scope="col" { "governor" }
                    } }
                    tbody {
                        @for (rank, place) in run.places.iter().enumerate() {
                            tr {
                                th scope="row" { (rank) } td.word { (place.host) } td.word { (place.cpus) }
                                td { (place.online) } td.word { (place.governor.as_deref().unwrap_or("unknown")) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn list(name: &str, values: &BTreeMap<String, String>) -> Markup {
    html! {
        tr {
            th scope="row" { (name) }
            td {
                @if values.is_empty() { "none" }
                @for (at, (name, value)) in values.iter().enumerate() {
                    @if at > 0 { " · " }
                    code { (name) "=" (value) }
                }
            }
        }
    }
}

/// Quotes a word for the shell if necessary.
fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+,./:@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}
