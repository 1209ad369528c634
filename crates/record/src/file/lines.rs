//! Lines of a result file: the types of results with a kind, and their checks.

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    file::{Launched, ReadError, Record, Round, RunOutcome, SCHEMA},
    order::sort,
    result::{
        Check, ConnectionCounters, Figure, Growth, Interval, Measurement, Metric, Outcome, OverLaunches,
        Rates, Run, Samples, StateFigure, Tally,
    },
    stats::{Percentile, Summary, order_bounds, quantile_index},
    verdict::Verdict,
};

/// One line. Each launch is a `run`, its rows (`launch`, or `case` if it is the only launch), `grown` if counters grew after the last row, an
/// `end`, and `launched` once its ranks have ended; a `case` per row or a `verdict` follows. Links of a sweep are in `round`s.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(super) enum Line<'a> {
    Run(VersionedRun<'a>),
    Launch(RowWithRates<'a>),
    Case(RowWithRates<'a>),
    Round(&'a Round),
    Grown(AfterRows),
    End(End),
    Launched(Launched),
    Verdict(&'a Verdict),
    Interval(IntervalLine<'a>),
}

/// Figure of an interval of a row that is still measured. Only standard output has such lines; readers of result files skip them.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct IntervalLine<'a> {
    bench: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    /// Time of sampling of the row before the interval.
    from_ns: u64,
    /// Time of sampling of the row at its end.
    to_ns: u64,
    metric: Metric,
    /// Median time of a leg.
    #[serde(skip_serializing_if = "Option::is_none")]
    median_us: Option<f64>,
    /// Median rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    mb_per_s: Option<f64>,
    #[serde(flatten)]
    connections: Option<ConnectionCounters>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct VersionedRun<'a> {
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

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct RowWithRates<'a> {
    #[serde(flatten)]
    row: &'a Measurement,
    /// Rates at the median time. Absent if there are none. Readers compute them again from the times.
    #[serde(skip_serializing_if = "Option::is_none")]
    rates: Option<Rates>,
}

/// Counters of the hosts' devices that grew after they were read in a row.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct AfterRows {
    grown: Vec<Growth>,
}

/// How the run ended, and its numbers of rows.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct End {
    outcome: RunOutcome,
    #[serde(flatten)]
    tally: Tally,
}

/// The field of [`End`] that is no number of rows. A flattened field would keep all others in memory.
#[derive(Deserialize)]
struct OutcomeOfEnd {
    outcome: RunOutcome,
}

/// First fields of every line: its kind, and its schema if it has one.
#[derive(Deserialize)]
struct Head {
    kind: String,
    schema: Option<Version>,
}

/// Returns the first fields of a line. Those of a long line that ombx has written are read without all others.
fn head(text: &str) -> serde_json::Result<Head> {
    let kind = text.strip_prefix(r#"{"kind":""#).and_then(|rest| rest.split_once('"'));
    match kind {
        Some((kind @ ("launch" | "case" | "round"), _)) => Ok(Head { kind: kind.to_owned(), schema: None }),
        _ => serde_json::from_str(text),
    }
}

/// Fields that all versions of the schema have.
#[derive(Deserialize)]
struct Version {
    name: String,
    major: u64,
}

/// Returns a record as one line without its end. Returns an error for a row that no reader would accept.
pub(super) fn to_json(record: &Record) -> Result<Vec<u8>, String> {
    let (name, major, minor) = SCHEMA;
    let line = match record {
        Record::Run(run) => Line::Run(VersionedRun { schema: Schema { name, major, minor }, run }),
        Record::Launch(row) => return row_to_json(row, Line::Launch),
        Record::Case(row) => return row_to_json(row, Line::Case),
        Record::Round(round) => {
            round.check()?;
            Line::Round(round)
        }
        Record::Verdict(verdict) => Line::Verdict(verdict),
        Record::Launched(launched) => {
            check_launched(launched)?;
            Line::Launched(*launched)
        }
        Record::Grown(grown) => Line::Grown(AfterRows { grown: grown.clone() }),
        Record::End(outcome, tally) => Line::End(End { outcome: *outcome, tally: *tally }),
    };
    serde_json::to_vec(&line).map_err(|e| e.to_string())
}

/// Returns the figure of an interval as one line without its end.
pub(super) fn interval_to_json(interval: &Interval) -> Result<Vec<u8>, String> {
    let Interval { bench, bytes, time, metric, median, connections } = interval;
    let [from_ns, to_ns] = time.map(|time| time.as_nanos() as u64);
    let median_of = |wanted: Metric| median.filter(|_| *metric == wanted);
    let line = Line::Interval(IntervalLine {
        bench,
        bytes: *bytes,
        from_ns,
        to_ns,
        metric: *metric,
        median_us: median_of(Metric::Latency),
        mb_per_s: median_of(Metric::Bandwidth),
        connections: *connections,
    });
    serde_json::to_vec(&line).map_err(|e| e.to_string())
}

/// Returns the line of a row without copying its samples. `line` is [`Line::Launch`] for one of several launches, and [`Line::Case`] over all
/// launches, or of the only one.
pub(super) fn row_to_json<'a>(
    row: &'a Measurement,
    line: fn(RowWithRates<'a>) -> Line<'a>,
) -> Result<Vec<u8>, String> {
    check_row(row).map_err(|why| format!("{}: {why}", row.key))?;
    serde_json::to_vec(&line(RowWithRates { row, rates: row.rates() })).map_err(|e| e.to_string())
}

/// Decodes a line. Returns `None` for a kind of record that a later minor version added.
pub(super) fn from_json(text: &str, line: usize) -> Result<Option<Record>, ReadError> {
    let bad = |why: String| ReadError::NotAResult { line, why };
    let head = head(text).map_err(|e| bad(e.to_string()))?;
    let has_schema = head.schema.is_some();
    if let Some(Version { name, major }) = head.schema {
        if name != SCHEMA.0 {
            return Err(bad(format!("its schema is {name:?}")));
        }
        match major {
            0 => return Err(bad("its schema has version 0, which does not exist".into())),
            found if found > u64::from(SCHEMA.1) => {
                return Err(ReadError::NewerVersion { found, known: SCHEMA.1 });
            }
            _ => {}
        }
    }
    let record = match head.kind.as_str() {
        "run" if !has_schema => Err("missing field `schema`".into()),
        "run" => decoded(text).map(|run| Record::Run(Box::new(run))),
        "launch" => row(text).map(|row| Record::Launch(Box::new(row))),
        "case" => row(text).map(|row| match row.launches {
            Some(_) => Record::Case(Box::new(row)),
            None => Record::Launch(Box::new(row)),
        }),
        "round" => decoded(text).and_then(|round: Round| {
            round.check()?;
            Ok(Record::Round(Box::new(round)))
        }),
        "grown" => decoded(text).map(|AfterRows { grown }| Record::Grown(grown)),
        "end" => decoded(text).and_then(|OutcomeOfEnd { outcome }| Ok(Record::End(outcome, decoded(text)?))),
        "launched" => {
            decoded(text).and_then(|launched| check_launched(&launched).map(|()| Record::Launched(launched)))
        }
        "verdict" => decoded(text).map(|verdict| Record::Verdict(Box::new(verdict))),
        _ => return Ok(None),
    };
    record.map(Some).map_err(bad)
}

fn decoded<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|e| e.to_string())
}

fn row(text: &str) -> Result<Measurement, String> {
    let row = decoded(text)?;
    check_row(&row)?;
    Ok(row)
}

/// Returns the JSON Schema of one line.
#[cfg(feature = "schema")]
pub(super) fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(Line<'static>).to_value();
    schema["title"] = "One line of an ombx result file, format 1".into();
    schema
}

/// What the checksum of a line follows, and what follows it.
const CHECKSUM_START: &str = ",\"checksum\":\"";
const CHECKSUM_END: &str = "\"}";

/// Returns the digits of the checksum of these bytes.
fn digits_of(content: &[u8]) -> String {
    format!("{:08x}", crc32fast::hash(content))
}

/// Adds the checksum of the bytes before its closing brace to a JSON object, as its last field.
pub(crate) fn add_checksum(line: &mut Vec<u8>) {
    if line.pop_if(|last| *last == b'}').is_some() {
        let digits = digits_of(line);
        line.extend(format!("{CHECKSUM_START}{digits}{CHECKSUM_END}").into_bytes());
    }
}

/// What the checksum of a line says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checksum {
    Intact,
    Broken,
    /// Other programs may write none.
    Absent,
}

