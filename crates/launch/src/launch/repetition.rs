//! Repetition of a job: how many launches it has, and what each one takes from those before it.

use std::{collections::BTreeSet, thread, time::Duration};

use ombx_core::{
    benchmark::Benchmark,
    measure::plan::{Launch, LaunchSettings, Rest},
};
use ombx_estimate::launches::{
    Cases, FIRST_ROW_TIME, LEAST_LAUNCHES, LEAST_LONG_LAUNCHES, MOST_LAUNCHES, RowProgress, Schedule,
};
use ombx_host::since::Since;
use ombx_record::{
    result::{Ended, Ending, KnownBatches, Measurement, Outcome, RowName},
    stats::Summary,
};

use crate::{
    job::{
        Job, Work,
        launches::{Goal, LaunchCount, Launches},
    },
    launch::timeline::{Phase, Timeline},
    output::progress::Progress,
};

/// Least and largest time from the start of a launch to the next one, up to the ninth and where the number of launches is open:
/// twice the time of a launch without its samples, within these bounds. Machines change their speed for seconds at a time: launches that
/// are spread over more time see more of it, and so do long samples.
const SPACING: [Duration; 2] = [Duration::from_millis(270), Duration::from_millis(600)];

/// The launches of a job.
pub(super) struct Repetition {
    launches: Launches,
    schedule: Option<Schedule>,
    done: u32,
    since: Since,
    /// Start of the current launch.
    started: Since,
    /// Time between launches in which nothing ran.
    paused: Duration,
    /// Time of all samples.
    sampled: Duration,
    /// The same before the current launch.
    sampled_before: Duration,
    /// Maximum time of a row in a launch; `None` if the user fixed the number of iterations.
    most: Option<Duration>,
    /// The launches are sweeps over links, whose rows are no cases.
    are_sweeps: bool,
    /// The user's limit for the whole job.
    timeout: Option<Duration>,
    row_time: Duration,
    batches: KnownBatches,
}

impl Repetition {
    /// Returns the launches of a job, which has spent some of its time already.
    pub(super) fn new(job: &Job, spent: Duration) -> Repetition {
        let schedule = match job.launches.count {
            LaunchCount::Until { budget, is_spread: true, .. } => Some(Schedule::spread(budget)),
            LaunchCount::Until { budget, enough, .. } => {
                Some(Schedule::new(job.launches.goal.precision, budget, enough))
            }
            LaunchCount::Fixed(_) | LaunchCount::AtMost { .. } => None,
        };
        // The impact of a load is a quotient of two rows of one launch.
        let schedule =
            schedule.map(|schedule| if job.work.has_loads() { schedule.keeping_rows() } else { schedule });
        let most = job.work.row_time();
        Repetition {
            launches: job.launches,
            schedule,
            done: 0,
            since: Since::now(),
            started: Since::now(),
            paused: Duration::ZERO,
            sampled: Duration::ZERO,
            sampled_before: Duration::ZERO,
            most,
            are_sweeps: matches!(job.work, Work::Links(..)),
            timeout: job.start.timeout.map(|timeout| timeout.saturating_sub(spent)),
            row_time: most.map_or(FIRST_ROW_TIME, |most| most.min(FIRST_ROW_TIME)),
            batches: KnownBatches::default(),
        }
    }

    /// Returns the number of the next launch, from 1, and how many are expected.
    pub(super) fn position(&self) -> (u32, u32) {
        let expected = match (&self.schedule, self.launches.chosen()) {
            (_, Some(count)) => count,
            (Some(schedule), _) if self.done > 0 => {
                schedule.expected(self.done, self.since.elapsed() / self.done)
            }
            _ => LEAST_LAUNCHES,
        };
        (self.done + 1, expected.max(self.done + 1))
    }

    /// Begins a launch, and adds what it takes from those before it.
    pub(super) fn begin(&mut self, settings: &mut LaunchSettings) {
        self.started = Since::now();
        if self.launches.is_one() {
            return;
        }
        let number = self.done + 1;
        let of = self.launches.chosen().unwrap_or(MOST_LAUNCHES);
        settings.launch =
            Some(Launch { number, of, order: self.launches.seed.wrapping_add(u64::from(number)) });
        settings.row_time = self.most.map(|_| self.row_time);
        settings.batches = self.batches.clone();
    }

    /// Returns what is left of the user's limit for the whole job, or `limit` without one.
    pub(super) fn time_left(&self, limit: Duration) -> Duration {
        self.timeout.map_or(limit, |timeout| timeout.saturating_sub(self.since.elapsed()))
    }

    /// Returns the time since the first launch began, in seconds.
    pub(super) fn elapsed_s(&self) -> f64 {
        self.since.elapsed().as_secs_f64()
    }

