//! The heat map: a character for each link, darker where it takes longer.

use std::io::{Result, Write};

use crate::verdict::{Hosts, Times};

/// From fast to slow.
const SHADES: [char; 5] = ['·', '░', '▒', '▓', '█'];
/// A link that was not measured, or a rank and itself.
const NOTHING: char = ' ';
/// Columns at the most; of more ranks, a cell is the slowest link of a block.
const WIDEST: usize = 64;
/// A smaller ratio of slowest to fastest is not spread over all shades: noise is no structure.
const LEAST_RATIO: f64 = 1.5;

/// Draws one size.
pub(super) fn draw(out: &mut dyn Write, times: &Times, hosts: &Hosts) -> Result<()> {
    let ranks = hosts.ranks() as usize;
    let block = ranks.div_ceil(WIDEST).max(1);
    let cells = ranks.div_ceil(block);
    let mut slowest = vec![0f32; cells * cells];
    for l in times.sweep.iter().filter(|l| (l.from.max(l.to) as usize) < ranks) {
        let cell = &mut slowest[l.from as usize / block * cells + l.to as usize / block];
        *cell = cell.max(l.ns);
    }
    let known = || slowest.iter().copied().filter(|ns| *ns > 0.0).map(f64::from);
    let (low, high) = known().fold((f64::MAX, 0f64), |(l, h), ns| (l.min(ns), h.max(ns)));
    if high == 0.0 {
        return Ok(());
    }
    let step = (high / low).max(LEAST_RATIO).ln() / SHADES.len() as f64;
    let shade = |ns: f32| match ns {
        0.0 => NOTHING,
        ns => SHADES[(((f64::from(ns) / low).ln() / step) as usize).min(SHADES.len() - 1)],
    };
    let labels: Vec<String> = (0..cells)
        .map(|cell| {
            let first = (cell * block) as u32;
            format!("{} {first}", super::plain(hosts.name(first)))
        })
        .collect();
    let width = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
    let digits = (cells.saturating_sub(1) * block).to_string().len();
    for digit in (0..digits).rev() {
        let of = |cell: usize| {
            let text = (cell * block).to_string();
            text.chars().rev().nth(digit).unwrap_or(' ')
        };
        writeln!(out, "{:width$}  {}", "", (0..cells).map(of).collect::<String>())?;
    }
    for (label, row) in labels.iter().zip(slowest.chunks(cells)) {
        writeln!(out, "{label:>width$}  {}", row.iter().map(|ns| shade(*ns)).collect::<String>())?;
    }
    let bounds: Vec<String> = SHADES
        .iter()
        .enumerate()
        .map(|(at, shade)| format!("{shade} from {:.2}", low * (step * at as f64).exp() / 1e3))
        .collect();
    let blocks = if block > 1 {
        format!("; a cell is the slowest link of {block} x {block} ranks")
    } else {
        String::new()
    };
    writeln!(out, "{} us{blocks}", bounds.join("  "))
}
