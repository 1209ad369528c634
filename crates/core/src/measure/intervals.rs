//! Figures of a row while it is measured: one for each interval of time, between rounds of samples.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    benchmark::{ConnectionCounters, Metric, Role},
    error::Result,
    measure::{
        collect::{RoundSamples, extend},
        opened::OpenKernel,
    },
    result::{Measurement, Samples},
    system::clock::Facts,
};

/// Figure of one interval of a row that is still measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Name of the benchmark.
    pub bench: String,
    /// Message size, if the row has one.
    pub bytes: Option<u64>,
    /// Time of sampling of the row before the interval, and at its end. Time between rounds does not count.
    pub time: [Duration; 2],
    /// What the figure is.
    pub metric: Metric,
    /// Median of the interval: microseconds, or MB/s. `None` if it has no valid one.
    pub median: Option<f64>,
    /// Counters of the connections on which rank 0 sends: retransmits of the interval, and the congestion windows at its end.
    pub connections: Option<ConnectionCounters>,
}

/// The interval of a row that is being filled. Only rank 0 has samples.
pub(crate) struct Intervals {
    length: Duration,
    /// The row without samples.
    row: Measurement,
    samples: Vec<Samples>,
    from: Duration,
    /// End of the interval: a multiple of the length.
    to: Duration,
    /// Retransmits before the interval.
    retransmits: u64,
}

impl Intervals {
    pub(crate) fn new(length: Duration, row: &Measurement) -> Intervals {
        let (row, from, to) = (row.clone(), Duration::ZERO, length);
        Intervals { length, row, samples: Vec::new(), from, to, retransmits: 0 }
    }

    /// Returns the retransmits since the last call and the congestion window now, if rank 0 sends. The first call is before the first interval.
    pub(crate) fn count(
        &mut self,
        kernel: &mut dyn OpenKernel,
        role: Role,
    ) -> Result<Option<ConnectionCounters>> {
        let now = if role == Role::Active { kernel.connections()? } else { None };
        Ok(now.map(|now| {
            let before = std::mem::replace(&mut self.retransmits, now.retransmits);
            ConnectionCounters { retransmits: now.retransmits.saturating_sub(before), ..now }
        }))
    }

    /// Returns how many of the samples of a round fit into the rest of the interval, at least one. `spent` is the time of sampling so
    /// far, and `sample_ns` that of a sample.
    pub(crate) fn part(&self, round: u64, spent: Duration, sample_ns: f64) -> u64 {
        let left = self.to.saturating_sub(spent);
        let fitting = (left.as_nanos() as f64 / sample_ns.max(1.0)).ceil() as u64;
        round.min(fitting.max(1))
    }

    /// Adds the samples of a round. Returns the figure of the interval if the round has ended it. `spent` is the time of sampling so far.
    pub(crate) fn add(
        &mut self,
        (batch, legs, clock): (u64, u64, Facts),
        round: Vec<((u32, u32), RoundSamples)>,
        spent: Duration,
    ) -> Option<Interval> {
        extend(&mut self.samples, batch, round);
        if spent < self.to {
            return None;
        }
        let passed = spent.as_nanos() / self.length.as_nanos().max(1);
        self.to = self.length * u32::try_from(passed + 1).unwrap_or(u32::MAX);
        Some(self.interval(legs, clock, spent))
    }

    /// Returns the figure of the interval that the end of the row cuts short, if it is the greater part of one.
    pub(crate) fn last(&mut self, legs: u64, clock: Facts, spent: Duration) -> Option<Interval> {
        let is_long = spent.saturating_sub(self.from) > self.length / 2;
        is_long.then(|| self.interval(legs, clock, spent))
    }

    /// Returns the figure of the samples since the last interval.
    fn interval(&mut self, legs: u64, clock: Facts, spent: Duration) -> Interval {
        self.row.summary = Measurement::summarise(&std::mem::take(&mut self.samples), legs, clock);
        let time = [std::mem::replace(&mut self.from, spent), spent];
        Interval {
            bench: self.row.bench.clone(),
            bytes: self.row.bytes,
            time,
            metric: self.row.metric,
            median: self.row.headline().map(|headline| headline.value),
            connections: None,
        }
    }
}
