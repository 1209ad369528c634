//! Why the launches of a run ended, and what precision its rows have.

use ombx_core::{
    result::{Measurement, Outcome, Run},
    stats::Summary,
    unit::Bytes,
};

use crate::{
    estimate::Ending,
    file::{Ended, Launched},
    number::percent,
};

/// Counts the rows of a run that reached its precision.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reached {
    launches: u32,
    ended: Option<Ended>,
    rows: usize,
    precise: usize,
    /// Half the interval of the widest row, as a fraction of its median, and the row's name; without an interval it is infinite.
    widest: Option<(f64, String)>,
    /// Benchmarks, in the order of rows.
    benches: Vec<String>,
}

impl Reached {
    /// Returns the counts of a run, whose plan says why its launches ended.
    pub fn new(run: &Run) -> Reached {
        let launches = run.plan.get("launches").and_then(|count| count.parse().ok()).unwrap_or(1);
        let ended = Launched::of_plan(&run.plan).and_then(|launched| launched.ended);
        Reached { launches, ended: ended.filter(|_| launches > 1), ..Reached::default() }
    }

    /// Counts a row.
    pub fn add(&mut self, row: &Measurement) {
        let Some(ended) = self.ended.filter(|_| row.outcome == Outcome::Ok) else { return };
        let half = row.summary.as_ref().and_then(Summary::precision).unwrap_or(f64::INFINITY);
        self.rows += 1;
        self.precise += usize::from(half <= ended.precision);
        if !self.benches.contains(&row.bench) {
            self.benches.push(row.bench.clone());
        }
        if self.widest.as_ref().is_none_or(|(widest, _)| half > *widest) {
            let size = row.bytes.map(|bytes| format!(" {}", Bytes(bytes))).unwrap_or_default();
            self.widest = Some((half, format!("{}{size}", row.bench)));
        }
    }

    /// Returns whether the user asked for a precision that a row does not have.
    pub fn is_missed(&self) -> bool {
        self.ended.is_some_and(|ended| ended.is_asked) && self.precise < self.rows
    }
}

impl std::fmt::Display for Reached {
    /// Writes `ended after 9 launches: ±2 % reached in 20 of 23 rows; widest ±6.1 % (4M); ..`, or nothing if it is unknown.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Some(ended), Some((widest, name))) = (self.ended, &self.widest) else { return Ok(()) };
        let Reached { launches, rows, precise, benches, .. } = self;
        let goal = percent(ended.precision);
        let noun = if *rows == 1 { "row" } else { "rows" };
        write!(f, "ended after {launches} launches: ±{goal} reached in {precise} of {rows} {noun}")?;
        // The heading has the benchmark if there is one.
        let name = if benches.len() == 1 { name.split_once(' ').map_or("", |(_, size)| size) } else { name };
        let name = if name.is_empty() || *rows == 1 { String::new() } else { format!(" ({name})") };
        match widest.is_finite() {
            true => write!(f, "; widest ±{}{name}", percent(*widest))?,
            false => write!(f, "; no interval in the widest row{name}")?,
        }
        f.write_str(match ended.why {
            Ending::Precise | Ending::Fixed => "",
            Ending::Most => "; a run has at most 30 launches",
            Ending::Enough => "; the time of a first answer is over: --precision or --budget give more",
            Ending::Budget => "; the budget is spent: --budget gives more",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(bytes: u64, half: f64) -> Measurement {
        let summary =
            Summary { ci95: Some([100.0 - half, 100.0 + half]), ..Summary::of(&[100.0; 9]).unwrap() };
        Measurement { bytes: Some(bytes), summary: Some(summary), ..crate::golden().rows.remove(0) }
    }

    #[test]
    fn a_run_says_why_it_ended_and_how_wide_its_widest_row_is() {
        let of = |why, is_asked| {
            let mut run = crate::golden().run;
            run.plan.insert("launches".into(), "9".into());
            let ended = Some(Ended { why, precision: 0.02, is_asked });
            Launched { ended, elapsed_s: 2.9, core_to_core_ns: None }.add_to(&mut run.plan);
            let mut reached = Reached::new(&run);
            [(8, 1.0), (4 << 20, 6.14), (64, 2.0)]
                .iter()
                .for_each(|(bytes, half)| reached.add(&row(*bytes, *half)));
            reached
        };
        assert_eq!(
            of(Ending::Fixed, false).to_string(),
            "ended after 9 launches: ±2 % reached in 2 of 3 rows; widest ±6.1 % (4M)"
        );
        assert!(of(Ending::Budget, false).to_string().ends_with("--budget gives more"));
        assert!(of(Ending::Budget, true).is_missed() && !of(Ending::Budget, false).is_missed());
        assert_eq!(Reached::new(&crate::golden().run).to_string(), "");
    }
}
