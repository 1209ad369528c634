//! What happens in a run: one enumeration, from the loop that measures to the file and the screen.
//!
//! An event is one line of JSON. Ranks send such lines to the process that has started them, and a result file has those that
//! [`Event::is_kept`] selects.

pub(crate) mod round;

use std::{borrow::Cow, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{
    result::{
        ConnectionCounters, Growth, Interval, Launched, Measurement, Metric, Rates, Run, RunOutcome, Tally,
    },
    verdict::Verdict,
};

pub use self::round::{Round, RoundMark, Rounds};

/// Name, major and minor version of the schema that this version writes. It reads all minor versions of this major version.
pub const SCHEMA: (&str, u32, u32) = ("ombx.result", 1, 0);

/// One line. Each launch is a `run`, its rows (`launch`, or `case` if it is the only launch), `grown` if counters grew after the last row, an
/// `end`, and `launched` once its ranks have ended; a `case` per row or a `verdict` follows. Links of a sweep are in `round`s.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "lowercase")]
#[non_exhaustive]
pub enum Event<'a> {
    /// First event of a run: where, when and how it was measured. A run is one launch.
    Run(
        #[serde(serialize_with = "versioned")]
        #[cfg_attr(feature = "schema", schemars(with = "VersionedRun<'static>"))]
        Cow<'a, Run>,
    ),
    /// Row of one launch, with raw samples.
    #[serde(rename = "launch")]
    Row(
        #[serde(serialize_with = "with_rates")]
        #[cfg_attr(feature = "schema", schemars(with = "RowWithRates<'static>"))]
        Cow<'a, Measurement>,
    ),
    /// Row over all launches, derived from theirs after the last run; of a single launch, its row with raw samples.
    Case(
        #[serde(serialize_with = "with_rates")]
        #[cfg_attr(feature = "schema", schemars(with = "RowWithRates<'static>"))]
        Cow<'a, Measurement>,
    ),
    /// Links of a sweep that were measured at the same time.
    Round(Cow<'a, Round>),
    /// Counters of the hosts' devices that grew after they were read in a row.
    Grown {
        /// The counters.
        grown: Cow<'a, [Growth]>,
    },
    /// Last event of a run.
    End {
        /// How the run ended.
        outcome: RunOutcome,
        /// Its numbers of rows.
        #[serde(flatten)]
        tally: Tally,
    },
    /// What is known when all ranks of a launch have ended. It follows the last run of the launch.
    Launched(Launched),
    /// Verdict on a sweep over links. It follows the last launch and is derived from its rows.
    Verdict(Cow<'a, Verdict>),
    /// Figure of an interval of a row that is still measured. Standard output has such lines; readers of result files skip them.
    Interval(
        #[serde(serialize_with = "as_line", deserialize_with = "from_line")]
        #[cfg_attr(feature = "schema", schemars(with = "IntervalLine<'static>"))]
        Cow<'a, Interval>,
    ),
    /// A benchmark starts.
    #[cfg_attr(feature = "schema", schemars(skip))]
    Benchmark {
        /// Its number in the order of the launch.
        number: usize,
        /// Its name.
        bench: Cow<'a, str>,
    },
    /// A case starts: its row without samples.
    #[cfg_attr(feature = "schema", schemars(skip))]
    Starting(Cow<'a, Measurement>),
    /// The case that has started makes progress: a round of its samples is complete.
    #[cfg_attr(feature = "schema", schemars(skip))]
    Alive,
    /// What a process of a benchmark says about its progress.
    #[cfg_attr(feature = "schema", schemars(skip))]
    Status {
        /// Number of the process.
        process: u32,
        /// Line of text.
        line: Cow<'a, str>,
    },
    /// A rank has started on a host; from that rank, on standard error, before MPI is initialized.
    #[cfg_attr(feature = "schema", schemars(skip))]
    Started {
        /// Name of the host.
        host: Cow<'a, str>,
    },
    /// The process of each rank, by rank.
    #[cfg_attr(feature = "schema", schemars(skip))]
    Ranks {
        /// The processes.
        ranks: Vec<RankProcess>,
    },
    /// The job has failed.
    #[cfg_attr(feature = "schema", schemars(skip))]
    Failed {
        /// The reason.
        why: Cow<'a, str>,
    },
}

/// Process of a rank.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RankProcess {
    /// Process number on its host.
    pub pid: u64,
    /// Name of the host.
    pub host: String,
}

impl<'a> Event<'a> {
    /// Returns a row of one launch.
    pub fn row(row: &'a Measurement) -> Event<'a> {
        Event::Row(Cow::Borrowed(row))
    }

    /// Returns whether a result file has the event. Others tell how a run goes on while it is measured.
    pub fn is_kept(&self) -> bool {
        matches!(
            self,
            Event::Run(_)
                | Event::Row(_)
                | Event::Case(_)
                | Event::Round(_)
                | Event::Grown { .. }
                | Event::End { .. }
                | Event::Launched(_)
                | Event::Verdict(_)
        )
    }

    /// Returns the rows that the event adds: a row, the rows of a round, or none.
    pub fn rows(&self) -> impl Iterator<Item = Cow<'_, Measurement>> {
        let (row, round) = match self {
            Event::Row(row) | Event::Case(row) => (Some(&**row), None),
            Event::Round(round) => (None, Some(&**round)),
            _ => (None, None),
        };
        row.map(Cow::Borrowed).into_iter().chain(round.into_iter().flat_map(Round::rows).map(Cow::Owned))
    }

    /// Returns an event that borrows nothing.
    pub fn into_owned(self) -> Event<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        match self {
            Event::Run(run) => Event::Run(Cow::Owned(run.into_owned())),
            Event::Row(row) => Event::Row(Cow::Owned(row.into_owned())),
            Event::Case(row) => Event::Case(Cow::Owned(row.into_owned())),
            Event::Round(round) => Event::Round(Cow::Owned(round.into_owned())),
            Event::Grown { grown } => Event::Grown { grown: Cow::Owned(grown.into_owned()) },
            Event::End { outcome, tally } => Event::End { outcome, tally },
            Event::Launched(launched) => Event::Launched(launched),
            Event::Verdict(verdict) => Event::Verdict(Cow::Owned(verdict.into_owned())),
            Event::Interval(interval) => Event::Interval(Cow::Owned(interval.into_owned())),
            Event::Benchmark { number, bench } => Event::Benchmark { number, bench: owned(bench) },
            Event::Starting(row) => Event::Starting(Cow::Owned(row.into_owned())),
            Event::Alive => Event::Alive,
            Event::Status { process, line } => Event::Status { process, line: owned(line) },
            Event::Started { host } => Event::Started { host: owned(host) },
            Event::Ranks { ranks } => Event::Ranks { ranks },
            Event::Failed { why } => Event::Failed { why: owned(why) },
        }
    }
}

/// A run with the version of the format.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct VersionedRun<'a> {
    schema: Schema,
    #[serde(flatten)]
    run: &'a Run,
}