    /// Records a complete launch. Returns why no other one follows, or `None` if one does.
    pub(super) fn launched(&mut self, cases: &Cases, progress: &Progress) -> Option<Ended> {
        let ended = self.ended(cases, progress);
        if let (None, Some(most)) = (ended, self.most) {
            let fixed = self.since.elapsed().saturating_sub(self.paused + self.sampled) / self.done;
            let is_left = |row| self.schedule.as_ref().is_none_or(|schedule| !schedule.leaves_out(row));
            self.row_time = ombx_estimate::launches::row_time(cases, is_left, fixed, most);
        }
        ended
    }

    /// Counts a complete launch. Returns why no other one follows, or `None` if one does.
    fn ended(&mut self, cases: &Cases, progress: &Progress) -> Option<Ended> {
        self.done += 1;
        let Goal { precision, is_asked } = self.launches.goal;
        let ended = |why| Some(Ended { why, precision, is_asked });
        if self.are_sweeps {
            return ended(Ending::Fixed).filter(|_| !self.is_below_chosen());
        }
        if self.done == 1 {
            self.batches = cases.batches();
        }
        let spent = self.since.elapsed();
        let sampled = cases.all().flatten().filter_map(|row| row.phases).map(|phases| phases.sample_ns).sum();
        self.sampled_before = std::mem::replace(&mut self.sampled, Duration::from_nanos(sampled));
        let rows: Vec<_> =
            cases.groups().iter().flat_map(ombx_estimate::launches::Group::estimates).collect();
        let measured = || rows.iter().filter(|row| row.outcome == Outcome::Ok);
        if measured().next().is_none() {
            // Another launch would skip the same cases, or fail in the same way.
            return ended(Ending::Fixed);
        }
        let next = spent + spent / self.done;
        let Some(schedule) = &mut self.schedule else {
            return match self.launches.count {
                _ if !self.is_below_chosen() => ended(Ending::Fixed),
                LaunchCount::AtMost { count, budget } if next > budget => {
                    self.say_too_few(progress, count, spent, ": give a longer --budget, or fewer cases");
                    ended(Ending::Budget)
                }
                _ => None,
            };
        };
        let of_row = |row: &Measurement| RowProgress {
            name: RowName::new(&row.key),
            in_state: row.launches_in_state() as u32,
            reached: row.summary.as_ref().and_then(Summary::precision),
        };
        let mut rows: Vec<RowProgress> = measured().map(of_row).collect();
        // Two parts of a suite may measure the same row, which ends when both have ended.
        rows.sort_by_key(|row| row.name);
        rows.dedup_by(|next, kept| {
            let is_same = next.name == kept.name;
            if is_same {
                kept.in_state = kept.in_state.min(next.in_state);
                kept.reached = kept.reached.zip(next.reached).map(|(one, other)| one.max(other));
            }
            is_same
        });
        let ending =
            schedule.ending(ombx_estimate::launches::Progress { done: self.done, spent, rows: &rows });
        let late = self.timeout.is_some_and(|timeout| next > timeout);
        let ending = ending.or(late.then_some(Ending::Budget))?;
        if ending == Ending::Budget && self.done < LEAST_LONG_LAUNCHES {
            let option = if late { "--timeout" } else { "--budget" };
            let why = format!(": a 95 % interval needs 6. Give a longer {option}, or fewer cases");
            self.say_too_few(progress, LEAST_LONG_LAUNCHES, spent, &why);
        }
        ended(ending)
    }

    /// Prints that the run ends after fewer launches than wanted, which have taken this time, and what to do.
    fn say_too_few(&self, progress: &Progress, wanted: u32, spent: Duration, advice: &str) {
        let (done, each) = (self.done, (spent / self.done).as_secs_f64());
        progress.suspend(|| {
            note_line!("ombx: {done} instead of {wanted} launches, because each takes {each:.2} s{advice}");
        });
    }

    /// Returns the rows that the next launch leaves out.
    pub(super) fn left_out(&self) -> impl Iterator<Item = RowName> {
        self.schedule.iter().flat_map(Schedule::left_out)
    }

    fn is_below_chosen(&self) -> bool {
        self.launches.chosen().is_some_and(|count| self.done < count)
    }

    /// Waits for the time of the next launch.
    pub(super) fn pause(&mut self, timeline: &Timeline) {
        let LaunchCount::Until { budget, is_spread, .. } = self.launches.count else { return };
        timeline.enter(Phase::Pauses);
        let sampled = self.sampled.saturating_sub(self.sampled_before);
        let took = self.started.elapsed();
        let short = if self.done < LEAST_LAUNCHES { pause(took, sampled) } else { Duration::ZERO };
        // Intervals of a run of minutes are about these minutes.
        let even = if is_spread { (budget / MOST_LAUNCHES).saturating_sub(took) } else { Duration::ZERO };
        let pause = short.max(even);
        thread::sleep(pause);
        self.paused += pause;
    }
}

