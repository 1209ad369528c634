//! Heat map of all links at one message size, one cell per direction. Without directed traffic both have the same time.
//!
//! The shade shows the time relative to ordinary links of the same kind, as in the verdict: links inside a host, or between hosts.

use maud::{Markup, html};
use ombx_draw::terminal::{Cell, HeatMap, Shades};
use ombx_estimate::number::{TimeUnit, figure};
use ombx_links::verdict::{Hosts, LinkTimes};
use ombx_record::{unit::Bytes, verdict::Component};

use crate::plot::{n, shortened};

const SHADES: usize = 7;
/// Maximum number of cells per side. With more ranks, a cell is the slowest link of a block of ranks.
const MAX_CELLS: usize = 64;
/// Maximum number of ranks whose times are a table too.
const MAX_RANKS: usize = 32;
const LONGEST_LABEL: usize = 24;
const CHARACTER: f64 = 7.4;
/// The same where the page is narrow, of larger digits.
const CHARACTER_IF_NARROW: f64 = CHARACTER * 17.0 / 11.5;
/// Minimum distance of labels in pixels.
const LABEL_DISTANCE: f64 = 13.0;

/// Draws the links of one size. Components named by the verdict are outlined. Few ranks have a table too, for screen readers.
pub(crate) fn draw(
    id: &str,
    times: &LinkTimes,
    hosts: &Hosts,
    named: &[Component],
    unit: TimeUnit,
) -> Markup {
    let map = HeatMap::new(times, hosts, MAX_CELLS, named);
    let Some(shades) = Shades::new(map.measured().map(|(.., cell)| cell.factor), SHADES) else {
        return html! {};
    };
    let side = map.side;
    let cell = (620.0 / side as f64).clamp(9.0, 56.0);
    let every = (LABEL_DISTANCE / cell).ceil() as usize;
    let label = |at: usize| {
        shortened(&format!("{} {}", hosts.name(map.ranks(at)[0]), map.ranks(at)[0]), LONGEST_LABEL)
    };
    let longest = (0..side).map(|at| label(at).chars().count()).max().unwrap_or(0) as f64 * CHARACTER;
    let left = longest + 12.0;
    let top = longest * 0.72 + 14.0;
    let (width, height) = (left + cell * side as f64 + longest * 0.72, top + cell * side as f64 + 4.0);
    let times_that_fit = map
        .measured()
        .map(|(from, to, link)| (from, to, link, brief(unit.of_ns(link.ns))))
        .filter(|(.., time)| time.chars().count() as f64 * CHARACTER <= cell);
    html! {
        div.wide {
            svg.plot.heat viewBox={ "0 0 " (n(width)) " " (n(height)) } width=(n(width)) role="grid" aria-labelledby={ (id) "-t" } {
                title id={ (id) "-t" } {
                    "Median time of each link at " (Bytes(times.bytes)) " bytes, " (direction(times))
                }
                g aria-hidden="true" {
                    @for at in (0..side).step_by(every) {
                        @let middle = cell * (at as f64 + 0.5);
                        text x=(n(left - 6.0)) y=(n(top + middle)) dy="4" text-anchor="end" { (label(at)) }
                        text transform={ "translate(" (n(left + middle + 2.0)) " " (n(top - 6.0)) ")rotate(-45)" } { (label(at)) }
                    }
                }
                @for from in 0..side {
                    g role="row" {
                        @for to in 0..side {
                            rect class=(class(&shades, map.at(from, to))) role="gridcell" tabindex=(if (from, to) == (0, 0) { "0" } else { "-1" })
                                x=(n(left + cell * to as f64)) y=(n(top + cell * from as f64)) width=(n(cell)) height=(n(cell)) {
                                title { (describe(&map, from, to, hosts, unit)) }
                            }
                        }
                    }
                }
                g.outlines aria-hidden="true" {
                    @for (from, to, _) in map.measured().filter(|(from, to, _)| map.is_named(*from, *to, hosts, named)) {
                        rect x=(n(left + cell * to as f64 + 1.0)) y=(n(top + cell * from as f64 + 1.0))
                            width=(n(cell - 2.0)) height=(n(cell - 2.0)) {}
                    }
                }
                @if cell >= 40.0 {
                    g aria-hidden="true" {
                        @for (from, to, link, time) in times_that_fit {
                            text.on.(if shades.shade(link.factor) > 4 { "high" } else { "low" }).long[time.chars().count() as f64 * CHARACTER_IF_NARROW > cell - 4.0]
                                x=(n(left + cell * (to as f64 + 0.5))) y=(n(top + cell * (from as f64 + 0.5))) dy="4" { (time) }
                        }
                    }
                }
            }
        }
        output.readout aria-live="polite" { "Point at a cell, or move between cells with the arrow keys." }
        ul.legend aria-label="Shades" {
            li { "times as long as ordinary links:" }
            @for (shade, from) in shades.lower_bounds().enumerate() {
                li { svg aria-hidden="true" viewBox="0 0 14 14" { rect class={ "h" (shade) } width="14" height="14" {} } "from " (format!("{from:.2}")) " x" }
            }
            @if !named.is_empty() { li { "outlined: named by the verdict" } }
            @if map.block > 1 { li { "a cell is the slowest time of " (map.block) " x " (map.block) " ranks" } }
        }
        @if map.block == 1 && side <= MAX_RANKS { (table(&map, times, hosts, unit)) }
    }
}

