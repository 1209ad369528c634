//! All links of one sweep, collected from the rows of its launches.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use ombx_host::device_counters::is_error;
use ombx_record::{
    event::{Round, RoundMark},
    fact::HostFacts,
    file::RunWithRows,
    link::{BENCH, RETEST, ends_of},
    order::sort_by_value,
    result::{Check, Growth, Level, MarkCode, Measurement, Run},
    unit::{Bytes, counted},
    verdict::{Component, Conclusion, Nameable, Sentence, SlowPart, Verdict},
};

use crate::{
    causes::{self, Cause, Errors, Totals},
    verdict::{
        Criteria, Expectation, Hosts, LOOKS, Link, LinkTimes, MIN_FACTOR, MIN_LINKS, MIN_UNITS, MOST_ROWS,
        Reference, SlowComponent, SweptRun, TimesBySize,
        criteria::LEFT_OUT,
        detection::{Detected, among_suspects, at_one_size, slow_of_sizes},
        few_units::{self, MAX_PARTS},
        launches::{Launch, Step, Steps, decisive_median_over, median_over},
        link_name, no_verdict_reason,
        relative::evidence_sentence,
        shared::{SharedPath, Shares},
        times::{Delays, MAX_DELAY, delay_of},
        undecided::Undecided,
        unsteady::{UnsteadyLink, Visits},
    },
};

/// Times of all links of one sweep, and what is needed to describe them. A sweep has one launch or several.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LinkSweep {
    /// Host of each rank.
    pub hosts: Hosts,
    /// Times of all links in each launch.
    launches: Vec<TimesBySize>,
    /// Number of rows of a message size that are kept in a launch; `None` for the usual number.
    most_rows: Option<usize>,
    /// The last launch; `None` before the first.
    last: Option<Launch>,
    steps: Steps,
    visits: Visits,
    shares: Shares,
    /// Communication pattern: the axis `pattern` of the rows.
    pub pattern: String,
    /// Memory of the buffers, the axis `memory`, unless it is that of the host.
    pub memory: Option<String>,
    /// Bytes of one leg by message size. Bandwidths are computed from it.
    leg_bytes: BTreeMap<u64, f64>,
    /// Reason why links cannot be judged.
    obstacle: Option<String>,
    rows: Rows,
    /// Advice and number of rows by level and code of the mark.
    marks: BTreeMap<(Level, MarkCode), (String, usize)>,
    /// Rows whose data were verified, by message size.
    checks: BTreeMap<u64, Checks>,
    /// Facts about the hosts.
    facts: Vec<HostFacts>,
    /// Counters of the hosts' devices that grew.
    grown: Totals,
    /// Errors by the hosts that communicated.
    errors: Errors,
    /// Expectations of the run.
    pub(super) expectations: Vec<Expectation>,
    /// Hosts that could not be reached.
    left_out: Option<String>,
    reference: Option<Arc<Reference>>,
}

/// Number of rows, of those in which ranks waited for a CPU, and of those with marks that are more than notes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Rows {
    all: usize,
    waited: usize,
    /// Rows that waiting may have lengthened by more than [`MAX_DELAY`].
    useless: usize,
    doubtful: usize,
}

/// Number of rows whose data were verified, and of those whose data can be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Checks {
    /// Rows whose check has passed.
    pub passed: usize,
    /// Rows with data that can be verified.
    pub of: usize,
}

impl Checks {
    /// Returns the numbers of rows like this one.
    pub fn new(row: &Measurement, rows: usize) -> Checks {
        let those = |is_so: bool| if is_so { rows } else { 0 };
        Checks { passed: those(row.check == Check::Passed), of: those(row.check != Check::Unsupported) }
    }

    /// Adds others.
    pub fn add(&mut self, Checks { passed, of }: Checks) {
        self.passed += passed;
        self.of += of;
    }
}

impl LinkSweep {
    /// Starts an empty sweep over the ranks of a run.
    pub fn of_run(run: &Run) -> LinkSweep {
        let expectations = Criteria::expectations_of(&run.plan);
        let last = Some(Launch::of_run(run));
        let facts = run.hosts.clone();
        let left_out = run.plan.get(LEFT_OUT).cloned();
        LinkSweep { hosts: Hosts::of_run(run), facts, expectations, left_out, last, ..LinkSweep::default() }
    }

    /// Returns whether a run is the next launch of this sweep.
    pub fn continues_with(&self, run: &Run) -> bool {
        self.last.as_ref().is_some_and(|last| Launch::of_run(run).follows(last))
    }

    /// Starts a run: the next launch of this sweep, or another sweep that is compared with the same reference.
    pub fn begin(&mut self, run: &Run) {
        if self.continues_with(run) {
            self.launches.resize_with(self.launches.len().max(1) + 1, TimesBySize::default);
            self.last = Some(Launch::of_run(run));
        } else {
            let (reference, most_rows) = (self.reference.take(), self.most_rows);
            *self = LinkSweep { most_rows, ..LinkSweep::of_run(run).against(reference) };
        }
    }

