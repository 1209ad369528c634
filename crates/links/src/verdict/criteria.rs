//! What the user demands of links: expectations in absolute figures, and an earlier result as a reference.

use std::{collections::BTreeMap, fmt, str::FromStr, sync::Arc};

use ombx_estimate::number;
use ombx_host::node_set;
use ombx_record::{
    file::RunWithRows,
    link,
    order::sort_by_value,
    result::{Measurement, RunOutcome},
    unit::{Bytes, counted},
    verdict::{Conclusion, MOST_NAMED, Sentence},
};
use serde::{Deserialize, Serialize};

use crate::verdict::{
    HostGroups, Hosts, Link, LinkSweep, LinkTimes, link_name,
    sweep::{Findings, of_link},
    times::is_sampled,
    undecided::Undecided,
};

/// Ratio to the slowest run of the reference from which a link is slower than it was. Launches of the same build on a
/// healthy machine differ by less.
const MIN_REFERENCE_FACTOR: f64 = 1.25;
/// Number of links that a sentence names.
const NAMED: usize = 4;
/// Option of a run that holds its expectations.
pub(super) const EXPECT: &str = "expect";
/// Option of a run that holds the hosts that are left out.
pub const LEFT_OUT: &str = "left_out";

/// What ends `ombx links` with a code other than 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum FailOn {
    /// Something slow, and the lack of a verdict.
    #[default]
    Slow,
    /// No verdict at all.
    Nothing,
}

/// What the user says about the links of a run: demands, and groups of hosts.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Criteria {
    /// Expectations in absolute figures.
    pub expectations: Vec<Expectation>,
    /// Earlier result. Only the process that writes the results has it.
    #[serde(skip)]
    pub reference: Option<Arc<Reference>>,
    /// What ends the command with a code other than 0.
    pub fail_on: FailOn,
    /// Groups of hosts that are compared with each other.
    pub groups: HostGroups,
    /// Names of hosts that are left out because they could not be reached.
    pub left_out: Vec<String>,
}

impl Criteria {
    /// Adds the expectations, the hosts that are left out and the groups to the options of a run.
    pub fn describe(&self, plan: &mut BTreeMap<String, String>) {
        let all: Vec<String> = self.expectations.iter().map(Expectation::to_string).collect();
        if !all.is_empty() {
            plan.insert(EXPECT.into(), all.join(" "));
        }
        if !self.left_out.is_empty() {
            plan.insert(LEFT_OUT.into(), node_set::fold(self.left_out.iter().map(String::as_str)));
        }
        self.groups.describe(plan);
    }

    /// Reads the expectations from the options of a run.
    pub(super) fn expectations_of(plan: &BTreeMap<String, String>) -> Vec<Expectation> {
        let words = plan.get(EXPECT).into_iter().flat_map(|text| text.split(' '));
        words.filter_map(|word| word.parse().ok()).collect()
    }
}

/// Figure of a link that an expectation limits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
enum Limit {
    /// Maximum median time at the smallest size, in nanoseconds.
    Latency(f64),
    /// Minimum bandwidth at the largest size, in MB/s.
    Bandwidth(f64),
}

/// Expectation of every link, such as `latency<2us` or `bw>11GB/s`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Expectation {
    text: String,
    limit: Limit,
}

impl FromStr for Expectation {
    type Err = String;

