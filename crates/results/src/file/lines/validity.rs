//! Conditions that every row of a file fulfils.

use super::line::*;

impl CaseLine<'_> {
    /// Checks a row, both before writing and after reading. The error names the violated condition.
    pub(super) fn validate(&self) -> Result<(), String> {
        let must = |ok: bool, message: &str| if ok { Ok(()) } else { Err(message.to_owned()) };
        must(self.ranks > 0 && self.pairs > 0, "ranks or pairs is 0")?;
        must(self.depth != Some(0), "depth is 0")?;
        must(self.work.as_ref().is_none_or(|w| w.legs > 0), "work.legs is 0")?;
        let is_factor = |factor: f64| factor.is_finite() && factor >= 0.0;
        must(self.bus.as_ref().is_none_or(|bus| is_factor(bus.factor)), "bus.factor is not a factor")?;
        must(self.samples.iter().all(|s| s.batch > 0), "batch is 0")?;
        must(self.tail.iter().all(|s| s.batch == 1), "tail has a batch that is not 1")?;
        let whole = |s: &SamplesLine<'_>| s.started_ns.is_empty() || s.started_ns.len() == s.elapsed_ns.len();
        must(self.samples.iter().all(whole), "started_ns and elapsed_ns have different lengths")?;
        let mut trips = self.samples.iter().chain(&self.tail).filter_map(|s| s.round_trips.as_ref());
        must(trips.all(|r| r.batch > 0 && r.halves <= 2), "round_trips has batch 0 or more than two halves")?;
        must(self.outcome == CaseOutcome::Ok || self.reason.is_some(), "a row that is not ok has no reason")?;
        let corrupt = matches!(self.check, CheckLine::Failed);
        must(!corrupt || self.mismatch.is_some(), "a failed check has no mismatch")?;
        must(!corrupt || self.outcome == CaseOutcome::Failed, "a failed check needs the outcome failed")?;
        let finite = |f: &FigureLine| !matches!(f, FigureLine::Value(x) if !x.is_finite());
        must(self.figures.values().all(finite), "a figure is not a finite number")?;
        self.launches.as_ref().map_or(Ok(()), LaunchesLine::validate)?;
        self.summary.as_ref().map_or(Ok(()), SummaryLine::validate)
    }
}

impl LaunchesLine {
    fn validate(&self) -> Result<(), String> {
        let is_time = |ns: &f64| ns.is_finite() && *ns >= 0.0;
        if self.batch == 0 || !self.medians_ns.iter().all(is_time) {
            return Err("launches has a median that is not a time, or batch 0".into());
        }
        let is_state = |state: &StateLine| {
            let ends = state.within_run_ns.iter().flatten().chain(&state.core_to_core_ns);
            is_time(&state.median_ns)
                && ends.copied().all(|ns| is_time(&ns))
                && (0.0..=1.0).contains(&state.coverage)
                && state.launches.iter().all(|at| *at < self.medians_ns.len())
        };
        if self.states.iter().all(is_state) && self.elapsed_s.is_none_or(|seconds| is_time(&seconds)) {
            Ok(())
        } else {
            Err("launches has a state or a time that cannot be".into())
        }
    }
}

impl SummaryLine {
    fn validate(&self) -> Result<(), String> {
        let times = [
            ("median_ns", Some(self.median_ns)),
            ("min_ns", Some(self.min_ns)),
            ("mean_ns", Some(self.mean_ns)),
            ("max_ns", Some(self.max_ns)),
            ("mad_ns", Some(self.mad_ns)),
            ("p95_ns", self.p95_ns),
            ("p99_ns", self.p99_ns),
            ("p999_ns", self.p999_ns),
            ("ci95_ns", self.ci95_ns.map(|c| c[0])),
            ("ci95_ns", self.ci95_ns.map(|c| c[1])),
        ];
        for (name, time) in times.into_iter().filter_map(|(name, time)| Some((name, time?))) {
            if !(time.is_finite() && time >= 0.0) {
                return Err(format!("{name} is {time}, which is not a time"));
            }
        }
        if self.n == 0 {
            return Err("a summary has no samples".into());
        }
        if !self.lag1.is_finite() {
            return Err(format!("lag1 is {}", self.lag1));
        }
        let intervals = [
            ("ci95_ns", self.ci95_ns),
            ("p95_ci95_ns", self.p95_ci95_ns),
            ("p99_ci95_ns", self.p99_ci95_ns),
            ("p999_ci95_ns", self.p999_ci95_ns),
        ];
        for (name, ends) in intervals {
            if ends.is_some_and(|[low, high]| !(low <= high && low.is_finite() && high.is_finite())) {
                return Err(format!("the low end of {name} is above the high end"));
            }
        }
        if !(self.min_ns <= self.median_ns && self.median_ns <= self.max_ns) {
            return Err("median_ns is not between min_ns and max_ns".into());
        }
        Ok(())
    }
}
