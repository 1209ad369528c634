//! `ombx report`: writes result files as one HTML page.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use clap::Args;
use ombx_compare::{
    Comparison, Settings, SideResults,
    history::{History, Selection},
};
use ombx_estimate::{
    launches::Cases,
    number::{RateUnit, TimeUnit, Units},
    samples::SampleStore,
};
use ombx_host::environment::timestamp;
use ombx_launch::{
    note_line,
    output::target,
    result_file::{FileRecords, KnownRuns, Sorter, found_records, records, without_times},
    stderr,
};
use ombx_links::verdict::{SweepCollector, SweptFile};
use ombx_record::{
    error::{Error, Result},
    event::Event,
    file::RunWithRows,
};
use ombx_report::{MAX_BENCHMARKS, Report, Samples, Source, Timeline, page};

use super::{
    compare::{Names, read_names},
    history,
};
use crate::arguments::output::{UNITS, chosen_units, some_of};

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Result files, or one directory of dated results: its newest results, and its cases over time
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Result file to compare with FILES; may be repeated
    #[arg(long, value_name = "FILE")]
    against: Vec<PathBuf>,
    /// Names of FILES and of --against in titles and legends, for example: old,new
    #[arg(long, value_name = "A,B", value_parser = read_names, requires = "against")]
    names: Option<Names>,
    /// Units of times and of bandwidths, such as ns,Gbit/s [default: us,MB/s]
    #[arg(long, value_parser = some_of(&UNITS), value_name = "UNIT", value_delimiter = ',')]
    unit: Vec<Units>,
    /// New HTML file; - for standard output
    #[arg(short, long = "output", value_name = "FILE", required = true)]
    out: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
}