/// Returns which way the messages of a cell go.
pub(crate) fn direction(times: &LinkTimes) -> &'static str {
    if times.directed {
        "from the rank of the row to the rank of the column"
    } else {
        "between two ranks, both directions averaged"
    }
}

fn class(shades: &Shades, cell: Option<Cell>) -> String {
    cell.map_or("none".into(), |cell| format!("h{}", shades.shade(cell.factor)))
}

/// Formats a time with about three digits.
fn brief(time: f64) -> String {
    match time {
        100.0.. => format!("{time:.0}"),
        10.0.. => format!("{time:.1}"),
        0.1.. => format!("{time:.2}"),
        _ => figure(time),
    }
}

/// Returns what a reader of a cell hears: both ends, the time, and how it relates to ordinary links.
fn describe(map: &HeatMap, from: usize, to: usize, hosts: &Hosts, unit: TimeUnit) -> String {
    let name = |line: usize| {
        let [first, last] = map.ranks(line);
        let ranks = if first == last { format!("rank {first}") } else { format!("ranks {first} to {last}") };
        format!("{ranks} on {}", hosts.name(first))
    };
    let what = map.at(from, to).map_or("not measured".to_owned(), |Cell { ns, factor }| {
        let (time, unit) = (figure(unit.of_ns(ns)), unit.symbol());
        format!("{time} {unit}, {factor:.2} times as long as ordinary links")
    });
    if map.directed {
        format!("from {} to {}: {what}", name(from), name(to))
    } else {
        format!("{} and {}: {what}", name(from), name(to))
    }
}

/// Returns the times as a table for screen readers.
fn table(map: &HeatMap, times: &LinkTimes, hosts: &Hosts, unit: TimeUnit) -> Markup {
    let ranks = || 0..hosts.ranks();
    let time = |cell: Cell| figure(unit.of_ns(cell.ns));
    html! {
        details {
            summary { "Times as a table" }
            div.wide role="group" aria-label="Times of all links" {
                table {
                    caption { "Median time in " (unit.symbol()) ", " (direction(times)) }
                    thead { tr { th.word scope="col" { "from" } @for to in ranks() { th scope="col" { (hosts.name(to)) " " (to) } } } }
                    tbody {
                        @for from in ranks() {
                            tr {
                                th.word scope="row" { (hosts.name(from)) " " (from) }
                                @for to in ranks() { td { (map.at(from as usize, to as usize).map(time).unwrap_or_default()) } }
                            }
                        }
                    }
                }
            }
        }
    }
}
