//! Samples of one case for the terminal: in the order of measurement, as a histogram, and as a line per launch.

use std::io::{Result, Write};

use ombx_estimate::{
    number::Decimals,
    samples::CaseSamples,
    text::{heading, plain},
};
use ombx_record::{order::sort, result::Headline, unit::Bytes};

use crate::terminal::{
    Characters, ValueAxis, counts,
    curve::{Canvas, DOTS},
    extent, value_label,
};

/// Height of the chart over time, in lines.
const LINES: usize = 10;
/// Number of ranges of the histogram.
const RANGES: usize = 12;
/// Maximum number of launches with a line of their own.
const MAX_LAUNCHES: usize = 40;
/// Minimum and maximum width of a chart in columns.
const WIDTHS: [usize; 2] = [16, 100];

/// Draws one case on a screen of `columns` columns: its samples in the order of measurement, their histogram, and its launches.
pub fn draw(out: &mut dyn Write, case: &CaseSamples, columns: usize, characters: Characters) -> Result<()> {
    let row = case.row();
    let size = row.bytes.map_or(String::new(), |bytes| format!(", {} bytes", Bytes(bytes)));
    let separator = if characters == Characters::Ascii { "-" } else { "·" };
    let other = case.other.map_or(String::new(), |other| format!(", {other}"));
    let title = format!("{}{size}{other}", plain(&heading(row)).replace('·', separator));
    draw_over_time(out, case, &title, columns, characters)?;
    let values = case.batches();
    let Some(axis) = ValueAxis::covering(values.iter().copied()) else { return Ok(()) };
    let style = ChartStyle::new(case, &axis, columns, characters);
    style.histogram(out, values, &axis)?;
    style.launches(out, case)
}

/// Draws the samples of one case in the order of measurement, below a title.
pub fn draw_over_time(
    out: &mut dyn Write,
    case: &CaseSamples,
    title: &str,
    columns: usize,
    characters: Characters,
) -> Result<()> {
    let values = case.batches();
    let Some(axis) = ValueAxis::covering(values.iter().copied()) else { return Ok(()) };
    writeln!(out, "\n{}", shortened(title, columns))?;
    ChartStyle::new(case, &axis, columns, characters).over_time(out, case, &values, &axis)
}

/// How charts are drawn.
struct ChartStyle {
    columns: usize,
    characters: Characters,
    unit: &'static str,
    /// What is said of the axis of values.
    scale: &'static str,
}

impl ChartStyle {
    fn new(case: &CaseSamples, axis: &ValueAxis, columns: usize, characters: Characters) -> ChartStyle {
        let scale = if axis.is_log() { ", logarithmic" } else { "" };
        ChartStyle { columns, characters, unit: case.row().metric.unit(), scale }
    }

    fn pick(&self, unicode: char, ascii: char) -> char {
        if self.characters == Characters::Unicode { unicode } else { ascii }
    }

    /// Returns the width of a chart beside labels of this width.
    fn width(&self, labels: usize) -> usize {
        self.columns.saturating_sub(labels).clamp(WIDTHS[0], WIDTHS[1])
    }