    /// Returns whether the current launch is the last one of the sweep.
    pub fn is_last(&self) -> bool {
        self.last.as_ref().is_none_or(Launch::is_last)
    }

    /// Returns the number of launches.
    pub fn launches(&self) -> usize {
        self.launches.len().max(1)
    }

    /// Compares the links with an earlier result too.
    #[must_use]
    pub fn against(self, reference: Option<Arc<Reference>>) -> LinkSweep {
        LinkSweep { reference, ..self }
    }

    /// Keeps all rows, however many, for output that has every link.
    #[must_use]
    pub fn keeping_all(self) -> LinkSweep {
        LinkSweep { most_rows: Some(usize::MAX), ..self }
    }

    /// Adds a run with all its rows: the next launch of this sweep, or another sweep.
    pub fn add_run(&mut self, run: &RunWithRows) {
        self.begin(&run.run);
        run.rounds.iter().for_each(|round| self.add_round(round));
        self.add_rest(run);
    }

    /// Adds what is in no round.
    fn add_rest(&mut self, run: &RunWithRows) {
        run.rows.iter().filter(|row| row.bench == BENCH).for_each(|row| self.add(row));
        self.add_grown(&run.grown);
    }

    /// Adds a run whose rounds are summed up, as [`LinkSweep::add_run`] does.
    pub fn add_swept(&mut self, swept: &SweptRun) {
        self.begin(&swept.run.run);
        swept.links.iter().for_each(|links| self.join(links));
        self.add_rest(&swept.run);
    }

    /// Adds counters that grew after they were read in a row. Once links were measured again, only errors count, as in rows of such links.
    pub fn add_grown(&mut self, grown: &[Growth]) {
        let mut sizes = self.launches.last().into_iter().flat_map(|times| &times.0);
        let is_again = sizes.any(|times| !times.alone.is_empty());
        grown.iter().filter(|one| !is_again || is_error(one)).for_each(|one| self.grown.add(one));
    }

    /// Adds a row of the run.
    pub fn add(&mut self, row: &Measurement) {
        let launch = self.launch();
        self.launches[launch].add(row, &self.hosts, self.most_rows.unwrap_or(MOST_ROWS));
        self.steps.add(row, launch);
        self.visits.add(row, launch, &self.hosts);
        self.shares.add(row, launch);
        self.rows.all += 1;
        self.add_delay(delay_of(&row.trust));
        self.rows.doubtful += usize::from(row.doubts().next().is_some());
        row.trust.iter().for_each(|mark| self.count(mark.level, &mark.code, &mark.advice, 1));
        self.add_shared(row, 1);
        self.add_errors(row, &ends_of(row).into_iter().collect::<Vec<_>>());
        let reason = || no_verdict_reason(row.trust.iter().map(|mark| &mark.code));
        self.obstacle = self.obstacle.take().or_else(reason);
    }

    /// Adds the links of a round of the run.
    pub fn add_round(&mut self, round: &Round) {
        let launch = self.launch();
        self.launches[launch].add_round(round, &self.hosts, self.most_rows.unwrap_or(MOST_ROWS));
        self.steps.add_round(round, launch);
        self.visits.add_round(round, launch, &self.hosts);
        let delays = Delays::of(round);
        self.rows.all += round.len();
        (0..round.len()).for_each(|link| self.add_delay(delays.of_link(link)));
        self.rows.doubtful += round.doubtful();
        for RoundMark { mark, links, .. } in &round.marks {
            self.count(mark.level, &mark.code, &mark.advice, round.count(links));
        }
        self.add_shared(&round.row, round.len());
        if !round.row.grown.is_empty() {
            let links: Vec<[u32; 2]> = round.links().map(|(from, to, _)| [from, to]).collect();
            self.add_errors(&round.row, &links);
        }
        let reason = || no_verdict_reason(round.marks.iter().map(|mark| &mark.mark.code));
        self.obstacle = self.obstacle.take().or_else(reason);
    }

    /// Adds the links of a sweep of the current launch alone.
    fn join(&mut self, of_launch: &LinkSweep) {
        let launch = self.launch();
        self.launches[launch] = of_launch.launches.first().cloned().unwrap_or_default();
        self.steps.join(&of_launch.steps, launch);
        self.visits.join(&of_launch.visits, launch);
        self.shares.join(&of_launch.shares, launch);
        self.leg_bytes.extend(&of_launch.leg_bytes);
        self.memory.clone_from(&of_launch.memory);
        self.pattern.clone_from(&of_launch.pattern);
        self.rows.all += of_launch.rows.all;
        self.rows.waited += of_launch.rows.waited;
        self.rows.useless += of_launch.rows.useless;
        self.rows.doubtful += of_launch.rows.doubtful;
        for ((level, code), (advice, rows)) in &of_launch.marks {
            self.count(*level, code, advice, *rows);
        }
        for (bytes, checks) in &of_launch.checks {
            self.checks.entry(*bytes).or_default().add(*checks);
        }
        self.grown.join(&of_launch.grown);
        self.errors.join(&of_launch.errors);
        self.obstacle = self.obstacle.take().or_else(|| of_launch.obstacle.clone());
    }

