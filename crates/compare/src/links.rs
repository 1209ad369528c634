//! Links of a sweep over very many ranks, summed up by host while its rounds are read: a case is the median of the links of a host.

use std::hash::{DefaultHasher, Hash, Hasher};

use ombx_estimate::launches::is_within_a_launch;
use ombx_links::verdict::Hosts;
use ombx_record::{
    event::{Round, RoundMark},
    link::key_of_link,
    result::{Level, Mark, Measurement, Run},
    stats::Summary,
};

/// Axes of a case: where its links end, and the name of the host.
const ENDS: &str = "ends";
/// Axis of cases that are hosts of a large sweep.
pub const HOST: &str = "host";
/// Values of [`ENDS`]: links between hosts, and links inside the host.
const KINDS: [&str; 2] = ["between", "inside"];
/// Bits of a time that its bin leaves out. A bin is at most 0.8 % wide.
const LEFT_OUT: u32 = 16;
/// Bins for which memory is asked at a time.
const MORE_BINS: usize = 32;

/// Links of one launch. Its memory grows with the number of hosts and the scatter of times, not with the number of links.
#[derive(Debug)]
pub(super) struct LinksByHost {
    hosts: Hosts,
    /// Hash of the name of each rank.
    names: Vec<u64>,
    sizes: Vec<Size>,
    /// Links of the rounds whose marks say that their times are wrong.
    pub(super) left_out: usize,
    /// Whether rounds were added after the rows were made.
    pub(super) has_new: bool,
}

/// Links that differ in their ends only.
#[derive(Debug)]
struct Size {
    /// What the rows of the links share.
    row: Measurement,
    /// Marks that links have.
    marks: Vec<Mark>,
    /// Links of each host, by kind; empty without links of the kind.
    kinds: [Vec<HostLinks>; 2],
}

/// Links of one host. A link to another host belongs to both.
#[derive(Debug, Clone, Default)]
struct HostLinks {
    times: Bins,
    /// Links that no verdict may rest on.
    invalid: Bins,
    /// Number of links that have each mark.
    marked: Vec<u32>,
    measured: LinkSet,
}

/// Times of links.
#[derive(Debug, Clone, Default)]
struct Bins {
    /// Bins in ascending order.
    bins: Vec<u16>,
    /// Number of links in each bin.
    links: Vec<u32>,
}

/// Which links were measured, in any order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LinkSet {
    links: u64,
    /// Sum of the hashes of links.
    hash: u64,
}

impl LinksByHost {
    pub(super) fn new(run: &Run) -> LinksByHost {
        let hosts = Hosts::of_run(run);
        let name = |rank: u32| hash(&(hosts.name(rank), hosts.position(rank)));
        let names = (0..hosts.ranks()).map(name).collect();
        LinksByHost { hosts, names, sizes: Vec::new(), left_out: 0, has_new: false }
    }

    /// Adds the links of a round.
    pub(super) fn add(&mut self, round: &Round) {
        let LinksByHost { hosts, names, sizes, left_out, has_new } = self;
        let shared = |row: &Measurement| (row.axes.clone(), row.bytes, row.depth);
        let known = sizes.iter().position(|size| shared(&size.row) == shared(&round.row));
        let at = known.unwrap_or_else(|| {
            let row = Measurement { grown: Vec::new(), ..round.row.clone() };
            sizes.push(Size { row, marks: Vec::new(), kinds: Default::default() });
            sizes.len() - 1
        });
        *has_new = true;
        let Size { marks, kinds, .. } = &mut sizes[at];
        let marks: Vec<(&RoundMark, usize)> =
            round.marks.iter().map(|mark| (mark, place(marks, &mark.mark))).collect();
        for (at, (from, to, ns)) in round.links().enumerate() {
            if from.max(to) >= hosts.ranks() {
                continue;
            }
            let ends = [from, to].map(|rank| hosts.number(rank) as usize);
            let is_inside = ends[0] == ends[1];
            let of_kind = &mut kinds[usize::from(is_inside)];
            of_kind.resize_with(hosts.count(), HostLinks::default);
            let ends = if is_inside { &ends[..1] } else { &ends[..] };
            let marked = || marks.iter().filter(|(mark, _)| mark.effect(at).is_some());
            let is_invalid = marked().any(|(mark, _)| is_invalid(&mark.mark));
            *left_out += usize::from(is_invalid);
            let link = hash(&[from, to].map(|rank| names[rank as usize]));
            for host in ends {
                let links = &mut of_kind[*host];
                let times = if is_invalid { &mut links.invalid } else { &mut links.times };
                times.add(ns);
                links.measured.add(link);
                marked().for_each(|(_, place)| links.mark(*place));
            }
        }
    }