    fn from_str(text: &str) -> Result<Expectation, String> {
        let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        let number = |figure: &str, unit: &str| figure.strip_suffix(unit)?.parse::<f64>().ok();
        let value = |figure: &str, units: &[(&str, f64)]| {
            let found = units.iter().find_map(|(unit, scale)| Some(number(figure, unit)? * scale));
            found.filter(|value| value.is_finite() && *value > 0.0)
        };
        let limit = if let Some(figure) = text.strip_prefix("latency<") {
            value(figure, &[("us", 1e3), ("ms", 1e6), ("ns", 1.0)]).map(Limit::Latency)
        } else if let Some(figure) = text.strip_prefix("bw>") {
            value(figure, &[("MB/s", 1.0), ("GB/s", 1e3)]).map(Limit::Bandwidth)
        } else {
            None
        };
        match limit {
            Some(limit) => Ok(Expectation { text, limit }),
            None => Err("must be latency<TIME with us, ms or ns, or bw>RATE with MB/s or GB/s, such as \
                         'latency<2us' or 'bw>11GB/s'"
                .into()),
        }
    }
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Expectation {
    /// Returns whether the expectation limits a time, which only ping-pongs show.
    pub fn is_latency(&self) -> bool {
        matches!(self.limit, Limit::Latency(_))
    }

    /// Returns the maximum time in microseconds; `None` of a bandwidth.
    pub fn most_us(&self) -> Option<f64> {
        if let Limit::Latency(ns) = self.limit { Some(ns / 1e3) } else { None }
    }

    /// Returns the minimum bandwidth in MB/s; `None` of a time.
    pub fn least_mb_per_s(&self) -> Option<f64> {
        if let Limit::Bandwidth(rate) = self.limit { Some(rate) } else { None }
    }

    pub(super) fn judge(
        &self,
        sizes: &[LinkTimes],
        undecided: &Undecided,
        sweep: &LinkSweep,
        verdict: &mut Findings,
    ) {
        let size = match self.limit {
            Limit::Latency(_) => sizes.iter().enumerate().min_by_key(|(_, times)| times.bytes),
            Limit::Bandwidth(_) => sizes.iter().enumerate().max_by_key(|(_, times)| times.bytes),
        };
        let Some((at, times)) = size.filter(|(_, times)| !times.sweep.is_empty()) else {
            verdict.missed.push(Sentence::new(Conclusion::Slow, format!("{self}: no link was measured")));
            return;
        };
        // Ratio of the time to the expected time.
        let worse = |l: &Link| match self.limit {
            Limit::Latency(ns) => f64::from(l.ns) / ns,
            Limit::Bandwidth(rate) => rate / sweep.mb_per_s(times.bytes, l.ns).unwrap_or(f64::MIN_POSITIVE),
        };
        let figure = |l: &Link| match self.limit {
            Limit::Latency(_) => number::time(l.ns.into()),
            Limit::Bandwidth(_) => number::rate(sweep.mb_per_s(times.bytes, l.ns).unwrap_or(0.0)),
        };
        let mut links: Vec<(Link, f64)> = times.shortest.iter().map(|l| (*l, worse(l))).collect();
        sort_by_value(&mut links, |(_, ratio)| -ratio);
        let name = |l: &Link| format!("{} has {}", link_name([l.from, l.to], &sweep.hosts), figure(l));
        // Links that are not kept are faster than some that are.
        let (all, bytes) = (counted(times.measured.max(links.len()), "link"), Bytes(times.bytes));
        // Links of ranks that waited miss nothing, if they would meet it without waiting.
        let misses = |(_, ratio): &(Link, f64)| *ratio > 1.0;
        let may_meet =
            |(link, ratio): &(Link, f64)| undecided.has(at, link) || ratio / times.delay.exp() <= 1.0;
        let waited: Vec<(Link, f64)> = links.extract_if(.., |one| misses(one) && may_meet(one)).collect();
        let missing = links.iter().take_while(|one| misses(one)).count();
        let at_least = if times.level > 0 { "at least " } else { "" };
        if missing == 0 && !waited.is_empty() {
            verdict.open.push(format!(
                "{self}: {} of {all} at {bytes} bytes would miss it, but ranks waited for a CPU while links were measured: \
                 {}: {}",
                waited.len(),
                sweep.remedy_of_waiting(),
                named(&waited, |(l, _)| name(l))
            ));
        } else if missing == 0 {
            let slowest = links.first().map_or(String::new(), |(l, _)| {
                format!("; the slowest has {} ({})", figure(l), link_name([l.from, l.to], &sweep.hosts))
            });
            verdict.met.push(format!("{self}: met by {all} at {bytes} bytes{slowest}"));
        } else {
            let named = named(&links[..missing], |(l, _)| name(l));
            let text = format!("{self}: missed by {at_least}{missing} of {all} at {bytes} bytes: {named}");
            verdict.missed.push(missed_by(text, &links[..missing], times, &sweep.hosts));
        }
    }
}

/// Returns a sentence on a demand that links miss. A sample of links does not have all of them.
fn missed_by(text: String, links: &[(Link, f64)], times: &LinkTimes, hosts: &Hosts) -> Sentence {
    let are_all = times.level == 0 && links.len() <= MOST_NAMED;
    let about = links.iter().filter(|_| are_all).map(|(l, _)| of_link([l.from, l.to], hosts)).collect();
    Sentence { about, ..Sentence::new(Conclusion::Slow, text) }
}

/// Times of one link in the reference: of the sweep and of the second measurement, each from its slowest run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Before {
    sweep: f32,
    again: f32,
}

