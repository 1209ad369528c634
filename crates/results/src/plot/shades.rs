//! Shades of a heat map: equal factors from the fastest to the slowest link.

/// Smallest ratio of slowest to fastest that fills all shades. Noise below it must not look like structure.
const MIN_RATIO: f64 = 1.5;

/// Logarithmic scale that maps values above 0 to shades, numbered from 0.
#[derive(Debug, Clone, Copy)]
pub struct Shades {
    low: f64,
    step: f64,
    count: usize,
}

impl Shades {
    /// Builds a scale of `count` shades for these values. Returns `None` if no value is above 0.
    pub fn of(values: impl Iterator<Item = f64>, count: usize) -> Option<Shades> {
        let known = values.filter(|value| *value > 0.0);
        let (low, high) = known.fold((f64::MAX, 0f64), |(low, high), x| (low.min(x), high.max(x)));
        let step = (high / low).max(MIN_RATIO).ln() / count as f64;
        (high > 0.0).then_some(Shades { low, step, count })
    }

    /// Returns the shade of a value.
    pub fn shade(&self, value: f64) -> usize {
        (((value / self.low).ln() / self.step) as usize).min(self.count - 1)
    }

    /// Returns the lowest value of each shade.
    pub fn lower_bounds(&self) -> impl Iterator<Item = f64> {
        (0..self.count).map(|shade| self.low * (self.step * shade as f64).exp())
    }
}
