//! The renderer for each format.

use std::env;

use ombx_core::benchmark::{Osu, Registry};
use ombx_draw::terminal::Characters;
use ombx_drop_in::osu::{OsuColumns, OsuTable};
use ombx_estimate::number::{Units, figure};
use ombx_record::{
    error::{Error, Result},
    result::Interval,
    unit::Bytes,
};
use ombx_show::{
    Csv, Document, Links, LinksCsv, LinksForm, LinksSummary, Markup, OpenMetrics, Paint, Renderer, Shown,
    Table,
};

use crate::output::{
    destination::{Color, Format},
    junit, terminal,
};

/// Width of a screen if neither `COLUMNS` nor a terminal gives one.
pub(super) const COLUMNS: usize = 80;

/// Returns the width of charts in columns, or `None` without charts. Only tables have charts.
pub fn plot_columns(format: Format, plot: bool) -> Result<Option<usize>> {
    if plot && format != Format::Table {
        return Err(Error::usage("--plot needs --format table: leave out one of them"));
    }
    Ok(plot.then(columns))
}

/// Returns the width of charts in columns: `COLUMNS`, the width of the terminal, or 80.
pub fn columns() -> usize {
    terminal::columns().unwrap_or(COLUMNS)
}

/// Returns the characters of the locale. POSIX takes the first of three variables that is set and not empty.
pub fn characters() -> Characters {
    let set = |name: &&str| env::var(name).ok().filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(set).unwrap_or_default().to_ascii_lowercase();
    if locale.contains("utf-8") || locale.contains("utf8") { Characters::Unicode } else { Characters::Ascii }
}

/// Whether tables show notes, the marks that do not keep a row from being published.
#[derive(Debug, Clone, Copy)]
pub enum Notes {
    /// They are left out.
    Hidden,
    /// They are printed.
    Shown,
}

impl Notes {
    /// Returns what `--verbose` asks for.
    pub fn if_verbose(verbose: bool) -> Notes {
        if verbose { Notes::Shown } else { Notes::Hidden }
    }
}

/// Returns the renderer for the rows of benchmarks; `None` for lines of the result file.
pub fn rows(
    format: Format,
    color: Color,
    notes: Notes,
    plot: Option<usize>,
    shown: &Shown,
) -> Option<Box<dyn Renderer>> {
    Some(match format {
        Format::Table => {
            let table = match notes {
                Notes::Hidden => Table::painted(paint(color)),
                Notes::Shown => Table::painted(paint(color)).with_notes(),
            };
            let table = table.fitting(terminal::columns()).showing(shown.clone());
            Box::new(match plot {
                Some(columns) => table.plotted(columns),
                None => table,
            })
        }
        Format::Markdown => Box::new(Document::new(Markup::Markdown).showing(shown.clone())),
        Format::Latex => Box::new(Document::new(Markup::Latex).showing(shown.clone())),
        Format::Osu => Box::new(OsuTable::new(osu_program)),
        Format::Csv => Box::new(Csv::default().showing(shown.clone())),
        // Only links and comparisons have the last three.
        Format::Jsonl | Format::Json | Format::Nagios | Format::Junit => return None,
        Format::OpenMetrics => Box::new(OpenMetrics::default()),
    })
}

/// Returns the renderer for `ombx osu`.
pub(crate) fn osu(columns: OsuColumns) -> Box<dyn Renderer> {
    Box::new(OsuTable::with(osu_program, columns))
}

/// Returns the renderer for a run of `ombx links`; `None` for lines of the result file.
pub fn links(format: Format, color: Color, notes: Notes) -> Option<Box<dyn Renderer>> {
    match format {
        Format::Table => {
            let links = Links::default().fitting(terminal::columns()).on_screen(terminal::rows());
            Some(Box::new(match notes {
                Notes::Hidden => links,
                Notes::Shown => links.with_advice(),
            }))
        }
        Format::Csv => Some(Box::new(LinksCsv::default())),
        Format::OpenMetrics => Some(Box::new(OpenMetrics::default())),
        Format::Json => Some(Box::new(LinksSummary::new(LinksForm::Json))),
        Format::Nagios => Some(Box::new(LinksSummary::new(LinksForm::Monitoring))),
        Format::Junit => Some(Box::new(LinksSummary::new(LinksForm::Text(junit::links)))),
        Format::Osu | Format::Markdown | Format::Latex | Format::Jsonl => {
            rows(format, color, Notes::Hidden, None, &Shown::default())
        }
    }
}

/// Returns whether standard output is coloured.
pub fn paint(color: Color) -> Paint {
    let coloured = match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => terminal::stdout_is_coloured(),
    };
    if coloured { Paint::Coloured } else { Paint::Plain }
}

/// Returns the first OSU program of a benchmark.
fn osu_program(bench: &str) -> Option<Osu> {
    let registry = Registry::load().ok()?;
    registry.all().iter().find(|b| b.name == bench).and_then(|b| b.described.osu[0])
}

/// Returns the line of an interval: `sockets.bw 1M   0.00 ..  1.00 s  5321 MB/s`.
pub(crate) fn line(interval: &Interval, units: Units) -> String {
    let Interval { bench, bytes, time, metric, median, connections } = interval;
    let size = bytes.map_or(String::new(), |bytes| format!(" {}", Bytes(bytes)));
    let [from, to] = time.map(|time| time.as_secs_f64());
    let value = match median {
        Some(value) => format!("{} {}", figure(units.convert(*metric, *value)), units.name(*metric)),
        None => "n/a".into(),
    };
    let counted: String = connections
        .iter()
        .flat_map(|counted| counted.named())
        .map(|(name, number)| format!("  {name} {number}"))
        .collect();
    format!("{bench}{size}  {from:6.2} .. {to:6.2} s  {value}{counted}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ombx_estimate::number::RateUnit;
    use ombx_record::result::{ConnectionCounters, Metric};

    use crate::output::renderers::*;

    #[test]
    fn a_line_has_the_time_and_the_figure_in_the_chosen_unit() {
        let interval = Interval {
            bench: "sockets.bw".into(),
            bytes: Some(1 << 20),
            time: [Duration::from_secs(1), Duration::from_millis(2010)],
            metric: Metric::Bandwidth,
            median: Some(250.0),
            connections: None,
        };
        let units = Units { rate: Some(RateUnit::GigaBits), ..Units::default() };
        assert!(
            line(&interval, units).ends_with("1.00 ..   2.01 s  2.000 Gbit/s"),
            "{}",
            line(&interval, units)
        );
        let (retransmits, cwnd_bytes, rtt_us, least_rtt_us) = (12, 65483, 850, 31);
        let connections = Some(ConnectionCounters { retransmits, cwnd_bytes, rtt_us, least_rtt_us });
        let counted = line(&Interval { connections, ..interval.clone() }, units);
        let end = " s  2.000 Gbit/s  retransmits 12  cwnd_bytes 65483  rtt_us 850  least_rtt_us 31";
        assert!(counted.ends_with(end), "{counted}");
        let none = Interval { median: None, bytes: None, ..interval };
        assert_eq!(line(&none, Units::default()), "sockets.bw    1.00 ..   2.01 s  n/a");
    }
}
