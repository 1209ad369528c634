//! Line chart of one benchmark for the terminal, with logarithmic axes and vertical intervals.

use std::io::{Result, Write};

use ombx_estimate::number::tick_label;
use ombx_record::{order::sort_by_value, result::Headline, stats::median, unit::Bytes};

use crate::terminal::{LogAxis, Ticks, extent};

/// Height of the chart in lines.
const LINES: usize = 10;
/// Maximum width in columns.
const WIDEST: usize = 72;
/// Minimum width in columns. Narrower charts are left out.
const NARROWEST: usize = 16;

/// Draws figures by message size on a screen of `columns` columns. Fewer than two sizes give no output.
pub fn draw(out: &mut dyn Write, points: &[(u64, Headline)], unit: &str, columns: usize) -> Result<()> {
    let mut curve: Vec<(f64, Headline)> =
        points.iter().filter(|(bytes, _)| *bytes > 0).map(|(bytes, head)| (*bytes as f64, *head)).collect();
    sort_by_value(&mut curve, |point| point.0);
    let x = LogAxis::covering(curve.iter().map(|p| p.0), Ticks::Binary);
    let y = LogAxis::covering(curve.iter().flat_map(|p| extent(&p.1)), Ticks::Decimal);
    let (Some(x), Some(y)) = (x, y) else { return Ok(()) };
    if curve.first().map(|p| p.0) == curve.last().map(|p| p.0) {
        return Ok(());
    }
    let ticks: Vec<(usize, String)> = y
        .ticks(LINES / 2 + 1)
        .into_iter()
        .map(|value| (row_of(y.position(value)) / DOTS.1, tick_label(value)))
        .collect();
    let margin = ticks.iter().map(|(_, label): &(_, String)| label.len()).max().unwrap_or(0).max(unit.len());
    let width = columns.saturating_sub(margin + 8).min(WIDEST);
    if width < NARROWEST {
        return Ok(());
    }

    let mut canvas = Canvas::new(width, LINES);
    let across = |bytes: f64| (x.position(bytes) * (width * DOTS.0 - 1) as f64).round() as usize;
    let place = |(bytes, head): &(f64, Headline)| [across(*bytes), row_of(y.position(head.value))];
    for pair in curve.windows(2) {
        canvas.line(place(&pair[0]), place(&pair[1]));
    }
    for (bytes, head) in &curve {
        let [low, high] = extent(head).map(|value| row_of(y.position(value)));
        canvas.line([across(*bytes), low], [across(*bytes), high]);
    }

    writeln!(out, "\n  {:>margin$} by bytes", unit)?;
    for (line, text) in canvas.lines(Characters::Unicode).enumerate() {
        let label = ticks.iter().find(|(at, _)| *at == line).map(|(_, label)| label.as_str());
        let edge = if label.is_some() { '┤' } else { '│' };
        writeln!(out, "  {:>margin$} {edge}{text}", label.unwrap_or_default())?;
    }
    sizes(out, &x, margin, width)?;
    if points.iter().any(|(bytes, _)| *bytes == 0) {
        writeln!(out, "  0 bytes have no place on a logarithmic axis")?;
    }
    Ok(())
}

/// Returns the row of dots, from the top, of a position on the vertical axis.
fn row_of(place: f64) -> usize {
    ((1.0 - place.clamp(0.0, 1.0)) * (LINES * DOTS.1 - 1) as f64).round() as usize
}

/// Draws the horizontal axis and its labels.
fn sizes(out: &mut dyn Write, x: &LogAxis, margin: usize, width: usize) -> Result<()> {
    let (mut edge, mut labels) = (vec!['─'; width], String::new());
    for value in x.ticks(width / 7) {
        let at = (x.position(value) * (width - 1) as f64).round() as usize;
        let label = Bytes(value as u64).to_string();
        edge[at] = '┬';
        if labels.chars().count() <= at {
            labels = format!("{labels:at$}{label} ");
        }
    }
    writeln!(out, "  {:margin$} └{}", "", edge.into_iter().collect::<String>())?;
    writeln!(out, "  {:margin$}  {}", "", labels.trim_end())
}

