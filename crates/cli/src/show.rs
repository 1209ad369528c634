//! `ombx show`: prints result files again.

use std::{
    fs::File,
    io::{self, BufReader, Write},
    path::Path,
};

use ombx_core::{
    error::{Error, Result},
    result::Tally,
};
use ombx_results::{
    file::{self, RunOutcome, RunWithRows},
    render::{Overhead, Renderer},
};

use crate::{
    args::{Format, ShowArgs},
    output::{self, gone},
};
use ombx_results::verdict;

pub(crate) fn show(args: &ShowArgs) -> Result<u8> {
    let plot = output::plot_columns(args.format, args.plot)?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    // For programs, all files are one; for people, what belongs together has a table.
    let mut whole: Option<Option<(bool, Box<dyn Renderer>)>> =
        matches!(args.format, Format::Csv | Format::OpenMetrics).then_some(None);
    for path in &args.files {
        let file = read(path)?;
        let mut overhead = Overhead::default();
        if args.format == Format::Table {
            file.runs.iter().flat_map(|run| &run.rows).for_each(|row| overhead.add(row));
        }
        let written = match &mut whole {
            Some(kept) => file.runs.iter().try_for_each(|run| {
                let links = of_links(run) && args.format == Format::Csv;
                let (_, renderer) = match kept.take().filter(|(before, _)| *before == links) {
                    Some(same) => kept.insert(same),
                    None => kept.insert((links, chosen(args, links, Launched::Once, None))),
                };
                render(std::slice::from_ref(run), &mut **renderer, &mut out)
            }),
            None => file.runs.chunk_by(same_launches).try_for_each(|runs| {
                let launched = if runs.len() > 1 { Launched::Often } else { Launched::Once };
                let mut renderer = chosen(args, runs.iter().all(of_links), launched, plot);
                render(runs, &mut *renderer, &mut out)?;
                renderer.finish(&mut out)
            }),
        };
        if gone(written.and_then(|()| overhead.write(&mut out)).and_then(|()| out.flush()))? {
            return Ok(0);
        }
        if file.cut_off {
            tell!(
                "ombx: {} was cut off in the middle of a record; everything before it is shown",
                path.display()
            );
        }
    }
    if let Some(Some((_, mut renderer))) = whole {
        gone(renderer.finish(&mut out).and_then(|()| out.flush()))?;
    }
    Ok(0)
}

/// Whether the launches of one plan were several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Launched {
    Once,
    Often,
}

fn chosen(args: &ShowArgs, of_links: bool, launched: Launched, plot: Option<usize>) -> Box<dyn Renderer> {
    match (of_links, launched) {
        (true, _) => output::links_renderer(args.format, args.color),
        (_, Launched::Often) => output::launches_renderer(args.format, args.color),
        _ => output::renderer(args.format, args.color, plot),
    }
}

/// Reads a result file.
pub(crate) fn read(path: &Path) -> Result<file::ResultFile> {
    let told = |e: &dyn std::fmt::Display| Error::storage(format!("{}: {e}", path.display()));
    let file = File::open(path).map_err(|e| told(&e))?;
    file::read(BufReader::new(file)).map_err(|e| told(&e))
}

/// Whether the second of two runs is the next launch of the same plan.
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
