//! Fuzzing entry points of the code that reads result files. The programs in `fuzz/` and the tests below call them.

use std::{borrow::Cow, io::Write};

use ombx_compare::{
    Comparison, Settings, SideResults,
    history::{self, DatedResult, History, Selection},
};
use ombx_draw::terminal::Characters;
use ombx_estimate::launches::Cases;
use ombx_links::verdict::{Hosts, MOST_ROWS, TimesBySize};
use ombx_record::{
    event::Event,
    file::{self, RunWithRows},
    result::{RunOutcome, Tally},
};

use crate::{Broadcasts, Csv, Links, LinksCsv, OpenMetrics, Overhead, Paint, Renderer, Table};

/// Reads arbitrary bytes as a result file. A valid file must survive writing, all output formats and a comparison.
pub fn results(bytes: &[u8]) {
    over_time(bytes);
    let Ok(file) = file::read(bytes) else { return };
    let mut again = Vec::new();
    for run in &file.runs {
        for event in run.events() {
            file::write(&mut again, &event).unwrap();
        }
    }
    assert_eq!(file::read(again.as_slice()).unwrap().runs, file.runs);

    let for_people: [&mut dyn Renderer; 3] = [
        &mut Table::painted(Paint::Plain),
        &mut Table::painted(Paint::Plain).plotted(60),
        &mut Links::default(),
    ];
    for renderer in for_people {
        harmless(&rendered(renderer, &file.runs));
    }
    for renderer in [&mut Csv::default() as &mut dyn Renderer, &mut LinksCsv::default()] {
        let text = rendered(renderer, &file.runs[..file.runs.len().min(1)]);
        assert!(csv::Reader::from_reader(text.as_slice()).into_records().all(|row| row.is_ok()));
    }
    let mut cases = Cases::default();
    file.runs.iter().for_each(|run| cases.launch(run));
    let mut lines = again;
    for row in cases.groups().iter().flat_map(|group| group.estimates()) {
        file::write(&mut lines, &Event::Case(Cow::Owned(row))).unwrap();
    }
    assert_eq!(file::read(lines.as_slice()).unwrap().runs.len(), file.runs.len());
    std::str::from_utf8(&rendered(&mut OpenMetrics::default(), &file.runs)).unwrap();
    let (mut overhead, mut broadcasts) = (Overhead::default(), Broadcasts::default());
    for row in file.runs.iter().flat_map(|run| &run.rows) {
        overhead.add(row);
        broadcasts.add(row);
    }
    let mut text = Vec::new();
    overhead.write(&mut text).unwrap();
    broadcasts.write(&mut text).unwrap();

    let [mut base, mut new] = ["base", "new"].map(SideResults::named);
    file.runs.iter().for_each(|run| base.run(run));
    file.runs.iter().rev().for_each(|run| new.run(run));
    let comparison = Comparison::new(&base, &new, Settings::default());
    crate::compare::table(&mut text, &comparison, Paint::Plain, Some(60)).unwrap();
    harmless(&text);
    write!(text, "{}", crate::compare::comparison_json(&comparison)).unwrap();
}

/// Reads arbitrary bytes as a result of many days. The results must survive all output formats.
fn over_time(bytes: &[u8]) {
    let Ok(results) = history::read(bytes) else { return };
    let days = (10..20).flat_map(|day| results_of_day(&results, day));
    let history = History::new(days.collect(), Selection::default(), |_| true);
    let mut text = Vec::new();
    let screen =
        crate::history::Screen { paint: Paint::Plain, columns: Some(60), characters: Characters::Unicode };
    crate::history::table(&mut text, &history, screen).unwrap();
    harmless(&text);
    let mut lines = Vec::new();
    crate::history::history_csv(&mut lines, &history).unwrap();
    assert!(csv::Reader::from_reader(lines.as_slice()).into_records().all(|row| row.is_ok()));
    write!(text, "{}", crate::history::json(&history)).unwrap();
}

/// Returns the results as those of another day.
fn results_of_day(results: &[DatedResult], day: usize) -> Vec<DatedResult> {
    let mut results = results.to_vec();
    results.iter_mut().for_each(|result| result.run += &day.to_string());
    // The last days are slower.
    let rows = results.iter_mut().flat_map(|result| &mut result.rows);
    rows.for_each(|row| row.value *= if day < 12 { 1.0 } else { 2.0 });
    results
}

fn rendered(renderer: &mut dyn Renderer, runs: &[RunWithRows]) -> Vec<u8> {
    let mut out = Vec::new();
    for run in runs {
        let end = Event::End { outcome: RunOutcome::Broken, tally: Tally::default() };
        let end = run.end.is_none().then_some(end);
        run.events().chain(end).for_each(|event| renderer.event(&mut out, &event).unwrap());
    }
    renderer.finish(&mut out).unwrap();
    out
}

/// Asserts that text of a file cannot move the cursor of a terminal.
fn harmless(text: &[u8]) {
    let text = std::str::from_utf8(text).unwrap();
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "control characters in {text:?}");
}

/// Reads arbitrary bytes as a row that a rank sends to rank 0 during a sweep over links.
pub fn row(bytes: &[u8]) {
    if let Ok(Some(Event::Row(row))) = file::parse(&String::from_utf8_lossy(bytes), 1) {
        TimesBySize::default().add(&row, &Hosts::default(), MOST_ROWS);
    }
}

#[cfg(test)]
mod tests {
    use ombx_testkit::hostile;

    #[test]
    fn any_file_is_read_or_refused() {
        hostile("results", 1500, super::results);
    }

    #[test]
    fn any_row_of_a_rank_is_read_or_refused() {
        hostile("ranks", 1500, super::row);
    }
}
