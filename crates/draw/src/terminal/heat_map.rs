//! Heat maps of links: their cells, and their painter for terminals, one character per link, darker for longer times.

use std::io::{Result, Write};

use ombx_estimate::{number::Scale, text::plain};
use ombx_links::verdict::{Hosts, LinkTimes, usual_times};
use ombx_record::verdict::Component;

/// Shades from fast to slow.
const CHARACTERS: [char; 5] = ['·', '░', '▒', '▓', '█'];
/// Character of a link that was not measured.
const NOTHING: char = ' ';

/// A cell: a link, or the slowest link of a block of ranks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell {
    /// Time in nanoseconds.
    pub ns: f64,
    /// Time relative to ordinary links of the same kind, as in verdicts.
    pub factor: f64,
}

/// Links of one message size as a square: a line for each sender, a column for each receiver.
#[derive(Debug, Clone)]
pub struct HeatMap {
    /// Number of lines and columns.
    pub side: usize,
    /// Number of ranks in a line or column.
    pub block: usize,
    /// Whether the two directions of a link are different cells. Otherwise both have the same time.
    pub directed: bool,
    ranks: usize,
    cells: Vec<Option<Cell>>,
}

impl HeatMap {
    /// Puts links into at most `widest` lines and columns. What is slow is no measure for what is ordinary.
    pub fn new(times: &LinkTimes, hosts: &Hosts, widest: usize, slow: &[Component]) -> HeatMap {
        let ranks = hosts.ranks() as usize;
        let (links, least) = times.mapped();
        let block = ranks.div_ceil(widest).max(1).next_multiple_of(least);
        let side = ranks.div_ceil(block);
        let mut cells: Vec<Option<Cell>> = vec![None; side * side];
        let usual = usual_times(times, hosts, slow);
        for l in &links {
            if l.from.max(l.to) as usize >= ranks || !l.ns.is_finite() || l.ns <= 0.0 {
                continue;
            }
            let (ns, usual) = (f64::from(l.ns), usual[hosts.distance(l.from, l.to)]);
            let cell = Cell { ns, factor: if usual > 0.0 { ns / usual } else { 1.0 } };
            let (from, to) = (l.from as usize / block, l.to as usize / block);
            for at in [Some((from, to)), (!times.directed).then_some((to, from))].into_iter().flatten() {
                let known = &mut cells[at.0 * side + at.1];
                if known.is_none_or(|known| cell.ns > known.ns) {
                    *known = Some(cell);
                }
            }
        }
        HeatMap { side, block, directed: times.directed, ranks, cells }
    }

    /// Returns a cell; `None` if nothing was measured.
    pub fn at(&self, from: usize, to: usize) -> Option<Cell> {
        self.cells[from * self.side + to]
    }

    /// Returns line, column and contents of all cells that were measured.
    pub fn measured(&self) -> impl Iterator<Item = (usize, usize, Cell)> {
        let all = self.cells.iter().enumerate();
        all.filter_map(|(at, cell)| Some((at / self.side, at % self.side, (*cell)?)))
    }

    /// Returns the first and the last rank of a line or column.
    pub fn ranks(&self, line: usize) -> [u32; 2] {
        [line * self.block, ((line + 1) * self.block).min(self.ranks) - 1].map(|rank| rank as u32)
    }

