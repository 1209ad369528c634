//! Broadcast algorithms side by side: which one is faster by each way to time a broadcast.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{Result, Write},
};

use ombx_estimate::{
    launches::LEAST_LONG_LAUNCHES,
    number::{Decimals, TimeUnit},
    text::plain,
};
use ombx_record::{
    order::sort_by_value,
    result::{Level, MarkCode, Measurement, Outcome},
    stats::Summary,
    unit::Bytes,
};

use crate::table::cells::{NO_VALUE, grid, interval};

/// Beginning of the names of benchmarks of a broadcast.
const FAMILY: &str = "collective.";
const BROADCAST: &str = "bcast";
/// Axis of the algorithm, and its value in rows that do not name it.
const BY: &str = "by";
const LIBRARY: &str = "library";
/// Axis of the acknowledging rank, and the value of the row that counts.
const ACKER: &str = "acker";
const SLOWEST: &str = "slowest";
/// Method whose broadcasts overlap.
const NAIVE: &str = "bcast_round";
/// With fewer ranks, all trees have the same messages.
const LEAST_RANKS: u32 = 4;

/// Compares the algorithms of one method and size.
#[derive(Debug, Default)]
pub struct Broadcasts {
    /// Unit of the times.
    unit: TimeUnit,
    /// Rows by method and size, then by algorithm.
    rows: BTreeMap<String, BTreeMap<u64, Vec<Timed>>>,
}

/// Time of one algorithm.
#[derive(Debug, Clone)]
struct Timed {
    algorithm: String,
    ranks: u32,
    summary: Summary,
    launches: usize,
    /// Mark on which no verdict may rest.
    invalid: Option<String>,
}

/// Verdict on the algorithms of one method and size.
#[derive(Debug, Clone, PartialEq)]
enum Verdict {
    /// The fastest algorithm, and how many times the next one takes its time.
    Faster(String, f64),
    /// No verdict, with the reason.
    Undecided(String),
}

/// Methods and what each says about a size.
type Verdicts<'m> = Vec<(&'m String, Verdict)>;

impl Broadcasts {
    /// Shows times in this unit.
    pub fn in_unit(unit: TimeUnit) -> Broadcasts {
        Broadcasts { unit, ..Broadcasts::default() }
    }

    /// Adds an estimate over launches, or a row of one launch. Rows of other benchmarks are ignored.
    pub fn add(&mut self, row: &Measurement) {
        let name = row.bench.strip_prefix(FAMILY).filter(|name| name.starts_with(BROADCAST));
        let (Some(name), Some(bytes), Some(summary), Outcome::Ok) =
            (name, row.bytes, &row.summary, &row.outcome)
        else {
            return;
        };
        if row.axes.get(ACKER).is_some_and(|acker| acker != SLOWEST) {
            return;
        }
        let others = row.axes.iter().filter(|(axis, _)| ![BY, ACKER].contains(&axis.as_str()));
        let words = others.map(|(axis, value)| format!(" {axis}={value}"));
        let timed = Timed {
            algorithm: row.axes.get(BY).map_or(LIBRARY, String::as_str).to_owned(),
            ranks: row.ranks,
            summary: summary.clone(),
            launches: row.launch_count(),
            invalid: row
                .marks(Level::Invalid)
                // The comparison of methods shows such a method.
                .find(|mark| mark.code != MarkCode::BelowOneWay)
                .map(|mark| mark.short.clone()),
        };
        let method = plain(&format!("{name}{}", words.collect::<String>()));
        self.rows.entry(method).or_default().entry(bytes).or_default().push(timed);
    }

    /// Writes a table and the verdicts, or nothing if no method has timed two algorithms.
    pub fn write(&self, out: &mut dyn Write) -> Result<()> {
        let sizes = self.rows.iter().flat_map(|(method, sizes)| sizes.iter().map(move |row| (method, row)));
        let compared =
            sizes.filter(|(_, (_, times))| times.iter().any(|timed| timed.algorithm != times[0].algorithm));
        let mut grid = grid(
            ["bytes", self.unit.name(), "95% interval", "by", "timed as", "verdict"].map(str::to_owned),
            0..3,
        );
        let (mut verdicts, mut few_ranks) = (BTreeMap::<u64, Verdicts<'_>>::new(), false);
        for (method, (bytes, times)) in compared {
            let verdict = verdict(times);
            for (at, timed) in times.iter().enumerate() {
                let Summary { median, ci95, .. } = timed.summary;
                let of = |ns: f64| self.unit.of_ns(ns);
                let ends = ci95.map(|ends| ends.map(of));
                let decimals = Decimals::new(of(median), ends);
                let text = |value: f64| decimals.format(value);
                grid.add_row([
                    Bytes(*bytes).to_string(),
                    text(of(median)),
                    interval(ends, text),
                    plain(&timed.algorithm),
                    method.clone(),
                    if at == 0 { verdict.describe() } else { String::new() },
                ]);
                few_ranks |= timed.ranks < LEAST_RANKS;
            }
            verdicts.entry(*bytes).or_default().push((method, verdict));
        }
        if verdicts.is_empty() {
            return Ok(());
        }
        writeln!(out, "\nWhich broadcast is faster\n{}", grid.trim_fmt())?;
        for (sizes, verdicts) in groups(verdicts) {
            writeln!(out, "  {sizes}: {}", sentence(&verdicts))?;
        }
        if few_ranks {
            writeln!(
                out,
                "  with fewer than {LEAST_RANKS} ranks, linear and binomial trees have the same messages"
            )?;
        }
        Ok(())
    }
}

impl Verdict {
    fn describe(&self) -> String {
        match self {
            Verdict::Faster(algorithm, times) => format!("{algorithm} is faster, {times:.2} x"),
            Verdict::Undecided(why) => format!("undecided: {why}"),
        }
    }

