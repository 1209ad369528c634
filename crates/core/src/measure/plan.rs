//! The plan: what the user selected for a run.

use std::{collections::BTreeSet, fmt, str::FromStr, time::Duration};

use ombx_host::performance::{self, OpenMeter};
use ombx_record::{
    error::{Error, Result},
    result::{KnownBatches, LOAD_AGAIN, NO_LOAD, RowName},
    unit::Bytes,
};
use serde::{Deserialize, Serialize};

use crate::{
    benchmark::{Chosen, Depth, PairCount, Parameter, ParameterValue},
    random::Shuffle,
};

/// Which rows are measured, and when a row has enough samples.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
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
    /// Bounds of a row, whatever its effort.
    pub bounds: RowBounds,
    /// Iterations per sample; calibrated if `None`.
    pub batch: Option<u64>,
    /// How many iterations are verified.
    pub verify: Verify,
    /// Time after which the figure of a row that is still measured goes to the sink, again and again; never if `None`.
    pub interval: Option<Duration>,
    /// Opens the counters of the thread that measures, which rows then show per operation; nothing is counted if `None`.
    #[serde(with = "performance::of_kernel")]
    pub counters: Option<OpenMeter>,
    /// What this launch takes from those before it.
    pub settings: LaunchSettings,
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

ombx_record::named! {
    /// How many iterations are verified, each with a fresh pattern and outside the timed region.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
    pub enum Verify {
        /// None.
        Off = "off",
        /// Some, within a part of the time of the samples.
        #[default]
        Sampled = "sampled",
        /// As many as were timed.
        Full = "full",
    }
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
}

/// When a row ends.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
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

impl Default for Effort {
    fn default() -> Effort {
        Effort::Precision { precision: 0.01, max_time: Duration::from_secs(1) }
    }
}

impl Plan {
    /// Returns the longest time of sampling for one row; `None` for a fixed number of iterations.
    pub fn row_time(&self) -> Option<Duration> {
        self.effort.time().map(|time| time.max(self.bounds.least_time))
    }

    /// Returns when a row of this message size ends.
    pub fn effort_for(&self, bytes: Bytes) -> Effort {
        match self.effort_above {
            Some((limit, effort)) if bytes > limit => effort,
            _ => self.effort,
        }
    }

    /// Makes it the plan of one launch.
    pub fn set_launch(&mut self, settings: LaunchSettings) {
        if let (Some(time), Effort::Precision { .. }) = (settings.row_time, self.effort) {
            self.effort = Effort::Time(time);
        }
        self.settings = settings;
    }
}

/// Bounds of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RowBounds {
    /// Minimum time of sampling.
    pub least_time: Duration,
    /// Maximum time of sampling with a fixed number of iterations, of which the row then runs fewer; at least one sample.
    pub most_time: Option<Duration>,
    /// Minimum number of single iterations to time for percentiles, if they fit into the time of the row.
    pub least_tail: u64,
}

/// What one launch takes from those before it. `ombx ab` gives it to other builds: a field that one does not know is ignored, and one that
/// it does not get has its default.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LaunchSettings {
    /// Number and order of this launch among several.
    pub launch: Option<Launch>,
    /// Time of each row in this launch.
    pub row_time: Option<Duration>,
    /// Iterations per sample of each row, as an earlier launch calibrated them.
    pub batches: KnownBatches,
    /// What is left of the plan for these ranks.
    pub rest: Rest,
    /// Half the round trip of a cache line between the first two cores of the host, in nanoseconds, as found before the ranks started.
    pub core_to_core_ns: Option<f64>,
}

/// One of several launches of the same plan. Each runs the cases in another order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// Number of this launch, from 1.
    pub number: u32,
    /// Number of launches.
    pub of: u32,
    /// Seed of the order of cases.
    pub order: u64,
}

impl Launch {
    /// Returns the items in the order of this launch.
    pub fn arrange<T>(&self, items: Vec<T>) -> Vec<T> {
        let shuffle = Shuffle::new(u32::try_from(items.len()).unwrap_or(u32::MAX), self.order);
        let mut placed: Vec<(u32, T)> =
            (0..).zip(items).map(|(at, item)| (shuffle.forth(at), item)).collect();
        placed.sort_by_key(|(at, _)| *at);
        placed.into_iter().map(|(_, item)| item).collect()
    }
}

/// What ranks measure of a plan: what earlier ranks of the launch, which have ended early, have not, and what still needs this launch.
/// Without fields, the whole plan.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Rest {
    /// Number of the first benchmark in the order of the launch, from 0.
    pub first: usize,
    /// Last case of this benchmark that is done.
    pub after: Option<RowName>,
    /// Run that is continued.
    pub run: Option<String>,
    /// Cases that have ended their ranks, benchmarks of which no further case is tried, and rows that need no further launch.
    pub left_out: BTreeSet<RowName>,
}

impl Rest {
    /// Returns whether a row is left out.
    pub fn leaves_out(&self, key: &str) -> bool {
        !self.left_out.is_empty() && self.left_out.contains(&RowName::new(key))
    }

    /// Returns what the rest of a later launch is: everything but what is left out.
    #[must_use]
    pub fn of_next_launch(&self) -> Rest {
        Rest { left_out: self.left_out.clone(), ..Rest::default() }
    }
}

/// Message size of congestors, as in GPCNeT.
const USUAL_BYTES: Bytes = Bytes(4096);