    fn add_delay(&mut self, delay: f32) {
        self.rows.waited += usize::from(delay > 1.0);
        self.rows.useless += usize::from(delay > MAX_DELAY);
    }

    fn count(&mut self, level: Level, code: &MarkCode, advice: &str, rows: usize) {
        let known = self.marks.entry((level, code.clone()));
        known.or_insert_with(|| (advice.to_owned(), 0)).1 += rows;
    }

    /// Returns the rows whose data were verified, by message size.
    pub fn checks(&self) -> impl Iterator<Item = (u64, Checks)> {
        self.checks.iter().map(|(bytes, checks)| (*bytes, *checks))
    }

    /// Returns the sums of the counters of the hosts' devices that grew.
    pub fn grown(&self) -> Vec<Growth> {
        self.grown.sums()
    }

    /// Returns the number of rows.
    pub fn row_count(&self) -> usize {
        self.rows.all
    }

    /// Returns the number of rows with marks that are more than notes.
    pub fn doubtful(&self) -> usize {
        self.rows.doubtful
    }

    /// Returns level and code of each mark, its advice, and the number of rows.
    pub fn marks(&self) -> impl Iterator<Item = (Level, &MarkCode, &str, usize)> {
        self.marks.iter().map(|((level, code), (advice, rows))| (*level, code, advice.as_str(), *rows))
    }

    /// Returns the times of all rows of the current launch.
    #[cfg(test)]
    pub(super) fn of_last_launch(&self) -> &TimesBySize {
        self.launches.last().expect("a launch with rows")
    }

    /// Returns the number of the current launch, from 0.
    fn launch(&mut self) -> usize {
        if self.launches.is_empty() {
            self.launches.push(TimesBySize::default());
        }
        self.launches.len() - 1
    }

    /// Adds what these rows share.
    fn add_shared(&mut self, row: &Measurement, rows: usize) {
        if let Some(bytes) = row.bytes {
            self.checks.entry(bytes).or_default().add(Checks::new(row, rows));
        }
        if let (Some(bytes), Some(work)) = (row.bytes, row.work) {
            self.leg_bytes.insert(bytes, work.bytes as f64 / work.legs as f64);
        }
        self.memory = row.axes.get("memory").cloned();
        if let Some(pattern) = row.axes.get("pattern") {
            self.pattern.clone_from(pattern);
        }
        // Candidates are measured more often than other links: only their errors count, whose number is not compared.
        let is_again = row.axes.contains_key(RETEST);
        row.grown.iter().filter(|one| !is_again || is_error(one)).for_each(|one| self.grown.add(one));
    }

    /// Adds the errors that hosts counted while these links were measured. Candidates are measured more often than other links, unless the
    /// ranks are few, so that the rows that measure them again do not count.
    fn add_errors(&mut self, row: &Measurement, links: &[[u32; 2]]) {
        let is_equal = self.hosts.ranks() as usize <= few_units::MAX_UNITS;
        if row.axes.contains_key(RETEST) && !is_equal {
            return;
        }
        for one in &row.grown {
            let hosts_of = |ends: &[u32; 2]| ends.map(|rank| self.hosts.name(rank));
            let partner = |[from, to]: [&'_ str; 2]| match one.host.as_str() {
                host if host == from => Some(to.to_owned()),
                host if host == to => Some(from.to_owned()),
                _ => None,
            };
            let partners: BTreeSet<String> =
                links.iter().map(hosts_of).filter_map(partner).filter(|host| *host != one.host).collect();
            let partner = partners.first().filter(|_| partners.len() == 1);
            self.errors.add(one, partner.map(String::as_str));
        }
    }

    /// Returns the bandwidth in MB/s of a link at a message size. Returns `None` without bytes or time.
    pub fn mb_per_s(&self, bytes: u64, ns: f32) -> Option<f64> {
        let leg_bytes = self.leg_bytes.get(&bytes).copied().filter(|leg| *leg > 0.0 && ns > 0.0)?;
        Some(leg_bytes / f64::from(ns) * 1e3)
    }

    /// Returns the smallest maximum time that the user expects at the smallest size, in microseconds.
    pub fn most_latency_us(&self) -> Option<f64> {
        self.expectations.iter().filter_map(Expectation::most_us).reduce(f64::min)
    }

