//! Simulated series of results: how often a year of daily looks alarms although nothing changes, and when a step is found.

use ombx_compare::history::{CONFIRMED_BY, LEAST_RUNS, change_points, confirmed_changes};

use crate::{document::with_interval, random::Random};

/// Days of a year.
const YEAR: usize = 365;
/// Runs before a step, and numbers of runs after it.
const BEFORE: usize = 30;
const AFTER: [usize; 3] = [5, 8, 12];
/// Size of the step in standard deviations, and the standard deviation of logarithms.
const STEP: f64 = 3.0;
const SCATTER: f64 = 0.03;
/// Number of values by which a change may be away from its place.
const PLACE: usize = 2;

/// Model of the logarithms of the values of a series, with standard deviation 1.
#[derive(Debug, Clone, Copy)]
struct Model {
    name: &'static str,
    /// Lag-1 autocorrelation.
    correlation: f64,
    is_skewed: bool,
    /// Share of values that are 10 to 30 standard deviations too long.
    outliers: f64,
}

const MODELS: [Model; 5] = [
    Model { name: "normal", correlation: 0.0, is_skewed: false, outliers: 0.0 },
    Model { name: "log-normal", correlation: 0.0, is_skewed: true, outliers: 0.0 },
    Model { name: "normal, 5 % outliers", correlation: 0.0, is_skewed: false, outliers: 0.05 },
    Model { name: "normal, r = 0.3", correlation: 0.3, is_skewed: false, outliers: 0.0 },
    Model { name: "normal, r = 0.5", correlation: 0.5, is_skewed: false, outliers: 0.0 },
];

impl Model {
    fn series(&self, runs: usize, random: &mut Random) -> Vec<f64> {
        let mut last = random.normal();
        let innovation = (1.0 - self.correlation.powi(2)).sqrt();
        let values = (0..runs).map(|_| {
            last = self.correlation * last + innovation * random.normal();
            let value = if self.is_skewed { ((0.6 * last).exp() - 1.197) / 0.79 } else { last };
            let outlier = random.uniform() < self.outliers;
            SCATTER * if outlier { 10.0 + 20.0 * random.uniform() } else { value }
        });
        values.collect()
    }
}

/// Counts over the series of a model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Looks {
    model: Model,
    years: u64,
    alarms: u64,
    steps: u64,
    found: [u64; AFTER.len()],
}

/// Simulates this many years, and ten times as many steps, of each model.
pub(crate) fn simulate(years: u64, seed: u64) -> Vec<Looks> {
    MODELS.iter().map(|model| of_model(*model, years, seed)).collect()
}

fn of_model(model: Model, years: u64, seed: u64) -> Looks {
    let mut random = Random(seed);
    let alarms = (0..years).filter(|_| has_alarm(&model.series(YEAR, &mut random))).count() as u64;
    let steps = 10 * years;
    let found = AFTER.map(|after| {
        let is_found = |_: &u64| {
            let mut values = model.series(BEFORE + after, &mut random);
            values[BEFORE..].iter_mut().for_each(|value| *value += STEP * SCATTER);
            confirmed_changes(&values).iter().any(|at| at.abs_diff(BEFORE) <= PLACE)
        };
        (0..steps).filter(is_found).count() as u64
    });
    Looks { model, years, alarms, steps, found }
}

/// Returns whether any look at a growing series alarms. A change is confirmed by the looks before, which are computed once.
fn has_alarm(values: &[f64]) -> bool {
    let mut looks: Vec<Vec<usize>> = Vec::new();
    (LEAST_RUNS + 1 - CONFIRMED_BY..=values.len()).any(|runs| {
        looks.push(change_points(&values[..runs]));
        let last = looks.iter().rev().take(CONFIRMED_BY);
        // The looks agree on no change most of the time.
        last.len() == CONFIRMED_BY
            && looks[looks.len() - CONFIRMED_BY..].iter().all(|found| !found.is_empty())
            && !confirmed_changes(&values[..runs]).is_empty()
    })
}

/// Returns a line for each model.
pub(crate) fn table(all: &[Looks]) -> String {
    let heads: Vec<String> = AFTER.iter().map(|after| format!("found after {after} runs, %")).collect();
    let head = format!("values | years | a year has a false alarm, % | {}", heads.join(" | "));
    ombx_toolchain::table(&head, all.iter().map(line))
}

/// Returns the line of a model.
fn line(looks: &Looks) -> String {
    let found = looks.found.map(|found| with_interval(found, looks.steps));
    format!(
        "{} | {} | {} | {}",
        looks.model.name,
        looks.years,
        with_interval(looks.alarms, looks.years),
        found.join(" | ")
    )
}
