//! Offered and achieved rate of a round of requests, and how fast its backlog grew.

use crate::{
    benchmark::{Figure, Figures},
    stats::{Summary, median},
};

/// Name of the figure with the offered rate, in requests per second.
pub const OFFERED: &str = "offered_rps";
/// Name of the figure with the rate of replies, in requests per second.
pub const ACHIEVED: &str = "achieved_rps";
/// Name of the figure with the growth of the latency in percent of the elapsed time. It is 0 in a steady state. If only a part p of
/// the offered rate is achieved, it tends to (1 - p) / p.
pub const BACKLOG: &str = "backlog_percent";
/// Backlog above which a rate counts as not achieved.
pub const SATURATED_PERCENT: f64 = 1.0;
/// Minimum number of requests for the figures.
const LEAST: usize = 20;
/// Number of parts of a round, whose rates give the interval.
const PARTS: usize = 20;

/// Load of a round.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Load {
    offered: u64,
    requests: usize,
    /// Achieved rate, with the ends of its interval.
    achieved: Option<(f64, Option<[f64; 2]>)>,
    backlog: Option<f64>,
}

impl Load {
    /// Returns the load of an offered rate, before any round.
    pub(super) fn offered(offered: u64) -> Load {
        Load { offered, requests: 0, achieved: None, backlog: None }
    }

    /// Takes a round if it is the longest: scheduled times, arrivals of replies and latencies, in nanoseconds.
    pub(super) fn take(
        &mut self,
        due: impl Iterator<Item = u64>,
        completed: impl Iterator<Item = u64>,
        latencies: &[u64],
    ) {
        if latencies.len() < self.requests {
            return;
        }
        let [due, completed]: [Vec<f64>; 2] =
            [due.map(|ns| ns as f64).collect(), completed.map(|ns| ns as f64).collect()];
        let latencies: Vec<f64> = latencies.iter().map(|ns| *ns as f64).collect();
        self.requests = latencies.len();
        self.achieved = achieved(&completed);
        self.backlog = backlog(&due, &latencies);
    }

    /// Returns the figures.
    pub(super) fn figures(&self) -> Figures {
        let unresolved = || Figure::Unresolved(format!("the achieved rate needs {LEAST} requests"));
        let of = |value: Option<f64>| value.map_or_else(unresolved, Figure::Value);
        let mut figures = Figures::from([
            (OFFERED.to_owned(), Figure::Value(self.offered as f64)),
            (ACHIEVED.to_owned(), of(self.achieved.map(|(rate, _)| rate))),
            (BACKLOG.to_owned(), of(self.backlog)),
        ]);
        if let Some((_, Some([low, high]))) = self.achieved {
            let ends = [("achieved_low_rps", low), ("achieved_high_rps", high)];
            figures.extend(ends.map(|(name, end)| (name.to_owned(), Figure::Value(end))));
        }
        figures
    }
}

/// Returns the rate of replies per second from the first to the last, and its interval from the rates of parts.
fn achieved(completed: &[f64]) -> Option<(f64, Option<[f64; 2]>)> {
    let (first, last) = (completed.first()?, completed.last()?);
    let rate = |requests: usize, from: f64, to: f64| requests as f64 * 1e9 / (to - from);
    let whole = rate(completed.len() - 1, *first, *last);
    if completed.len() < LEAST || !whole.is_finite() {
        return None;
    }
    let part = (completed.len() - 1) / PARTS;
    let ends: Vec<f64> = completed.iter().step_by(part.max(1)).copied().collect();
    let times: Vec<f64> = ends.windows(2).map(|pair| (pair[1] - pair[0]) / part.max(1) as f64).collect();
    let interval = Summary::of_batches(&times).and_then(|summary| summary.ci95);
    // The interval is about the median of parts, and replies may arrive together.
    let interval = interval
        .map(|[low, high]| [(1e9 / high).min(whole), (1e9 / low).max(whole)])
        .filter(|ends| ends.iter().all(|end| end.is_finite() && *end > 0.0));
    Some((whole, interval))
}

/// Returns by how much the latency grew from the first to the last tenth of a round, in percent of the time between them.
fn backlog(due: &[f64], latencies: &[f64]) -> Option<f64> {
    let tenth = latencies.len() / 10;
    if latencies.len() < LEAST {
        return None;
    }
    let last = latencies.len() - tenth;
    let grown = median(&latencies[last..])? - median(&latencies[..tenth])?;
    let elapsed = median(&due[last..])? - median(&due[..tenth])?;
    let percent = 100.0 * grown / elapsed;
    percent.is_finite().then_some(percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the load of 1000 requests per second to a server that takes `service_ns` for each.
    fn load(service_ns: u64) -> Load {
        let due: Vec<u64> = (1..=1000).map(|i| i * 1_000_000).collect();
        let mut free = 0;
        let serve = |due: &u64| {
            free = free.max(*due) + service_ns;
            free
        };
        let completed: Vec<u64> = due.iter().map(serve).collect();
        let latencies: Vec<u64> = due.iter().zip(&completed).map(|(due, at)| at - due).collect();
        let mut load = Load::offered(1000);
        load.take(due.into_iter(), completed.into_iter(), &latencies);
        load
    }

    #[test]
    fn a_rate_above_that_of_the_server_has_a_backlog() {
        let steady = load(990_000);
        assert_eq!(steady.backlog, Some(0.0));
        assert!((steady.achieved.unwrap().0 - 1000.0).abs() < 1e-6);
        let saturated = load(1_250_000);
        let (rate, interval) = saturated.achieved.unwrap();
        assert!((rate - 800.0).abs() < 1e-6, "{rate}");
        assert!(interval.is_some_and(|[low, high]| low <= rate && rate <= high), "{interval:?}");
        assert!((saturated.backlog.unwrap() - 25.0).abs() < 1e-6, "{saturated:?}");
    }

    #[test]
    fn short_rounds_resolve_nothing_and_do_not_replace_long_ones() {
        let mut load = Load::offered(10);
        load.take([1].into_iter(), [2].into_iter(), &[1]);
        assert!(matches!(&load.figures()[ACHIEVED], Figure::Unresolved(why) if why.contains("20 requests")));
        assert_eq!(load.figures()[OFFERED], Figure::Value(10.0));
        let mut long = super::tests::load(10);
        let before = long.clone();
        long.take([1].into_iter(), [2].into_iter(), &[1]);
        assert_eq!(long, before);
    }
}