    /// Returns a row for each host and kind of its links, and which links these are. The row has the median of the links whose marks are not
    /// invalid, and the marks that more than half of the links have. If more than half of them are invalid, so is the row.
    pub(super) fn rows(&self) -> Vec<(Measurement, LinkSet)> {
        let mut rows = Vec::new();
        for Size { row, marks, kinds } in &self.sizes {
            let hosts = KINDS
                .iter()
                .zip(kinds)
                .flat_map(|(kind, hosts)| hosts.iter().zip(0..).map(move |host| (kind, host)));
            for (kind, (links, host)) in hosts.filter(|(_, (links, _))| links.measured.links > 0) {
                let mut axes = row.axes.clone();
                axes.insert(HOST.to_owned(), self.hosts.name_of(host).to_owned());
                axes.insert(ENDS.to_owned(), (*kind).to_owned());
                let measured = Measurement {
                    key: key_of_link(&axes, row.bytes, row.depth),
                    axes,
                    summary: Summary::new(&[links.counted().median()]),
                    trust: links.marks_of_most(marks),
                    ..row.clone()
                };
                rows.push((measured, links.measured));
            }
        }
        rows
    }
}

/// Returns the place of a mark, which is added if it is new.
fn place(marks: &mut Vec<Mark>, mark: &Mark) -> usize {
    let known = marks.iter().position(|known| (&known.code, known.level) == (&mark.code, mark.level));
    known.unwrap_or_else(|| {
        marks.push(mark.clone());
        marks.len() - 1
    })
}

/// Returns whether a mark says that no verdict may rest on a time.
pub(super) fn is_invalid(mark: &Mark) -> bool {
    mark.level == Level::Invalid && !is_within_a_launch(mark)
}

/// Returns a hash that is the same in every process.
fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

impl HostLinks {
    fn mark(&mut self, place: usize) {
        if self.marked.len() <= place {
            self.marked.resize(place + 1, 0);
        }
        self.marked[place] += 1;
    }

    /// Returns whether more than half of the links are invalid.
    fn is_invalid(&self) -> bool {
        self.invalid.count() > self.times.count()
    }

    /// Returns the times of the figure: those of invalid links if these are more than half.
    fn counted(&self) -> &Bins {
        if self.is_invalid() { &self.invalid } else { &self.times }
    }

    /// Returns the marks that more than half of the links have. If more than half of the links are invalid, the mark that made most of them so
    /// is the only invalid one; else there is none.
    fn marks_of_most(&self, marks: &[Mark]) -> Vec<Mark> {
        let all = self.times.count() + self.invalid.count();
        let marked = || marks.iter().zip(&self.marked);
        let worst = marked().filter(|(mark, _)| is_invalid(mark) && self.is_invalid());
        let worst = worst.max_by_key(|(_, links)| **links);
        let others = marked().filter(|(mark, links)| !is_invalid(mark) && 2 * u64::from(**links) > all);
        worst.into_iter().chain(others).map(|(mark, _)| mark.clone()).collect()
    }
}

impl LinkSet {
    fn add(&mut self, link: u64) {
        self.links += 1;
        self.hash = self.hash.wrapping_add(link);
    }
}

impl Bins {
    fn add(&mut self, ns: f32) {
        let bin = (ns.abs().to_bits() >> LEFT_OUT) as u16;
        match self.bins.binary_search(&bin) {
            Ok(at) => self.links[at] += 1,
            Err(at) => {
                if self.bins.len() == self.bins.capacity() {
                    self.bins.reserve_exact(MORE_BINS);
                    self.links.reserve_exact(MORE_BINS);
                }
                self.bins.insert(at, bin);
                self.links.insert(at, 1);
            }
        }
    }

