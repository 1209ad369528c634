//! All links of one run, collected from its rows.

use std::collections::BTreeMap;

use super::{Hosts, LinkTimes, SlowComponent, TimesBySize, find_slow, no_verdict_reason};
use ombx_core::result::{Measurement, Run};

/// Times of all links of one run, and what is needed to describe them.
#[derive(Debug, Clone, Default)]
pub struct LinkSweep {
    /// Host of each rank.
    pub hosts: Hosts,
    /// Times of all links.
    pub times: TimesBySize,
    /// Communication pattern: the axis `pattern` of the rows.
    pub pattern: String,
    /// Bytes of one leg by message size. Bandwidths are computed from it.
    leg_bytes: BTreeMap<u64, f64>,
    /// Reason why links cannot be judged.
    obstacle: Option<String>,
}

impl LinkSweep {
    /// Starts an empty sweep over the ranks of a run.
    pub fn of_run(run: &Run) -> LinkSweep {
        LinkSweep { hosts: Hosts::of_run(run), ..LinkSweep::default() }
    }

    /// Adds a row of the run.
    pub fn add(&mut self, row: &Measurement) {
        self.times.add(row);
        if let (Some(bytes), Some(work)) = (row.bytes, row.work) {
            self.leg_bytes.insert(bytes, work.bytes as f64 / work.legs as f64);
        }
        if let Some(pattern) = row.axes.get("pattern") {
            self.pattern.clone_from(pattern);
        }
        if self.obstacle.is_none() {
            self.obstacle = no_verdict_reason(row.trust.iter().map(|notice| notice.code.as_str()));
        }
    }

    /// Returns the bandwidth in MB/s of a link at a message size. Returns `None` without bytes or time.
    pub fn mb_per_s(&self, bytes: u64, ns: f32) -> Option<f64> {
        let leg_bytes = self.leg_bytes.get(&bytes).copied().filter(|leg| *leg > 0.0 && ns > 0.0)?;
        Some(leg_bytes / f64::from(ns) * 1e3)
    }

    /// Returns the slow components, the slowest first, or the reason why there is no verdict.
    pub fn verdict(&self) -> Result<Vec<SlowComponent>, String> {
        match &self.obstacle {
            Some(why) => Err(why.clone()),
            None => Ok(find_slow(&self.times.0, &self.hosts)),
        }
    }
}

impl LinkTimes {
    /// Returns the fastest, the median and the slowest time of the sweep, in nanoseconds.
    pub fn range(&self) -> Option<[f32; 3]> {
        let mut ns: Vec<f32> = self.sweep.iter().map(|link| link.ns).collect();
        ns.sort_by(f32::total_cmp);
        Some([*ns.first()?, ns[ns.len() / 2], *ns.last()?])
    }

    /// Returns the time of a link that was measured again alone, in nanoseconds.
    pub fn retested(&self, from: u32, to: u32) -> Option<f32> {
        self.alone.iter().find(|link| (link.from, link.to) == (from, to)).map(|link| link.ns)
    }
}
