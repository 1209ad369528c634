//! Launches of both sides with one MPI, until every row is resolved.

use std::{collections::BTreeMap, fs, time::Duration};

use ombx_host::since::Since;
use ombx_record::stats::median;
use ombx_toolchain::{Failure, Result};

use crate::{
    options::Options,
    paired::{Line, Paired},
    ratio::{RESOLVED, Ratio, Verdict},
};

/// One case in all launches.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) line: Line,
    /// Ratio of each launch.
    ratios: Vec<f64>,
    /// Ratios of the launches with each kind of window.
    by_window: BTreeMap<String, Vec<f64>>,
    /// Nanoseconds of an iteration of each launch: ombx and C.
    times: Vec<(f64, f64)>,
}

impl Row {
    pub(crate) fn ratio(&self) -> Option<Ratio> {
        Ratio::from_ratios(&self.ratios)
    }

    pub(crate) fn verdict(&self) -> Verdict {
        let goal = self.line.goal;
        let slow = |ratios: &Vec<f64>| {
            ratios.len() >= OF_WINDOW && ratios.iter().all(|ratio| *ratio > goal + RESOLVED)
        };
        match self.ratio() {
            _ if self.by_window.values().any(slow) => Verdict::Missed,
            Some(ratio) => ratio.verdict(goal),
            None => Verdict::Unresolved,
        }
    }

    /// Returns why the row does not run with this MPI, if no launch measured it.
    pub(crate) fn skipped(&self) -> Option<&str> {
        self.line.skipped.as_deref().filter(|_| self.ratios.is_empty())
    }

    /// Returns the smallest and the largest median of a kind of window.
    pub(crate) fn of_windows(&self) -> Option<[f64; 2]> {
        let medians = || self.by_window.values().filter_map(|ratios| median(ratios));
        let least = medians().min_by(f64::total_cmp)?;
        Some([least, medians().max_by(f64::total_cmp)?])
    }

    /// Returns the nanoseconds of an iteration of ombx.
    pub(crate) fn ombx_ns(&self) -> Option<f64> {
        median(&self.times.iter().map(|(ombx, _)| *ombx).collect::<Vec<_>>())
    }
}

/// Launches with one kind of window that miss the goal if all are above it by more than the resolution.
const OF_WINDOW: usize = 3;

/// All rows with one MPI.
pub(crate) struct Comparison<'p> {
    pub(crate) paired: &'p Paired,
    pub(crate) library: String,
    /// In the order of the program.
    pub(crate) rows: Vec<Row>,
    /// Index of a row by its key.
    at: BTreeMap<String, usize>,
    launches: u64,
}

/// Times of a row in launches for those that are not resolved: as many times as long.
const LONGER: u64 = 2;

impl<'p> Comparison<'p> {
    pub(crate) fn new(paired: &'p Paired) -> Self {
        Self { paired, library: String::new(), rows: Vec::new(), at: BTreeMap::new(), launches: 0 }
    }

    /// Runs a launch of all rows, or of those that are not resolved.
    fn launch(&mut self, options: &Options, only: bool) -> Result<()> {
        let seed = options.seed + 1000 * self.launches;
        let time = options.row_time * if only { LONGER } else { 1 };
        let mut words: Vec<String> = ["--milliseconds".into(), time.to_string()].into();
        words.extend(["--launch".into(), self.launches.to_string()]);
        words.extend(["--seed".into(), seed.to_string(), "--row".into(), options.row.clone()]);
        words.extend(options.slowed.then(|| "--slowed".to_owned()));
        if only {
            let path = self.paired.directory.join("unresolved");
            let names: String = self.unresolved().map(|row| row.line.key() + "\n").collect();
            fs::write(&path, names).map_err(Failure::file(&path))?;
            words.extend(["--only".into(), path.display().to_string()]);
        }
        // Benchmarks with threads have launches of their own, because MPI_THREAD_MULTIPLE slows down the others.
        for threads in [None, Some("--threads".to_owned())] {
            let words: Vec<String> = words.iter().cloned().chain(threads).collect();
            let launched = self.paired.launch(&words)?;
            self.library = launched.library;
            launched.lines.into_iter().for_each(|line| self.add(line));
        }
        self.launches += 1;
        Ok(())
    }

    fn add(&mut self, line: Line) {
        let at = *self.at.entry(line.key()).or_insert(self.rows.len());
        if at == self.rows.len() {
            let line = line.clone();
            self.rows.push(Row { line, ratios: Vec::new(), by_window: BTreeMap::new(), times: Vec::new() });
        }
        if let Some(ratio) = line.ratio {
            let row = &mut self.rows[at];
            row.ratios.push(ratio);
            row.times.push((line.ombx_ns, line.c_ns));
            if let Some(window) = line.window {
                row.by_window.entry(window).or_default().push(ratio);
            }
        }
    }

    pub(crate) fn unresolved(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.skipped().is_none() && row.verdict() == Verdict::Unresolved)
    }

    /// Returns how many rows miss their goal or are not resolved.
    pub(crate) fn failed(&self) -> usize {
        let failed = |row: &&Row| {
            row.skipped().is_none() && [Verdict::Missed, Verdict::Unresolved].contains(&row.verdict())
        };
        self.rows.iter().filter(failed).count()
    }
}

/// Runs all launches of all MPIs, alternately, and then those of rows that are not resolved.
pub(crate) fn run(comparisons: &mut [Comparison<'_>], options: &Options) -> Result<()> {
    let start = Since::now();
    for launch in 1..=options.launches {
        println!("   launch {launch}, {} s", start.elapsed().as_secs());
        comparisons.iter_mut().try_for_each(|one| one.launch(options, false))?;
    }
    if comparisons.iter().any(|one| one.rows.is_empty()) {
        return Err(Failure::Usage(format!(
            "no row contains {:?}; rows have the names of benchmarks, for example p2p.latency",
            options.row
        )));
    }
    let mut last = Duration::ZERO;
    while comparisons.iter().any(|one| one.unresolved().next().is_some())
        && start.elapsed() + last < options.limit()
    {
        let open: usize = comparisons.iter().map(|one| one.unresolved().count()).sum();
        println!("   {open} rows are not resolved, {} s", start.elapsed().as_secs());
        let before = start.elapsed();
        for one in comparisons.iter_mut().filter(|one| one.unresolved().next().is_some()) {
            one.launch(options, true)?;
        }
        last = start.elapsed() - before;
    }
    println!("   {} s", start.elapsed().as_secs());
    Ok(())
}
