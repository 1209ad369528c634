//! Runs of `ombx links`: the verdict, and for each size a heat map and the slowest links.

use std::collections::BTreeMap;

use maud::{Markup, html};
use ombx_core::unit::Bytes;
use ombx_results::{
    render::figure,
    verdict::{self, Collected, Hosts, Slow, Times, What},
    wire::Outcome,
};

use crate::{
    book::{Book, Chapter, count},
    heat,
};

/// Links in the table of the slowest.
const SLOWEST: usize = 8;

/// What the links of a run say together.
pub(crate) enum Verdict {
    /// Why they say nothing.
    None(String),
    /// The worst first, and a sentence of each; none where no host, rank or link stands out.
    Found(Vec<(Slow, String)>),
}

/// All links of a run.
struct Links {
    hosts: Hosts,
    times: Collected,
    /// Bytes of one leg, by message size.
    leg_bytes: BTreeMap<u64, f64>,
    pattern: String,
}

impl Links {
    fn of(chapter: &Chapter<'_>) -> Links {
        let hosts = Hosts::of(chapter.run.run.places.iter().map(|p| p.host.as_str()));
        let (mut times, mut leg_bytes, mut pattern) = (Collected::default(), BTreeMap::new(), String::new());
        for row in chapter.links().map(|numbered| numbered.row) {
            times.add(row);
            if let (Some(bytes), Some(work)) = (row.bytes, row.work) {
                leg_bytes.insert(bytes, work.bytes as f64 / work.legs as f64);
            }
            if let Some(name) = row.axes.get("pattern") {
                pattern.clone_from(name);
            }
        }
        Links { hosts, times, leg_bytes, pattern }
    }

    fn verdict(&self, chapter: &Chapter<'_>) -> Verdict {
        match chapter.outcome() {
            Outcome::Complete => {}
            Outcome::Interrupted => return Verdict::None("the run was interrupted".into()),
            Outcome::Broken => return Verdict::None("the run did not come to its end".into()),
        }
        let codes = chapter.links().flat_map(|numbered| numbered.row.trust.iter().map(|n| n.code.as_str()));
        if let Some(why) = verdict::hindrance(codes) {
            return Verdict::None(why);
        }
        let found = verdict::judge(&self.times.0, &self.hosts).into_iter();
        Verdict::Found(found.map(|slow| (slow.clone(), slow.sentence(&self.hosts))).collect())
    }

    fn rate(&self, bytes: u64, ns: f32) -> Option<f64> {
        let moved = self.leg_bytes.get(&bytes).copied().filter(|b| *b > 0.0 && ns > 0.0)?;
        Some(moved / f64::from(ns) * 1e3)
    }
}

/// The verdict of every run that has links, with the run's place in the book.
pub(crate) fn verdicts(book: &Book<'_>) -> Vec<(usize, Verdict)> {
    let with_links = book.runs.iter().enumerate().filter(|(_, chapter)| chapter.links().next().is_some());
    with_links.map(|(at, chapter)| (at, Links::of(chapter).verdict(chapter))).collect()
}

/// The section, if a run has links.
pub(crate) fn section(book: &Book<'_>, verdicts: &[(usize, Verdict)]) -> Option<Markup> {
    (!verdicts.is_empty()).then(|| {
        html! {
            section #links aria-labelledby="links-h" {
                h2 #links-h { "Links" }
                @for (at, verdict) in verdicts {
                    @let chapter = &book.runs[*at];
                    @if book.runs.len() > 1 { h3 { (chapter.name) } }
                    (of_run(*at, chapter, verdict))
                }
            }
        }
    })
}

fn of_run(at: usize, chapter: &Chapter<'_>, verdict: &Verdict) -> Markup {
    let (links, named) = (Links::of(chapter), named(verdict));
    html! {
        ul.verdicts { (sentences(verdict)) }
        @for (size, times) in links.times.0.iter().enumerate() {
            figure {
                figcaption {
                    h3 { "Links at " (Bytes(times.bytes)) " bytes" }
                    p { (links.pattern) ": median time from the rank of the row to that of the column. " (extent(&links, times)) }
                }
                (heat::draw(&format!("l{at}-{size}"), times, &links.hosts, &named))
                @if let Some(table) = heat::table(times, &links.hosts) { (table) }
                (slowest(&links, times))
            }
        }
    }
}

/// A verdict as items of a list.
pub(crate) fn sentences(verdict: &Verdict) -> Markup {
    html! {
        @match verdict {
            Verdict::None(why) => { li { b { "No verdict: " } (why) "." } }
            Verdict::Found(found) if found.is_empty() => { li.is-good { b { "Verdict: " } "no host, rank or link stands out." } }
            Verdict::Found(found) => { @for (_, sentence) in found { li.is-bad { b { "Verdict: " } (sentence) "." } } }
        }
    }
}

/// What a verdict names, at whichever size it is worst.
fn named(verdict: &Verdict) -> Vec<What> {
    match verdict {
        Verdict::None(_) => Vec::new(),
        Verdict::Found(found) => found.iter().map(|(slow, _)| slow.what.clone()).collect(),
    }
}

fn extent(links: &Links, times: &Times) -> String {
    let mut ns: Vec<f32> = times.sweep.iter().map(|l| l.ns).collect();
    ns.sort_by(f32::total_cmp);
    let told = |ns: f32| {
        let rate = links.rate(times.bytes, ns).map(|rate| format!(" ({} MB/s)", figure(rate)));
        format!("{} µs{}", figure(f64::from(ns) / 1e3), rate.unwrap_or_default())
    };
    match (ns.first(), ns.last()) {
        (Some(fastest), Some(slowest)) => format!(
            "{}: fastest {}, median {}, slowest {}.",
            count(ns.len(), "link"),
            told(*fastest),
            told(ns[ns.len() / 2]),
            told(*slowest)
        ),
        _ => String::new(),
    }
}

/// The slowest links relative to their kind, and what they took alone.
fn slowest(links: &Links, times: &Times) -> Markup {
    let found = verdict::slowest(times, &links.hosts, SLOWEST);
    let alone = |from: u32, to: u32| times.alone.iter().find(|l| (l.from, l.to) == (from, to)).map(|l| l.ns);
    let us = |ns: f32| figure(f64::from(ns) / 1e3);
    html! {
        div.wide role="group" aria-label="Slowest links" {
            table {
                caption { "Slowest of their kind, inside a host or between hosts" }
                thead { tr {
                    th.word scope="col" { "from" } th.word scope="col" { "to" } th scope="col" { "µs" } th scope="col" { "MB/s" }
                    th scope="col" { "times the median" } th scope="col" { "measured again alone, µs" }
                } }
                tbody {
                    @for (link, factor) in &found {
                        tr {
                            td.word { (links.hosts.name(link.from)) " " (link.from) }
                            td.word { (links.hosts.name(link.to)) " " (link.to) }
                            td { (us(link.ns)) }
                            td { @if let Some(rate) = links.rate(times.bytes, link.ns) { (figure(rate)) } }
                            td { (format!("{factor:.2}")) }
                            td { @if let Some(ns) = alone(link.from, link.to) { (us(ns)) } }
                        }
                    }
                }
            }
        }
    }
}
