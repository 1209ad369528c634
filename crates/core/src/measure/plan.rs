//! The plan: what the user selected for a run.

mod known_batches;
mod launch;
mod rest;
mod under;

use std::time::Duration;

pub use self::{
    known_batches::KnownBatches,
    launch::Launch,
    rest::{Rest, RowName},
    under::{Congestor, Under, check_loads, load_names},
};
use crate::{
    benchmark::{Chosen, Depth, PairCount, Parameter, ParameterValue},
    system::performance::OpenMeter,
    unit::Bytes,
};

/// Which rows are measured, and when a row has enough samples.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Message sizes; the benchmark's default if `None`.
    pub sizes: Option<Vec<Bytes>>,
    /// Values of parameters that the user chose.
    pub chosen: Chosen,
    /// Maximum number of ranks that take part, the others are idle; all if `None`.
    pub ranks: Option<u32>,
    /// What runs on other ranks of the job meanwhile, one after the other; empty if no ranks are kept for a load.
    pub under: Vec<Under>,
    /// When a row ends.
    pub effort: Effort,
    /// Effort for messages above a size, as in the OSU benchmarks.
    pub effort_above: Option<(Bytes, Effort)>,
    /// Minimum time of sampling for one row, whatever its effort.
    pub least_time: Duration,
    /// Maximum time of sampling for a row with a fixed number of iterations, of which it then runs fewer; at least one sample.
    pub most_time: Option<Duration>,
    /// Minimum number of single iterations to time for percentiles, if they fit into the time of the row.
    pub least_tail: u64,
    /// Iterations per sample; calibrated if `None`.
    pub batch: Option<u64>,
    /// Iterations per sample of each row, as an earlier launch calibrated them.
    pub known_batches: Option<KnownBatches>,
    /// How many iterations are verified.
    pub verify: Verify,
    /// Time after which the figure of a row that is still measured goes to the sink, again and again; never if `None`.
    pub interval: Option<Duration>,
    /// Opens the counters of the thread that measures, which rows then show per operation; nothing is counted if `None`.
    pub counters: Option<OpenMeter>,
    /// Number of this launch, if there are several.
    pub launch: Option<Launch>,
    /// What is left of the plan for these ranks.
    pub rest: Rest,
    /// Half the round trip of a cache line between the first two cores of the host, in nanoseconds, as found before the ranks started.
    pub core_to_core_ns: Option<f64>,
}

impl Plan {
    /// Returns the first value of a parameter that the user chose, or its default.
    pub fn text(&self, parameter: &Parameter) -> Option<&str> {
        self.chosen.text(parameter).or(parameter.default)
    }

    /// Returns every number of operations in flight that has rows, for benchmarks that stream.
    pub fn depths(&self) -> Vec<u32> {
        let chosen = self.chosen.texts(Depth::PARAMETER);
        let texts = if chosen.is_empty() { Depth::PARAMETER.defaults() } else { chosen.to_vec() };
        texts.iter().filter_map(|text| text.parse().ok()).collect()
    }

    /// Returns the number of pairs of ranks; `None` if the layout decides.
    pub fn pairs(&self) -> Option<u32> {
        self.chosen.chosen::<PairCount>().map(|pairs| pairs.0)
    }
}

/// How many iterations are verified, each with a fresh pattern and outside the timed region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Verify {
    /// None.
    Off,
    /// Some: 64, if they take no longer than half of the samples, and more within 5 % of their time.
    #[default]
    Sampled,
    /// As many as were timed.
    Full,
}

impl Verify {
    /// Reads what users choose.
    ///
    /// # Errors
    /// The sentence for another word.
    pub fn parse(text: &str) -> std::result::Result<Verify, String> {
        match text {
            "sampled" => Ok(Verify::Sampled),
            "full" => Ok(Verify::Full),
            _ => Err("not sampled or full; --no-verify turns verification off".into()),
        }
    }

    /// Returns the name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Verify::Off => "off",
            Verify::Sampled => "sampled",
            Verify::Full => "full",
        }
    }
}

/// When a row ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Effort {
    /// When half the interval is at most `precision` times the median, and at the latest after `max_time`.
    Precision {
        /// Fraction of the median.
        precision: f64,
        /// Maximum time of sampling for one row.
        max_time: Duration,
    },
    /// After this time, with few samples more where iterations are long. For rows whose precision comes from several launches.
    Time(Duration),
    /// After a fixed number of iterations, as in the OSU benchmarks.
    Fixed {
        /// Timed iterations; rounded up to whole batches.
        iterations: u64,
        /// Untimed iterations before the timed ones.
        warmup: u64,
    },
}

impl Effort {
    /// Returns the requested precision as a fraction of the median; infinite if the row does not end by precision.
    pub const fn precision(self) -> f64 {
        match self {
            Effort::Precision { precision, .. } => precision,
            Effort::Time(_) | Effort::Fixed { .. } => f64::INFINITY,
        }
    }

    /// Returns the time of sampling for one row; `None` for a fixed number of iterations.
    pub const fn time(self) -> Option<Duration> {
        match self {
            Effort::Precision { max_time, .. } => Some(max_time),
            Effort::Time(time) => Some(time),
            Effort::Fixed { .. } => None,
        }
    }
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            sizes: None,
            chosen: Chosen::default(),
            ranks: None,
            under: Vec::new(),
            effort: Effort::Precision { precision: 0.01, max_time: Duration::from_secs(1) },
            effort_above: None,
            least_time: Duration::ZERO,
            most_time: None,
            least_tail: 0,
            batch: None,
            known_batches: None,
            verify: Verify::default(),
            interval: None,
            counters: None,
            launch: None,
            rest: Rest::default(),
            core_to_core_ns: None,
        }
    }
}

impl Plan {
    /// Returns the longest time of sampling for one row; `None` for a fixed number of iterations.
    pub fn row_time(&self) -> Option<Duration> {
        self.effort.time().map(|time| time.max(self.least_time))
    }

    /// Returns when a row of this message size ends.
    pub fn effort_for(&self, bytes: Bytes) -> Effort {
        match self.effort_above {
            Some((limit, effort)) if bytes > limit => effort,
            _ => self.effort,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_messages_may_have_another_effort() {
        let [small, large] =
            [1000, 10].map(|iterations| Effort::Fixed { iterations, warmup: iterations / 10 });
        let plan = Plan { effort: small, effort_above: Some((Bytes(8192), large)), ..Plan::default() };
        assert_eq!([1, 8192, 8193].map(|n| plan.effort_for(Bytes(n))), [small, small, large]);
        assert_eq!(Plan { effort_above: None, ..plan }.effort_for(Bytes(1 << 20)), small);
    }

    #[test]
    fn a_plan_lists_all_depths() {
        let mut plan = Plan::default();
        assert_eq!(plan.depths(), [64]);
        plan.chosen.choose([8, 2, 4].map(Depth));
        assert_eq!((plan.depths(), plan.pairs()), (vec![8, 2, 4], None));
    }
}