/// Earlier result of `ombx links`. Links are found again by the names of their hosts and the positions of their ranks on them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reference {
    name: String,
    /// The largest level of the samples of the reference.
    level: u32,
    links: BTreeMap<(u64, String, String), Before>,
}

/// Returns the option of `ombx links` that chooses a value of an axis.
fn option(axis: &str, value: Option<&str>) -> Option<String> {
    match axis {
        "transport" => Some(format!("--fabric {}", value.unwrap_or("mpi"))),
        "staged" => value.map(|_| "--staged".to_owned()),
        _ => value.map(|value| format!("--{axis} {value}")),
    }
}

impl Reference {
    /// Reads the complete runs of a result file. `name` is that of the file; `choices` are the values that rows of
    /// the run to judge name, and `sizes` its sizes.
    ///
    /// # Errors
    /// A sentence about a file without links, or with links that cannot be compared.
    pub fn from_runs(
        name: &str,
        runs: &[RunWithRows],
        choices: &[(&str, Option<&str>)],
        sizes: &[Bytes],
    ) -> Result<Reference, String> {
        let mut reference = Reference { name: name.to_owned(), ..Reference::default() };
        let mut other = None;
        let mut sweep = LinkSweep::default();
        for run in runs.iter().filter(|run| matches!(run.end, Some((RunOutcome::Complete, _)))) {
            // The launches of one sweep have one time for each link.
            if !sweep.continues_with(&run.run) {
                reference.add(&sweep);
            }
            sweep.begin(&run.run);
            let mut is_chosen = |row: &Measurement| {
                let axis = |name: &str| row.axes.get(name).map(String::as_str);
                let is_chosen = choices.iter().all(|(name, value)| axis(name) == *value);
                if !is_chosen {
                    let options = choices.iter().filter_map(|(name, _)| option(name, axis(name)));
                    other = Some(options.collect::<Vec<_>>().join(" "));
                }
                is_chosen
            };
            let rounds = run.rounds.iter().filter(|round| is_chosen(&round.row)).collect::<Vec<_>>();
            let rows = run.rows.iter().filter(|row| row.bench == link::BENCH && is_chosen(row));
            rows.for_each(|row| sweep.add(row));
            rounds.into_iter().for_each(|round| sweep.add_round(round));
        }
        reference.add(&sweep);
        let known: Vec<u64> = reference.links.keys().map(|(bytes, ..)| *bytes).collect();
        match (known.is_empty(), other) {
            (true, Some(options)) => Err(format!(
                "{name} cannot be the reference: it was measured with {options}. Give the same options"
            )),
            (true, None) => {
                Err(format!("{name} cannot be the reference: it has no complete run of ombx links"))
            }
            _ => match sizes.iter().find(|bytes| !known.contains(&bytes.0)) {
                Some(missing) => Err(format!(
                    "{name} cannot be the reference: it has no links at {missing} bytes. Give the sizes of \
                     the reference by --sizes"
                )),
                None => Ok(reference),
            },
        }
    }

    fn add(&mut self, sweep: &LinkSweep) {
        for times in sweep.averaged() {
            self.level = self.level.max(times.level);
            for l in times.sweep.iter().chain(&times.outliers) {
                let before = self.links.entry(key(&times, l, &sweep.hosts)).or_default();
                before.sweep = before.sweep.max(l.ns);
                before.again = before.again.max(times.retested(l.from, l.to).unwrap_or(0.0));
            }
        }
    }

