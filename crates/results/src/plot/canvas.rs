//! Dots for charts in terminals: Braille characters, or plain ones where a terminal cannot show these.

use ombx_core::stats::median;

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
    pub(super) fn dot(&mut self, (x, y): (usize, usize)) {
        self.cells[y / DOTS.1 * self.width + x / DOTS.0] |= BITS[x % DOTS.0][y % DOTS.1];
    }

    /// Draws a line between two dots.
    pub(super) fn line(&mut self, from: (usize, usize), to: (usize, usize)) {
        let steps = from.0.abs_diff(to.0).max(from.1.abs_diff(to.1)).max(1);
        let between = |a: usize, b: usize, i: usize| {
            (a as f64 + (b as f64 - a as f64) * i as f64 / steps as f64).round() as usize
        };
        for i in 0..=steps {
            self.dot((between(from.0, to.0, i), between(from.1, to.1, i)));
        }
    }

    /// Returns the lines of characters, without blanks at their ends.
    pub(super) fn lines(&self, characters: Characters) -> impl Iterator<Item = String> {
        let character = move |bits: &u8| match (characters, *bits) {
            (_, 0) => ' ',
            (Characters::Unicode, bits) => char::from_u32(0x2800 + u32::from(bits)).unwrap_or(' '),
            (Characters::Ascii, bits) if bits & UPPER == 0 => '.',
            (Characters::Ascii, bits) if bits & !UPPER == 0 => '\'',
            (Characters::Ascii, _) => ':',
        };
        self.cells.chunks(self.width).map(move |cells| {
            let text: String = cells.iter().map(character).collect();
            text.trim_end().to_owned()
        })
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
    use super::*;

    #[test]
    fn dots_are_braille_or_plain() {
        let mut canvas = Canvas::new(3, 1);
        canvas.dot((0, 0));
        canvas.dot((3, 3));
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
