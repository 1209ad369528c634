//! Sweeps of `ombx links`: for each message size a heat map, the slowest links, a histogram, and the steps.

use maud::{Markup, html};
use ombx_core::unit::Bytes;
use ombx_results::{
    file::RunOutcome,
    number::four_digits,
    verdict::{self, Component, LinkSweep, LinkTimes, SlowLink, Verdict},
};

use crate::{
    page::{RunList, count},
    plot::{dot_plot, heat_map, steps},
};

/// Number of links in the table of the slowest.
const SLOWEST: usize = 8;

/// Links of one sweep and their verdict.
pub(crate) struct LinkRun {
    /// Index of its first launch in the list of runs.
    pub(crate) run: usize,
    sweep: LinkSweep,
    pub(crate) verdict: Verdict,
}

/// Collects the links of every run that has some. Runs that are launches of one sweep are one.
pub(crate) fn collect(runs: &RunList<'_>) -> Vec<LinkRun> {
    let with_links = runs.entries.iter().enumerate().filter(|(_, entry)| entry.has_links());
    let mut sweeps: Vec<(LinkRun, RunOutcome)> = Vec::new();
    for (run, entry) in with_links {
        let (launch, outcome) = (&entry.run.run, entry.outcome());
        match sweeps.last_mut().filter(|(links, _)| links.sweep.continues_with(launch)) {
            Some((links, before)) => {
                links.sweep.add_run(entry.run);
                if *before == RunOutcome::Complete {
                    *before = outcome;
                }
            }
            None => {
                let verdict = Verdict::incomplete("the run did not complete");
                let mut sweep = LinkSweep::default();
                sweep.add_run(entry.run);
                sweeps.push((LinkRun { run, sweep, verdict }, outcome));
            }
        }
        let Some((links, outcome)) = sweeps.last_mut() else { continue };
        match (*outcome, &entry.run.verdict) {
            (RunOutcome::Complete, Some(verdict)) => links.verdict = (**verdict).clone(),
            (RunOutcome::Interrupted, _) => links.verdict = Verdict::incomplete("the run was interrupted"),
            _ => {}
        }
    }
    sweeps.into_iter().map(|(links, _)| links).collect()
}

/// Returns the section, or `None` without links.
pub(crate) fn section(runs: &RunList<'_>, links: &[LinkRun]) -> Option<Markup> {
    (!links.is_empty()).then(|| {
        html! {
            section #links aria-labelledby="links-h" {
                h2 #links-h { "Links" }
                @for links in links {
                    @if runs.entries.len() > 1 { h3 { (runs.entries[links.run].name) } }
                    (of_run(links))
                }
            }
        }
    })
}

fn of_run(links: &LinkRun) -> Markup {
    let LinkRun { run, sweep, verdict } = links;
    let named = verdict.components();
    html! {
        @for (size, times) in in_order(sweep.averaged(), verdict).iter().enumerate() {
            figure {
                figcaption {
                    h3 { "Links at " (Bytes(times.bytes)) " bytes" }
                    p {
                        (sweep.pattern) ": median time " (heat_map::direction(times))
                        @if sweep.launches() > 1 { ", each the median of " (count(sweep.launches(), "launch")) }
                        ". " (range(sweep, times))
                    }
                }
                (heat_map::draw(&format!("l{run}-{size}"), times, &sweep.hosts, &named))
                @if let Some(table) = heat_map::table(times, &sweep.hosts) { (table) }
                (slowest(sweep, times, &named))
                (dot_plot::draw_histogram(&format!("g{run}-{size}"), sweep, times))
                (steps::draw(&format!("p{run}-{size}"), times.bytes, &sweep.steps(times.bytes)))
            }
        }
    }
}

/// Returns the sizes in the order of maps: first those at which something is slow.
fn in_order(mut sizes: Vec<LinkTimes>, verdict: &Verdict) -> Vec<LinkTimes> {
    sizes.sort_by_key(|times| verdict.slow.iter().all(|slow| slow.bytes != times.bytes));
    sizes
}

fn us(ns: f32) -> String {
    four_digits(f64::from(ns) / 1e3)
}

fn range(sweep: &LinkSweep, times: &LinkTimes) -> String {
    let Some(range) = times.range() else { return String::new() };
    let [fastest, median, slowest] = range.map(|ns| {
        let rate = sweep.mb_per_s(times.bytes, ns).map(|rate| format!(" ({} MB/s)", four_digits(rate)));
        format!("{} µs{}", us(ns), rate.unwrap_or_default())
    });
    let links = count(times.sweep.len(), "link");
    format!("{links}: fastest {fastest}, median {median}, slowest {slowest}.")
}

/// Returns a table of the slowest links relative to their kind, with their times when measured again alone.
fn slowest(sweep: &LinkSweep, times: &LinkTimes, slow: &[Component]) -> Markup {
    html! {
        div.wide role="group" aria-label="Slowest links" {
            table {
                caption { "Slowest links of each kind: inside a host, and between hosts" }
                thead { tr {
                    th.word scope="col" { "from" } th.word scope="col" { "to" } th scope="col" { "times as long as ordinary links" }
                    th scope="col" { "µs" } th scope="col" { "MB/s" } th scope="col" { "measured again alone, µs" }
                } }
                tbody {
                    @for SlowLink { link, factor } in verdict::slowest(times, &sweep.hosts, SLOWEST, slow) {
                        tr {
                            td.word { (sweep.hosts.name(link.from)) " " (link.from) }
                            td.word { (sweep.hosts.name(link.to)) " " (link.to) }
                            td { (format!("{factor:.2}")) }
                            td { (us(link.ns)) }
                            td { @if let Some(rate) = sweep.mb_per_s(times.bytes, link.ns) { (four_digits(rate)) } }
                            td { @if let Some(ns) = times.retested(link.from, link.to) { (us(ns)) } }
                        }
                    }
                }
            }
        }
    }
}
