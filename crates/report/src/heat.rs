//! The heat map of all links at one size: a cell for each direction, darker (on dark paper: brighter) where it takes longer than
//! others of its kind, inside a host or between hosts.

use std::collections::BTreeMap;

use maud::{Markup, html};
use ombx_core::unit::Bytes;
use ombx_results::{
    render::figure,
    verdict::{Hosts, Times, What},
};

use crate::svg::{n, shortened};

const SHADES: usize = 7;
/// A smaller ratio of slowest to fastest is not spread over all shades: noise is no structure.
const LEAST_RATIO: f64 = 1.5;
/// Cells a side at the most; of more ranks, a cell is the slowest link of a block.
const MOST_CELLS: usize = 64;
const LONGEST_LABEL: usize = 24;
const CHARACTER: f64 = 7.4;
/// Pixels between labels.
const APART: f64 = 13.0;

/// Draws one size; links that a verdict names are outlined.
pub(crate) fn draw(id: &str, times: &Times, hosts: &Hosts, named: &[What]) -> Markup {
    let map = Map::of(times, hosts);
    let Some(scale) = Scale::of(&map) else { return html! {} };
    let side = map.side;
    let cell = (620.0 / side as f64).clamp(9.0, 56.0);
    let every = (APART / cell).ceil() as usize;
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
                    "Median time of each link at " (Bytes(times.bytes)) " bytes, from the rank of the row to that of the column"
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
                            rect class=(scale.class(map.at(from, to))) role="gridcell" tabindex=(if (from, to) == (0, 0) { "0" } else { "-1" })
                                x=(n(left + cell * to as f64)) y=(n(top + cell * from as f64)) width=(n(cell)) height=(n(cell)) {
                                title { (map.told(from, to, hosts)) }
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
                            text.on.(if scale.shade(link.ratio) > 4 { "high" } else { "low" })
                                x=(n(left + cell * (to as f64 + 0.5))) y=(n(top + cell * (from as f64 + 0.5))) dy="4" { (brief(link.ns)) }
                        }
                    }
                }
            }
        }
        output.readout aria-live="polite" { "Point at a cell, or move through them with the arrow keys." }
        ul.legend aria-label="Shades" {
            li { "times the median of its kind:" }
            @for (shade, from) in scale.bounds().enumerate() {
                li { svg aria-hidden="true" viewBox="0 0 14 14" { rect class={ "h" (shade) } width="14" height="14" {} } "from " (format!("{from:.2}")) " x" }
            }
            @if !named.is_empty() { li { "outlined: named by the verdict" } }
            @if map.block > 1 { li { "a cell is the slowest link of " (map.block) " x " (map.block) " ranks" } }
        }
    }
}

/// A time in few characters.
fn brief(ns: f32) -> String {
    let us = f64::from(ns) / 1e3;
    match us {
        us if us >= 100.0 => format!("{us:.0}"),
        us if us >= 10.0 => format!("{us:.1}"),
        us => format!("{us:.2}"),
    }
}

/// What a cell shows; nothing was measured where it is all 0.
#[derive(Clone, Copy, Default)]
struct Cell {
    ns: f32,
    /// Of the median of links of its kind.
    ratio: f64,
}

/// Links by cell.
struct Map {
    side: usize,
    block: usize,
    ranks: usize,
    cells: Vec<Cell>,
}

impl Map {
    fn of(times: &Times, hosts: &Hosts) -> Map {
        let ranks = hosts.ranks() as usize;
        let block = ranks.div_ceil(MOST_CELLS).max(1);
        let side = ranks.div_ceil(block);
        let known = || {
            times
                .sweep
                .iter()
                .filter(|l| (l.from.max(l.to) as usize) < ranks && l.ns.is_finite() && l.ns > 0.0)
        };
        let usual = [false, true].map(|inside| {
            let mut ns: Vec<f32> =
                known().filter(|l| hosts.share(l.from, l.to) == inside).map(|l| l.ns).collect();
            ns.sort_by(f32::total_cmp);
            ns.get(ns.len() / 2).copied().unwrap_or(1.0)
        });
        let mut cells = vec![Cell::default(); side * side];
        for l in known() {
            let ratio = f64::from(l.ns / usual[usize::from(hosts.share(l.from, l.to))]);
            let cell = &mut cells[l.from as usize / block * side + l.to as usize / block];
            if ratio > cell.ratio {
                *cell = Cell { ns: l.ns, ratio };
            }
        }
        Map { side, block, ranks, cells }
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

    fn told(&self, from: usize, to: usize, hosts: &Hosts) -> String {
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
        format!("from {} to {}: {what}", name(from), name(to))
    }

    /// Whether a verdict is about a link of the cell.
    fn is_named(&self, from: usize, to: usize, hosts: &Hosts, named: &[What]) -> bool {
        let of = |cell: usize, rank: u32| cell == rank as usize / self.block;
        let on = |cell: usize, host: u32| hosts.number(self.rank(cell)) == host;
        named.iter().any(|what| match *what {
            What::HostBetween(host) => on(from, host) != on(to, host),
            What::HostWithin(host) => on(from, host) && on(to, host),
            What::Rank(rank) => of(from, rank) || of(to, rank),
            What::Link(a, b) => (of(from, a) && of(to, b)) || (of(from, b) && of(to, a)),
            What::OneWay(a, b) => of(from, a) && of(to, b),
        })
    }
}

/// Equal factors from the fastest to the slowest, relative to their kind.
struct Scale {
    low: f64,
    step: f64,
}

impl Scale {
    fn of(map: &Map) -> Option<Scale> {
        let known = map.known().map(|(_, _, cell)| cell.ratio);
        let (low, high) = known.fold((f64::MAX, 0f64), |(l, h), ratio| (l.min(ratio), h.max(ratio)));
        (high > 0.0).then(|| Scale { low, step: (high / low).max(LEAST_RATIO).ln() / SHADES as f64 })
    }

    fn shade(&self, ratio: f64) -> usize {
        (((ratio / self.low).ln() / self.step) as usize).min(SHADES - 1)
    }

    fn class(&self, cell: Cell) -> String {
        if cell.ratio > 0.0 { format!("h{}", self.shade(cell.ratio)) } else { "none".into() }
    }

    /// Where each shade begins.
    fn bounds(&self) -> impl Iterator<Item = f64> {
        (0..SHADES).map(|shade| self.low * (self.step * shade as f64).exp())
    }
}

/// Times of a sweep as a table, for those who do not see shades; of few ranks only.
pub(crate) fn table(times: &Times, hosts: &Hosts) -> Option<Markup> {
    const FEW: u32 = 32;
    if hosts.ranks() > FEW {
        return None;
    }
    let known: BTreeMap<(u32, u32), f32> = times.sweep.iter().map(|l| ((l.from, l.to), l.ns)).collect();
    let ranks = || 0..hosts.ranks();
    Some(html! {
        details {
            summary { "The same as a table" }
            div.wide role="group" aria-label="Times of all links" {
                table {
                    caption { "Median time in µs, from the rank of the row to that of the column" }
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