/// Returns the time to wait after a launch that took `took`, of which `sampled` were samples.
fn pause(took: Duration, sampled: Duration) -> Duration {
    (2 * took.saturating_sub(sampled)).clamp(SPACING[0], SPACING[1]).saturating_sub(took)
}

/// Benchmarks in a row that end their ranks, and end the command with that; cases in a row of one benchmark, of which no further case is
/// tried then.
const MOST_IN_A_ROW: usize = 3;
/// Maximum number of cases that end their ranks, and of rows that are left out because they are precise. Every rank gets their list.
const MOST_CRASHED: usize = 1500;
const MOST_PRECISE: usize = 750;

/// Ranks that have ended before all their rows had arrived.
pub(super) struct Early {
    /// Why they have ended.
    pub(super) why: String,
    /// Whether a rank has printed why.
    pub(super) is_said: bool,
    /// The case in which they have ended; `None` outside of cases.
    pub(super) case: Option<Box<Measurement>>,
    /// Number of the benchmark that ran, in the order of the launch.
    pub(super) number: usize,
    /// The last case of this benchmark whose rows have arrived.
    pub(super) done: Option<RowName>,
    /// Its name.
    pub(super) bench: String,
    /// Run of these ranks.
    pub(super) run: String,
    /// Number of rows that were measured.
    pub(super) measured: u64,
}

/// Returns benchmark and size of a row.
pub(super) fn named(row: &Measurement) -> String {
    row.bytes.map_or(row.bench.clone(), |bytes| format!("{}, {bytes} bytes", row.bench))
}

/// Rows of the benchmark that runs which have arrived in this launch, from all ranks that have measured it.
#[derive(Default)]
pub(super) struct Arrived {
    /// Number of the benchmark in the order of the launch.
    number: usize,
    rows: BTreeSet<RowName>,
}

impl Arrived {
    /// Takes note of the benchmark that runs.
    pub(super) fn enter(&mut self, number: usize) {
        if number != self.number {
            *self = Arrived { number, ..Arrived::default() };
        }
    }

    /// Adds a row. Returns whether it has not arrived before: new ranks may repeat the rows of earlier ones.
    pub(super) fn add(&mut self, key: &str) -> bool {
        self.rows.insert(RowName::new(key))
    }
}

/// What is known of cases that have ended their ranks.
#[derive(Default)]
pub(super) struct Restarts {
    fails_fast: bool,
    /// Benchmarks of the job, and its number of ranks.
    benches: Vec<&'static Benchmark>,
    ranks: u32,
    pub(super) arrived: Arrived,
    /// What the next ranks measure, apart from `precise`.
    rest: Rest,
    /// Rows that need no further launch.
    precise: BTreeSet<RowName>,
    /// Benchmarks of the ends without a measured row in between.
    in_a_row: Vec<String>,
    /// How many of them were outside of cases since the last one inside.
    between_cases: usize,
    /// How often ranks have ended early.
    pub(super) ends: u64,
}

/// What follows the early end of ranks: rows, and new ranks unless there is an error.
pub(super) struct Aftermath {
    pub(super) rows: Vec<Measurement>,
    /// Sentence about the end.
    pub(super) sentence: String,
    pub(super) ends: bool,
}

impl Restarts {
    pub(super) fn new(job: &Job) -> Restarts {
        Restarts {
            fails_fast: job.start.fail_fast,
            benches: job.work.choices().into_iter().map(|choice| choice.bench).collect(),
            ranks: job.extent.ranks,
            rest: job.settings.rest.clone(),
            ..Restarts::default()
        }
    }

    /// Leaves rows that need no further launch out of the next one, as many as an argument has room for.
    pub(super) fn leave_out(&mut self, rows: impl Iterator<Item = RowName>) {
        self.precise = rows.take(MOST_PRECISE).collect();
    }

    /// Begins with the first ranks of a kind in a launch.
    pub(super) fn begin(&mut self) {
        self.arrived = Arrived::default();
        self.rest = self.rest.of_next_launch();
    }

    /// Returns what the next ranks measure.
    pub(super) fn rest(&self) -> Rest {
        let left_out = self.rest.left_out.union(&self.precise).copied().collect();
        Rest { left_out, ..self.rest.clone() }
    }

    /// Takes note of ranks that have measured everything that was left.
    pub(super) fn completed(&mut self) {
        self.in_a_row.clear();
        self.between_cases = 0;
    }

