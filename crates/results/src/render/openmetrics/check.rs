//! Gauges of `ombx check`: its result, its rows, and how each row stands to its limits.

use std::io;

use super::{OpenMetrics, Renderer, labels};
use crate::run_info::hosts;
use ombx_core::{
    benchmark::Metric,
    result::{Measurement, Run},
    system::node_set,
};

/// Limit of a row that a check has judged.
#[derive(Debug, Clone, Copy)]
pub struct CheckedLimit {
    /// Kind of the limit: `absolute`, or `baseline` if it follows from good days.
    pub kind: &'static str,
    /// In the unit of the headline of the row: a maximum time, or a minimum bandwidth.
    pub value: f64,
    /// Whether both measurements missed it.
    pub is_missed: bool,
}

impl OpenMetrics {
    /// Adds the result of a check: 1 for this one of all results, 0 for the others.
    pub fn check_result(&mut self, result: &str, all: &[&str]) {
        for each in all {
            let value = f64::from(u8::from(*each == result));
            self.add("ombx_check_result", &labels(&[("result", each)]), Some(value));
        }
    }

    /// Adds a row of a check with its limit. Rows of two limits are added twice.
    ///
    /// # Errors
    /// None: nothing is written before the end.
    pub fn check_row(&mut self, run: &Run, row: &Measurement, limit: CheckedLimit) -> io::Result<()> {
        let out = &mut io::sink();
        self.run(out, run)?;
        self.case(out, row)?;
        let (case, hosts) = (self.case_labels(row), node_set::fold(hosts(run)));
        let case = case.each_ref().map(|(name, value)| (*name, value.as_str()));
        let all = labels(&[&case[..], &[("hosts", hosts.as_str()), ("limit", limit.kind)]].concat());
        self.add("ombx_check_missed", &all, Some(f64::from(u8::from(limit.is_missed))));
        let ratio = row.headline().map(|headline| match row.metric {
            Metric::Latency => headline.value / limit.value,
            Metric::Bandwidth => limit.value / headline.value,
        });
        self.add("ombx_check_limit_ratio", &all, ratio);
        Ok(())
    }
}
