//! Which rows can be published, and what keeps the others from it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use ombx_core::{
    benchmark::payload::Check,
    result::{Measurement, Outcome},
    trust,
};

use crate::{estimate::LEAST_LAUNCHES, verdict};

/// Returns what keeps a row from being published; nothing for a row that can be.
///
/// An obstacle is the code of a caution or an invalid mark, or one of `skipped`, `failed`, `wrong_data`, `unverified`,
/// `few_launches` (fewer than 6) and `no_interval`.
pub fn obstacles(row: &Measurement) -> BTreeSet<&str> {
    match (&row.check, &row.outcome) {
        (Check::Failed(_), _) => return BTreeSet::from(["wrong_data"]),
        (_, Outcome::Failed(_)) => return BTreeSet::from(["failed"]),
        (_, Outcome::Skipped(_)) => return BTreeSet::from(["skipped"]),
        (_, Outcome::Ok) => {}
    }
    let marks = row.doubts().map(|mark| mark.code.as_str());
    let unverified = (row.check == Check::Off).then_some("unverified");
    // The next launch may differ by more than the interval of one launch says.
    let few = (row.launch_count() < LEAST_LAUNCHES as usize && row.bench != verdict::BENCH)
        .then_some("few_launches");
    let no_interval = row.summary.as_ref().is_none_or(|s| s.ci95.is_none()).then_some("no_interval");
    marks.chain(unverified).chain(few).chain(no_interval).collect()
}

/// Returns the smallest part of iterations with wrong data that the checks of a row would have found with 95 % probability; `None` if
/// nothing was checked, or something was found.
pub fn found_from(row: &Measurement) -> Option<f64> {
    (row.check == Check::Passed && row.checked > 0).then(|| 1.0 - 0.05f64.powf(1.0 / row.checked as f64))
}

/// Numbers of rows that can and cannot be published. Skipped rows do not count.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Publishable {
    rows: usize,
    publishable: usize,
    /// Number of rows by obstacle, in words.
    obstacles: BTreeMap<String, usize>,
    /// Smallest and largest part of iterations with wrong data that would have been found in a row.
    found_from: Option<[f64; 2]>,
}

impl Publishable {
    /// Counts a row.
    pub fn add(&mut self, row: &Measurement) {
        if matches!(row.outcome, Outcome::Skipped(_)) {
            return;
        }
        let obstacles = obstacles(row);
        if let Some(part) = found_from(row) {
            let [low, high] = self.found_from.unwrap_or([part; 2]);
            self.found_from = Some([low.min(part), high.max(part)]);
        }
        self.rows += 1;
        self.publishable += usize::from(obstacles.is_empty());
        for code in obstacles {
            *self.obstacles.entry(trust::phrase(code)).or_default() += 1;
        }
    }

    /// Returns whether every row can be published.
    pub fn is_complete(&self) -> bool {
        self.publishable == self.rows
    }

    /// Returns which wrong data the checks of the rows would have found with 95 % probability; `None` if nothing was checked.
    pub fn verified(&self) -> Option<String> {
        let [low, high] = self.found_from?.map(|part| {
            let percent = part * 100.0;
            let decimals = (1.0 - percent.log10().floor()).clamp(0.0, 6.0) as usize;
            format!("{percent:.decimals$}")
        });
        let range = if low == high { low } else { format!("{low} to {high}") };
        Some(format!("verified: wrong data in {range} % of a row's iterations would have been found"))
    }

    /// Returns whether no row was counted.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }
}