    fn count(&self) -> u64 {
        self.links.iter().map(|links| u64::from(*links)).sum()
    }

    /// Returns the median in nanoseconds, as if the times in a bin were at equal distances; 0 if it is in the bin of 0.
    fn median(&self) -> f64 {
        let half = self.count() as f64 / 2.0;
        let mut below = 0.0;
        for (bin, links) in self.bins.iter().zip(&self.links) {
            let links = f64::from(*links);
            if *bin > 0 && below + links >= half {
                let end = |bin: u32| f64::from(f32::from_bits(bin << LEFT_OUT).min(f32::MAX));
                let [low, high] = [u32::from(*bin), u32::from(*bin) + 1].map(end);
                return low + (high - low) * (half - below).max(0.0) / links;
            }
            below += links;
            if below >= half {
                break;
            }
        }
        0.0
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use ombx_record::{
        event::Event,
        link::{BENCH, MOST_RANKS, RETEST},
        result::{Metric, Outcome, Place, RunOutcome, Work},
    };

    use crate::{CaseComparison, Comparison, Reason, Settings, SideResults, Verdict, links::*};

    const RANKS: u32 = 2 + MOST_RANKS as u32;

    /// Returns a run with two ranks on the first host and one on each other.
    fn run(number: u32) -> Run {
        let mut run = ombx_testkit::golden().run;
        let place = run.places[0].clone();
        run.id = format!("run-{number}");
        run.started = format!("2026-01-02T00:00:{number:02}Z");
        run.places = (0..RANKS)
            .map(|rank| Place { host: format!("h{:03}", rank.saturating_sub(1)), ..place.clone() })
            .collect();
        run
    }

    /// Returns a round in which each rank measures the one so many places after it.
    fn round(number: u32, ns: impl Fn(u32, u32) -> f32) -> Round {
        let row = Measurement {
            bytes: Some(8),
            work: Some(Work { bytes: 16, ops: 2, legs: 2 }),
            ..Measurement::new(BENCH, "links", Metric::Latency, 2)
        };
        let from: Vec<u32> = (0..RANKS).collect();
        let to: Vec<u32> = from.iter().map(|rank| (rank + number) % RANKS).collect();
        let median_ns = from.iter().zip(&to).map(|(from, to)| ns(*from, *to)).collect();
        Round { row, number: Some(number), from, to, median_ns, marks: Vec::new() }
    }

    /// Times that differ by a factor of 2 and more, most of them near the lower end.
    fn skewed(from: u32, to: u32) -> f32 {
        let part = ((from * 7919 + to * 104_729) % 1000) as f32 / 1000.0;
        5000.0 * (1.0 + part.powi(3) * 1.5)
    }

    /// Returns the ends of the links of the rank in rounds with these numbers.
    fn links_of(rank: u32, numbers: impl Iterator<Item = u32>) -> Vec<(u32, u32)> {
        numbers
            .flat_map(|number| [(rank, (rank + number) % RANKS), ((rank + RANKS - number) % RANKS, rank)])
            .collect()
    }

    fn of_host<'a>(rows: &'a [(Measurement, LinkSet)], host: &str) -> &'a Measurement {
        let is_of =
            |(row, _): &&(Measurement, LinkSet)| row.axes[HOST] == host && row.axes[ENDS] == "between";
        &rows.iter().find(is_of).unwrap().0
    }

    fn median_ns(row: &Measurement) -> f64 {
        row.summary.as_ref().unwrap().median
    }

    #[test]
    fn a_host_has_the_median_of_its_links_of_each_kind() {
        let mut links = LinksByHost::new(&run(0));
        let ns = |from: u32, to: u32| if from.max(to) == 1 { 500.0 } else { skewed(from, to) };
        (1..=100).for_each(|number| links.add(&round(number, ns)));
        let rows = links.rows();
        assert_eq!(rows.len(), RANKS as usize, "h000 has two kinds of links");
        let key = "links/ends=inside,host=h000,bytes=8";
        let (inside, _) = rows.iter().find(|(row, _)| row.key == key).unwrap();
        assert!((median_ns(inside) / 500.0 - 1.0).abs() < 0.008);
        for rank in [50, 101, 200] {
            let mut times: Vec<f64> =
                links_of(rank, 1..=100).into_iter().map(|(from, to)| f64::from(ns(from, to))).collect();
            times.sort_by(f64::total_cmp);
            assert!(times[199] / times[0] > 2.0);
            let exact = (times[99] + times[100]) / 2.0;
            let found = median_ns(of_host(&rows, &format!("h{:03}", rank - 1)));
            assert!((found / exact - 1.0).abs() < 0.008, "{found} {exact}");
        }
    }

    #[test]
    fn marks_of_most_links_of_a_host_are_those_of_its_row() {
        let mut links = LinksByHost::new(&run(0));
        for number in 1..=10 {
            let mut round = round(number, skewed);
            let mut mark = |mark: Mark, to: u32| {
                let marked = RoundMark::new(mark, Vec::new());
                round.marks.extend((number <= to).then_some(marked));
            };
            mark(Mark::with_advice("of 60 %", "x", "y").at(Level::Caution), 6);
            mark(Mark::with_advice("of 40 %", "x", "y").at(Level::Caution), 4);
            links.add(&round);
        }
        let rows = links.rows();
        let codes: Vec<&str> = of_host(&rows, "h100").trust.iter().map(|mark| mark.code.name()).collect();
        assert_eq!(codes, ["of 60 %"]);
    }

    #[test]
    fn invalid_links_do_not_count_unless_they_are_most_links_of_a_host() {
        let found = |marked: &[(&str, u32, u32)]| {
            let mut links = LinksByHost::new(&run(0));
            for number in 1..=10 {
                let is_marked = |(_, first, last): &&(&str, u32, u32)| (*first..=*last).contains(&number);
                let marks = marked.iter().filter(is_marked);
                let mut round = round(number, |_, _| if marks.clone().count() > 0 { 9000.0 } else { 5000.0 });
                let invalid = |(code, ..): &(&str, u32, u32)| {
                    RoundMark::new(Mark::with_advice(*code, "x", "y").at(Level::Invalid), Vec::new())
                };
                round.marks = marks.map(invalid).collect();
                links.add(&round);
            }
            let rows = links.rows();
            let row = of_host(&rows, "h100");
            let codes: Vec<String> = row.trust.iter().map(|mark| mark.code.to_string()).collect();
            (median_ns(row).round(), codes, links.left_out / RANKS as usize)
        };
        let (median, codes, left_out) = found(&[("a", 1, 4)]);
        assert!((4980.0..5020.0).contains(&median) && codes.is_empty(), "{median} {codes:?}");
        assert_eq!(left_out, 4);
        // No mark has more than half of the links, but all of them together have.
        let (median, codes, left_out) = found(&[("a", 1, 4), ("b", 5, 7)]);
        assert!((8960.0..9040.0).contains(&median), "{median}");
        assert_eq!((codes, left_out), (vec!["a".to_owned()], 7));
    }

    #[test]
    fn a_large_sweep_is_compared_by_its_hosts() {
        let side = |first: u32, slow: f32| {
            let mut side = SideResults::named("x");
            for number in first..first + 8 {
                side.event(&Event::Run(Cow::Owned(run(number))));
                for step in 1..=6 {
                    let noise = (number % 3) as f32;
                    let of_pair = |from: u32, to: u32| {
                        let factor = if [from, to].contains(&51) { slow } else { 1.0 };
                        (5000.0 + noise + (from * 7 % 11) as f32) * factor
                    };
                    side.event(&Event::Round(Cow::Owned(round(step, of_pair))));
                }
                if number % 2 == 0 {
                    side.event(&Event::End { outcome: RunOutcome::Complete, tally: Default::default() });
                }
            }
            side.end();
            side
        };
        let found = Comparison::new(&side(0, 1.0), &side(9, 1.5), Settings::default());
        assert_eq!(found.cases.len(), RANKS as usize);
        let worse: Vec<&str> = found
            .cases
            .iter()
            .filter(|case| case.verdict == Verdict::Worse)
            .map(|case| case.id.axes[HOST].as_str())
            .collect();
        assert_eq!(worse, ["h050"]);
        assert!(found.notes.iter().any(|note| note.code == "links_by_host"), "{:?}", found.notes);
    }

    /// Records the rounds with these numbers in eight launches.
    fn recorded(first: u32, rounds: &[u32], of_launch: impl Fn(&mut SideResults)) -> SideResults {
        let mut side = SideResults::named("x");
        for number in first..first + 8 {
            side.event(&Event::Run(Cow::Owned(run(number))));
            rounds.iter().for_each(|step| side.event(&Event::Round(Cow::Owned(round(*step, skewed)))));
            of_launch(&mut side);
        }
        side.end();
        side
    }

    #[test]
    fn other_links_of_a_host_have_no_verdict() {
        let of = |rounds: &[u32]| {
            let [base, new] = [recorded(0, &[1, 2, 3], |_| {}), recorded(9, rounds, |_| {})];
            Comparison::new(&base, &new, Settings::default())
        };
        let is_without = |case: &CaseComparison| case.verdict == Verdict::Undecided(Reason::OtherLinks);
        assert!(of(&[3, 1, 2]).cases.iter().all(|case| case.verdict == Verdict::Same));
        let other = of(&[1, 2, 4]);
        let between = other.cases.iter().filter(|case| case.id.axes[ENDS] == "between");
        assert!(between.clone().count() > 0 && between.clone().all(is_without));
        assert!(!other.more_could_decide());
    }

    #[test]
    fn links_that_were_measured_again_are_no_cases_unless_they_failed() {
        let again = |link: &str, outcome: Outcome| {
            let mut row = round(1, skewed).rows().next().unwrap();
            row.axes.insert(RETEST.to_owned(), "slow".to_owned());
            row.key = format!("links/{link}");
            Measurement { outcome, ..row }
        };
        let side = |first: u32, link: &str, outcome: &Outcome| {
            recorded(first, &[1, 2], |side| {
                side.event(&Event::Row(Cow::Owned(again(link, outcome.clone()))));
            })
        };
        let base = side(0, "a", &Outcome::Ok);
        let found = |link: &str, outcome: Outcome| {
            Comparison::new(&base, &side(9, link, &outcome), Settings::default())
        };
        let measured = found("b", Outcome::Ok);
        assert_eq!((measured.cases.len(), measured.lost().count()), (RANKS as usize, 0));
        assert_eq!(found("b", Outcome::Failed("it hung".into())).broken.len(), 1);
    }

    #[test]
    fn a_run_that_goes_on_in_its_launch_adds_its_links() {
        let mut side = SideResults::named("x");
        let part = |of: &str, rounds: &[u32], side: &mut SideResults| {
            let mut run = run(0);
            run.id = of.to_owned();
            for (option, value) in [("launch", "1"), ("order", "1"), ("benchmarks", of)] {
                run.plan.insert(option.into(), value.into());
            }
            side.event(&Event::Run(Cow::Owned(run)));
            rounds.iter().for_each(|step| side.event(&Event::Round(Cow::Owned(round(*step, skewed)))));
            side.event(&Event::End { outcome: RunOutcome::Complete, tally: Default::default() });
        };
        part("a", &[1, 2], &mut side);
        part("b", &[3], &mut side);
        side.end();
        let whole = recorded(0, &[1, 2, 3], |_| {});
        assert_eq!(side.count(), 1);
        let key = "links/ends=between,host=h100,bytes=8";
        let [found, expected] = [&side, &whole].map(|side| side.row(key).unwrap());
        assert_eq!(found.launches.len(), 1);
        assert_eq!(found.launches[0].links, expected.launches[0].links);
        assert_eq!(found.launches[0].median.to_bits(), expected.launches[0].median.to_bits());
    }
}