    /// Returns the largest minimum bandwidth that the user expects at the largest size, in MB/s.
    pub fn least_mb_per_s(&self) -> Option<f64> {
        self.expectations.iter().filter_map(Expectation::least_mb_per_s).reduce(f64::max)
    }

    /// Returns the times of all rows. Those of several launches are medians over the launches.
    pub fn times(&self) -> TimesBySize {
        median_over(&self.launches, &self.hosts)
    }

    /// Returns the times with one entry per link.
    pub fn averaged(&self) -> Vec<LinkTimes> {
        self.times().0.iter().map(LinkTimes::averaged).collect()
    }

    /// Returns the steps of a message size in the order of measuring. A sweep of one pair at a time has none.
    pub fn steps(&self, bytes: u64) -> Vec<Step> {
        self.steps.of_size(bytes)
    }

    /// Judges the links. Nothing else does: renderers read the verdict.
    pub fn verdict(&self) -> Verdict {
        let causes = causes::of_hosts(&self.facts, &self.grown.sums());
        let mut findings = self.findings(&causes);
        findings.errors = self.errors.findings(self.hosts.count(), &self.facts);
        let mut verdict = findings.verdict(&self.hosts);
        self.add_causes(&mut verdict, causes);
        if let (Some(hosts), Some(first)) = (&self.left_out, verdict.sentences.first_mut()) {
            first.text += &format!("; without {hosts}, which could not be reached");
        }
        verdict
    }

    /// Adds to each slow part what may explain it, and at the end what else distinguishes hosts.
    fn add_causes(&self, verdict: &mut Verdict, mut others: Vec<Cause>) {
        let under_load = self.grown.under_load(self.hosts.count(), &self.facts);
        // The sentences on slow parts come first, in the order of the parts.
        for (slow, sentence) in verdict.slow.iter_mut().zip(&mut verdict.sentences) {
            let is_of = |cause: &Cause| slow.hosts.contains(&cause.host);
            let own: Vec<Cause> =
                others.iter().chain(&under_load).filter(|cause| is_of(cause)).cloned().collect();
            slow.causes = own.iter().map(Cause::to_string).collect();
            sentence
                .evidence
                .extend(causes::sentence(&own).map(|causes| format!("possible cause: {causes}")));
        }
        let is_said = |cause: &Cause| {
            verdict.slow.iter().any(|slow| slow.hosts.contains(&cause.host))
                || verdict.sentences.iter().any(|sentence| sentence.text.contains(&cause.text))
        };
        others.retain(|cause| !is_said(cause));
        if let (Some(last), Some(causes)) = (verdict.sentences.last_mut(), causes::sentence(&others)) {
            last.evidence.push(format!("besides, {causes}"));
        }
    }