    /// Takes note of an end, and returns what follows.
    pub(super) fn add(&mut self, early: Early) -> Aftermath {
        self.ends += 1;
        if early.measured > 0 {
            self.completed();
        }
        self.in_a_row.push(early.bench.clone());
        self.between_cases = if early.case.is_none() { self.between_cases + 1 } else { 0 };
        let of_this = self.in_a_row.iter().rev().take_while(|bench| **bench == early.bench).count();
        let is_first = self.arrived.rows.is_empty();
        // Ranks that have ended between two cases may have done so by chance once; those before the first case would do so again.
        let is_stuck = early.case.is_none() && (is_first || self.between_cases.min(of_this) > 1);
        let place = match &early.case {
            Some(row) => format!(" in {}", named(row)),
            None if is_first => format!(" before the first case of {}", early.bench),
            None => format!(" between cases of {}", early.bench),
        };
        let mut rows = Vec::new();
        let run = self.rest.run.take().unwrap_or(early.run);
        // Ranks without a new row of the benchmark have begun after the last row of earlier ones.
        let earlier = self.rest.after.filter(|_| self.rest.first == early.number);
        let after = early.done.or(earlier);
        self.rest = Rest { first: early.number, after, run: Some(run), ..self.rest.of_next_launch() };
        if let Some(case) = early.case {
            self.rest.left_out.insert(RowName::new(&case.key));
            rows.push(Measurement { outcome: Outcome::Failed(early.why.clone()), ..*case });
        }
        if is_stuck || of_this >= MOST_IN_A_ROW {
            (self.rest.first, self.rest.after) = (early.number + 1, None);
            let outcome = if is_stuck {
                Outcome::Failed(format!("{}{place}", early.why))
            } else {
                Outcome::Skipped(format!(
                    "left out, because ranks have ended early in {of_this} of its cases one after the other"
                ))
            };
            rows.extend(self.whole(&early.bench, outcome));
        }
        rows.retain(|row| self.arrived.add(&row.key));
        let mut benches = self.in_a_row.clone();
        benches.dedup();
        let what =
            if early.is_said { format!("ranks ended early{place}") } else { format!("{}{place}", early.why) };
        let is_end =
            |why: String| Aftermath { sentence: format!("{what}{why}"), ends: true, rows: rows.clone() };
        if self.fails_fast {
            return is_end(String::new());
        }
        if benches.len() >= MOST_IN_A_ROW {
            let names = benches.join(", ");
            return is_end(format!(
                "; {} benchmarks in a row have ended their ranks ({names}), so that no further one is tried",
                benches.len()
            ));
        }
        if self.rest.left_out.len() > MOST_CRASHED {
            return is_end(format!("; more than {MOST_CRASHED} cases have ended their ranks"));
        }
        let sentence = format!("{what}; new ranks measure what is left");
        Aftermath { rows, sentence, ends: false }
    }

    /// Leaves a benchmark out from now on, and returns its row.
    fn whole(&mut self, name: &str, outcome: Outcome) -> Option<Measurement> {
        let bench = self.benches.iter().find(|bench| bench.name == name)?;
        let key = format!("{name}/");
        self.rest.left_out.insert(RowName::new(&key));
        let empty = Measurement::new(name, key, bench.described.metric, self.ranks);
        Some(Measurement { aggregation: bench.ranks.layout.aggregation(), outcome, ..empty })
    }
}

#[cfg(test)]
mod tests {
    use crate::launch::repetition::*;

    #[test]
    fn rows_that_are_precise_are_left_out_beside_those_that_crash() {
        let mut restarts = Restarts { ranks: 2, ..Restarts::default() };
        let named = |rows: std::ops::Range<usize>| rows.map(|at| RowName::new(&at.to_string()));
        assert_eq!(restarts.rest(), Rest::default());
        // Each launch names the rows of earlier ones again.
        for rows in [400, 500, 700] {
            restarts.leave_out(named(0..rows));
            assert_eq!(restarts.rest().left_out.len(), rows);
        }
        restarts.leave_out(named(0..5000));
        restarts.rest.left_out = named(9000..9400).collect();
        assert_eq!(restarts.rest().left_out.len(), MOST_PRECISE + 400);
    }

    #[test]
    fn short_launches_are_spread_over_more_time() {
        let ms = Duration::from_millis;
        // One row: with a quick start, with a slow one, and with samples of a tenth of a second.
        assert_eq!(pause(ms(100), ms(20)), ms(170));
        assert_eq!(pause(ms(380), ms(20)), ms(220));
        assert_eq!(pause(ms(180), ms(100)), ms(90));
        // Many rows: their samples see more than a moment.
        assert_eq!(pause(ms(500), ms(300)), ms(0));
        assert_eq!(pause(ms(500), ms(0)), ms(100));
    }
}