/// Load on the ranks that are not measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Under {
    /// None: they sleep.
    Nothing,
    /// Benchmarks that they repeat at the same time, each on a part of the ranks.
    Congestors(Vec<Congestor>),
}

/// A benchmark that is repeated as load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Congestor {
    /// Name of the benchmark.
    pub bench: String,
    /// Message size.
    pub bytes: Bytes,
}

impl Under {
    /// Minimum number of ranks that are kept for a congestor.
    const LEAST_RANKS: u32 = 2;

    /// Returns the benchmarks that are repeated.
    pub fn congestors(&self) -> &[Congestor] {
        match self {
            Under::Nothing => &[],
            Under::Congestors(congestors) => congestors,
        }
    }

    /// Returns the minimum number of ranks that are kept for loads, each measured by itself; 0 without loads.
    pub fn least_ranks(loads: &[Under]) -> u32 {
        let most = loads.iter().map(|load| load.congestors().len().max(1) as u32).max();
        most.map_or(0, |most| most * Under::LEAST_RANKS)
    }
}

/// Reads `nothing`, `p2p.bw`, `p2p.bw:64K`, or several benchmarks at the same time, such as `p2p.bw:64K+p2p.fan_in`.
impl FromStr for Under {
    type Err = Error;

    fn from_str(text: &str) -> Result<Under> {
        if text == NO_LOAD {
            return Ok(Under::Nothing);
        }
        let congestors = text.split('+').map(|part| parse_congestor(text, part));
        congestors.collect::<Result<_>>().map(Under::Congestors)
    }
}

/// Reads one benchmark of a load.
fn parse_congestor(load: &str, part: &str) -> Result<Congestor> {
    let (bench, bytes) = match part.split_once(':') {
        Some((bench, bytes)) => (bench, bytes.parse()?),
        None => (part, USUAL_BYTES),
    };
    if bench.is_empty() {
        return Err(Error::usage(format!(
            "load {load:?} is not nothing, a benchmark, a benchmark and a size such as p2p.bw:64K, or \
             several of these such as p2p.bw:64K+p2p.fan_in"
        )));
    }
    Ok(Congestor { bench: bench.into(), bytes })
}

impl fmt::Display for Under {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Under::Nothing => f.write_str(NO_LOAD),
            Under::Congestors(congestors) => {
                let names = congestors.iter().map(|Congestor { bench, bytes }| format!("{bench}:{bytes}"));
                f.write_str(&names.collect::<Vec<_>>().join("+"))
            }
        }
    }
}

/// Returns the names of loads in rows: of two equal ones, the second has [`LOAD_AGAIN`] after its name.
pub fn load_names(loads: &[Under]) -> Vec<String> {
    let name = |(at, load): (usize, &Under)| {
        if loads[..at].contains(load) { format!("{load}{}", LOAD_AGAIN) } else { load.to_string() }
    };
    loads.iter().enumerate().map(name).collect()
}

/// Checks a list of loads.
///
/// # Errors
/// Usage error for a load that is named three times: rows could not be distinguished.
pub fn check_loads(loads: &[Under]) -> Result<()> {
    let often = |load: &&Under| loads.iter().filter(|other| other == load).count() > 2;
    match loads.iter().find(often) {
        Some(load) => Err(Error::usage(format!("{load} is measured more than twice: name it at most twice"))),
        None => Ok(()),
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

#[cfg(test)]
mod launch_tests {
    use super::*;

    #[test]
    fn launches_shuffle_rows() {
        let launch = Launch { number: 2, of: 5, order: 42 };
        let items: Vec<u32> = (0..40).collect();
        let arranged = launch.arrange(items.clone());
        assert_ne!(arranged, items);
        assert_ne!(arranged, Launch { order: 43, ..launch }.arrange(items.clone()));
        let mut sorted = arranged;
        sorted.sort_unstable();
        assert_eq!(sorted, items);
        assert!(launch.arrange(Vec::<u32>::new()).is_empty());
    }
}

#[cfg(test)]
mod rest_tests {
    use super::*;

    #[test]
    fn rows_are_left_out_by_their_keys() {
        let rest = Rest { first: 2, left_out: [RowName::new("a/")].into(), ..Rest::default() };
        assert!(rest.leaves_out("a/") && !rest.leaves_out("a/bytes=8"));
        assert_eq!(rest.of_next_launch(), Rest { first: 0, ..rest });
        assert!(!Rest::default().leaves_out(""));
    }
}

#[cfg(test)]
mod under_tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Vec<Under> {
        text.split(',').map(|load| load.parse().unwrap()).collect()
    }

    #[test]
    fn loads_are_read_and_named() {
        let loads = read("nothing,p2p.bw,collective.alltoall:64K,nothing");
        assert_eq!(load_names(&loads), ["nothing", "p2p.bw:4K", "collective.alltoall:64K", "nothing-again"]);
        check_loads(&loads).unwrap();
        assert!(check_loads(&read("nothing,p2p.bw,nothing,nothing")).is_err());
        for text in ["", ":4K", "p2p.bw:", "p2p.bw:x"] {
            assert!(text.parse::<Under>().is_err(), "{text}");
        }
    }

    proptest! {
        #![proptest_config(crate::testkit::seeded())]
        #[test]
        fn any_text_is_read_and_printed_or_refused(text in "[a-z.:0-9KM]{0,12}") {
            if let Ok(load) = text.parse::<Under>() {
                prop_assert_eq!(load.to_string().parse::<Under>().unwrap(), load);
            }
        }
    }
}