    /// Returns the findings. `causes` distinguish hosts before their times are looked at.
    fn findings(&self, causes: &[Cause]) -> Findings {
        let mut findings = Findings::default();
        if let Some(why) = &self.obstacle {
            findings.obstacle = Some(why.clone());
            return findings;
        }
        findings.add_paths(self.shares.found(self.remedy_of_waiting()));
        let times = decisive_median_over(&self.launches, &self.hosts);
        let sizes: Vec<LinkTimes> = times.0.iter().map(LinkTimes::averaged).collect();
        findings.sample = sizes.iter().find_map(LinkTimes::sample);
        let mut all = if self.rows.waited > 0 { self.averaged() } else { Vec::new() };
        all.iter_mut().zip(&sizes).for_each(|(all, decisive)| all.delay = decisive.delay);
        let undecided = Undecided::new(&all, &sizes);
        findings.undecided = undecided.clause(&self.hosts);
        for expectation in &self.expectations {
            // Waiting makes times longer, so that all rows can show that a demand is met.
            let rows = if all.is_empty() { &sizes } else { &all };
            expectation.judge(rows, &undecided, self, &mut findings);
        }
        if self.reference.is_some() {
            findings.open.extend(findings.undecided.clone());
        }
        if !sizes.is_empty() && sizes.iter().all(|times| times.sweep.is_empty()) {
            findings.doubt = self.disturbance().or_else(|| findings.undecided.clone());
            return findings;
        }
        if let Some(reference) = &self.reference {
            reference.judge(&sizes, &self.hosts, &mut findings);
        }
        let with_cause: BTreeSet<&str> = causes.iter().map(|cause| cause.host.as_str()).collect();
        let suspects: BTreeSet<u32> = (0..self.hosts.count() as u32)
            .filter(|host| with_cause.contains(self.hosts.name_of(*host)))
            .collect();
        // Two searches share the error probability, as several sizes do.
        let has_two_searches = suspects.len() >= MAX_PARTS && few_units::hides_two_hosts(&self.hosts);
        let tests = sizes.len() * if has_two_searches { 2 } else { 1 };
        let mut detected: Vec<Detected> =
            sizes.iter().map(|of_size| at_one_size(of_size, &self.hosts, tests)).collect();
        for (found, of_size) in detected.iter_mut().zip(&sizes).filter(|_| has_two_searches) {
            let both = among_suspects(of_size, &self.hosts, tests, &suspects);
            let has = |all: &[SlowComponent], one: &SlowComponent| {
                all.iter().any(|slow| slow.component == one.component)
            };
            if !both.is_empty() && found.slow.iter().all(|one| has(&both, one)) {
                let new = both.iter().filter(|one| !has(&found.slow, one));
                findings.suspected.extend(new.map(|one| one.component.clone()));
                // What the search did not explain is no spread of ordinary links.
                (found.slow, found.nameable) = (both, None);
            }
        }
        let unsure = detected.iter_mut().flat_map(|found| std::mem::take(&mut found.unsure)).collect();
        let slow = detected.iter_mut().flat_map(|found| std::mem::take(&mut found.slow)).collect();
        findings.slow = slow_of_sizes(slow);
        let parts: Vec<Component> = findings.slow.iter().map(|slow| slow.component.clone()).collect();
        findings.unsteady = self.visits.unsteady(&self.hosts, &parts);
        let waited = undecided.slow(&all, &self.hosts, tests).into_iter().next().map(|slow| {
            let what = slow.sentence(&self.hosts);
            format!("{what}, but ranks waited for a CPU in these rows: {}", self.remedy_of_waiting())
        });
        let unsure = slow_of_sizes(unsure).into_iter().next().map(|slow| slow.sentence(&self.hosts));
        let unsure =
            few_units::too_coarse(&detected).and_then(|coarse| Some(format!("{}, but {coarse}", unsure?)));
        let doubt = waited.or(unsure).or_else(|| findings.doubt.take());
        let reason = || self.shortage(&sizes).or_else(|| few_units::too_coarse(&detected));
        findings.doubt = doubt.or_else(|| match (self.disturbance(), reason()) {
            // One link is too few however it was measured.
            (Some(waited), Some(reason)) if self.units() >= MIN_UNITS => Some(format!("{waited}; {reason}")),
            (_, reason) => reason,
        });
        let nameable = |found: &Detected| Some(Nameable { bytes: found.bytes, factor: found.nameable? });
        findings.nameable = detected.iter().filter_map(nameable).collect();
        findings.power = few_units::power_clause(&detected, &self.hosts);
        let delay = sizes.iter().map(|times| times.delay).fold(0.0, f64::max);
        findings.waiting = (delay > 0.0).then(|| {
            format!(
                "ranks waited for a CPU, which may have made times up to {:.2} times as long",
                delay.exp()
            )
        });
        findings
    }

    /// Returns the slow parts that are confirmed before the end of the sweep, at one of its looks: a look within the only launch, or
    /// the end of a launch that is not the last.
    pub fn slow_so_far(&self) -> Vec<SlowComponent> {
        if self.obstacle.is_some() {
            return Vec::new();
        }
        let looks = self.last.as_ref().map_or(1, Launch::launch_count).saturating_sub(1).max(LOOKS);
        let times = decisive_median_over(&self.launches, &self.hosts);
        // All looks together have the error probability of the verdict at the end.
        let sizes = times.0.len() * looks;
        slow_of_sizes(times.0.iter().flat_map(|of_size| self.certainly_slow(of_size, sizes)).collect())
    }

    /// Returns the slow parts at one of several sizes that are confirmed before the end of the sweep.
    fn certainly_slow(&self, times: &LinkTimes, sizes: usize) -> Vec<SlowComponent> {
        let found = at_one_size(&times.averaged(), &self.hosts, sizes).slow;
        found.into_iter().filter(|_| !times.alone.is_empty()).collect()
    }

    /// Returns the number of hosts, or of ranks of the only host.
    fn units(&self) -> usize {
        if self.hosts.count() == 1 { self.hosts.ranks() as usize } else { self.hosts.count() }
    }

    /// Returns a clause on the rows in which ranks waited for a CPU, if most did: their times say little about links.
    fn disturbance(&self) -> Option<String> {
        let Rows { all, useless: waited, .. } = self.rows;
        let how_many = if waited == all { "all".to_owned() } else { format!("{waited} of {all}") };
        (2 * waited > all)
            .then(|| format!("ranks waited for a CPU in {how_many} rows: {}", self.remedy_of_waiting()))
    }