pub(crate) fn report(args: &ReportArgs) -> Result<u8> {
    let out = args.out.as_path();
    let units = chosen_units(&args.unit)?;
    let directory = directory(args, units)?;
    let dated = directory.map(|directory| Dated::read(directory, out)).transpose()?;
    let inputs = dated.as_ref().map_or(&args.files, |dated| &dated.newest);
    let others = inputs.iter().chain(&args.against);
    target::check(out, "-o", others.map(|file| (target::READ, file.as_path())))?;
    if !args.force {
        target::check_new(out)?;
    }
    let store = SampleStore::at_most(MAX_SAMPLES).of_first_benchmarks(MAX_BENCHMARKS);
    let open = if dated.is_some() { found_records } else { records };
    let compare =
        if args.against.is_empty() { |_: &mut SideResults, _: &Event<'_>| {} } else { SideResults::event };
    let (mut files, base, of_base) = read(inputs, open, compare, store)?;
    let (against, new, of_new) = read(&args.against, records, compare, of_base.beside())?;
    let benchmarks = of_base.benchmarks().chain(of_new.benchmarks()).collect::<BTreeSet<_>>().len();
    let [base_label, new_label] = args.names.clone().map_or([None, None], |names| names.map(Some));
    let (base, new) = (base.labelled(base_label), new.labelled(new_label));
    let comparison =
        (!args.against.is_empty()).then(|| Comparison::new(&base, &new, Settings::default()).in_units(units));
    let against = match &comparison {
        None => against,
        Some(Comparison { base, new, .. }) => {
            files = named(files, &base.label);
            named(against, &new.label)
        }
    };
    files.extend(against);
    let sources = files.iter().map(|(name, file)| Source { name, file }).collect::<Vec<_>>();
    let names = comparison.as_ref().map_or([""; 2], |c| [c.base.label.as_str(), c.new.label.as_str()]);
    let [of_base, of_new] = [of_base, of_new].map(SampleStore::into_cases);
    let sides = names.into_iter().zip([&of_base, &of_new]);
    let samples: Vec<Samples<'_>> =
        sides.map(|(label, cases)| Samples { label, cases }).filter(|side| !side.cases.is_empty()).collect();
    let history = dated.as_ref().map(|dated| Timeline { name: &dated.name, history: &dated.history });
    let text = page(&Report {
        sources: &sources,
        samples: &samples,
        benchmarks,
        units,
        comparison: comparison.as_ref(),
        history,
    });
    history::write_page(out, &text)?;
    Ok(0)
}

/// Returns the directory of dated results, if the command names one.
fn directory(args: &ReportArgs, units: Units) -> Result<Option<&Path>> {
    let Some(found) = args.files.iter().chain(&args.against).find(|path| path.is_dir()) else {
        return Ok(None);
    };
    if units.of_times() != TimeUnit::default() || units.of_rates() != RateUnit::default() {
        return Err(Error::usage("--unit: the history of a directory is in us and MB/s: give result files"));
    }
    if args.files.len() > 1 || !args.against.is_empty() {
        return Err(Error::usage(format!(
            "{} is a directory, of which a page shows nothing else: give it alone, or give result files",
            found.display()
        )));
    }
    Ok(Some(found))
}

/// Maximum number of files of a directory whose rows are on its page.
const MOST_FILES: usize = 32;

/// Contents of a directory.
struct Dated {
    name: String,
    /// Files with the newest result of each benchmark on the same hosts.
    newest: Vec<PathBuf>,
    history: History,
}

impl Dated {
    fn read(directory: &Path, out: &Path) -> Result<Dated> {
        let store = history::read(directory)?;
        history::check_page(out, "-o", directory, &store)?;
        history::say_large_sweeps(directory, &store);
        let (newest, more) = history::newest_files(directory, &store, MOST_FILES);
        let name = directory.display().to_string();
        if more > 0 {
            note_line!(
                "ombx: the page has the rows of the {MOST_FILES} newest files of {}, and {more} files in \
                 its history only",
                stderr::printable(&name)
            );
        }
        let history = History::new(
            store.results,
            Selection { now: Some(&timestamp()), ..Selection::default() },
            |_| true,
        );
        Ok(Dated { name, newest, history })
    }
}

/// Files with their names.
type Files = Vec<(String, SweptFile)>;

/// Names the files of a side by its label, and by their own names if there are several.
fn named(files: Files, label: &str) -> Files {
    let several = files.len() > 1;
    let name = |name: String| if several { format!("{label}: {name}") } else { label.to_owned() };
    files.into_iter().map(|(own, file)| (name(own), file)).collect()
}

/// Maximum number of samples of a launch that the figures of a page are drawn from.
const MAX_SAMPLES: usize = 4096;

/// Reads the files of one side record by record. The rows of a page are those over all launches of a setup, whichever file they are in. Of raw samples,
/// only those that figures need are kept, in `samples`.
fn read(
    paths: &[PathBuf],
    open: fn(&Path) -> Result<FileRecords>,
    compare: fn(&mut SideResults, &Event<'_>),
    mut samples: SampleStore,
) -> Result<(Files, SideResults, SampleStore)> {
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let (mut files, mut results) = (Vec::new(), SideResults::named(names.join(" ")));
    let (mut cases, mut known) = (Cases::default(), KnownRuns::default());
    for (path, name) in paths.iter().zip(names) {
        let (mut sweeps, mut sorter) = (SweepCollector::default(), Sorter::default());
        let before = cases.groups().len();
        let mut pass = |event: Event<'static>, is_sweep: bool| {
            if is_sweep {
                sweeps.event(without_times(event));
            } else {
                cases.event(&event);
                samples.event(&event);
            }
            Ok(())
        };
        let cut_off = known.each(open(path)?, path, |record| {
            compare(&mut results, &record);
            sorter.take(record, &mut pass)
        })?;
        sorter.end(pass)?;
        results.end();
        files.push((name, before..cases.groups().len(), SweptFile { cut_off, runs: sweeps.end() }));
    }
    let combined = files.into_iter().filter_map(|(name, groups, mut file)| {
        let setups = &cases.groups()[groups];
        file.runs.splice(0..0, setups.iter().map(|group| RunWithRows::from(group).into()));
        // The launches of a file without a setup of its own count in an earlier file.
        (!file.runs.is_empty() || file.cut_off).then_some((name, file))
    });
    Ok((combined.collect(), results, samples))
}
