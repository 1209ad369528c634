//! Links of a sweep over very many ranks, summed up by host while its rounds are read: a case is the median of the links of a host.

use ombx_core::{
    result::{Mark, Measurement, Run},
    stats::Summary,
};

use crate::{
    file::{Round, RoundMark},
    verdict::{Hosts, key_of_link},
};

/// Axes of a case: where its links end, and the name of the host.
const ENDS: &str = "ends";
pub(crate) const HOST: &str = "host";
/// Values of [`ENDS`]: links between hosts, and links inside the host.
const KINDS: [&str; 2] = ["between", "inside"];
/// Bits of a time that its bin leaves out. A bin is at most 0.2 % wide.
const LEFT_OUT: u32 = 14;

/// Links of one launch. Its memory grows with the number of hosts and the scatter of times, not with the number of links.
#[derive(Debug)]
pub(super) struct LinksByHost {
    hosts: Hosts,
    sizes: Vec<Size>,
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
    /// Bins of times in ascending order, each with its number of links.
    bins: Vec<(u32, u32)>,
    /// Number of links that have each mark.
    marked: Vec<u32>,
}

impl LinksByHost {
    pub(super) fn new(run: &Run) -> LinksByHost {
        LinksByHost { hosts: Hosts::of_run(run), sizes: Vec::new() }
    }

    /// Adds the links of a round.
    pub(super) fn add(&mut self, round: &Round) {
        let LinksByHost { hosts, sizes } = self;
        let shared = |row: &Measurement| (row.axes.clone(), row.bytes, row.depth);
        let known = sizes.iter().position(|size| shared(&size.row) == shared(&round.row));
        let at = known.unwrap_or_else(|| {
            let row = Measurement { grown: Vec::new(), ..round.row.clone() };
            sizes.push(Size { row, marks: Vec::new(), kinds: Default::default() });
            sizes.len() - 1
        });
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
            for host in ends {
                let links = &mut of_kind[*host];
                links.add(ns);
                marks.iter().filter(|(mark, _)| mark.has(at)).for_each(|(_, place)| links.mark(*place));
            }
        }
    }

    /// Returns a row for each host and kind of its links, with the median of the links and the marks that more than half of them have.
    pub(super) fn rows(&self) -> Vec<Measurement> {
        let mut rows = Vec::new();
        for Size { row, marks, kinds } in &self.sizes {
            let hosts = KINDS
                .iter()
                .zip(kinds)
                .flat_map(|(kind, hosts)| hosts.iter().zip(0..).map(move |host| (kind, host)));
            for (kind, (links, host)) in hosts.filter(|(_, (links, _))| !links.bins.is_empty()) {
                let mut axes = row.axes.clone();
                axes.insert(HOST.to_owned(), self.hosts.name_of(host).to_owned());
                axes.insert(ENDS.to_owned(), (*kind).to_owned());
                let is_of_most = |(_, marked): &(&Mark, &u32)| 2 * **marked as usize > links.count();
                let trust = marks.iter().zip(&links.marked).filter(is_of_most).map(|(mark, _)| mark.clone());
                rows.push(Measurement {
                    key: key_of_link(&axes, row.bytes, row.depth),
                    axes,
                    summary: Summary::of(&[links.median()]),
                    trust: trust.collect(),
                    ..row.clone()
                });
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

impl HostLinks {
    fn add(&mut self, ns: f32) {
        let bin = ns.to_bits() >> LEFT_OUT;
        match self.bins.binary_search_by_key(&bin, |(bin, _)| *bin) {
            Ok(at) => self.bins[at].1 += 1,
            Err(at) => self.bins.insert(at, (bin, 1)),
        }
    }

    fn mark(&mut self, place: usize) {
        if self.marked.len() <= place {
            self.marked.resize(place + 1, 0);
        }
        self.marked[place] += 1;
    }

    fn count(&self) -> usize {
        self.bins.iter().map(|(_, links)| *links as usize).sum()
    }

    /// Returns the median in nanoseconds, as if the times in a bin were at equal distances; 0 if it is in the bin of 0.
    fn median(&self) -> f64 {
        let half = self.count() as f64 / 2.0;
        let mut below = 0.0;
        for (bin, links) in &self.bins {
            let links = f64::from(*links);
            if *bin > 0 && below + links >= half {
                let [low, high] =
                    [*bin, bin + 1].map(|bin| f64::from(f32::from_bits(bin << LEFT_OUT).min(f32::MAX)));
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
    use ombx_core::{
        benchmark::{Metric, Work},
        team::Place,
    };

    use super::*;
    use crate::{
        compare::{Comparison, Settings, SideResults, Verdict},
        file::{Record, RunOutcome},
        verdict::{BENCH, MOST_RANKS},
    };

    const RANKS: u32 = 2 + MOST_RANKS as u32;

    /// Returns a run with two ranks on the first host and one on each other.
    fn run(number: u32) -> Run {
        let mut run = crate::golden().run;
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

    #[test]
    fn a_host_has_the_median_of_its_links_of_each_kind() {
        let mut links = LinksByHost::new(&run(0));
        let ns = |from: u32, to: u32| if from.max(to) == 1 { 500.0 } else { 5000.0 + (from + 2 * to) as f32 };
        let mut marked = round(9, ns);
        marked.marks = vec![RoundMark { mark: Mark::caution("preempted", "x", "y"), links: vec![4] }];
        marked.marks.push(RoundMark { mark: Mark::note("few", "x", "y"), links: Vec::new() });
        (1..=8).map(|number| round(number, ns)).chain([marked]).for_each(|round| links.add(&round));
        let rows = links.rows();
        assert_eq!(rows.len(), RANKS as usize, "h000 has two kinds of links");
        let key = "links/ends=inside,host=h000,bytes=8";
        let inside = rows.iter().find(|row| row.key == key).unwrap();
        assert!((inside.summary.as_ref().unwrap().median / 500.0 - 1.0).abs() < 0.001);
        let host = rows.iter().find(|row| row.axes[HOST] == "h100").unwrap();
        let ends = |number: u32| [(101, 101 + number), (101 - number, 101)];
        let mut times: Vec<f64> = (1..=9).flat_map(ends).map(|(a, b)| f64::from(ns(a, b))).collect();
        times.sort_by(f64::total_cmp);
        let median = host.summary.as_ref().unwrap().median;
        assert!((times[8]..=times[9]).contains(&median) || (median / times[8] - 1.0).abs() < 0.002);
        assert!(rows.iter().all(|row| row.trust.is_empty()), "few of the links of a host have the marks");
    }

    #[test]
    fn a_large_sweep_is_compared_by_its_hosts() {
        let side = |first: u32, slow: f32| {
            let mut side = SideResults::named("x");
            for number in first..first + 4 {
                side.record(&Record::Run(Box::new(run(number))));
                for step in 1..=6 {
                    let noise = (number % 3) as f32;
                    let of_pair = |from: u32, to: u32| {
                        let factor = if [from, to].contains(&51) { slow } else { 1.0 };
                        (5000.0 + noise + (from * 7 % 11) as f32) * factor
                    };
                    side.record(&Record::Round(Box::new(round(step, of_pair))));
                }
                if number % 2 == 0 {
                    side.record(&Record::End(RunOutcome::Complete, Default::default()));
                }
            }
            side.end();
            side
        };
        let found = Comparison::of(&side(0, 1.0), &side(9, 1.5), Settings::default());
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
}
