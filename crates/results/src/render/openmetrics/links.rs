//! Gauges of links: few for each link, because there are many links, and the verdict.

use std::io;

use ombx_core::{
    benchmark::Metric,
    result::{Level, Measurement, Outcome, Run},
    system::node_set,
};

use super::{OpenMetrics, Renderer, labels};
use crate::{
    file::RunOutcome,
    runs::hosts,
    verdict::{Conclusion, Nameable, RETEST},
};

impl OpenMetrics {
    /// Takes the row of a link.
    pub(super) fn link(&mut self, row: &Measurement) {
        self.in_sweep = true;
        self.sweep.add(row);
        self.transport = row.axes.get("transport").cloned().unwrap_or_default();
        let end = |axis: &str| row.axes.get(axis).and_then(|rank| rank.parse::<u32>().ok());
        // Links that were measured again keep the marks of the sweep.
        let (Some(from), Some(to), false) = (end("from"), end("to"), row.axes.contains_key(RETEST)) else {
            return;
        };
        let link = self.link_labels([from, to], row.bytes.unwrap_or(0));
        let failed = f64::from(u8::from(matches!(row.outcome, Outcome::Failed(_))));
        self.add("ombx_failed", &link, Some(failed));
        for level in [Level::Caution, Level::Invalid] {
            let marks = row.trust.iter().filter(|mark| mark.level == level).count();
            let named = format!("{link},{}", labels(&[("level", level.name())]));
            self.add("ombx_doubts", &named, Some(marks as f64));
        }
    }

    /// Returns the labels of a link. Their order on a host distinguishes ranks of one host.
    fn link_labels(&self, ends: [u32; 2], bytes: u64) -> String {
        let hosts = &self.sweep.hosts;
        let local = ends.map(|rank| hosts.position(rank).to_string());
        labels(&[
            ("bench", crate::verdict::BENCH),
            ("fabric", &self.fabric),
            ("transport", &self.transport),
            ("pattern", &self.sweep.pattern),
            ("bytes", &bytes.to_string()),
            ("from_host", hosts.name(ends[0])),
            ("from_local_rank", &local[0]),
            ("to_host", hosts.name(ends[1])),
            ("to_local_rank", &local[1]),
        ])
    }

    /// Ends a sweep: adds the times of its links, medians over launches, and the verdict if it is complete. What is no longer slow
    /// has no series; the number of slow parts is always there.
    pub(super) fn end_of_sweep(&mut self, outcome: RunOutcome) {
        for times in self.sweep.times().0 {
            for link in &times.sweep {
                let named = self.link_labels([link.from, link.to], times.bytes);
                self.add("ombx_latency_seconds", &named, Some(f64::from(link.ns) / 1e9));
                let rate = self.sweep.mb_per_s(times.bytes, link.ns).map(|rate| rate * 1e6);
                self.add("ombx_bandwidth_bytes_per_second", &named, rate);
            }
        }
        let Some(verdict) = self.verdict.take().filter(|_| outcome == RunOutcome::Complete) else { return };
        for each in Conclusion::ALL {
            let named = labels(&[("conclusion", each.name())]);
            self.add("ombx_verdict", &named, Some(f64::from(u8::from(each == verdict.conclusion))));
        }
        self.add("ombx_slow_parts", "", Some(verdict.slow.len() as f64));
        self.add("ombx_missed_demands", "", Some(verdict.missed as f64));
        for Nameable { bytes, factor } in &verdict.nameable {
            self.add("ombx_nameable_ratio", &labels(&[("bytes", &bytes.to_string())]), Some(*factor));
        }
        for part in &verdict.slow {
            let hosts: Vec<&str> = part.hosts.iter().map(String::as_str).collect();
            let [from, to] = match (part.ranks.as_slice(), &hosts[..]) {
                ([_, _], [from, to]) => [*from, *to],
                _ => ["", ""],
            };
            let local = part.ranks.iter().map(|rank| self.sweep.hosts.position(*rank).to_string());
            let named = labels(&[
                ("part", &part.part),
                ("name", part.name.as_deref().unwrap_or_default()),
                ("hosts", &node_set::fold(hosts.iter().copied())),
                ("local_ranks", &local.collect::<Vec<_>>().join(",")),
                ("from_host", from),
                ("to_host", to),
            ]);
            self.add("ombx_slow_ratio", &named, Some(part.factor));
        }
    }
}

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