/// Compares a line with its checksum, its last field.
pub(crate) fn checksum_of(line: &str) -> Checksum {
    let found = line.strip_suffix(CHECKSUM_END).and_then(|line| line.rsplit_once(CHECKSUM_START));
    // A value with a quote is no last field: it belongs to an object inside the line.
    match found.filter(|(_, digits)| !digits.contains('"')) {
        None => Checksum::Absent,
        Some((content, digits)) if digits.eq_ignore_ascii_case(&digits_of(content.as_bytes())) => {
            Checksum::Intact
        }
        Some(_) => Checksum::Broken,
    }
}

pub(super) fn is_finite_and_not_negative(ns: f64) -> bool {
    ns.is_finite() && ns >= 0.0
}

/// Checks a row, both before writing and after reading. The error names the violated condition.
pub(super) fn check_row(row: &Measurement) -> Result<(), String> {
    let must = |ok: bool, message: &str| if ok { Ok(()) } else { Err(message.to_owned()) };
    must(row.ranks > 0 && row.pairs > 0, "ranks or pairs is 0")?;
    must(row.depth != Some(0), "depth is 0")?;
    must(row.work.is_none_or(|work| work.legs > 0), "work.legs is 0")?;
    must(row.bus.is_none_or(|bus| is_finite_and_not_negative(bus.factor)), "bus.factor is not a factor")?;
    must(row.samples.iter().all(|s| s.batch > 0), "batch is 0")?;
    must(row.tail.iter().all(|s| s.batch == 1), "tail has a batch that is not 1")?;
    let whole = |s: &Samples| s.started_ns.is_empty() || s.started_ns.len() == s.elapsed_ns.len();
    must(row.samples.iter().all(whole), "started_ns and elapsed_ns have different lengths")?;
    let mut trips = row.samples.iter().chain(&row.tail).filter_map(|s| s.round_trips.as_ref());
    must(trips.all(|r| r.batch > 0 && r.halves <= 2), "round_trips has batch 0 or more than two halves")?;
    let corrupt = matches!(row.check, Check::Failed(_));
    let failed = matches!(row.outcome, Outcome::Failed(_));
    must(!corrupt || failed, "a failed check needs the outcome failed")?;
    let finite = |figure: &Figure| !matches!(figure, Figure::Value(x) if !x.is_finite());
    must(row.figures.values().all(finite), "a figure is not a finite number")?;
    row.launches.as_ref().map_or(Ok(()), check_launches)?;
    row.summary.as_ref().map_or(Ok(()), check_summary)
}