    /// Draws every sample at its place. Marks below the axis show the start of each launch, or the first and the last sample of a single one.
    fn over_time(
        &self,
        out: &mut dyn Write,
        case: &CaseSamples,
        values: &[f64],
        axis: &ValueAxis,
    ) -> Result<()> {
        let row_of = |value: f64| {
            ((1.0 - axis.position(value).clamp(0.0, 1.0)) * (LINES * DOTS.1 - 1) as f64).round() as usize
        };
        let ticks: Vec<(usize, String)> = axis
            .ticks(LINES / 2 + 1)
            .into_iter()
            .map(|value| (row_of(value) / DOTS.1, value_label(value)))
            .collect();
        let margin = ticks.iter().map(|(_, label)| label.len()).max().unwrap_or(0);
        let width = self.width(margin + 4);
        let column = |sample: usize| sample * width * DOTS.0 / values.len();
        let mut canvas = Canvas::new(width, LINES);
        for (at, value) in values.iter().enumerate() {
            canvas.dot(column(at), row_of(*value));
        }
        writeln!(out, "  {} samples in the order measured, {}{}", values.len(), self.unit, self.scale)?;
        for (line, text) in canvas.lines(self.characters).enumerate() {
            let label = ticks.iter().find(|(at, _)| *at == line).map(|(_, label)| label.as_str());
            let edge = if label.is_some() { self.pick('┤', '+') } else { self.pick('│', '|') };
            writeln!(out, "  {:>margin$} {edge}{text}", label.unwrap_or_default())?;
        }
        let mut edge = vec![self.pick('─', '-'); width];
        let mut labels = String::new();
        let mut before = 0;
        for (number, launch) in (1..).zip(&case.launches) {
            let at = column(before) / DOTS.0;
            edge[at.min(width - 1)] = self.pick('┬', '+');
            let label = number.to_string();
            if labels.len() <= at && at + label.len() <= width {
                labels = format!("{labels:at$}{label} ");
            }
            before += launch.batches.len();
            if before >= values.len() {
                break;
            }
        }
        writeln!(out, "  {:margin$} {}{}", "", self.pick('└', '+'), edge.into_iter().collect::<String>())?;
        let labels = labels.trim_end();
        if case.launches.len() == 1 {
            let last = width - 1;
            return writeln!(out, "  {:margin$}  1{:>last$}", "", values.len());
        }
        let what = " start of launches";
        let what = if labels.len() + what.len() <= width { what } else { "" };
        writeln!(out, "  {:margin$}  {labels}{what}", "")
    }

    fn histogram(&self, out: &mut dyn Write, mut values: Vec<f64>, axis: &ValueAxis) -> Result<()> {
        sort(&mut values);
        let (low, high) = (values[0], values[values.len() - 1]);
        let ends = if low < high { axis.ranges(low, high, RANGES) } else { vec![low, high] };
        let counts = counts(&values, &ends);
        let most = counts.iter().copied().max().unwrap_or(1).max(1);
        let decimals = Decimals::new(low, Some([low, low + 2.0 * (ends[1] - ends[0])]));
        let labels: Vec<String> = ends.iter().take(counts.len()).map(|end| decimals.format(*end)).collect();
        let margin = labels.iter().map(String::len).max().unwrap_or(0);
        let width = self.width(margin + 5 + most.to_string().len());
        writeln!(out, "  histogram: samples from this value on, {}{}", self.unit, self.scale)?;
        for (label, count) in labels.iter().zip(counts) {
            let bar = self.pick('█', '#').to_string().repeat((count * width).div_ceil(most));
            writeln!(out, "  {label:>margin$} {}{bar} {count}", self.pick('│', '|'))?;
        }
        Ok(())
    }

    /// Draws the median of each launch with its interval, and of all launches.
    fn launches(&self, out: &mut dyn Write, case: &CaseSamples) -> Result<()> {
        if case.launches.len() < 2 {
            return Ok(());
        }
        let all = case.estimate();
        let rows = case.launches.iter().map(|launch| &launch.row).take(MAX_LAUNCHES).enumerate();
        let mut lines: Vec<(String, Headline)> =
            rows.filter_map(|(at, row)| Some(((at + 1).to_string(), row.headline()?))).collect();
        lines.extend(all.headline().map(|figure| ("all".to_owned(), figure)));
        let Some(axis) = ValueAxis::covering(lines.iter().flat_map(|(_, figure)| extent(figure))) else {
            return Ok(());
        };
        let texts: Vec<String> = lines
            .iter()
            .map(|(_, figure)| Decimals::new(figure.value, figure.ci95).format(figure.value))
            .collect();
        let wide = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(0);
        let number = wide(&mut lines.iter().map(|(name, _)| name.len()));
        let value = wide(&mut texts.iter().map(String::len));
        let width = self.width(number + value + 5);
        let column =
            |value: f64| (axis.position(value).clamp(0.0, 1.0) * (width - 1) as f64).round() as usize;
        let scale = if axis.is_log() { ", logarithmic" } else { "" };
        writeln!(out, "  launches: median and interval, {}{scale}", self.unit)?;
        for ((name, headline), text) in lines.iter().zip(&texts) {
            let mut cells = vec![' '; width];
            let [low, high] = extent(headline).map(column);
            cells[low..=high].fill(self.pick('─', '-'));
            if low < high {
                (cells[low], cells[high]) = (self.pick('├', '|'), self.pick('┤', '|'));
            }
            cells[column(headline.value)] = self.pick('●', 'o');
            let drawn: String = cells.into_iter().collect();
            writeln!(out, "  {name:>number$} {text:>value$} {}", drawn.trim_end())?;
        }
        let left_out = case.launches.len().saturating_sub(MAX_LAUNCHES);
        if left_out > 0 {
            writeln!(out, "  {left_out} more launches are part of the last line")?;
        }
        Ok(())
    }
}