/// Characters that a terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Characters {
    /// All of Unicode.
    Unicode,
    /// ASCII only.
    Ascii,
}

/// Dots per character, horizontally and vertically, and the bit of each dot in a Braille character.
pub(super) const DOTS: (usize, usize) = (2, 4);
const BITS: [[u8; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];
/// Dots in the upper half of a character.
const UPPER: u8 = 0x01 | 0x02 | 0x08 | 0x10;

/// Dots of a chart, eight per character.
pub(super) struct Canvas {
    width: usize,
    cells: Vec<u8>,
}

impl Canvas {
    /// Returns an empty canvas of this many columns and lines of characters.
    pub(super) fn new(width: usize, lines: usize) -> Canvas {
        Canvas { width, cells: vec![0; width * lines] }
    }

    /// Sets one dot. Position 0 is the left or upper end.
    pub(super) fn dot(&mut self, x: usize, y: usize) {
        self.cells[y / DOTS.1 * self.width + x / DOTS.0] |= BITS[x % DOTS.0][y % DOTS.1];
    }

    /// Draws a line between two dots.
    pub(super) fn line(&mut self, from: [usize; 2], to: [usize; 2]) {
        let steps = from[0].abs_diff(to[0]).max(from[1].abs_diff(to[1])).max(1);
        let between = |a: usize, b: usize, i: usize| {
            (a as f64 + (b as f64 - a as f64) * i as f64 / steps as f64).round() as usize
        };
        for i in 0..=steps {
            self.dot(between(from[0], to[0], i), between(from[1], to[1], i));
        }
    }

    /// Returns the lines of characters, without blanks at their ends.
    pub(super) fn lines(&self, characters: Characters) -> impl Iterator<Item = String> {
        self.cells.chunks(self.width).map(move |cells| {
            let text: String = cells.iter().map(|bits| character(*bits, characters)).collect();
            text.trim_end().to_owned()
        })
    }
}

/// Returns the character with these dots.
fn character(bits: u8, characters: Characters) -> char {
    match (characters, bits) {
        (_, 0) => ' ',
        (Characters::Unicode, bits) => char::from_u32(0x2800 + u32::from(bits)).unwrap_or(' '),
        (Characters::Ascii, bits) if bits & UPPER == 0 => '.',
        (Characters::Ascii, bits) if bits & !UPPER == 0 => '\'',
        (Characters::Ascii, _) => ':',
    }
}

/// Bars from the lowest to the highest value.
const UNICODE: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII: [char; 4] = ['_', '.', '-', '^'];
/// Smallest ratio of highest to lowest value that fills all bars. Noise below it must not look like structure.
const MIN_RATIO: f64 = 1.1;

/// Draws values above 0 with at most this many characters, on a logarithmic scale. Of many values, a bar is the median of several.
pub fn sparkline(values: &[f64], columns: usize, characters: Characters) -> String {
    let bars: &[char] = if characters == Characters::Unicode { &UNICODE } else { &ASCII };
    let columns = columns.min(values.len());
    let part = |at: usize| &values[at * values.len() / columns..(at + 1) * values.len() / columns];
    let logs: Vec<f64> = (0..columns).filter_map(|at| median(part(at))).map(f64::ln).collect();
    let (low, high) = logs.iter().fold((f64::MAX, f64::MIN), |(low, high), x| (low.min(*x), high.max(*x)));
    // A narrow range lies in the middle.
    let range = (high - low).max(MIN_RATIO.ln());
    let bottom = (low + high - range) / 2.0;
    let bar = |x: &f64| bars[(((x - bottom) / range * bars.len() as f64) as usize).min(bars.len() - 1)];
    logs.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use crate::terminal::curve::*;

    fn drawn(points: &[(u64, f64)], columns: usize) -> String {
        let of = |value| Headline { value, ci95: Some([value * 0.9, value * 1.1]) };
        let points: Vec<_> = points.iter().map(|(bytes, value)| (*bytes, of(*value))).collect();
        let mut out = Vec::new();
        draw(&mut out, &points, "MB/s", columns).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// Returns column and line of all characters with dots.
    fn curve(text: &str) -> Vec<(usize, usize)> {
        let drawn = |c: char| ('\u{2801}'..='\u{28ff}').contains(&c);
        let lines = text.lines().enumerate();
        lines
            .flat_map(|(y, line)| {
                line.chars().enumerate().filter(move |(_, c)| drawn(*c)).map(move |(x, _)| (x, y))
            })
            .collect()
    }

    #[test]
    fn a_power_law_is_a_straight_line() {
        let text = drawn(&[(1, 1.0), (16, 16.0), (256, 256.0), (65536, 65536.0)], 80);
        let dots = curve(&text);
        assert!(dots.len() >= 60, "{text}");
        let (left, right) =
            (dots.iter().min_by_key(|d| d.0).unwrap(), dots.iter().max_by_key(|d| d.0).unwrap());
        assert!(left.1 > right.1, "{text}");
        for (x, y) in &dots {
            let straight = left.1 as f64
                + (*x as f64 - left.0 as f64) / (right.0 - left.0) as f64 * (right.1 as f64 - left.1 as f64);
            assert!((straight - *y as f64).abs() < 1.6, "{x} {y}\n{text}");
        }
        assert!(text.contains("MB/s by bytes") && text.trim_end().ends_with("64K"), "{text}");
    }

    #[test]
    fn the_chart_fits_the_screen() {
        let points = [(1, 1.0), (1 << 20, 4000.0)];
        for columns in [40, 60, 80, 200] {
            let text = drawn(&points, columns);
            assert!(text.lines().all(|line| line.chars().count() <= columns), "{columns}\n{text}");
            assert!(!text.is_empty());
        }
        assert_eq!(drawn(&points, 10), "");
    }

    #[test]
    fn fewer_than_two_sizes_are_not_drawn() {
        assert_eq!(drawn(&[], 80), "");
        assert_eq!(drawn(&[(8, 1.0)], 80), "");
        assert_eq!(drawn(&[(0, 1.0), (8, 1.0)], 80), "");
        assert!(drawn(&[(0, 1.0), (8, 1.0), (16, 1.5)], 80).contains("0 bytes have no place"));
    }
}

#[cfg(test)]
mod canvas_tests {
    use crate::terminal::curve::*;

    #[test]
    fn dots_are_braille_or_plain() {
        let mut canvas = Canvas::new(3, 1);
        canvas.dot(0, 0);
        canvas.dot(3, 3);
        let lines = |characters| canvas.lines(characters).collect::<Vec<_>>();
        assert_eq!(lines(Characters::Unicode), ["\u{2801}\u{2880}"]);
        assert_eq!(lines(Characters::Ascii), ["'."]);
    }

    #[test]
    fn a_step_is_visible_and_noise_is_not() {
        let step = [1.0, 1.0, 1.0, 2.0, 2.0];
        assert_eq!(sparkline(&step, 10, Characters::Unicode), "▁▁▁██");
        assert_eq!(sparkline(&step, 10, Characters::Ascii), "___^^");
        let noise = [1.0, 1.001, 0.999, 1.0];
        assert_eq!(sparkline(&noise, 10, Characters::Unicode), "▅▅▄▅");
        assert_eq!(sparkline(&[], 10, Characters::Ascii), "");
    }

    #[test]
    fn many_values_share_bars() {
        let values: Vec<f64> = (0..100).map(|at| if at < 50 { 1.0 } else { 4.0 }).collect();
        assert_eq!(sparkline(&values, 4, Characters::Ascii), "__^^");
    }
}
