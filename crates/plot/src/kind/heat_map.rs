//! Heat map of links: the median time from each rank to each other one.

use ombx_core::unit::Bytes;
use ombx_results::{
    plot::{HeatMap, Shades},
    verdict::{Component, LinkSweep},
};

use crate::{
    axis::Axis,
    drawing::Drawing,
    frame::{Frame, Key, Sample},
    options::{Options, PlotError},
    style::{GRID, SHADES},
};

/// Maximum number of cells per side. With more ranks, a cell is the slowest link of a block of ranks.
const MAX_CELLS: usize = 128;

pub(crate) fn draw(
    sweep: &LinkSweep,
    slow: &[Component],
    bytes: Option<u64>,
    options: &Options<'_>,
) -> Result<Drawing, PlotError> {
    let averaged = sweep.averaged();
    let largest = averaged.iter().map(|times| times.bytes).max();
    let Some(times) = averaged.iter().find(|times| Some(times.bytes) == bytes.or(largest)) else {
        let sizes: Vec<String> = averaged.iter().map(|times| Bytes(times.bytes).to_string()).collect();
        let have = if sizes.is_empty() {
            "there are none".into()
        } else {
            format!("there are {}", sizes.join(", "))
        };
        return Err(PlotError::Unfit(format!("a heat map needs links of one message size: {have}")));
    };
    let map = HeatMap::new(times, &sweep.hosts, MAX_CELLS, slow);
    let Some(shades) = Shades::of(map.measured().map(|(.., cell)| cell.ns), SHADES.len()) else {
        return Err(PlotError::Unfit("no link was measured".into()));
    };
    let slowest = if map.block > 1 { format!(", slowest of {0} x {0}", map.block) } else { String::new() };
    let title = Key {
        text: format!("time in µs at {} bytes{slowest}, from", Bytes(times.bytes)),
        sample: Sample::None,
    };
    let bounds = SHADES.iter().zip(shades.lower_bounds());
    let mut keys = vec![title];
    keys.extend(bounds.map(|(shade, ns)| Key { text: brief(ns / 1e3), sample: Sample::Shade(*shade) }));
    let names = |line: usize| sweep.hosts.label(map.ranks(line)[0]);
    let frame = Frame {
        axes: (
            Axis::Slots((0..map.side).map(names).collect()),
            Axis::ReversedSlots((0..map.side).map(names).collect()),
        ),
        titles: if times.directed { ("to".into(), "from".into()) } else { ("between".into(), "and".into()) },
        keys,
        square: true,
    };
    let corners = |from: usize, to: usize| {
        let (from, to) = (from as f64, to as f64);
        [(to - 0.5, from - 0.5), (to + 0.5, from + 0.5)]
    };
    let end = map.side as f64 - 0.5;
    Ok(frame.draw(options, |plane| {
        // A rank and itself, and links that were not measured.
        plane.rectangle([(-0.5, -0.5), (end, end)], GRID);
        for (from, to, cell) in map.measured() {
            plane.rectangle(corners(from, to), SHADES[shades.shade(cell.ns)]);
        }
        for (from, to, _) in
            map.measured().filter(|(from, to, _)| map.is_named(*from, *to, &sweep.hosts, slow))
        {
            plane.outline(corners(from, to));
        }
    }))
}

/// Formats a time with about three digits.
fn brief(us: f64) -> String {
    match us {
        us if us >= 100.0 => format!("{us:.0}"),
        us if us >= 10.0 => format!("{us:.1}"),
        us if us >= 1.0 => format!("{us:.2}"),
        us => format!("{us:.3}"),
    }
}
