//! Where, when and how each run was measured: enough to measure it again.

use std::collections::BTreeMap;

use maud::{Markup, html};
use ombx_core::system::placement::Placement;
use ombx_results::{render::library, wire::Outcome};

use crate::book::{Book, Chapter, count};

/// Of more ranks, the list begins folded.
const UNFOLDED_RANKS: usize = 16;

/// The last section.
pub(crate) fn section(book: &Book<'_>) -> Markup {
    html! {
        section #provenance aria-labelledby="provenance-h" {
            h2 #provenance-h { "Provenance" }
            @for chapter in &book.runs { (of_run(chapter)) }
        }
    }
}

fn of_run(chapter: &Chapter<'_>) -> Markup {
    let run = &chapter.run.run;
    let ended = match (chapter.run.end, chapter.outcome()) {
        (None, _) => "without an end record".to_owned(),
        (Some((_, tally)), outcome) => {
            let word = match outcome {
                Outcome::Complete => "complete",
                Outcome::Interrupted => "interrupted",
                Outcome::Broken => "broken",
            };
            format!("{word}, {}", count(tally.cases as usize, "row"))
        }
    };
    let clock = format!(
        "{}, steps of {} ns, {} ns a reading",
        run.clock.source, run.clock.resolution_ns, run.clock.overhead_ns
    );
    let words: Vec<String> = run.argv.iter().map(|word| shell_word(word)).collect();
    html! {
        h3 { (chapter.name) }
        div.wide role="group" aria-label={ "Provenance of " (chapter.name) } {
            table.pairs { tbody {
                tr { th scope="row" { "run" } td { code { (run.id) } } }
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
            details { summary { "The library in its own words" } pre.wide { code { (run.library) } } }
        }
        details open[run.places.len() <= UNFOLDED_RANKS] {
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
                                td { (place.online) } td.word { (place.governor.as_deref().unwrap_or("not told")) }
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

/// A word as a shell would have to be given it.
fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+,./:@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}
