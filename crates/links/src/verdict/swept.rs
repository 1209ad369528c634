//! Result files whose links in rounds are summed up: what verdicts, maps and pages need of them, in memory that does not grow with the number
//! of links.

use ombx_record::{
    event::{Event, Round},
    file::{Collector, ResultFile, RunWithRows},
    link,
};

use crate::verdict::LinkSweep;

/// A run whose rounds are summed up.
#[derive(Debug, Clone, PartialEq)]
pub struct SweptRun {
    /// The run without rounds.
    pub run: RunWithRows,
    /// The links in its rounds; `None` without any.
    pub links: Option<Box<LinkSweep>>,
}

/// Contents of a result file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SweptFile {
    /// Runs with their rows.
    pub runs: Vec<SweptRun>,
    /// Whether the file ends inside a record.
    pub cut_off: bool,
}

impl From<RunWithRows> for SweptRun {
    fn from(mut run: RunWithRows) -> SweptRun {
        let rounds = std::mem::take(&mut run.rounds);
        let mut links = None;
        rounds.iter().for_each(|round| add(&mut links, &run, round));
        SweptRun { run, links }
    }
}

impl From<ResultFile> for SweptFile {
    fn from(file: ResultFile) -> SweptFile {
        SweptFile { runs: file.runs.into_iter().map(SweptRun::from).collect(), cut_off: file.cut_off }
    }
}

/// Adds a round to the links of a run.
fn add(links: &mut Option<Box<LinkSweep>>, run: &RunWithRows, round: &Round) {
    links.get_or_insert_with(|| Box::new(LinkSweep::of_run(&run.run))).add_round(round);
}

impl SweptRun {
    /// Returns whether the run is a sweep over links.
    pub fn is_sweep(&self) -> bool {
        let of_links = self.run.rows.iter().all(|row| row.bench == link::BENCH);
        (self.links.is_some() && of_links) || self.run.is_sweep()
    }

    /// Returns the number of all rows.
    pub fn row_count(&self) -> usize {
        self.run.row_count() + self.links.as_ref().map_or(0, |links| links.row_count())
    }
}

/// Collects the records of a file, and sums up the links in rounds.
#[derive(Debug, Default)]
pub struct SweepCollector {
    collector: Collector,
    /// Links of each run.
    links: Vec<Option<Box<LinkSweep>>>,
}

impl SweepCollector {
    /// Adds the next event.
    pub fn event(&mut self, event: Event<'_>) {
        match (event, self.links.last_mut()) {
            (Event::Round(round), Some(links)) => {
                self.collector.last().into_iter().for_each(|run| add(links, run, &round));
            }
            (event, _) => {
                self.links.extend(matches!(event, Event::Run(_)).then_some(None));
                self.collector.event(event);
            }
        }
    }

    /// Returns the runs, as of a file that ends after a record.
    pub fn end(self) -> Vec<SweptRun> {
        let runs = self.collector.end().runs.into_iter().zip(self.links);
        runs.map(|(run, links)| SweptRun { run, links }).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ombx_record::{
        event::Rounds,
        link::{BENCH, key_of_link},
        result::{Check, Measurement, Metric, Place, Work},
        stats::Summary,
    };

    use crate::verdict::{Hosts, swept::*};

    fn row(from: u32, to: u32, round: u32, ns: f64) -> Measurement {
        let axes =
            [("pattern", "semidirectional".into()), ("from", from.to_string()), ("to", to.to_string())];
        let axes = axes.into_iter().chain([("round", round.to_string())]);
        let axes: BTreeMap<String, String> = axes.map(|(name, value)| (name.to_owned(), value)).collect();
        let key = key_of_link(&axes, Some(8), None);
        Measurement {
            axes,
            bytes: Some(8),
            work: Some(Work { bytes: 16, ops: 2, legs: 2 }),
            check: Check::Passed,
            summary: Summary::new(&[ns; 9]),
            ..Measurement::new(BENCH, key, Metric::Latency, 2)
        }
    }

    #[test]
    fn a_sweep_of_rounds_is_that_of_its_rows() {
        let mut run = ombx_testkit::golden().run;
        let place = run.places[0].clone();
        run.places = (0..6).map(|host| Place { host: format!("h{host}"), ..place.clone() }).collect();
        let (mut of_rows, mut of_rounds) = (LinkSweep::of_run(&run), LinkSweep::of_run(&run));
        let mut rounds = Rounds::default();
        for round in 0..5 {
            for from in 0..6_u32 {
                let to = (from + 1 + round) % 6;
                let ns = if [from, to].contains(&2) { 9000.0 } else { 5000.0 + f64::from(from + to) };
                let row = row(from, to, round, ns);
                of_rows.add(&row);
                rounds.add(&row).0.iter().for_each(|round| of_rounds.add_round(round));
            }
        }
        rounds.end().iter().for_each(|round| of_rounds.add_round(round));
        assert_eq!(of_rounds.averaged(), of_rows.averaged());
        assert_eq!(of_rounds.verdict(), of_rows.verdict());
        assert_eq!(of_rounds.steps(8), of_rows.steps(8));
        assert_eq!(Hosts::of_run(&run).count(), 6);
    }
}