    /// Returns what to do about ranks that waited for a CPU: no other program need be at fault where a CPU quota stopped them.
    pub(super) fn remedy_of_waiting(&self) -> &'static str {
        if self.marks.keys().any(|(_, code)| *code == MarkCode::QuotaStops) {
            "raise the CPU quota of the ranks and repeat"
        } else {
            "stop other programs and repeat"
        }
    }

    /// Returns a clause with the two groups into which the times fall at the size where they differ most.
    fn contrast(&self, sizes: &[LinkTimes]) -> Option<String> {
        let (hosts, inside) = (&self.hosts, self.hosts.count() == 1);
        let split = |times: &LinkTimes| {
            let links = times.shortest.iter().filter(|l| hosts.same_host(l.from, l.to) == inside);
            let (ratio, at, links) = split_at_largest_gap(links.copied().collect())?;
            Some((ratio, at, links, times.bytes))
        };
        let (ratio, at, links, bytes) = sizes.iter().filter_map(split).max_by(|a, b| a.0.total_cmp(&b.0))?;
        if ratio < MIN_FACTOR {
            return Some(format!("their times differ by a factor of at most {ratio:.2}"));
        }
        let slow = &links[at..];
        let names: Vec<String> = slow.iter().take(3).map(|l| link_name([l.from, l.to], hosts)).collect();
        let more = if slow.len() > 3 { format!(" and {} more", slow.len() - 3) } else { String::new() };
        let (take, others) =
            (if slow.len() == 1 { "takes" } else { "take" }, if at == 1 { "link" } else { "links" });
        let common = common_host(slow.iter().map(|l| [l.from, l.to]), hosts);
        let common = common.map_or(String::new(), |host| format!("; host {host} is an end of all of them"));
        let ratio = if ratio < 10.0 { format!("{ratio:.2}") } else { format!("{ratio:.0}") };
        let groups = if inside { hosts.ranks() as usize } else { hosts.count() };
        let why = match (groups < MIN_UNITS, inside) {
            (true, false) => "a slow link and a slow host cannot be distinguished",
            (true, true) => "a slow link and a slow rank cannot be distinguished",
            (false, _) => "one or two slow parts do not explain all times",
        };
        Some(format!(
            "{}{more} {take} {ratio} times as long as the other {at} {others} (at {} bytes), but {why}{common}",
            names.join(", "),
            Bytes(bytes)
        ))
    }

    /// Returns why the links are too few for the verdict that nothing is slow, with the ratios that were seen.
    fn shortage(&self, sizes: &[LinkTimes]) -> Option<String> {
        let (hosts, inside) = (&self.hosts, self.hosts.count() == 1);
        let groups = self.units();
        let of_kind = |l: &&Link| hosts.same_host(l.from, l.to) == inside;
        let links = sizes.iter().map(|times| times.sweep.iter().filter(of_kind).count()).min().unwrap_or(0);
        // Few ranks are searched together, which takes no number of links but that of the fewest hosts.
        let is_few = hosts.ranks() as usize <= few_units::MAX_UNITS;
        let least = if is_few { MIN_UNITS * (MIN_UNITS - 1) / 2 } else { MIN_LINKS };
        if groups >= MIN_UNITS && links >= least {
            return None;
        }
        let of = if inside { format!("{groups} ranks") } else { format!("{groups} hosts") };
        let what = match links {
            0 | 1 => counted(links, "link"),
            _ => format!("{links} links between {of}"),
        };
        let why = match links {
            _ if groups < MIN_UNITS => "cannot be compared",
            1 => "is too few for an all-clear",
            _ => "are too few for an all-clear",
        };
        let unit = if inside { "ranks" } else { "hosts" };
        let seen = match self.contrast(sizes) {
            Some(seen) => format!("; {seen}"),
            None => String::new(),
        };
        let needed = format!(
            "an all-clear takes at least {MIN_UNITS} {unit} and {least} links between them; --expect compares each link \
             with a figure"
        );
        Some(format!("{what} {why} ({needed}){seen}"))
    }
}

/// Returns the ratio of the mean times beside the largest gap between links, its place, and the links by time.
fn split_at_largest_gap(mut links: Vec<Link>) -> Option<(f64, usize, Vec<Link>)> {
    sort_by_value(&mut links, |link| link.ns.into());
    let gap = |at: &usize| links[*at].ns / links[*at - 1].ns;
    let at = (1..links.len()).max_by(|a, b| gap(a).total_cmp(&gap(b)))?;
    let mean =
        |links: &[Link]| (links.iter().map(|l| f64::from(l.ns).ln()).sum::<f64>() / links.len() as f64).exp();
    Some((mean(&links[at..]) / mean(&links[..at]), at, links))
}

/// Returns the only host that is an end of every one of several links.
fn common_host(links: impl ExactSizeIterator<Item = [u32; 2]>, hosts: &Hosts) -> Option<&str> {
    if links.len() < 2 {
        return None;
    }
    let ends = links.map(|ends| BTreeSet::from(ends.map(|rank| hosts.number(rank))));
    let common = ends.reduce(|a, b| a.intersection(&b).copied().collect())?;
    common.first().filter(|_| common.len() == 1).map(|host| hosts.name_of(*host))
}

