//! Legend above the axes, in as many lines as it needs.

use ombx_results::render::plain;
use plotters::{prelude::*, style::text_anchor::HPos};

use crate::{
    font,
    style::{self, Drawn, Fill, INK, Page, TEXT},
};

/// Height of a line.
pub(crate) const LINE: i32 = 120;
/// Width of the sample of a series, and of the space around it.
const SAMPLE: i32 = 190;
const GAP: i32 = 40;
const BETWEEN: i32 = 110;

/// One entry.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) text: String,
    pub(crate) sample: Sample,
}

/// What stands before the text of an entry.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sample {
    /// Line and symbol of a series.
    LineAndSymbol(usize),
    /// Line of a series.
    Line(usize),
    /// Line of a series over its faint area.
    Area(usize),
    /// Thin solid line of a series over its faint area.
    Band(usize),
    /// Symbol of a series.
    Symbol(usize),
    /// A filled box.
    Shade(RGBColor),
    /// Nothing: the text explains the entries after it.
    None,
}

impl Key {
    fn width(&self) -> i32 {
        self.sample_width() + font::width(&self.text, TEXT).ceil() as i32
    }

    fn sample_width(&self) -> i32 {
        match self.sample {
            Sample::None => 0,
            Sample::Shade(_) | Sample::Symbol(_) => 70 + GAP,
            Sample::LineAndSymbol(_) | Sample::Line(_) | Sample::Area(_) | Sample::Band(_) => SAMPLE + GAP,
        }
    }
}

/// Returns an entry for each series that has a name.
pub(crate) fn keys<'a>(names: impl IntoIterator<Item = &'a String>, sample: fn(usize) -> Sample) -> Vec<Key> {
    let named = names.into_iter().enumerate().filter(|(_, name)| !name.is_empty());
    named.map(|(at, name)| Key { text: plain(name), sample: sample(at) }).collect()
}

/// Divides entries into lines that are not wider than this.
pub(crate) fn lines(keys: &[Key], width: i32) -> Vec<Vec<&Key>> {
    let mut lines: Vec<Vec<&Key>> = Vec::new();
    let mut used = 0;
    for key in keys {
        let more = key.width() + BETWEEN;
        match lines.last_mut().filter(|_| used + key.width() <= width) {
            Some(line) => line.push(key),
            None => {
                lines.push(vec![key]);
                used = 0;
            }
        }
        used += more;
    }
    lines
}

/// Draws the lines from this position on.
pub(crate) fn draw(page: &Page<'_>, lines: &[Vec<&Key>], (left, top): (i32, i32)) -> Drawn {
    for (at, line) in lines.iter().enumerate() {
        let (mut x, y) = (left, top + LINE * at as i32 + LINE / 2);
        for key in line {
            sample(page, key.sample, (x, y))?;
            page.draw(&Text::new(key.text.clone(), (x + key.sample_width(), y), style::text(HPos::Left)))?;
            x += key.width() + BETWEEN;
        }
    }
    Ok(())
}

fn sample(page: &Page<'_>, sample: Sample, (x, y): (i32, i32)) -> Drawn {
    let across = vec![(x, y), (x + SAMPLE, y)];
    match sample {
        Sample::LineAndSymbol(series) => {
            style::line(page, across, series)?;
            style::symbol(page, (x + SAMPLE / 2, y), series, Fill::Full)
        }
        Sample::Line(series) => style::line(page, across, series),
        Sample::Area(series) => {
            area(page, series, (x, y))?;
            style::line(page, across, series)
        }
        Sample::Band(series) => {
            area(page, series, (x, y))?;
            style::thin_line(page, across, style::color(series))
        }
        Sample::Symbol(series) => style::symbol(page, (x + 35, y), series, Fill::Full),
        Sample::Shade(shade) => {
            let corners = [(x, y - 35), (x + 70, y + 35)];
            page.draw(&Rectangle::new(corners, shade.filled()))?;
            page.draw(&Rectangle::new(corners, INK.stroke_width(3)))
        }
        Sample::None => Ok(()),
    }
}

fn area(page: &Page<'_>, series: usize, (x, y): (i32, i32)) -> Drawn {
    let (right, up, down) = (x + SAMPLE, y - 30, y + 30);
    style::faint(page, vec![(x, up), (right, up), (right, down), (x, down)], series)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_that_do_not_fit_start_a_line() {
        let key = |text: &str| Key { text: text.into(), sample: Sample::Line(0) };
        let keys = ["first", "second", "a text that is rather long for one column", "last"].map(key);
        let texts = |width| {
            let lines = lines(&keys, width);
            lines.iter().map(Vec::len).collect::<Vec<_>>()
        };
        assert_eq!(texts(100_000), [4]);
        assert_eq!(texts(2200), [2, 1, 1]);
        assert_eq!(texts(1), [1, 1, 1, 1], "an entry that is too wide has a line of its own");
    }
}