fn check_launches(over: &OverLaunches) -> Result<(), String> {
    if over.batch == 0 || !over.medians_ns.iter().all(|ns| is_finite_and_not_negative(*ns)) {
        return Err("launches has a median that is not a time, or batch 0".into());
    }
    let can_be = |state: &StateFigure| is_possible(state, over.medians_ns.len());
    if over.states.iter().all(can_be) && over.elapsed_s.is_none_or(is_finite_and_not_negative) {
        Ok(())
    } else {
        Err("launches has a state or a time that cannot be".into())
    }
}

/// Returns whether a state of a machine can be one of this number of launches.
fn is_possible(state: &StateFigure, launches: usize) -> bool {
    let ends = state.ends_ns.iter().flatten().chain(&state.core_to_core_ns);
    is_finite_and_not_negative(state.median_ns)
        && ends.copied().all(is_finite_and_not_negative)
        && (0.0..=1.0).contains(&state.coverage)
        && state.launches.iter().all(|at| *at < launches)
}

fn check_summary(summary: &Summary) -> Result<(), String> {
    let Summary { median, min, mean, max, mad, .. } = *summary;
    let times = [("median_ns", median), ("min_ns", min), ("mean_ns", mean), ("max_ns", max), ("mad_ns", mad)];
    let percentiles = [("p95", summary.p95), ("p99", summary.p99), ("p999", summary.p999)];
    let percentiles = percentiles.into_iter().filter_map(|(name, percentile)| Some((name, percentile?)));
    let values = percentiles.clone().map(|(name, Percentile { value, .. })| (name, value));
    for (name, time) in times.into_iter().chain(values) {
        if !is_finite_and_not_negative(time) {
            return Err(format!("{name} is {time}, which is not a time"));
        }
    }
    let intervals = percentiles.filter_map(|(name, Percentile { ci95, .. })| Some((name, ci95?)));
    for (name, [low, high]) in summary.ci95.map(|ends| ("ci95_ns", ends)).into_iter().chain(intervals) {
        if !(is_finite_and_not_negative(low) && high.is_finite() && low <= high) {
            return Err(format!("the interval of {name} is not two ascending times"));
        }
    }
    if summary.n == 0 {
        return Err("a summary has no samples".into());
    }
    if !summary.lag1.is_finite() {
        return Err(format!("lag1 is {}", summary.lag1));
    }
    if !(min <= median && median <= max) {
        return Err("median_ns is not between min_ns and max_ns".into());
    }
    Ok(())
}