/// What a verdict is made of.
#[derive(Default)]
pub(super) struct Findings {
    /// Reason against any verdict.
    pub(super) obstacle: Option<String>,
    /// Slow components, the slowest first.
    slow: Vec<SlowComponent>,
    /// Slow hosts that were tested because they have a possible cause, and that the times alone do not name.
    suspected: BTreeSet<Component>,
    /// Errors by which hosts stand out.
    errors: Vec<Cause>,
    /// Links that are slow in some of their measurements.
    unsteady: Vec<UnsteadyLink>,
    /// Links that share a bottleneck, the most shared first.
    shared: Vec<SharedPath>,
    /// Clause on the links of groups that share none.
    apart: Option<String>,
    /// Sentences on expectations and a reference that the links miss.
    pub(super) missed: Vec<Sentence>,
    /// Sentences on expectations and a reference that all links meet.
    pub(super) met: Vec<String>,
    /// Sentences on demands that are neither met nor missed, because ranks waited for a CPU.
    pub(super) open: Vec<String>,
    /// Reason why a comparison of the links with each other does not show that nothing is slow.
    pub(super) doubt: Option<String>,
    /// Clause on the smallest slow link that would have been named.
    power: Option<String>,
    /// Clause on what waiting for a CPU may have added to the times that decide.
    waiting: Option<String>,
    /// Message sizes, and the factor of the fastest slow link that would have been named.
    nameable: Vec<Nameable>,
    /// Clause on the sample by which the links are judged.
    sample: Option<String>,
    /// Clause on links that are not judged.
    undecided: Option<String>,
}

impl Findings {
    /// Adds what was found about links that were measured together. Those of a bisection answer a question of the user, as a demand does.
    fn add_paths(&mut self, paths: Vec<SharedPath>) {
        let (shared, others): (Vec<SharedPath>, Vec<SharedPath>) =
            paths.into_iter().partition(|path| path.is_shared);
        for path in others {
            let [text, _] = path.sentence();
            match (path.is_bisection(), path.is_open()) {
                (true, true) => self.open.push(text),
                (true, false) => self.met.push(text),
                (false, _) => self.apart = self.apart.take().or(Some(text)),
            }
        }
        self.shared = shared;
    }

    /// Returns the conclusion. Links that meet a demand of the user are not in doubt because they are few.
    fn conclusion(&self) -> Conclusion {
        let Findings { obstacle, slow, errors, unsteady, shared, missed, met, open, doubt, .. } = self;
        match (obstacle, slow.is_empty() && missed.is_empty(), doubt) {
            (Some(_), ..) if errors.is_empty() => Conclusion::None,
            (None, false, _) => Conclusion::Slow,
            _ if !errors.is_empty() => Conclusion::Errors,
            _ if !unsteady.is_empty() => Conclusion::Unsteady,
            _ if !shared.is_empty() => Conclusion::Shared,
            _ if !open.is_empty() => Conclusion::None,
            (_, true, Some(_)) if met.is_empty() => Conclusion::None,
            _ => Conclusion::Clear,
        }
    }