impl fmt::Display for Publishable {
    /// Writes `22 of 24 rows can be published; 2 not: samples in two groups (1), preempted ranks (1)`, the most frequent obstacle first.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Publishable { rows, publishable, obstacles, .. } = self;
        let noun = if *rows == 1 { "row" } else { "rows" };
        write!(f, "{publishable} of {rows} {noun} can be published")?;
        if publishable < rows {
            let mut found: Vec<_> = obstacles.iter().collect();
            found.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
            let found: Vec<String> =
                found.into_iter().map(|(what, count)| format!("{what} ({count})")).collect();
            write!(f, "; {} not: {}", rows - publishable, found.join(", "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ombx_core::{
        benchmark::{Metric, payload::Mismatch},
        result::{Mark, OverLaunches},
        stats::Summary,
        unit::Rank,
    };

    fn good() -> Measurement {
        let launches =
            OverLaunches { medians_ns: vec![10.0; 6], coverage: 0.97, modes: None, batch: 1, across: None };
        Measurement {
            check: Check::Passed,
            launches: Some(launches),
            summary: Summary::of(&[10.0; 50]),
            ..Measurement::new("p2p.latency", "p2p.latency/bytes=8", Metric::Latency, 2)
        }
    }

    fn marked(marks: &[Mark]) -> Measurement {
        Measurement { trust: marks.to_vec(), ..good() }
    }

    #[test]
    fn the_checks_of_a_row_find_wrong_data_above_a_part() {
        let checked = |checked: u64| Measurement { checked, ..good() };
        assert_eq!(found_from(&checked(0)), None);
        assert!((found_from(&checked(1)).unwrap() - 0.95).abs() < 1e-12);
        // About three in n.
        assert!((found_from(&checked(1000)).unwrap() - 0.003).abs() < 1e-5);
        let mut both = Publishable::default();
        [checked(576), checked(9)].iter().for_each(|row| both.add(row));
        assert!(both.verified().unwrap().contains(" 0.52 to 28 % "), "{both:?}");
        both.add(&checked(100_000));
        assert!(both.verified().unwrap().contains(" 0.0030 to 28 % "), "{both:?}");
    }

    #[test]
    fn a_row_with_an_interval_and_at_most_notes_can_be_published() {
        assert!(obstacles(&good()).is_empty());
        assert!(obstacles(&marked(&[Mark::note("governor", "g", "a")])).is_empty());
        assert!(obstacles(&Measurement { check: Check::Unsupported, ..good() }).is_empty());
    }

    #[test]
    fn each_obstacle_is_named() {
        let codes = |row: Measurement| obstacles(&row).into_iter().map(str::to_owned).collect::<Vec<_>>();
        let marks = [Mark::caution("bimodal", "b", "a"), Mark::invalid("oversubscribed", "o", "a")];
        assert_eq!(codes(marked(&marks)), ["bimodal", "oversubscribed"]);
        assert_eq!(codes(Measurement { check: Check::Off, ..good() }), ["unverified"]);
        assert_eq!(codes(Measurement { outcome: Outcome::Failed("x".into()), ..good() }), ["failed"]);
        assert_eq!(codes(Measurement { outcome: Outcome::Skipped("x".into()), ..good() }), ["skipped"]);
        let wrong = Check::Failed(Mismatch { rank: Rank(0), slot: 0, byte: 0, expected: 1, actual: 2 });
        let outcome = Outcome::Failed("data arrived wrong".into());
        assert_eq!(codes(Measurement { check: wrong, outcome, ..good() }), ["wrong_data"]);
        assert_eq!(codes(Measurement { summary: Summary::of(&[1.0]), ..good() }), ["no_interval"]);
        assert_eq!(codes(Measurement { summary: None, ..good() }), ["no_interval"]);
        assert_eq!(codes(Measurement { launches: None, ..good() }), ["few_launches"]);
    }

    #[test]
    fn one_line_sums_up_all_rows() {
        let mut sum = Publishable::default();
        assert!(sum.is_empty());
        sum.add(&Measurement { outcome: Outcome::Skipped("needs 4 ranks".into()), ..good() });
        assert!(sum.is_empty(), "skipped rows do not count");
        sum.add(&good());
        assert_eq!(sum.to_string(), "1 of 1 row can be published");
        sum.add(&marked(&[Mark::caution("clock_cost", "c", "a"), Mark::caution("preempted", "p", "a")]));
        sum.add(&marked(&[Mark::invalid("preempted", "p", "a")]));
        assert_eq!(
            sum.to_string(),
            "1 of 3 rows can be published; 2 not: preempted ranks (2), a costly reading of the clock (1)"
        );
    }
}
