//! The renderer for each format.

use std::sync::Arc;

use ombx_core::{
    benchmark::{Osu, Registry},
    error::{Error, Result},
};
use ombx_results::{
    render::{
        Csv, Links, LinksCsv, LinksForm, LinksSummary, OpenMetrics, OsuColumns, OsuTable, Paint, Renderer,
        Table,
    },
    verdict::Reference,
};

use super::terminal;
use crate::arguments::output::{Color, Format};

/// Width of charts if neither `COLUMNS` nor a terminal gives one.
const COLUMNS: usize = 80;

/// Returns the width of charts in columns, or `None` without charts. Only tables have charts.
pub(crate) fn plot_columns(format: Format, plot: bool) -> Result<Option<usize>> {
    if plot && format != Format::Table {
        return Err(Error::usage("--plot needs --format table: leave out one of them"));
    }
    Ok(plot.then(|| terminal::columns().unwrap_or(COLUMNS)))
}

/// Whether tables show notes, the marks that do not keep a row from being published.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Notes {
    Hidden,
    Shown,
}

impl Notes {
    /// Returns what `--verbose` asks for.
    pub(crate) fn if_verbose(verbose: bool) -> Notes {
        if verbose { Notes::Shown } else { Notes::Hidden }
    }
}

/// Returns the renderer for the rows of benchmarks; `None` for lines of the result file.
pub(crate) fn rows(
    format: Format,
    color: Color,
    notes: Notes,
    plot: Option<usize>,
) -> Option<Box<dyn Renderer>> {
    Some(match format {
        Format::Table => {
            let table = match notes {
                Notes::Hidden => Table::painted(paint(color)),
                Notes::Shown => Table::painted(paint(color)).with_notes(),
            };
            let table = table.fitting(terminal::columns());
            Box::new(match plot {
                Some(columns) => table.plotted(columns),
                None => table,
            })
        }
        Format::Osu => Box::new(OsuTable::new(osu_program)),
        Format::Csv => Box::new(Csv::default()),
        // Only links have the last two.
        Format::Jsonl | Format::Json | Format::Nagios => return None,
        Format::OpenMetrics => Box::new(OpenMetrics::default()),
    })
}

/// Returns the renderer for `ombx osu`.
pub(crate) fn osu(columns: OsuColumns) -> Box<dyn Renderer> {
    Box::new(OsuTable::with(osu_program, columns))
}

/// Returns the renderer for a run of `ombx links`, compared with an earlier result; `None` for lines of the result file.
pub(crate) fn links(
    format: Format,
    color: Color,
    notes: Notes,
    reference: Option<Arc<Reference>>,
) -> Option<Box<dyn Renderer>> {
    match format {
        Format::Table => {
            let links = Links::against(reference);
            Some(Box::new(match notes {
                Notes::Hidden => links,
                Notes::Shown => links.with_advice(),
            }))
        }
        Format::Csv => Some(Box::new(LinksCsv::default())),
        Format::Json => Some(Box::new(LinksSummary::new(LinksForm::Json, reference))),
        Format::Nagios => Some(Box::new(LinksSummary::new(LinksForm::Monitoring, reference))),
        Format::Osu | Format::Jsonl | Format::OpenMetrics => rows(format, color, Notes::Hidden, None),
    }
}

/// Returns whether standard output is coloured.
pub(crate) fn paint(color: Color) -> Paint {
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
    registry.all().iter().find(|b| b.name == bench).and_then(|b| b.osu[0])
}
