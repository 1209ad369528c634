//! A series of values as one line of bars.

use ombx_core::stats::median;

use super::Characters;

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
