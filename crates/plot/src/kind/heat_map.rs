//! Heat map of links: the median time from each rank to each other one.

use ombx_core::unit::Bytes;
use ombx_results::{
    plot::Shades,
    verdict::{Component, LinkSweep},
};
use plotters::prelude::*;

use crate::{
    axis::Axis,
    drawing::Drawing,
    error::PlotError,
    frame::Frame,
    legend::{Key, Sample},
    options::Options,
    style::{INK, SHADES},
};

/// Maximum number of cells per side. With more ranks, a cell is the slowest link of a block of ranks.
const MAX_CELLS: usize = 128;

pub(crate) fn draw(
    sweep: &LinkSweep,
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
    let ranks = sweep.hosts.ranks() as usize;
    let block = ranks.div_ceil(MAX_CELLS).max(1);
    let side = ranks.div_ceil(block);
    let mut cells = vec![0f64; side * side];
    let known = times.sweep.iter().filter(|link| (link.from.max(link.to) as usize) < ranks && link.ns > 0.0);
    for link in known {
        let (from, to) = (link.from as usize / block, link.to as usize / block);
        for at in [Some((from, to)), (!times.directed).then_some((to, from))].into_iter().flatten() {
            let cell = &mut cells[at.0 * side + at.1];
            *cell = cell.max(f64::from(link.ns));
        }
    }
    let Some(shades) = Shades::of(cells.iter().copied(), SHADES.len()) else {
        return Err(PlotError::Unfit("no link was measured".into()));
    };
    let slowest = if block > 1 { format!(", slowest of {block} x {block}") } else { String::new() };
    let title = Key {
        text: format!("time in µs at {} bytes{slowest}, from", Bytes(times.bytes)),
        sample: Sample::None,
    };
    let bounds = SHADES.iter().zip(shades.lower_bounds());
    let mut keys = vec![title];
    keys.extend(bounds.map(|(shade, ns)| Key { text: brief(ns / 1e3), sample: Sample::Shade(*shade) }));
    let names = |first: usize| sweep.hosts.label((first * block) as u32);
    let frame = Frame {
        axes: (
            Axis::Slots((0..side).map(names).collect()),
            Axis::ReversedSlots((0..side).map(names).collect()),
        ),
        titles: match times.directed {
            true => ("to".into(), "from".into()),
            false => ("between".into(), "and".into()),
        },
        keys,
        square: true,
    };
    let slow: Vec<Component> = sweep.verdict().slow.into_iter().map(|slow| slow.component).collect();
    let named = |from: usize, to: usize| {
        let link = [from, to].map(|cell| (cell * block) as u32);
        block == 1 && slow.iter().any(|component| component.contains(link, &sweep.hosts))
    };
    frame.draw(options, |plane| {
        let measured =
            || (0..side * side).filter(|at| cells[*at] > 0.0).map(|at| (at / side, at % side, cells[at]));
        let corners = |from: usize, to: usize| {
            [(to as f64 - 0.5, from as f64 - 0.5), (to as f64 + 0.5, from as f64 + 0.5)]
        };
        for (from, to, ns) in measured() {
            plane.draw(&Rectangle::new(corners(from, to), SHADES[shades.shade(ns)].filled()))?;
        }
        for (from, to, _) in measured().filter(|(from, to, _)| named(*from, *to)) {
            let [(left, top), (right, bottom)] = corners(from, to);
            let outline = vec![(left, top), (right, top), (right, bottom), (left, bottom), (left, top)];
            plane.draw(&PathElement::new(outline, INK.stroke_width(8)))?;
        }
        Ok(())
    })
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
