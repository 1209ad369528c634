//! `ombx report`: result files as one HTML page.

use std::{
    fs,
    path::{Path, PathBuf},
};

use ombx_core::error::{Error, Result};
use ombx_report::{Report, Source, page};
use ombx_results::{
    compare::{Comparison, SideResults},
    file::ResultFile,
};

use crate::{args::ReportArgs, show};

pub(crate) fn report(args: &ReportArgs) -> Result<u8> {
    let out = args.out.as_path();
    if let Some(input) = args.files.iter().chain(&args.against).find(|file| is_same(file, out)) {
        let input = input.display();
        return Err(Error::usage(format!(
            "{input} is a result file to read: the page needs another name after -o"
        )));
    }
    let (mut files, base) = read(&args.files)?;
    let (against, new) = read(&args.against)?;
    files.extend(against);
    let sources = files.iter().map(|(name, file)| Source { name, file }).collect::<Vec<_>>();
    let comparison = (!args.against.is_empty()).then(|| Comparison::of(&base, &new));
    let text = page(&Report { sources: &sources, comparison: comparison.as_ref() });
    let written = fs::write(out, text);
    written.map_err(|e| Error::storage(format!("the page cannot be written to {}: {e}", out.display())))?;
    Ok(0)
}

/// Files with their names, and what of them is compared. Raw samples are dropped before the next file is read: a page has none.
fn read(paths: &[PathBuf]) -> Result<(Vec<(String, ResultFile)>, SideResults)> {
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let (mut files, mut side) = (Vec::new(), SideResults::named(names.join(" ")));
    for (path, name) in paths.iter().zip(names) {
        let mut file = show::read(path)?;
        file.runs.iter().for_each(|run| side.run(run));
        let rows = file.runs.iter_mut().flat_map(|run| &mut run.rows);
        rows.flat_map(|row| &mut row.samples).for_each(|samples| samples.elapsed_ns = Vec::new());
        files.push((name, file));
    }
    Ok((files, side))
}

/// Whether two paths lead to one file.
fn is_same(one: &Path, other: &Path) -> bool {
    one == other || fs::canonicalize(one).ok().zip(fs::canonicalize(other).ok()).is_some_and(|(a, b)| a == b)
}
