//! Heat map of links for the terminal: one character per link, darker for longer times.

use std::io::{Result, Write};

use super::Shades;
use crate::{
    number::Scale,
    render::plain,
    verdict::{Hosts, LinkTimes},
};

/// Shades from fast to slow.
const CHARACTERS: [char; 5] = ['·', '░', '▒', '▓', '█'];
/// Character of a link that was not measured.
const NOTHING: char = ' ';

/// Draws the links of one message size in at most `widest` columns. With more ranks, a cell is the slowest link of a block of ranks.
/// Returns what the characters mean.
pub(crate) fn draw(
    out: &mut dyn Write,
    times: &LinkTimes,
    hosts: &Hosts,
    widest: usize,
) -> Result<Option<String>> {
    let ranks = hosts.ranks() as usize;
    let block = ranks.div_ceil(widest).max(1);
    let cells = ranks.div_ceil(block);
    let mut slowest = vec![0f32; cells * cells];
    for l in times.sweep.iter().filter(|l| (l.from.max(l.to) as usize) < ranks) {
        let (from, to) = (l.from as usize / block, l.to as usize / block);
        for at in [Some((from, to)), (!times.directed).then_some((to, from))].into_iter().flatten() {
            let cell = &mut slowest[at.0 * cells + at.1];
            *cell = cell.max(l.ns);
        }
    }
    let Some(shades) = Shades::of(slowest.iter().copied().map(f64::from), CHARACTERS.len()) else {
        return Ok(None);
    };
    let character = |ns: f32| match ns {
        0.0 => NOTHING,
        ns => CHARACTERS[shades.shade(f64::from(ns))],
    };
    let labels: Vec<String> = (0..cells)
        .map(|cell| {
            let first = (cell * block) as u32;
            format!("{} {first}", plain(hosts.name(first)))
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
        writeln!(out, "{label:>width$}  {}", row.iter().map(|ns| character(*ns)).collect::<String>())?;
    }
    let scale = Scale::of_times(slowest.iter().copied().fold(0.0, f32::max).into());
    let bounds: Vec<String> = CHARACTERS
        .iter()
        .zip(shades.lower_bounds())
        .map(|(character, ns)| format!("{character} from {}", scale.format(ns)))
        .collect();
    let blocks = if block > 1 {
        format!("; a cell is the slowest link of {block} x {block} ranks")
    } else {
        String::new()
    };
    Ok(Some(format!("{} {}{blocks}", bounds.join("  "), scale.unit)))
}
