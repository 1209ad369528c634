//! Results over time: what changed since when, a chart of each case, and a table of all cases.

use maud::{Markup, html};
use ombx_compare::history::{ChangeEvent, History, Series, events};
use ombx_estimate::number::{Decimals, Units};
use ombx_record::unit::counted;
use ombx_show::history::{change, details, factor, heading, label, sentence, summary};

use crate::{
    plot::trend,
    run_list::RunList,
    section::finding::{self, Finding, list},
};

/// Maximum number of charts. Cases that changed come first.
const MOST_CHARTS: usize = 60;
/// Maximum number of lines of the table.
const MOST_LINES: usize = 2000;
/// Maximum number of changes in the list. The last come first.
const MOST_EVENTS: usize = 50;
/// Number of characters of a date in RFC 3339.
const DATE: usize = 10;

/// Returns one line with the number of results and their dates.
pub(crate) fn lead(history: &History) -> String {
    let dates = history.results.first().zip(history.results.last());
    let dates = dates.map(|(first, last)| match (date(&first.started), date(&last.started)) {
        (first, last) if first == last => format!(" of {first}"),
        (first, last) => format!(" from {first} to {last}"),
    });
    format!("{}{}", counted(history.results.len(), "result"), dates.unwrap_or_default())
}

/// Returns the changes by time, each with what else changed, and the hosts whose links changed.
pub(crate) fn changes(history: &History) -> Markup {
    let events = events(history);
    let shown = &events[..events.len().min(MOST_EVENTS)];
    let findings: Vec<Finding> = shown.iter().map(finding).collect();
    html! {
        section #changes aria-labelledby="changes-h" {
            h2 #changes-h { "Changes" }
            p { (as_sentence(&summary(history))) }
            @if !findings.is_empty() { (list(&RunList::new(&[], Units::default()), &findings)) }
            @if events.len() > shown.len() { p.soft { (counted(events.len() - shown.len(), "earlier change")) " not listed." } }
            (hosts(&events))
        }
    }
}

/// Returns a chart of each case, and the table of cases.
pub(crate) fn section(history: &History) -> Markup {
    let all = history.series.len();
    html! {
        section #history aria-labelledby="history-h" {
            h2 #history-h { "History" }
            p.soft {
                "A dot is a run, a horizontal line the median between two changes. A dashed line marks a change with the ratio of times: "
                "above 1 is slower, for bandwidths too. Cases that changed last come first."
            }
            div.trends {
                @for (at, series) in history.series.iter().take(MOST_CHARTS).enumerate() { (chart(at, history, series)) }
            }
            @if all > MOST_CHARTS { p.soft { "The table has " (counted(all - MOST_CHARTS, "case")) " without a chart." } }
            (table(history))
        }
    }
}

fn finding(event: &ChangeEvent<'_>) -> Finding {
    let (class, badge) = if event.slower { ("is-bad", "Slower") } else { ("is-good", "Faster") };
    let found = Finding::new(class, badge, as_sentence(&sentence(event)));
    details(event).into_iter().fold(found, |found, line| found.more(as_sentence(&line)))
}

/// Returns a table of the hosts of which several links changed; nothing if there are none.
fn hosts(events: &[ChangeEvent<'_>]) -> Markup {
    let drifting: Vec<(&ChangeEvent<'_>, &String)> =
        events.iter().filter_map(|event| Some((event, event.hosts.as_ref()?))).collect();
    html! {
        @if !drifting.is_empty() {
            div.wide role="group" aria-label="Hosts whose links changed" {
                table {
                    caption { "Hosts of which several links changed" }
                    thead { tr {
                        th.word scope="col" { "since" } th.word scope="col" { "hosts" } th scope="col" { "cases" }
                        th.word scope="col" { "largest change" }
                    } }
                    tbody {
                        @for (event, hosts) in drifting {
                            tr {
                                td.word { (date(event.since)) } td.word { (hosts) } td { (event.changes.len()) }
                                td.word { @if let Some((_, largest)) = event.changes.first() { (factor(largest)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn chart(at: usize, history: &History, series: &Series) -> Markup {
    let name = format!("{}: {}", heading(&series.case), of_size(series));
    let differences = series.changes.last().map_or(&[][..], |change| &change.differences);
    html! {
        figure {
            figcaption {
                h4 { (name) }
                p {
                    (change(history, series))
                    @for difference in differences.iter().take(2) {
                        "; " (difference.name) ": " (difference.before) " → " (difference.after)
                    }
                    @if differences.len() > 2 { "; and " (counted(differences.len() - 2, "other difference")) }
                }
            }
            (trend::draw(&format!("t{at}"), &format!("{name}, over time"), history, series))
        }
    }
}

fn table(history: &History) -> Markup {
    let all = history.series.len();
    html! {
        details {
            summary { "Cases as a table" }
            div.wide role="group" aria-label="Cases" {
                table {
                    thead { tr {
                        th.word scope="col" { "case" } th scope="col" { "runs" } th.word scope="col" { "first" } th.word scope="col" { "last" }
                        th scope="col" { "level" } th.word scope="col" { "interval" } th.word scope="col" { "change" }
                    } }
                    tbody { @for series in history.series.iter().take(MOST_LINES) { (line(history, series)) } }
                }
            }
            @if all > MOST_LINES { p.soft { (counted(all - MOST_LINES, "other case")) " not listed. ombx history --format csv has all." } }
        }
    }
}

fn line(history: &History, series: &Series) -> Markup {
    let (level, ends) = series.level();
    let decimals = Decimals::new(level, ends);
    let class = series.changes.last().map(|last| if last.ratio > 1.0 { "is-bad" } else { "is-good" });
    html! {
        tr {
            td.word { (heading(&series.case)) ": " (of_size(series)) }
            td { (series.points.len()) }
            td.word { (date(history.started(series, 0))) }
            td.word { (date(history.started(series, series.points.len() - 1))) }
            td { (decimals.format(level)) " " (series.metric.unit().replace("us", "µs")) }
            td.word { @if let Some([low, high]) = ends { (decimals.format(low)) " to " (decimals.format(high)) } }
            td.word.(class.unwrap_or_default()) { (change(history, series)) }
        }
    }
}

/// Returns link and size of a case, or its size.
fn of_size(series: &Series) -> String {
    let bytes = if series.case.bytes().is_some() { " bytes" } else { "" };
    format!("{}{bytes}", label(&series.case))
}

pub(crate) fn date(started: &str) -> String {
    started.chars().take(DATE).collect()
}

/// Returns a clause as a sentence.
fn as_sentence(clause: &str) -> String {
    finding::as_sentence(clause, &["since ", "the ", "hosts ", "nothing ", "and ", "no "])
}