fn shortened(text: &str, columns: usize) -> String {
    text.chars().take(columns.max(WIDTHS[0])).collect()
}

#[cfg(test)]
mod tests {
    use ombx_estimate::samples::SampleStore;

    use crate::terminal::samples::*;

    /// Returns the charts of a case with these samples per launch, in nanoseconds.
    fn drawn(launches: &[Vec<u64>], columns: usize, characters: Characters) -> String {
        let mut store = SampleStore::default();
        for samples in launches {
            let mut run = ombx_testkit::golden();
            run.rows.truncate(1);
            run.rows[0].samples.truncate(1);
            run.rows[0].samples[0].elapsed_ns =
                samples.iter().map(|ns| ns * run.rows[0].samples[0].batch * 2).collect();
            run.rows[0].samples[0].round_trips = None;
            store.launch(&run);
        }
        let mut out = Vec::new();
        store.into_cases().iter().for_each(|case| draw(&mut out, case, columns, characters).unwrap());
        String::from_utf8(out).unwrap()
    }

    fn section<'a>(text: &'a str, title: &str) -> Vec<&'a str> {
        let lines = text.lines().skip_while(|line| !line.contains(title)).skip(1);
        lines.take_while(|line| !line.contains("samples in") && !line.contains("launches:")).collect()
    }

    #[test]
    fn a_step_in_time_is_a_step_in_the_chart() {
        let step: Vec<u64> = (0..400).map(|i| if i < 200 { 1000 } else { 1200 }).collect();
        let text = drawn(&[step], 80, Characters::Unicode);
        let is_dot = |c: &char| ('\u{2801}'..='\u{28ff}').contains(c);
        let dots = |line: &str, from: usize, to: usize| line.chars().take(to).skip(from).any(|c| is_dot(&c));
        let chart = section(&text, "400 samples");
        let first = |from, to| chart.iter().position(|line| dots(line, from, to)).unwrap();
        let (left, right) = (first(0, 30), first(50, 80));
        assert!(right < left, "later samples are higher\n{text}");
        let bars: Vec<usize> = section(&text, "histogram")
            .iter()
            .filter_map(|line| line.rsplit(' ').next()?.parse().ok())
            .collect();
        assert_eq!((bars.first(), bars.last(), bars.iter().sum()), (Some(&200), Some(&200), 400), "{text}");
        assert!(!text.contains("launches:"), "one launch has no line of its own");
    }

    #[test]
    fn charts_are_as_wide_as_the_screen_and_plain_where_needed() {
        let launches: Vec<Vec<u64>> =
            (0..7).map(|launch| (0..90).map(|i| 1000 + launch * 10 + i % 7).collect()).collect();
        for columns in [60, 80, 100] {
            for characters in [Characters::Unicode, Characters::Ascii] {
                let text = drawn(&launches, columns, characters);
                let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
                assert!(widest <= columns && widest + 12 > columns, "{widest} of {columns}\n{text}");
                assert!(characters == Characters::Unicode || text.is_ascii(), "{text}");
                assert!(text.contains("\n  all ") && text.contains("\n    7 "), "{text}");
            }
        }
    }
}
