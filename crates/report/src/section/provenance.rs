//! Provenance of each run: the method as a paragraph, a citation, and command, software, hosts, options and environment.

use maud::{Markup, html};
use ombx_show::{
    methods,
    provenance::{self, Section},
};

use crate::run_list::{RunEntry, RunList};

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
    let run = &entry.run.run;
    html! {
        h3 { (entry.name) }
        p { (methods::paragraph(entry.swept)) }
        details { summary { "Citation (BibTeX)" } pre.wide { code { (methods::bibtex(run)) } } }
        div.wide role="group" aria-label={ "Provenance of " (entry.name) } {
            @for Section { title, values } in provenance::sections(entry.swept) {
                @if title != "Ranks" {
                    table.pairs {
                        caption { (title) }
                        tbody {
                            @if values.is_empty() { tr { td colspan="2" { "none" } } }
                            @for (name, value) in &values { tr { th scope="row" { (name) } td { (value) } } }
                        }
                    }
                }
            }
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