/// Checks that the figures of a row follow from its samples, whatever its checksum says. A row without samples passes.
pub(super) fn follows_from_samples(row: &Measurement) -> Result<(), String> {
    let (Some(given), Some(work)) = (&row.summary, row.work) else { return Ok(()) };
    let mut times = Measurement::combine(&row.samples, work.legs);
    let Some(last) = times.len().checked_sub(1) else { return Ok(()) };
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    sort(&mut times);
    // The headline of several pairs is that of the total.
    let is_total = row.samples.iter().any(|samples| !samples.started_ns.is_empty());
    let middle = if is_total { [mean; 2] } else { [times[last / 2], times[last.div_ceil(2)]] };
    let narrowest = bounds(&times, 0.5);
    let mut single = Measurement::combine(row.of_single_iterations(), work.legs);
    sort(&mut single);
    let figures = [
        ("n", given.n == times.len()),
        ("median_ns", is_about(given.median, middle)),
        ("min_ns", is_about(given.min, [times[0]; 2])),
        ("mean_ns", is_about(given.mean, [mean; 2])),
        ("max_ns", is_about(given.max, [times[last]; 2])),
        ("ci95_ns", is_total || contains(given.ci95, narrowest)),
        ("p95", is_percentile(given.p95.as_ref(), 0.95, &single)),
        ("p99", is_percentile(given.p99.as_ref(), 0.99, &single)),
        ("p999", is_percentile(given.p999.as_ref(), 0.999, &single)),
    ];
    match figures.into_iter().find(|(_, follows)| !follows) {
        None => Ok(()),
        Some((name, _)) => Err(format!("{name} of {} does not follow from its samples", row.key)),
    }
}

/// Returns the interval of a quantile of independent samples, which are sorted.
fn bounds(times: &[f64], quantile: f64) -> Option<[f64; 2]> {
    order_bounds(times.len(), quantile).map(|(low, high)| [times[low - 1], times[high - 1]])
}

/// Returns whether a percentile, if there is one, is that of sorted times of single iterations.
fn is_percentile(given: Option<&Percentile>, quantile: f64, single: &[f64]) -> bool {
    given.is_none_or(|given| {
        !single.is_empty()
            && is_about(given.value, [single[quantile_index(single.len(), quantile)]; 2])
            && contains(given.ci95, bounds(single, quantile))
    })
}

