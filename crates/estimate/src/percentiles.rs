//! Percentiles of single iterations that the user chose to see.

use std::{fmt, str::FromStr};

use ombx_record::{
    error::{Error, Result},
    result::{ClockFacts, ClockProperties, Measurement, SingleTimes},
    stats::{Percentile, least_samples},
};

/// Maximum number of percentiles.
const MOST: usize = 9;
/// Fewest launches with an iteration beyond a percentile: of fewer, chance decides which launches have one.
const LEAST_BEYOND: usize = 5;
/// Probability beyond each end of an interval.
pub(crate) const TAIL: f64 = 0.025;

/// Returns the quantile of the single iterations of several launches together, with its 95 % interval; `None` if it is not resolved.
///
/// Launches are clusters: iterations of one launch resemble each other. The interval is that of Woodruff (Confidence Intervals for
/// Medians and Other Position Measures, Journal of the American Statistical Association 47, 1952): the quantiles between whose shares
/// the share beyond lies, +- t(0.975, launches - 1) of its standard error between launches. The median of the launches' own quantiles
/// would be too low where few launches have most of the slow iterations.
pub fn over_launches(launches: &[&SingleTimes], quantile: f64) -> Option<Percentile> {
    let mut all: Vec<(f64, u32)> = launches.iter().flat_map(|one| one.counts.iter().copied()).collect();
    all.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let total: u64 = launches.iter().map(|one| one.count()).sum();
    let rank = (total as f64 * quantile).ceil() as u64;
    let value = time_at_rank(&all, rank)?;
    let reached = counts_beyond(launches, |ns| ns >= value);
    if reached.iter().filter(|count| **count > 0.0).count() < LEAST_BEYOND {
        return None;
    }
    // Where many iterations have this very time, as with a coarse clock, launches may differ in those above it only.
    let above = counts_beyond(launches, |ns| ns > value);
    let between = variance(launches, &reached).max(variance(launches, &above));
    // Launches that happen to agree are not more exact than independent iterations.
    let independent = quantile * (1.0 - quantile) / total as f64;
    let half = upper_quantile(launches.len() - 1, TAIL) * between.max(independent).sqrt();
    let [low, high] = [quantile - half, quantile + half];
    let (lower, upper) = ((total as f64 * low).floor(), (total as f64 * high).ceil() + 1.0);
    let ends = (lower >= 1.0 && upper <= total as f64).then_some([lower as u64, upper as u64])?;
    let step = launches.iter().map(|one| one.step_ns).fold(0.0, f64::max);
    let least = launches.iter().map(|one| one.least_ns).fold(0.0, f64::max);
    let [low, high] = ends.map(|rank| time_at_rank(&all, rank));
    let ci95 = Some([(low? - step).max(low?.min(0.0)), high? + step]);
    (value >= least).then_some(Percentile { value, ci95 })
}

/// Returns the time with this rank, from 1, of ascending times and their numbers; `None` if there are fewer.
fn time_at_rank(counts: &[(f64, u32)], rank: u64) -> Option<f64> {
    let mut before = 0;
    let found = counts.iter().find(|(_, count)| {
        before += u64::from(*count);
        before >= rank
    });
    found.map(|(ns, _)| *ns)
}

/// Returns how many iterations of each launch are beyond a time.
fn counts_beyond(launches: &[&SingleTimes], is_beyond: impl Fn(f64) -> bool) -> Vec<f64> {
    let beyond = |one: &&SingleTimes| {
        let above = one.counts.iter().filter(|(ns, _)| is_beyond(*ns));
        above.map(|(_, count)| u64::from(*count)).sum::<u64>() as f64
    };
    launches.iter().map(beyond).collect()
}

/// Percentiles to show, in the order of the user, each once. By default there are none, and formats show those of their own.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Percentiles(Vec<f64>);

impl Percentiles {
    /// Returns whether the user chose none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the numbers of the percentiles, such as 99.9.
    pub fn numbers(&self) -> &[f64] {
        &self.0
    }

    /// Returns the number of single iterations to time, so that the bounds of all of them exist. Iterations that depend on each other
    /// need a quarter more.
    pub fn samples(&self) -> u64 {
        let least = self.0.iter().map(|percent| least_samples(percent / 100.0)).max().unwrap_or(0);
        least + least / 4
    }

    /// Sets the percentiles of a row from the raw samples of `measured`, which is the same row or one with its samples.
    pub fn take(&self, row: &mut Measurement, measured: &Measurement, clock: &ClockFacts) {
        let Some(summary) = row.summary.as_mut().filter(|_| !self.is_empty()) else { return };
        let quantiles: Vec<f64> = self.0.iter().map(|percent| percent / 100.0).collect();
        let ClockFacts { resolution_ns, overhead_ns, .. } = *clock;
        let found =
            measured.percentiles(&quantiles, ClockProperties { source: "", resolution_ns, overhead_ns });
        summary.chosen = self.0.iter().copied().zip(found).collect();
    }
}

/// Returns the variance of a share over all launches together, from the number of its iterations in each launch: that of a ratio, as
/// launches have different numbers of iterations.
fn variance(launches: &[&SingleTimes], counts: &[f64]) -> f64 {
    let n = launches.len() as f64;
    let total: f64 = launches.iter().map(|one| one.count() as f64).sum();
    let share = counts.iter().sum::<f64>() / total;
    let residuals = launches.iter().zip(counts).map(|(one, count)| count - share * one.count() as f64);
    residuals.map(|residual| (residual / total).powi(2)).sum::<f64>() * n / (n - 1.0)
}

