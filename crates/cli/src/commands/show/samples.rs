//! `ombx show --samples`: charts of raw samples.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use ombx_core::error::{Error, Result};
use ombx_results::{plot::samples, samples::SampleStore, verdict};

use crate::{
    arguments::rows::RowArgs,
    output::{renderers, stdout::is_closed},
    result_file::KnownRuns,
};

/// Draws the chosen cases of all files. Files of the same setup are launches of one result.
pub(super) fn show(files: &[PathBuf], rows: &RowArgs) -> Result<u8> {
    let (mut store, mut known) = (SampleStore::default(), KnownRuns::default());
    for path in files {
        let file = known.read(path)?;
        file.runs.iter().filter(|run| !verdict::is_sweep(run)).for_each(|launch| store.launch(launch));
    }
    let cases = rows.choose(store.into_cases(), "the files")?;
    if cases.is_empty() {
        return Err(Error::usage(
            "--samples draws rows of benchmarks, but there are none; ombx plot draws links",
        ));
    }
    let mut out = io::BufWriter::new(io::stdout().lock());
    let (columns, characters) = (renderers::columns(), renderers::characters());
    let drawn = cases.iter().try_for_each(|case| samples::draw(&mut out, case, columns, characters));
    is_closed(drawn.and_then(|()| out.flush()))?;
    Ok(0)
}
