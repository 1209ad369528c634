//! Heat map of all links at one message size, one cell per direction. Without directed traffic both have the same time.
//!
//! The shade shows the time relative to the median of the same kind: links inside a host, or links between hosts.

use std::collections::BTreeMap;

use maud::{Markup, html};
use ombx_core::unit::Bytes;
use ombx_results::{
    number::figure,
    plot::Shades,
    verdict::{Component, Hosts, Link, LinkTimes},
};

use crate::plot::{label::shortened, svg::n};

const SHADES: usize = 7;
/// Maximum number of cells per side. With more ranks, a cell is the slowest link of a block of ranks.
const MAX_CELLS: usize = 64;
const LONGEST_LABEL: usize = 24;
const CHARACTER: f64 = 7.4;
/// Minimum distance of labels in pixels.
const LABEL_DISTANCE: f64 = 13.0;

/// Draws the links of one size. Components named by the verdict are outlined.
pub(crate) fn draw(id: &str, times: &LinkTimes, hosts: &Hosts, named: &[Component]) -> Markup {
    let map = Map::of(times, hosts);
    let Some(shades) = Shades::of(map.known().map(|(_, _, cell)| cell.ratio), SHADES) else {
        return html! {};
    };
    let side = map.side;
    let cell = (620.0 / side as f64).clamp(9.0, 56.0);
    let every = (LABEL_DISTANCE / cell).ceil() as usize;
    let label =
        |at: usize| shortened(&format!("{} {}", hosts.name(map.rank(at)), map.rank(at)), LONGEST_LABEL);
    let longest = (0..side).map(|at| label(at).chars().count()).max().unwrap_or(0) as f64 * CHARACTER;
    let left = longest + 12.0;
    let top = longest * 0.72 + 14.0;
    let (width, height) = (left + cell * side as f64 + longest * 0.72, top + cell * side as f64 + 4.0);
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
                                title { (map.describe(from, to, hosts)) }
                            }
                        }
                    }
                }
                g.outlines aria-hidden="true" {
                    @for (from, to, _) in map.known().filter(|(from, to, _)| map.is_named(*from, *to, hosts, named)) {
                        rect x=(n(left + cell * to as f64 + 1.0)) y=(n(top + cell * from as f64 + 1.0))
                            width=(n(cell - 2.0)) height=(n(cell - 2.0)) {}
                    }
                }
                @if cell >= 40.0 {
                    g aria-hidden="true" {
                        @for (from, to, link) in map.known() {
                            text.on.(if shades.shade(link.ratio) > 4 { "high" } else { "low" })
                                x=(n(left + cell * (to as f64 + 0.5))) y=(n(top + cell * (from as f64 + 0.5))) dy="4" { (brief(link.ns)) }
                        }
                    }
                }
            }
        }
        output.readout aria-live="polite" { "Point at a cell, or move between cells with the arrow keys." }
        ul.legend aria-label="Shades" {
            li { "times the median of its kind:" }
            @for (shade, from) in shades.lower_bounds().enumerate() {
                li { svg aria-hidden="true" viewBox="0 0 14 14" { rect class={ "h" (shade) } width="14" height="14" {} } "from " (format!("{from:.2}")) " x" }
            }
            @if !named.is_empty() { li { "outlined: named by the verdict" } }
            @if map.block > 1 { li { "a cell is the slowest link of " (map.block) " x " (map.block) " ranks" } }
        }
    }
}

/// Returns which way the messages of a cell go.
pub(crate) fn direction(times: &LinkTimes) -> &'static str {
    match times.directed {
        true => "from the rank of the row to the rank of the column",
        false => "between two ranks, both directions averaged",
    }
}

fn class(shades: &Shades, cell: Cell) -> String {
    if cell.ratio > 0.0 { format!("h{}", shades.shade(cell.ratio)) } else { "none".into() }
}

/// Formats a time in microseconds with about three digits.
fn brief(ns: f32) -> String {
    let us = f64::from(ns) / 1e3;
    match us {
        us if us >= 100.0 => format!("{us:.0}"),
        us if us >= 10.0 => format!("{us:.1}"),
        us => format!("{us:.2}"),
    }
}

/// Time of a cell. All fields are 0 if nothing was measured.
#[derive(Clone, Copy, Default)]
struct Cell {
    ns: f32,
    /// Ratio to the median of its kind.
    ratio: f64,
}

/// Cells of the heat map.
struct Map {
    side: usize,
    block: usize,
    ranks: usize,
    directed: bool,
    cells: Vec<Cell>,
}