    /// Returns whether a verdict names a link of the cell.
    pub fn is_named(&self, from: usize, to: usize, hosts: &Hosts, named: &[Component]) -> bool {
        let ends = [from, to].map(|line| self.ranks(line));
        let has = |[low, high]: [u32; 2], rank: u32| (low..=high).contains(&rank);
        named.iter().any(|what| match *what {
            Component::Rank(rank) => ends.iter().any(|line| has(*line, rank)),
            Component::Link(a, b) => {
                (has(ends[0], a) && has(ends[1], b)) || (has(ends[0], b) && has(ends[1], a))
            }
            Component::OneWay(a, b) => has(ends[0], a) && has(ends[1], b),
            ref hosts_or_groups if self.block == 1 => {
                hosts.has_link(hosts_or_groups, ends.map(|[first, _]| first))
            }
            // A block has ranks of several hosts.
            ref hosts_or_groups => {
                let all = ends.map(|[first, last]| first..=last);
                let is_end = |rank: &u32| hosts.has_rank(hosts_or_groups, *rank);
                let [from, to] = all.map(|mut ranks| ranks.any(|rank| is_end(&rank)));
                if hosts_or_groups.is_inside() { from && to } else { from || to }
            }
        })
    }
}

/// Draws the links of one message size in at most `widest` columns. With more ranks, a cell is the slowest link of a block of ranks.
/// Returns what the characters mean.
pub fn draw(out: &mut dyn Write, times: &LinkTimes, hosts: &Hosts, widest: usize) -> Result<Option<String>> {
    let map = HeatMap::new(times, hosts, widest, &[]);
    let Some(shades) = Shades::new(map.measured().map(|(.., cell)| cell.ns), CHARACTERS.len()) else {
        return Ok(None);
    };
    let character = |cell: Option<Cell>| cell.map_or(NOTHING, |cell| CHARACTERS[shades.shade(cell.ns)]);
    let labels: Vec<String> = (0..map.side)
        .map(|line| format!("{} {}", plain(hosts.name(map.ranks(line)[0])), map.ranks(line)[0]))
        .collect();
    let width = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
    let digits = (map.side.saturating_sub(1) * map.block).to_string().len();
    for digit in (0..digits).rev() {
        let of = |cell: usize| {
            let text = (cell * map.block).to_string();
            text.chars().rev().nth(digit).unwrap_or(' ')
        };
        writeln!(out, "{:width$}  {}", "", (0..map.side).map(of).collect::<String>())?;
    }
    for (label, row) in labels.iter().zip(map.cells.chunks(map.side)) {
        writeln!(out, "{label:>width$}  {}", row.iter().map(|cell| character(*cell)).collect::<String>())?;
    }
    let scale = Scale::of_times(map.measured().map(|(.., cell)| cell.ns).fold(0.0, f64::max));
    let bounds: Vec<String> = CHARACTERS
        .iter()
        .zip(shades.lower_bounds())
        .map(|(character, ns)| format!("{character} from {}", scale.format(ns)))
        .collect();
    let blocks = if map.block > 1 {
        format!("; a cell is the slowest link of {0} x {0} ranks", map.block)
    } else {
        String::new()
    };
    Ok(Some(format!("{} {}{blocks}", bounds.join("  "), scale.unit)))
}

/// Smallest ratio of slowest to fastest that fills all shades. Noise below it must not look like structure.
const MIN_RATIO: f64 = 1.5;

/// Logarithmic scale that maps values above 0 to shades, numbered from 0.
#[derive(Debug, Clone, Copy)]
pub struct Shades {
    low: f64,
    step: f64,
    count: usize,
}

impl Shades {
    /// Builds a scale of `count` shades for these values. Returns `None` if no value is above 0.
    pub fn new(values: impl Iterator<Item = f64>, count: usize) -> Option<Shades> {
        let known = values.filter(|value| *value > 0.0);
        let (low, high) = known.fold((f64::MAX, 0f64), |(low, high), x| (low.min(x), high.max(x)));
        let step = (high / low).max(MIN_RATIO).ln() / count as f64;
        (high > 0.0).then_some(Shades { low, step, count })
    }

    /// Returns the shade of a value.
    pub fn shade(&self, value: f64) -> usize {
        (((value / self.low).ln() / self.step) as usize).min(self.count - 1)
    }

    /// Returns the lowest value of each shade.
    pub fn lower_bounds(&self) -> impl Iterator<Item = f64> {
        (0..self.count).map(|shade| self.low * (self.step * shade as f64).exp())
    }
}
