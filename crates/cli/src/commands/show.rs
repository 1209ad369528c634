//! `ombx show`: prints result files.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use clap::Args;
use ombx_core::{error::Result, result::Tally};
use ombx_results::{
    file::{RunOutcome, RunWithRows},
    render::{Overhead, Renderer},
};

use crate::{
    arguments::output::{Color, Format},
    output::{
        renderers::{self, Notes},
        stdout::is_closed,
    },
    result_file,
};
use ombx_results::verdict;

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Result files
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Format of the printed rows
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Show notes too, the marks that do not keep a row from being published
    #[arg(short, long)]
    verbose: bool,
    /// Draw a chart below each table
    #[arg(long)]
    plot: bool,
    /// Use of colours
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    color: Color,
}

pub(crate) fn show(args: &ShowArgs) -> Result<u8> {
    let plot = renderers::plot_columns(args.format, args.plot)?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    // Formats for programs have one renderer for all files. Formats for people have one per table.
    let mut whole: Option<Option<(bool, Box<dyn Renderer>)>> =
        matches!(args.format, Format::Csv | Format::OpenMetrics).then_some(None);
    for path in &args.files {
        let file = result_file::read(path)?;
        let mut overhead = Overhead::default();
        if args.format == Format::Table {
            file.runs.iter().flat_map(|run| &run.rows).for_each(|row| overhead.add(row));
        }
        let written = match &mut whole {
            Some(kept) => file.runs.iter().try_for_each(|run| {
                let links = of_links(run) && args.format == Format::Csv;
                let (_, renderer) = match kept.take().filter(|(before, _)| *before == links) {
                    Some(same) => kept.insert(same),
                    None => kept.insert((links, renderer(args, links, 1, None))),
                };
                render(std::slice::from_ref(run), &mut **renderer, &mut out)
            }),
            None => file.runs.chunk_by(same_launches).try_for_each(|runs| {
                let mut renderer = renderer(args, runs.iter().all(of_links), runs.len(), plot);
                render(runs, &mut *renderer, &mut out)?;
                renderer.finish(&mut out)
            }),
        };
        if is_closed(written.and_then(|()| overhead.write(&mut out)).and_then(|()| out.flush()))? {
            return Ok(0);
        }
        if file.cut_off {
            stderr_line!(
                "ombx: {} was cut off in the middle of a record; all records before it are shown",
                path.display()
            );
        }
    }
    if let Some(Some((_, mut renderer))) = whole {
        is_closed(renderer.finish(&mut out).and_then(|()| out.flush()))?;
    }
    Ok(0)
}

/// Returns the renderer for runs that are shown together.
fn renderer(args: &ShowArgs, of_links: bool, launches: usize, plot: Option<usize>) -> Box<dyn Renderer> {
    match (of_links, launches) {
        (true, _) => renderers::links(args.format, args.color),
        (_, 2..) => renderers::launches(args.format, args.color),
        _ => renderers::rows(args.format, args.color, Notes::if_verbose(args.verbose), plot),
    }
}

/// Returns whether the second of two runs is the next launch of the same plan.
fn same_launches(first: &RunWithRows, second: &RunWithRows) -> bool {
    let number = |run: &RunWithRows| run.run.plan.get("launch").and_then(|n| n.parse::<u32>().ok());
    number(first).zip(number(second)).is_some_and(|(first, second)| first < second)
}

fn of_links(run: &RunWithRows) -> bool {
    !run.rows.is_empty() && run.rows.iter().all(|row| row.bench == verdict::BENCH)
}

fn render(runs: &[RunWithRows], renderer: &mut dyn Renderer, out: &mut dyn Write) -> io::Result<()> {
    for run in runs {
        renderer.run(out, &run.run)?;
        let mut tally = Tally::default();
        for row in &run.rows {
            tally.add(row);
            renderer.case(out, row)?;
        }
        let (outcome, tally) = run.end.unwrap_or((RunOutcome::Broken, tally));
        renderer.end(out, outcome, &tally)?;
    }
    Ok(())
}
