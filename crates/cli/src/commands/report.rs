//! `ombx report`: writes result files as one HTML page.

use std::{fs, path::PathBuf};

use clap::Args;
use ombx_core::error::{Error, Result};
use ombx_report::{Report, Samples, Source, page};
use ombx_results::{
    compare::{Comparison, Settings, SideResults},
    estimate::Cases,
    file::{ResultFile, RunWithRows},
    samples::{CaseSamples, SampleStore},
    verdict,
};

use super::compare::Names;
use crate::{output::target, result_file::KnownRuns};

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Result files
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Result file to compare with FILES; may be repeated
    #[arg(long, value_name = "FILE")]
    against: Vec<PathBuf>,
    /// Names of FILES and of --against in the comparison, for example: old,new
    #[arg(long, value_name = "A,B", value_parser = Names::parse, requires = "against")]
    names: Option<Names>,
    /// HTML file to write; an existing file is replaced
    #[arg(short, long, value_name = "FILE", required = true)]
    out: PathBuf,
}

pub(crate) fn report(args: &ReportArgs) -> Result<u8> {
    let out = args.out.as_path();
    let inputs = args.files.iter().chain(&args.against);
    target::check(out, "-o", inputs.map(|file| ("a result file that is read", file.as_path())))?;
    let Side { mut files, results: base, samples: of_base } = read(&args.files)?;
    let Side { files: against, results: new, samples: of_new } = read(&args.against)?;
    let [base_label, new_label] = Names::labels(args.names.as_ref());
    let (base, new) = (base.labelled(base_label), new.labelled(new_label));
    files.extend(against);
    let sources = files.iter().map(|(name, file)| Source { name, file }).collect::<Vec<_>>();
    let comparison = (!args.against.is_empty()).then(|| Comparison::of(&base, &new, Settings::default()));
    let names = comparison.as_ref().map_or([""; 2], |c| [c.base.label.as_str(), c.new.label.as_str()]);
    let sides = names.into_iter().zip([&of_base, &of_new]);
    let samples: Vec<Samples<'_>> =
        sides.map(|(label, cases)| Samples { label, cases }).filter(|side| !side.cases.is_empty()).collect();
    let text = page(&Report { sources: &sources, samples: &samples, comparison: comparison.as_ref() });
    let written = fs::write(out, text);
    written.map_err(|e| Error::storage(format!("cannot write the page to {}: {e}", out.display())))?;
    Ok(0)
}

/// Maximum number of samples of a launch that the figures of a page are drawn from.
const MAX_SAMPLES: usize = 4096;

/// What the files of one side contain.
struct Side {
    files: Vec<(String, ResultFile)>,
    results: SideResults,
    samples: Vec<CaseSamples>,
}

/// Reads files. The rows of a page are those over all launches of a setup, whichever file they are in. Of raw samples, only those
/// that figures need are kept when the next file is read.
fn read(paths: &[PathBuf]) -> Result<Side> {
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let (mut files, mut results) = (Vec::new(), SideResults::named(names.join(" ")));
    let (mut cases, mut known) = (Cases::default(), KnownRuns::default());
    let mut samples = SampleStore::at_most(MAX_SAMPLES);
    for (path, name) in paths.iter().zip(names) {
        let mut file = known.read(path)?;
        file.runs.iter().for_each(|run| results.run(run));
        let known = cases.groups().len();
        let (mut sweeps, launches): (Vec<_>, Vec<_>) = file.runs.drain(..).partition(verdict::is_sweep);
        let rows = sweeps.iter_mut().flat_map(|run| &mut run.rows);
        rows.flat_map(|row| row.samples.iter_mut().chain(&mut row.tail))
            .for_each(|samples| samples.elapsed_ns = Vec::new());
        launches.iter().for_each(|launch| cases.launch(launch));
        launches.iter().for_each(|launch| samples.launch(launch));
        file.runs = sweeps;
        files.push((name, known..cases.groups().len(), file));
    }
    let combined = files.into_iter().filter_map(|(name, groups, mut file)| {
        let setups = &cases.groups()[groups];
        file.runs.splice(0..0, setups.iter().map(RunWithRows::from));
        // The launches of a file without a setup of its own count in an earlier file.
        (!file.runs.is_empty() || file.cut_off).then_some((name, file))
    });
    Ok(Side { files: combined.collect(), results, samples: samples.into_cases() })
}