impl Map {
    fn of(times: &LinkTimes, hosts: &Hosts) -> Map {
        let ranks = hosts.ranks() as usize;
        let block = ranks.div_ceil(MAX_CELLS).max(1);
        let side = ranks.div_ceil(block);
        let known = || {
            times
                .sweep
                .iter()
                .filter(|l| (l.from.max(l.to) as usize) < ranks && l.ns.is_finite() && l.ns > 0.0)
        };
        let usual = [false, true].map(|inside| {
            let mut ns: Vec<f32> =
                known().filter(|l| hosts.same_host(l.from, l.to) == inside).map(|l| l.ns).collect();
            ns.sort_by(f32::total_cmp);
            ns.get(ns.len() / 2).copied().unwrap_or(1.0)
        });
        let mut cells = vec![Cell::default(); side * side];
        for l in known() {
            let ratio = f64::from(l.ns / usual[usize::from(hosts.same_host(l.from, l.to))]);
            let (from, to) = (l.from as usize / block, l.to as usize / block);
            for at in [Some((from, to)), (!times.directed).then_some((to, from))].into_iter().flatten() {
                let cell = &mut cells[at.0 * side + at.1];
                if ratio > cell.ratio {
                    *cell = Cell { ns: l.ns, ratio };
                }
            }
        }
        Map { side, block, ranks, directed: times.directed, cells }
    }

    fn at(&self, from: usize, to: usize) -> Cell {
        self.cells[from * self.side + to]
    }

    fn rank(&self, cell: usize) -> u32 {
        (cell * self.block) as u32
    }

    fn known(&self) -> impl Iterator<Item = (usize, usize, Cell)> {
        let all = self.cells.iter().enumerate();
        all.filter(|(_, cell)| cell.ratio > 0.0).map(|(at, cell)| (at / self.side, at % self.side, *cell))
    }

    fn describe(&self, from: usize, to: usize, hosts: &Hosts) -> String {
        let name = |cell: usize| {
            let (first, last) = (self.rank(cell), ((cell + 1) * self.block).min(self.ranks) - 1);
            let ranks = match self.block {
                1 => format!("rank {first}"),
                _ => format!("ranks {first} to {last}"),
            };
            format!("{ranks} on {}", hosts.name(first))
        };
        let what = match self.at(from, to) {
            Cell { ratio: 0.0, .. } => "not measured".to_owned(),
            Cell { ns, ratio } => {
                format!("{} µs, {ratio:.2} times the median of its kind", figure(f64::from(ns) / 1e3))
            }
        };
        match self.directed {
            true => format!("from {} to {}: {what}", name(from), name(to)),
            false => format!("{} and {}: {what}", name(from), name(to)),
        }
    }

    /// Returns whether the verdict names a link of the cell.
    fn is_named(&self, from: usize, to: usize, hosts: &Hosts, named: &[Component]) -> bool {
        let of = |cell: usize, rank: u32| cell == rank as usize / self.block;
        let on = |cell: usize, host: u32| hosts.number(self.rank(cell)) == host;
        let ends = [from, to].map(|cell| self.rank(cell));
        named.iter().any(|what| match *what {
            Component::GroupBetween(..) | Component::GroupWithin(..) => what.contains(ends, hosts),
            Component::HostBetween(host) => on(from, host) != on(to, host),
            Component::HostWithin(host) => on(from, host) && on(to, host),
            Component::Rank(rank) => of(from, rank) || of(to, rank),
            Component::Link(a, b) => (of(from, a) && of(to, b)) || (of(from, b) && of(to, a)),
            Component::OneWay(a, b) => of(from, a) && of(to, b),
        })
    }
}

/// Returns the times as a table for screen readers. Returns `None` for more than 32 ranks.
pub(crate) fn table(times: &LinkTimes, hosts: &Hosts) -> Option<Markup> {
    const MAX_RANKS: u32 = 32;
    if hosts.ranks() > MAX_RANKS {
        return None;
    }
    let both = |l: &Link| [Some((l.from, l.to)), (!times.directed).then_some((l.to, l.from))];
    let cells = times.sweep.iter().flat_map(|l| both(l).into_iter().flatten().map(|at| (at, l.ns)));
    let known: BTreeMap<(u32, u32), f32> = cells.collect();
    let ranks = || 0..hosts.ranks();
    Some(html! {
        details {
            summary { "Times as a table" }
            div.wide role="group" aria-label="Times of all links" {
                table {
                    caption { "Median time in µs, " (direction(times)) }
                    thead { tr { th.word scope="col" { "from" } @for to in ranks() { th scope="col" { (hosts.name(to)) " " (to) } } } }
                    tbody {
                        @for from in ranks() {
                            tr {
                                th.word scope="row" { (hosts.name(from)) " " (from) }
                                @for to in ranks() { td { @if let Some(ns) = known.get(&(from, to)) { (figure(f64::from(*ns) / 1e3)) } } }
                            }
                        }
                    }
                }
            }
        }
    })
}