    /// Returns the sentences of the verdict, the most important first, each with its evidence.
    fn sentences(&self, hosts: &Hosts) -> Vec<Sentence> {
        let of = |conclusion, text: &str| Sentence::new(conclusion, text);
        let errors = self.errors.iter().map(|error| Sentence {
            about: vec![vec![error.host.clone()]],
            ..of(Conclusion::Errors, &error.text)
        });
        if let Some(why) = &self.obstacle {
            return errors.chain([of(Conclusion::None, why)]).collect();
        }
        let suspected = "tested because it has a possible cause: so few times alone do not tell which of \
                         two hosts are slow";
        let suspected =
            |slow: &SlowComponent| self.suspected.contains(&slow.component).then(|| suspected.to_owned());
        let slow = self.slow.iter().map(|slow| Sentence {
            about: slow.about(hosts),
            evidence: [evidence_sentence(&slow.evidence, hosts)].into_iter().chain(suspected(slow)).collect(),
            ..of(Conclusion::Slow, &slow.sentence(hosts))
        });
        let links: Vec<[u32; 2]> = self.slow.iter().filter_map(|slow| slow.component.link()).collect();
        let missed = self.missed.iter().cloned();
        let open = self.open.iter().map(|text| of(Conclusion::None, text));
        let met = open.chain(self.met.iter().map(|text| of(Conclusion::Clear, text)));
        let unsteady = self.unsteady.iter().map(|link| {
            let [text, evidence] = link.sentence(hosts);
            let about = vec![of_link(link.ends, hosts)];
            Sentence { evidence: vec![evidence], about, ..of(Conclusion::Unsteady, &text) }
        });
        let shared = self.shared.first().map(|path| {
            let [text, evidence] = path.sentence();
            let others = self.shared.iter().skip(1).map(SharedPath::name).collect::<Vec<_>>();
            let others = (!others.is_empty()).then(|| format!("so do those from {}", others.join(", ")));
            let evidence = [evidence].into_iter().chain(others).collect();
            Sentence { evidence, ..of(Conclusion::Shared, &text) }
        });
        let found = slow.chain(missed).chain(errors).chain(unsteady).chain(shared);
        let mut all: Vec<Sentence> = found.chain(met).collect();
        let demands = !self.missed.is_empty() || !self.met.is_empty() || !self.open.is_empty();
        match (&self.doubt, &self.power, all.last_mut()) {
            (Some(why), _, Some(last)) if demands => {
                last.evidence.push(format!("not compared with each other: {why}"));
            }
            (Some(why), ..) if self.slow.is_empty() => all.push(of(Conclusion::None, why)),
            (None, power, _) if self.slow.is_empty() => {
                let rest = power.iter().chain(self.undecided.iter().filter(|_| !demands));
                let power: String = rest.map(|clause| format!("; {clause}")).collect();
                let groups = (0..hosts.levels()).map(|level| format!("{}, ", hosts.noun(level)));
                let mut groups: Vec<String> = groups.collect();
                groups.dedup();
                let does = if self.unsteady.is_empty() { "stands out" } else { "is slow all the time" };
                let text = format!("no {}host, rank or link {does}{power}", groups.concat());
                all.push(of(Conclusion::Clear, &text));
            }
            (_, Some(power), Some(last)) => {
                last.evidence.push(format!("besides, {power}, less slow ones more seldom"));
            }
            _ => {}
        }
        if let (Some(waiting), Some(last)) = (&self.waiting, all.last_mut()) {
            last.evidence.push(waiting.clone());
        }
        let is_said =
            all.last().is_some_and(|last| self.undecided.iter().any(|clause| last.text.contains(clause)));
        if let (Some(undecided), Some(last), false) = (&self.undecided, all.last_mut(), is_said) {
            last.evidence.push(undecided.clone());
        }
        if let (Some(apart), Some(last)) = (&self.apart, all.last_mut()) {
            last.evidence.push(apart.clone());
        }
        if let (Some(host), Some(last)) = (common_host(links.into_iter(), hosts), all.last_mut()) {
            last.evidence.push(format!("host {host} is an end of all slow links"));
        }
        if let (Some(sample), Some(last)) = (&self.sample, all.last_mut()) {
            last.evidence.push(format!("judged by {sample}"));
        }
        all
    }

    fn verdict(self, hosts: &Hosts) -> Verdict {
        Verdict {
            conclusion: self.conclusion(),
            sentences: self.sentences(hosts),
            missed: if self.obstacle.is_none() { self.missed.len() } else { 0 },
            slow: self.slow.into_iter().map(|slow| slow.into_part(hosts)).collect(),
            nameable: self.nameable,
        }
    }
}

/// Returns the hosts of the two ends of a link.
pub(super) fn of_link([from, to]: [u32; 2], hosts: &Hosts) -> Vec<String> {
    vec![hosts.name(from).to_owned(), hosts.name(to).to_owned()]
}

impl SlowComponent {
    /// Returns the slow hosts, or the slow link.
    fn about(&self, hosts: &Hosts) -> Vec<Vec<String>> {
        match self.component.link() {
            Some(ends) => vec![of_link(ends, hosts)],
            None => self.clone().into_part(hosts).hosts.into_iter().map(|host| vec![host]).collect(),
        }
    }

    /// Describes the component for programs.
    fn into_part(self, hosts: &Hosts) -> SlowPart {
        let group = |level: usize, group: u32| {
            let (noun, name) = hosts.group_name(level, group);
            (Some(format!("{noun} {name}")), hosts.of_group(level, group))
        };
        let on = |ranks: &[u32]| (None, ranks.iter().map(|rank| hosts.name(*rank)).collect::<Vec<_>>());
        let (part, (name, of), ranks) = match self.component {
            Component::GroupBetween(level, number) => ("group", group(level, number), vec![]),
            Component::GroupWithin(level, number) => ("group_inside", group(level, number), vec![]),
            Component::HostBetween(host) => ("host", (None, vec![hosts.name_of(host)]), vec![]),
            Component::HostWithin(host) => ("host_inside", (None, vec![hosts.name_of(host)]), vec![]),
            Component::Rank(rank) => ("rank", on(&[rank]), vec![rank]),
            Component::Link(a, b) => ("link", on(&[a, b]), vec![a, b]),
            Component::OneWay(from, to) => ("direction", on(&[from, to]), vec![from, to]),
        };
        let hosts = of.into_iter().map(str::to_owned).collect();
        let SlowComponent { component, factor, bytes, evidence } = self;
        SlowPart {
            part: part.into(),
            name,
            hosts,
            ranks,
            factor,
            bytes,
            component,
            evidence,
            causes: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