    pub(super) fn judge(&self, sizes: &[LinkTimes], hosts: &Hosts, verdict: &mut Findings) {
        let name = &self.name;
        let (mut met, mut unknown) = (Vec::new(), 0);
        for times in sizes {
            // Ratios of the sweep, and of each link the smaller of two ratios if it was measured again.
            let (mut sweep, mut links) = (Vec::new(), Vec::new());
            for l in times.sweep.iter().chain(&times.outliers) {
                let Some(before) = self.links.get(&key(times, l, hosts)) else {
                    // Samples of two runs have those links in common that are in the smaller one.
                    unknown += usize::from(is_sampled(self.level.max(times.level), l.from, l.to));
                    continue;
                };
                let ratio = f64::from(l.ns / before.sweep);
                let before_alone = if before.again > 0.0 { before.again } else { before.sweep };
                let again = times.retested(l.from, l.to).map(|ns| f64::from(ns / before_alone));
                if times.is_sampled(l, hosts) {
                    sweep.push(ratio);
                }
                links.push((*l, again.map_or(ratio, |again| again.min(ratio))));
            }
            let Some(overall) = ombx_record::stats::median(&sweep) else { continue };
            sort_by_value(&mut links, |(_, ratio)| -ratio);
            let (all, bytes) = (counted(links.len(), "link"), Bytes(times.bytes));
            let least = MIN_REFERENCE_FACTOR * times.delay.exp();
            if overall >= least {
                verdict.missed.push(Sentence::new(
                    Conclusion::Slow,
                    format!(
                        "links are slower than in {name}: {overall:.2} times as long (median of {all}, at {bytes} bytes)"
                    ),
                ));
            }
            let limit = least * overall.max(1.0);
            let slower = links.iter().take_while(|(_, ratio)| *ratio >= limit).count();
            let one = |(l, ratio): &(Link, f64)| {
                format!("{} takes {ratio:.2} times as long", link_name([l.from, l.to], hosts))
            };
            if slower > 0 {
                let named = named(&links[..slower], one);
                let text = format!("{slower} of {all} are slower than in {name} at {bytes} bytes: {named}");
                verdict.missed.push(missed_by(text, &links[..slower], times, hosts));
            } else if overall >= MIN_REFERENCE_FACTOR
                || links.first().is_some_and(|(_, ratio)| *ratio >= MIN_REFERENCE_FACTOR * overall.max(1.0))
            {
                // Here the limits differ only if ranks waited.
                let slowest = links.first().map_or(String::new(), one);
                verdict.open.extend((overall < least).then(|| {
                    format!(
                        "links may be slower than in {name} at {bytes} bytes, but ranks waited for a CPU, which may have \
                         made times up to {:.2} times as long: {slowest}",
                        times.delay.exp()
                    )
                }));
            } else {
                let slowest = links.first().map_or(String::new(), one);
                met.push(format!(
                    "no link is slower than in {name} at {bytes} bytes: {overall:.2} times as long (median \
                     of {all}); {slowest}"
                ));
            }
        }
        if sizes.is_empty() || unknown == sizes.iter().map(|times| times.sweep.len()).sum::<usize>() {
            verdict.obstacle = Some(format!("no link of this run is in {name}"));
        } else if unknown > 0 {
            verdict.doubt = Some(format!("{} of this run are not in {name}", counted(unknown, "time")));
        } else {
            verdict.met.extend(met);
        }
    }
}

/// Names the first of several links, and says how many there are more.
fn named(links: &[(Link, f64)], one: impl Fn(&(Link, f64)) -> String) -> String {
    let more = links.len().checked_sub(NAMED).filter(|more| *more > 0);
    let more = more.map(|more| format!("{more} more"));
    links.iter().take(NAMED).map(one).chain(more).collect::<Vec<_>>().join(", ")
}

/// Returns the key of a link in a reference.
fn key(times: &LinkTimes, link: &Link, hosts: &Hosts) -> (u64, String, String) {
    let end = |rank: u32| format!("{}#{}", hosts.name(rank), hosts.position(rank));
    let (from, to) = (end(link.from), end(link.to));
    if !times.directed && from > to { (times.bytes, to, from) } else { (times.bytes, from, to) }
}

#[cfg(test)]
mod tests;