impl FromStr for Percentiles {
    type Err = Error;

    /// Reads `50,99,99.9`.
    fn from_str(text: &str) -> Result<Percentiles> {
        let number = |part: &str| {
            let plain = part.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') && part.len() < 16;
            part.parse().ok().filter(|percent: &f64| plain && *percent > 0.0 && *percent < 100.0)
        };
        let mut all: Vec<f64> = Vec::new();
        for part in text.split(',') {
            let percent = number(part).ok_or_else(|| {
                Error::usage(format!(
                    "{part:?} is not a percentile above 0 and below 100: give for example 50,99,99.9"
                ))
            })?;
            if !all.contains(&percent) {
                all.push(percent);
            }
        }
        match all.len() {
            0..=MOST => Ok(Percentiles(all)),
            more => Err(Error::usage(format!("{more} percentiles: give at most {MOST}"))),
        }
    }
}

impl fmt::Display for Percentiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.iter().map(ToString::to_string).collect::<Vec<_>>().join(","))
    }
}

/// Returns the value that a t-distributed variable with `df` degrees of freedom exceeds with probability `p` (below 0.5).
pub fn upper_quantile(df: usize, p: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1e9);
    for _ in 0..120 {
        let middle = 0.5 * (low + high);
        if upper_tail(df, middle) > p { low = middle } else { high = middle }
    }
    high
}

/// Returns the probability of a larger value, by the finite series for whole degrees of freedom (Abramowitz and Stegun, 26.7.3
/// and 26.7.4).
fn upper_tail(df: usize, t: f64) -> f64 {
    let theta = (t / (df as f64).sqrt()).atan();
    let (sine, cosine) = theta.sin_cos();
    let (odd, first) = (df % 2 == 1, if df % 2 == 1 { cosine } else { 1.0 });
    let (mut term, mut sum) = (first, 0.0);
    let mut k = if odd { 3 } else { 2 };
    while k <= df {
        sum += term;
        term *= cosine * cosine * (k - 1) as f64 / k as f64;
        k += 2;
    }
    let inside = if odd { std::f64::consts::FRAC_2_PI * (theta + sine * sum) } else { sine * sum };
    0.5 * (1.0 - inside)
}

#[cfg(test)]
mod tests {
    use crate::percentiles::*;

    fn launch(times: &[(f64, u32)]) -> SingleTimes {
        SingleTimes { counts: times.to_vec(), least_ns: 0.0, step_ns: 1.0 }
    }

    #[test]
    fn a_percentile_is_that_of_the_iterations_of_all_launches_together() {
        let even = launch(&[(100.0, 970), (200.0, 30)]);
        let nine = [&even; 9];
        let found = over_launches(&nine, 0.99).unwrap();
        assert_eq!((found.value, found.ci95), (200.0, Some([199.0, 201.0])));
        assert_eq!(over_launches(&nine, 0.95).unwrap().value, 100.0);
        // Three launches have all slow iterations: the median of the launches' own percentiles is 100 ns.
        let (quiet, slow) = (launch(&[(100.0, 1000)]), launch(&[(100.0, 950), (300.0, 50)]));
        let some = [&quiet, &slow, &quiet, &quiet, &slow, &quiet, &slow, &quiet, &quiet];
        assert_eq!(over_launches(&some, 0.99), None, "three launches are too few");
        let more: Vec<&SingleTimes> = some.iter().cycle().take(27).copied().collect();
        let found = over_launches(&more, 0.99).unwrap();
        assert_eq!((found.value, found.ci95), (300.0, Some([99.0, 301.0])));
        let hidden = SingleTimes { least_ns: 250.0, ..even };
        assert_eq!(over_launches(&[&hidden; 9], 0.99), None);
        assert_eq!(over_launches(&[], 0.99), None);
    }

    #[test]
    fn a_percentile_of_long_iterations_is_exact() {
        let slow = launch(&[(20_000_000.0, 900), (20_000_001.0, 100)]);
        assert_eq!(over_launches(&[&slow; 9], 0.95).unwrap().value, 20_000_001.0);
    }

    #[test]
    fn percentiles_are_read_each_once() {
        let read = |text: &str| text.parse::<Percentiles>().map(|all| all.to_string());
        assert_eq!(read("99.9,50,99,50.0").unwrap(), "99.9,50,99");
        for text in
            ["", "0", "100", "-1", "+5", "5%", "1e1", "nan", "50,,99", "50;99", "1,2,3,4,5,6,7,8,9,10"]
        {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rarer_percentiles_need_more_samples() {
        let samples = |text: &str| text.parse::<Percentiles>().unwrap().samples();
        assert_eq!((samples("50"), samples("99"), samples("99.9,50")), (7, 460, 4610));
        assert_eq!(Percentiles::default().samples(), 0);
    }

    #[test]
    fn quantiles_are_those_of_tables() {
        for (df, p, t) in [
            (1, 0.025, 12.706),
            (2, 0.025, 4.303),
            (3, 0.005, 5.841),
            (4, 0.001, 7.173),
            (7, 0.05, 1.895),
            (30, 0.0005, 3.646),
        ] {
            assert!((upper_quantile(df, p) - t).abs() < 1e-3, "{df} {p}: {}", upper_quantile(df, p));
        }
    }
}