    /// Returns the fastest algorithm, or that there is none.
    fn name(&self) -> &str {
        match self {
            Verdict::Faster(algorithm, _) => algorithm,
            Verdict::Undecided(_) => "undecided",
        }
    }
}

/// Returns the algorithm whose 95 % interval lies below those of all others.
fn verdict(times: &[Timed]) -> Verdict {
    let undecided = |why: String| Verdict::Undecided(plain(&why));
    if let Some(few) =
        times.iter().map(|timed| timed.launches).min().filter(|n| *n < LEAST_LONG_LAUNCHES as usize)
    {
        return undecided(format!("a verdict needs {LEAST_LONG_LAUNCHES} launches, not {few}"));
    }
    if let Some((timed, mark)) = times.iter().find_map(|timed| Some((timed, timed.invalid.as_ref()?))) {
        return undecided(format!("{} is marked {mark}", timed.algorithm));
    }
    if let Some(timed) = times.iter().find(|timed| timed.summary.ci95.is_none()) {
        return undecided(format!("{} has no interval", timed.algorithm));
    }
    let mut order: Vec<&Timed> = times.iter().collect();
    sort_by_value(&mut order, |row| row.summary.median);
    let (Some(fastest), Some(next)) = (order.first(), order.get(1)) else {
        return undecided(NO_VALUE.into());
    };
    let end = |timed: &Timed, end: usize| timed.summary.ci95.map(|ends| ends[end]);
    let below = |other: &&Timed| end(fastest, 1).zip(end(other, 0)).is_some_and(|(high, low)| high < low);
    match order[1..].iter().find(|other| !below(other)) {
        None => Verdict::Faster(plain(&fastest.algorithm), next.summary.median / fastest.summary.median),
        Some(other) => {
            undecided(format!("the intervals of {} and {} overlap", fastest.algorithm, other.algorithm))
        }
    }
}

/// Joins neighbouring sizes with the same verdicts.
fn groups(verdicts: BTreeMap<u64, Verdicts<'_>>) -> Vec<(String, Verdicts<'_>)> {
    let mut groups: Vec<([u64; 2], Verdicts<'_>)> = Vec::new();
    for (bytes, verdicts) in verdicts {
        match groups.last_mut().filter(|(_, last)| names(last) == names(&verdicts)) {
            Some(([_, most], _)) => *most = bytes,
            None => groups.push(([bytes; 2], verdicts)),
        }
    }
    groups.into_iter().map(|(ends, verdicts)| (sizes_in_words(ends), verdicts)).collect()
}

/// Names a size, or the ends of a range of sizes.
fn sizes_in_words([least, most]: [u64; 2]) -> String {
    if least == most {
        format!("{} bytes", Bytes(least))
    } else {
        format!("{} to {} bytes", Bytes(least), Bytes(most))
    }
}

/// Returns the methods and what each says, without reasons.
fn names<'v>(verdicts: &'v [(&String, Verdict)]) -> Vec<(&'v str, &'v str)> {
    verdicts.iter().map(|(method, verdict)| (method.as_str(), verdict.name())).collect()
}

/// Says which algorithm is faster by each method, and whether methods contradict each other.
fn sentence(verdicts: &[(&String, Verdict)]) -> String {
    let each = verdicts.iter().map(|(method, verdict)| match verdict {
        Verdict::Faster(algorithm, _) => format!("{method}: {algorithm} is faster"),
        Verdict::Undecided(_) => format!("{method}: undecided"),
    });
    let text = each.collect::<Vec<_>>().join("; ");
    let decided = verdicts.iter().filter(|(_, verdict)| matches!(verdict, Verdict::Faster(..)));
    let winners = |naive: bool| -> BTreeSet<&str> {
        let of = decided.clone().filter(|(method, _)| method.starts_with(NAIVE) == naive);
        of.map(|(_, verdict)| verdict.name()).collect()
    };
    match (winners(true), winners(false)) {
        (naive, others) if !naive.is_empty() && !others.is_empty() && naive.is_disjoint(&others) => {
            format!("{text}. {NAIVE} is wrong: its broadcasts overlap")
        }
        (_, others) if others.len() > 1 => format!("{text}. The methods contradict each other"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use ombx_record::result::{Mark, Metric, OverLaunches};

    use crate::broadcasts::*;

    /// Returns a row over launches with a median in microseconds and an interval of 10 % to each side.
    fn row(bench: &str, by: &str, bytes: u64, us: f64) -> Measurement {
        let mut row = Measurement::new(format!("collective.{bench}"), "", Metric::Latency, 4);
        let ns = us * 1e3;
        row.bytes = Some(bytes);
        row.summary = Some(Summary { ci95: Some([0.9 * ns, 1.1 * ns]), ..Summary::new(&[ns; 9]).unwrap() });
        row.launches = Some(OverLaunches::of_one_state(vec![ns; 9], ns, None, 0.96));
        if by != LIBRARY {
            row.axes.insert(BY.into(), by.into());
        }
        if bench == "bcast_acked" {
            row.axes.insert(ACKER.into(), SLOWEST.into());
        }
        row
    }

    fn text(rows: &[Measurement]) -> String {
        let (mut broadcasts, mut text) = (Broadcasts::default(), Vec::new());
        rows.iter().for_each(|row| broadcasts.add(row));
        broadcasts.write(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    /// Returns rows of both algorithms: the naive round and the acknowledged broadcast, linear and binomial.
    fn rows(bytes: u64, naive: [f64; 2], acked: [f64; 2]) -> Vec<Measurement> {
        let both = |bench: &'static str, us: [f64; 2]| {
            ["linear", "binomial"].into_iter().zip(us).map(move |(by, us)| row(bench, by, bytes, us))
        };
        both("bcast_round", naive).chain(both("bcast_acked", acked)).collect()
    }

    #[test]
    fn sizes_with_the_same_verdicts_share_a_line() {
        let all = [
            rows(8, [2.0, 3.0], [2.0, 4.0]),
            rows(64, [2.0, 2.5], [2.0, 4.0]),
            rows(4096, [9.0, 16.0], [23.0, 18.0]),
            rows(65536, [90.0, 95.0], [230.0, 180.0]),
        ];
        let text = text(&all.concat());
        let lines: Vec<&str> = text.lines().filter(|line| line.contains(" bytes: ")).collect();
        assert_eq!(
            lines,
            [
                "  8 to 64 bytes: bcast_acked: linear is faster; bcast_round: linear is faster",
                "  4K bytes: bcast_acked: binomial is faster; bcast_round: linear is faster. bcast_round \
                 is wrong: its broadcasts overlap",
                "  64K bytes: bcast_acked: binomial is faster; bcast_round: undecided",
            ],
            "{text}"
        );
        assert!(text.contains("binomial is faster, 1.28 x"), "{text}");
        assert!(text.contains("undecided: the intervals of linear and binomial overlap"), "{text}");
    }

    #[test]
    fn a_verdict_needs_launches_intervals_and_valid_rows() {
        let of = |change: &dyn Fn(&mut Measurement)| {
            let mut rows = ["library", "linear", "binomial"].map(|by| row("bcast_acked", by, 8, 10.0));
            rows[2].summary = row("", "", 8, 5.0).summary;
            change(&mut rows[2]);
            text(&rows)
        };
        assert!(of(&|_| ()).contains("binomial is faster, 2.00 x"));
        let text = of(&|row| row.launches = None);
        assert!(text.contains("undecided: a verdict needs 6 launches, not 1"), "{text}");
        let text = of(&|row| row.summary.as_mut().unwrap().ci95 = None);
        assert!(text.contains("undecided: binomial has no interval"), "{text}");
        let text = of(&|row| row.trust.push(Mark::new(MarkCode::Oversubscribed, "oversubscribed", "")));
        assert!(text.contains("undecided: binomial is marked oversubscribed"), "{text}");
        // A naive row is below one way because of its method. Its verdict is still that of the method.
        let text = of(&|row| row.trust.push(Mark::new(MarkCode::BelowOneWay, "below one way", "")));
        assert!(text.contains("binomial is faster"), "{text}");
        let text = of(&|row| row.ranks = 2);
        assert!(text.contains("with fewer than 4 ranks"), "{text}");
    }

    #[test]
    fn rows_without_a_counterpart_are_left_out() {
        assert_eq!(text(&[row("bcast", "library", 8, 1.0), row("allreduce", "linear", 8, 1.0)]), "");
        let mut rows = rows(8, [2.0, 3.0], [2.0, 4.0]);
        rows[2].axes.insert(ACKER.into(), "1".into());
        rows[0].outcome = Outcome::Failed(String::new());
        assert_eq!(text(&rows), "");
    }
}