/// Version of the format.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Schema {
    /// `ombx.result`.
    name: &'static str,
    /// Readers of another major version cannot read the file.
    major: u32,
    /// Counts additions that readers may ignore.
    minor: u32,
}

fn versioned<S: Serializer>(run: &Run, to: S) -> Result<S::Ok, S::Error> {
    let (name, major, minor) = SCHEMA;
    VersionedRun { schema: Schema { name, major, minor }, run }.serialize(to)
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RowWithRates<'a> {
    #[serde(flatten)]
    row: &'a Measurement,
    /// Rates at the median time. Absent if there are none. Readers compute them again from the times.
    #[serde(skip_serializing_if = "Option::is_none")]
    rates: Option<Rates>,
}

fn with_rates<S: Serializer>(row: &Measurement, to: S) -> Result<S::Ok, S::Error> {
    RowWithRates { row, rates: row.rates() }.serialize(to)
}

/// Figure of an interval of a row that is still measured. Only standard output has such lines; readers of result files skip them.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct IntervalLine<'a> {
    bench: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    /// Time of sampling of the row before the interval.
    from_ns: u64,
    /// Time of sampling of the row at its end.
    to_ns: u64,
    metric: Metric,
    /// Median time of a leg.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    median_us: Option<f64>,
    /// Median rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mb_per_s: Option<f64>,
    #[serde(flatten)]
    connections: Option<ConnectionCounters>,
}

fn as_line<S: Serializer>(interval: &Interval, to: S) -> Result<S::Ok, S::Error> {
    let Interval { bench, bytes, time, metric, median, connections } = interval;
    let [from_ns, to_ns] = time.map(|time| time.as_nanos() as u64);
    let median_of = |wanted: Metric| median.filter(|_| *metric == wanted);
    let line = IntervalLine {
        bench: Cow::Borrowed(bench),
        bytes: *bytes,
        from_ns,
        to_ns,
        metric: *metric,
        median_us: median_of(Metric::Latency),
        mb_per_s: median_of(Metric::Bandwidth),
        connections: *connections,
    };
    line.serialize(to)
}

fn from_line<'de, D: Deserializer<'de>>(from: D) -> Result<Cow<'static, Interval>, D::Error> {
    let IntervalLine { bench, bytes, from_ns, to_ns, metric, median_us, mb_per_s, connections } =
        IntervalLine::deserialize(from)?;
    Ok(Cow::Owned(Interval {
        bench: bench.into_owned(),
        bytes,
        time: [from_ns, to_ns].map(Duration::from_nanos),
        metric,
        median: median_us.or(mb_per_s),
        connections,
    }))
}

#[cfg(test)]
mod tests {
    use crate::{event::*, file};

    #[test]
    fn events_are_read_as_they_were_written() {
        let interval = Interval {
            bench: "p2p.bw".into(),
            bytes: Some(8),
            time: [Duration::from_secs(1), Duration::from_millis(2500)],
            metric: Metric::Bandwidth,
            median: Some(1.5),
            connections: Some(ConnectionCounters { retransmits: 3, ..ConnectionCounters::default() }),
        };
        let row = Measurement::new("a.b", "a.b/bytes=8", Metric::Latency, 2);
        for event in [
            Event::Row(Cow::Owned(row.clone())),
            Event::End { outcome: RunOutcome::Broken, tally: Tally::default() },
            Event::Benchmark { number: 3, bench: "a.b".into() },
            Event::Starting(Cow::Owned(row)),
            Event::Alive,
            Event::Ranks { ranks: vec![RankProcess { pid: 4710, host: "n01".into() }] },
            Event::Status { process: 2, line: "node 2: run 3".into() },
            Event::Interval(Cow::Owned(Interval { connections: None, ..interval.clone() })),
            Event::Interval(Cow::Owned(interval)),
            Event::Failed { why: "rank 1 on n01 ended".into() },
            Event::Started { host: "n01".into() },
        ] {
            let mut line = Vec::new();
            file::write(&mut line, &event).unwrap();
            assert_eq!(file::parse(std::str::from_utf8(&line).unwrap(), 1).unwrap(), Some(event));
        }
        assert_eq!(file::parse("{\"kind\":\"new\"}", 1).unwrap(), None);
    }
}