/// Returns whether a time lies between two others, but for rounding.
fn is_about(time: f64, [low, high]: [f64; 2]) -> bool {
    let rounding = 1e-6 * high.abs().max(1.0);
    (low - rounding..=high + rounding).contains(&time)
}

/// Returns whether an interval contains that of independent samples, the narrowest one. `None` passes: it claims nothing.
fn contains(interval: Option<[f64; 2]>, narrowest: Option<[f64; 2]>) -> bool {
    interval.is_none_or(|[low, high]| {
        narrowest.is_some_and(|[least, most]| {
            is_about(low.min(least), [low; 2]) && is_about(high.max(most), [high; 2])
        })
    })
}

/// Checks what is known when a launch has ended.
pub(super) fn check_launched(
    Launched { core_to_core_ns, elapsed_s, ended }: &Launched,
) -> Result<(), String> {
    let mut numbers =
        [Some(*elapsed_s), *core_to_core_ns, ended.map(|ended| ended.precision)].into_iter().flatten();
    if numbers.all(is_finite_and_not_negative) {
        Ok(())
    } else {
        Err("it has a number that is not a time or a precision".into())
    }
}

#[cfg(test)]
mod tests {
    use crate::file::lines::*;

    #[test]
    fn a_changed_line_is_noticed() {
        let mut line = br#"{"kind":"end","cases":3}"#.to_vec();
        assert_eq!(checksum_of(std::str::from_utf8(&line).unwrap()), Checksum::Absent);
        add_checksum(&mut line);
        let line = String::from_utf8(line).unwrap();
        assert_eq!(checksum_of(&line), Checksum::Intact);
        assert!(serde_json::from_str::<serde_json::Value>(&line).is_ok());
        assert_eq!(checksum_of(&line.replace(":3", ":4")), Checksum::Broken);
        assert_eq!([checksum_of(""), checksum_of("{}")], [Checksum::Absent; 2]);
    }

    #[test]
    fn a_changed_checksum_is_noticed() {
        let of =
            |digits: &str| checksum_of(&format!("{{\"kind\":\"end\"{CHECKSUM_START}{digits}{CHECKSUM_END}"));
        let right = digits_of(b"{\"kind\":\"end\"");
        assert_eq!([of(&right), of(&right.to_uppercase())], [Checksum::Intact; 2]);
        for wrong in ["12g45678", "+1234567", &right[1..], "", &format!("{right}0")] {
            assert_eq!(of(wrong), Checksum::Broken, "{wrong}");
        }
        let of_other = r#"{"copied":{"file":"a","checksum":"0"},"kind":"note"}"#;
        assert_eq!(checksum_of(of_other), Checksum::Absent);
    }

    #[test]
    fn every_interval_is_of_times() {
        let summary = Summary::of_batches(&[1.0; 20]).unwrap();
        assert_eq!(check_summary(&summary), Ok(()));
        for ends in [[-1.0, 2.0], [2.0, 1.0], [1.0, f64::INFINITY], [f64::NAN, 1.0]] {
            let why = "the interval of ci95_ns is not two ascending times".to_owned();
            assert_eq!(check_summary(&Summary { ci95: Some(ends), ..summary.clone() }), Err(why));
            let why = "the interval of p99 is not two ascending times".to_owned();
            let p99 = Some(Percentile { value: 1.0, ci95: Some(ends) });
            assert_eq!(check_summary(&Summary { p99, ..summary.clone() }), Err(why));
        }
    }

    #[test]
    fn no_line_is_written_that_is_not_read() {
        let launched =
            |elapsed_s| Record::Launched(Launched { core_to_core_ns: None, elapsed_s, ended: None });
        assert!(to_json(&launched(1.0)).is_ok());
        assert!(to_json(&launched(-1.0)).is_err());
    }
}
