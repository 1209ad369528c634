//! What a comparison could have found: the smallest detectable difference, and the launches that a difference needs.

use std::sync::LazyLock;

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::comparison::Unit;

/// Quantile of a normal distribution: the chance to find the smallest detectable difference is 81 %.
const POWER: f64 = 0.88;
/// Largest number of runs or turns per side that is suggested.
const MAX_UNITS: usize = 100;

/// Scatter of what is compared, as standard deviations of logarithms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Scatter {
    /// Of the runs of each side.
    Runs(f64),
    /// Of the differences within turns.
    Turns(f64),
}

impl Scatter {
    /// Returns the scatter of both sides; `None` if it cannot be known.
    pub(super) fn of_runs(sides: [&[f64]; 2]) -> Option<Scatter> {
        let [a, b] = sides.map(squares);
        let freedom = (sides[0].len() + sides[1].len()).checked_sub(2).filter(|freedom| *freedom > 0)?;
        let has_both = sides.iter().all(|side| !side.is_empty());
        has_both.then(|| Scatter::Runs(((a + b) / freedom as f64).sqrt()))
    }

    /// Returns the scatter of differences; `None` for fewer than two.
    pub(super) fn of_turns(differences: &[f64]) -> Option<Scatter> {
        let freedom = differences.len().checked_sub(1).filter(|freedom| *freedom > 0)?;
        Some(Scatter::Turns((squares(differences) / freedom as f64).sqrt()))
    }

    /// Returns how far beyond the margin a difference, a logarithm, must be so that these numbers of runs or turns show it.
    pub(super) fn shows(self, [a, b]: [usize; 2]) -> Option<f64> {
        match self {
            Scatter::Runs(deviation) => {
                let t = t975((a + b).checked_sub(2)?)?;
                Some((t + POWER) * deviation * (1.0 / a as f64 + 1.0 / b as f64).sqrt())
            }
            Scatter::Turns(deviation) => {
                let t = t975(a.min(b).checked_sub(1)?)?;
                Some((t + POWER) * deviation / (a.min(b) as f64).sqrt())
            }
        }
    }

    /// Returns the smallest number per side that shows a difference this far beyond the margin. `None` if it is above 100.
    pub(super) fn units_for(self, beyond: f64) -> Option<usize> {
        let least = match self {
            Scatter::Runs(_) => Unit::Run.least(),
            Scatter::Turns(_) => Unit::Turn.least(),
        };
        (least..=MAX_UNITS).find(|n| self.shows([*n; 2]).is_some_and(|shown| shown <= beyond))
    }
}

fn squares(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// Returns the quantile 0.975 of Student's distribution with these degrees of freedom. Every case needs some hundred of them, and each
/// takes microseconds to compute.
fn t975(freedom: usize) -> Option<f64> {
    static KNOWN: LazyLock<Vec<Option<f64>>> =
        LazyLock::new(|| (0..2 * MAX_UNITS).map(computed_t975).collect());
    KNOWN.get(freedom).copied().unwrap_or_else(|| computed_t975(freedom))
}

fn computed_t975(freedom: usize) -> Option<f64> {
    Some(StudentsT::new(0.0, 1.0, freedom as f64).ok()?.inverse_cdf(0.975))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_and_numbers_match_values_computed_by_hand() {
        let scatter = Scatter::of_runs([&[1.0, 2.0, 3.0], &[4.0, 6.0, 8.0]]).unwrap();
        assert_eq!(scatter, Scatter::Runs(2.5_f64.sqrt()));
        assert_eq!((Scatter::of_runs([&[1.0], &[2.0]]), Scatter::of_turns(&[1.0])), (None, None));
        // t(0.975, 10) = 2.228, t(0.975, 11) = 2.201.
        let runs = Scatter::Runs(0.17).shows([6, 6]).unwrap();
        assert!((runs - (2.228 + 0.88) * 0.17 * (2.0_f64 / 6.0).sqrt()).abs() < 1e-3, "{runs}");
        let turns = Scatter::of_turns(&[-0.1, 0.1]).unwrap();
        assert!(matches!(turns, Scatter::Turns(s) if (s - 0.02_f64.sqrt()).abs() < 1e-12));
        let shown = turns.shows([12, 12]).unwrap();
        assert!((shown - (2.201 + 0.88) * (0.02_f64 / 12.0).sqrt()).abs() < 1e-3, "{shown}");
        assert_eq!([Scatter::Runs(0.0), Scatter::Turns(0.0)].map(|s| s.units_for(0.05)), [Some(4), Some(6)]);
        let n = Scatter::Runs(0.05).units_for(0.05).unwrap();
        let shows = |n: usize| Scatter::Runs(0.05).shows([n, n]).unwrap();
        assert!(shows(n) <= 0.05 && shows(n - 1) > 0.05);
        assert_eq!(Scatter::Runs(1.0).units_for(0.05), None);
    }
}
