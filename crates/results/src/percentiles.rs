//! Percentiles of single iterations that the user chose to see.

use std::{fmt, str::FromStr};

use ombx_core::{
    error::{Error, Result},
    result::{ClockFacts, Measurement},
    stats::least_samples,
    system::clock::Facts,
};

/// Maximum number of percentiles.
const MOST: usize = 9;

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
        let found = measured.percentiles(&quantiles, Facts { source: "", resolution_ns, overhead_ns });
        summary.chosen = self.0.iter().copied().zip(found).collect();
    }
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
