//! `ombx show`: prints result files again.

use std::{
    fs::File,
    io::{self, BufReader, Write},
    path::Path,
};

use ombx_core::{
    error::{Error, Result},
    links,
    result::Tally,
    wire::{self, Outcome, RunWithRows},
};

use crate::{args::ShowArgs, output};

pub(crate) fn show(args: &ShowArgs) -> Result<u8> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    for path in &args.files {
        let file = read(path)?;
        let written =
            file.runs.iter().try_for_each(|run| render(run, args, &mut out)).and_then(|()| out.flush());
        match written {
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => return Ok(0),
            Err(e) => return Err(Error::storage(format!("standard output: {e}"))),
            Ok(()) => {}
        }
        if file.cut_off {
            eprintln!(
                "ombx: {} was cut off in the middle of a record; everything before it is shown",
                path.display()
            );
        }
    }
    Ok(0)
}

fn read(path: &Path) -> Result<wire::File> {
    let told = |e: &dyn std::fmt::Display| Error::storage(format!("{}: {e}", path.display()));
    let file = File::open(path).map_err(|e| told(&e))?;
    wire::read(BufReader::new(file)).map_err(|e| told(&e))
}

fn render(run: &RunWithRows, args: &ShowArgs, out: &mut dyn Write) -> io::Result<()> {
    let of_links = !run.rows.is_empty() && run.rows.iter().all(|row| row.bench == links::BENCH);
    let mut renderer = if of_links {
        output::links_renderer(args.format, args.color)
    } else {
        output::renderer(args.format, args.color)
    };
    renderer.run(out, &run.run)?;
    let mut tally = Tally::default();
    for row in &run.rows {
        tally.add(row);
        renderer.case(out, row)?;
    }
    let (outcome, tally) = run.end.unwrap_or((Outcome::Broken, tally));
    renderer.end(out, outcome, &tally)
}
