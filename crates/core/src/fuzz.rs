//! What reads what others wrote, called with any bytes: what must hold, whatever comes. The programs of `fuzz/` call these for
//! hours, the tests below for a moment.

use std::io::Write;

use crate::{
    clock::Clock,
    collect,
    compare::{Comparison, Launches as Side},
    env,
    error::{Kind, Result},
    layout::Across,
    plan::{self, Launch},
    render::{
        self, Csv, JsonLines, Launches, Links, LinksCsv, OpenMetrics, OsuTable, Overhead, Paint, Renderer,
        Table,
    },
    result::Tally,
    root::Root,
    runner,
    sink::Memory,
    team::{Alone, Fabric, Team},
    threads::Threads,
    unit::{self, Bytes, Rank},
    verdict::Collected,
    wire::{self, Outcome, Record, RunWithRows},
};

/// A result file: what could be read survives being written again, and every format and a comparison can be made of it.
pub fn results(bytes: &[u8]) {
    let Ok(file) = wire::read(bytes) else { return };
    let mut again = Vec::new();
    for run in &file.runs {
        let rows = run.rows.iter().map(|row| Record::Case(Box::new(row.clone())));
        let end = run.end.map(|(outcome, tally)| Record::End(outcome, tally));
        for record in [Record::Run(Box::new(run.run.clone()))].into_iter().chain(rows).chain(end) {
            wire::write(&mut again, &record).unwrap();
        }
    }
    assert_eq!(wire::read(again.as_slice()).unwrap().runs, file.runs);

    let for_people: [&mut dyn Renderer; 5] = [
        &mut Table::painted(Paint::Plain),
        &mut Table::painted(Paint::Plain).plotted(60),
        &mut Launches::painted(Paint::Plain),
        &mut Links::default(),
        &mut OsuTable::new(|_| None),
    ];
    for renderer in for_people {
        harmless(&rendered(renderer, &file.runs));
    }
    for renderer in [&mut Csv::default() as &mut dyn Renderer, &mut LinksCsv::default()] {
        let text = rendered(renderer, &file.runs[..1]);
        assert!(csv::Reader::from_reader(text.as_slice()).into_records().all(|row| row.is_ok()));
    }
    let lines = rendered(&mut JsonLines::default(), &file.runs);
    assert_eq!(wire::read(lines.as_slice()).unwrap().runs.len(), file.runs.len());
    std::str::from_utf8(&rendered(&mut OpenMetrics::default(), &file.runs)).unwrap();
    let mut overhead = Overhead::default();
    file.runs.iter().flat_map(|run| &run.rows).for_each(|row| overhead.add(row));
    let mut text = Vec::new();
    overhead.write(&mut text).unwrap();

    let [mut base, mut new] = ["base", "new"].map(Side::named);
    file.runs.iter().for_each(|run| base.run(run));
    file.runs.iter().rev().for_each(|run| new.run(run));
    let comparison = Comparison::of(&base, &new);
    render::compare::table(&mut text, &comparison, Paint::Plain).unwrap();
    harmless(&text);
    write!(text, "{}", render::compare::json(&comparison)).unwrap();
}

fn rendered(renderer: &mut dyn Renderer, runs: &[RunWithRows]) -> Vec<u8> {
    let mut out = Vec::new();
    for run in runs {
        renderer.run(&mut out, &run.run).unwrap();
        run.rows.iter().for_each(|row| renderer.case(&mut out, row).unwrap());
        let (outcome, tally) = run.end.unwrap_or((Outcome::Broken, Tally::default()));
        renderer.end(&mut out, outcome, &tally).unwrap();
    }
    renderer.finish(&mut out).unwrap();
    out
}

/// Nothing in a file moves the cursor of the terminal on which it is shown.
fn harmless(text: &[u8]) {
    let text = std::str::from_utf8(text).unwrap();
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "control characters in {text:?}");
}

/// The small grammars of options: what they print they read.
pub fn grammars(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(sizes) = plan::parse_sizes(&text) {
        assert!(!sizes.is_empty() && sizes.len() <= 10_000);
        sizes.iter().for_each(|size| assert_eq!(size.to_string().parse::<Bytes>().unwrap(), *size));
    }
    if let Ok(duration) = unit::parse_duration(&text) {
        assert!(duration.as_secs() <= 365 * 86_400);
    }
    if let Ok(part) = unit::parse_percent(&text) {
        assert!(part > 0.0 && part <= 1.0);
    }
    if let Ok(threads) = text.parse::<Threads>() {
        assert_eq!(threads.to_string().parse::<Threads>().unwrap(), threads);
    }
    if let Ok(root) = text.parse::<Root>() {
        assert_eq!(root.to_string().parse::<Root>().unwrap(), root);
    }
    if let Ok(launch) = text.parse::<Launch>() {
        assert_eq!(launch.to_string().parse::<Launch>().unwrap(), launch);
        assert_eq!(launch.arrange(vec![1, 2, 3]).len(), 3);
    }
    assert!(env::parse_cpus(&text).len() <= 1 << 16);
}

/// What rank 0 hears of the others, of whom one may be another program: the places of ranks, rounds of samples, errors, rows.
/// Byte 0xFE is between what one rank says and the next.
pub fn ranks(bytes: &[u8]) {
    let team = Liars(bytes.split(|byte| *byte == 0xfe).map(<[u8]>::to_vec).collect());
    let team: &dyn Team = &team;
    for across in [Across::Origin, Across::Pairs, Across::Slowest, Across::Global] {
        if let Ok(round) = collect::collect(team, across, Vec::new()) {
            let mut samples = Vec::new();
            collect::extend(&mut samples, 1, round);
        }
    }
    let _ = team.agree(Ok(()));
    let _ = runner::open(team, &Clock::manual(1).0, &mut Memory::default(), Default::default(), Vec::new());
    if let Ok(Some(Record::Case(row))) = wire::parse(&String::from_utf8_lossy(bytes), 1) {
        Collected::default().add(&row);
    }
}

/// As rank 0 meets them.
struct Liars(Vec<Vec<u8>>);

impl Team for Liars {
    fn rank(&self) -> Rank {
        Rank(0)
    }

    fn size(&self) -> u32 {
        self.0.len() as u32
    }

    fn fabric(&self) -> Fabric {
        Fabric { name: "liars", library: String::new() }
    }

    fn barrier(&self) -> Result<()> {
        Ok(())
    }

    fn broadcast(&self, _: &mut [u8]) -> Result<()> {
        Ok(())
    }

    fn gather(&self, _: &[u8]) -> Result<Option<Vec<Vec<u8>>>> {
        Ok(Some(self.0.clone()))
    }

    fn take(&self, ranks: u32) -> Result<Option<Box<dyn Team>>> {
        Alone(self.fabric()).take(ranks)
    }

    fn pair(&self, partner: Rank, first: Rank) -> Result<Box<dyn Team>> {
        Alone(self.fabric()).pair(partner, first)
    }

    fn rest(&self) -> Result<()> {
        Ok(())
    }

    fn name_task(&self, _: &str) {}

    fn abort(&self, code: u8) -> ! {
        panic!("ended with {code}, {:?}", Kind::Fabric)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::hostile;

    #[test]
    fn any_file_is_results_or_refused() {
        hostile("results", 1500, results);
    }

    #[test]
    fn any_text_is_an_option_or_refused() {
        hostile("grammars", 20_000, grammars);
    }

    #[test]
    fn rank_0_survives_what_others_say() {
        hostile("ranks", 1500, ranks);
    }
}
