//! Sweeps of `ombx links`: for each message size a heat map, the slowest links, a histogram, and the steps.

use maud::{Markup, html};
use ombx_estimate::number::{Units, four_digits};
use ombx_links::verdict::{self, LinkSweep, LinkTimes, SlowLink};
use ombx_record::{
    order::sort_by_number,
    result::{Metric, RunOutcome},
    unit::{Bytes, counted},
    verdict::{Component, Verdict},
};

use crate::{
    plot::{dot_plot, heat_map, steps},
    run_list::RunList,
};

/// Number of links in the table of the slowest.
const SLOWEST: usize = 8;

/// Links of one sweep and their verdict.
pub(crate) struct LinkRun {
    /// Index of its first launch in the list of runs.
    pub(crate) run: usize,
    sweep: LinkSweep,
    /// How its launches ended: the outcome of the first that is not complete.
    outcome: RunOutcome,
    pub(crate) verdict: Verdict,
}

/// Collects the links of every run that has some. Runs that are launches of one sweep are one.
pub(crate) fn collect(runs: &RunList<'_>) -> Vec<LinkRun> {
    let mut found: Vec<LinkRun> = Vec::new();
    for (run, entry) in runs.entries.iter().enumerate().filter(|(_, entry)| entry.has_links()) {
        if found.last().is_none_or(|links| !links.sweep.continues_with(&entry.run.run)) {
            let verdict = Verdict::incomplete("the run did not complete");
            found.push(LinkRun { run, sweep: LinkSweep::default(), outcome: RunOutcome::Complete, verdict });
        }
        let Some(links) = found.last_mut() else { continue };
        links.sweep.add_swept(entry.swept);
        if links.outcome == RunOutcome::Complete {
            links.outcome = entry.outcome();
        }
        match (links.outcome, &entry.run.verdict) {
            (RunOutcome::Complete, Some(verdict)) => links.verdict = (**verdict).clone(),
            (RunOutcome::Interrupted, _) => links.verdict = Verdict::incomplete("the run was interrupted"),
            _ => {}
        }
    }
    found
}

/// Returns the section, or `None` without links.
pub(crate) fn section(runs: &RunList<'_>, links: &[LinkRun]) -> Option<Markup> {
    (!links.is_empty()).then(|| {
        html! {
            section #links aria-labelledby="links-h" {
                h2 #links-h { "Links" }
                @for links in links {
                    @if runs.entries.len() > 1 { h3 { (runs.entries[links.run].name) } }
                    (of_run(links, runs.units))
                }
            }
        }
    })
}

fn of_run(links: &LinkRun, units: Units) -> Markup {
    let LinkRun { run, sweep, verdict, .. } = links;
    let named = verdict.components();
    html! {
        @for (size, times) in in_order(sweep.averaged(), verdict).iter().enumerate() {
            figure {
                figcaption {
                    h3 { "Links at " (Bytes(times.bytes)) " bytes" }
                    p {
                        (sweep.pattern) ": median time " (heat_map::direction(times))
                        @if sweep.launches() > 1 { ", each the median of " (counted(sweep.launches(), "launch")) }
                        ". " (range(sweep, times, units))
                    }
                }
                (heat_map::draw(&format!("l{run}-{size}"), times, &sweep.hosts, &named, units.of_times()))
                (slowest(sweep, times, &named, units))
                (dot_plot::draw_histogram(&format!("g{run}-{size}"), sweep, times, units))
                (steps::draw(&format!("p{run}-{size}"), times.bytes, &sweep.steps(times.bytes), units))
            }
        }
    }
}

/// Returns the sizes in the order of maps: first those at which something is slow.
fn in_order(mut sizes: Vec<LinkTimes>, verdict: &Verdict) -> Vec<LinkTimes> {
    sort_by_number(&mut sizes, |times| verdict.slow.iter().all(|slow| slow.bytes != times.bytes).into());
    sizes
}

fn time(units: Units, ns: f32) -> String {
    four_digits(units.of_times().of_ns(ns.into()))
}

fn rate(units: Units, mb_per_s: f64) -> String {
    four_digits(units.of_rates().of_mb(mb_per_s))
}

fn range(sweep: &LinkSweep, times: &LinkTimes, units: Units) -> String {
    let Some(range) = times.range() else { return String::new() };
    let [unit, of_rates] = [Metric::Latency, Metric::Bandwidth].map(|metric| units.symbol(metric));
    let figure = |ns: f32| {
        let rate = sweep.mb_per_s(times.bytes, ns).map(|at| format!(" ({} {of_rates})", rate(units, at)));
        format!("{} {unit}{}", time(units, ns), rate.unwrap_or_default())
    };
    let named = times.range_names().into_iter().zip(range);
    let figures: Vec<String> = named.map(|(name, ns)| format!("{name} {}", figure(ns))).collect();
    format!("Times of {}: {}.", times.counted_links(), figures.join(", "))
}

/// Returns a table of the slowest links relative to their kind, with their times when measured again alone.
fn slowest(sweep: &LinkSweep, times: &LinkTimes, slow: &[Component], units: Units) -> Markup {
    let unit = units.symbol(Metric::Latency);
    html! {
        div.wide role="group" aria-label="Slowest links" {
            table {
                caption { "Slowest links of each kind: inside a host, and between hosts" }
                thead { tr {
                    th.word scope="col" { "from" } th.word scope="col" { "to" } th scope="col" { "times as long as ordinary links" }
                    th scope="col" { (unit) } th scope="col" { (units.symbol(Metric::Bandwidth)) } th scope="col" { "measured again alone, " (unit) }
                } }
                tbody {
                    @for SlowLink { link, factor } in verdict::slowest(times, &sweep.hosts, SLOWEST, slow) {
                        tr {
                            td.word { (sweep.hosts.name(link.from)) " " (link.from) }
                            td.word { (sweep.hosts.name(link.to)) " " (link.to) }
                            td { (format!("{factor:.2}")) }
                            td { (time(units, link.ns)) }
                            td { @if let Some(at) = sweep.mb_per_s(times.bytes, link.ns) { (rate(units, at)) } }
                            td { @if let Some(ns) = times.retested(link.from, link.to) { (time(units, ns)) } }
                        }
                    }
                }
            }
        }
    }
}
