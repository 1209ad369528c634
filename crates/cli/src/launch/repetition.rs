//! Repetition of a job: how many launches it has, and what each one takes from those before it.

use std::{ffi::OsString, thread, time::Duration};

use ombx_core::{
    measure::plan::{KnownBatches, Launch},
    result::{Measurement, Outcome},
    system::clock::Since,
};
use ombx_results::{
    estimate::{
        self, Cases, Ending, FIRST_ROW_TIME, LEAST_LAUNCHES, LEAST_LONG_LAUNCHES, MOST_LAUNCHES, Schedule,
    },
    file::Ended,
};

use crate::{
    arguments::launches::{self, Goal, LaunchCount, Launches},
    job::{Job, Work},
    launch::job_state::{Phase, Timeline},
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
    pub(super) fn of(job: &Job, spent: Duration) -> Repetition {
        let schedule = match job.launches.count {
            LaunchCount::Until { budget, is_spread: true, .. } => Some(Schedule::spread(budget)),
            LaunchCount::Until { budget, enough, .. } => {
                Some(Schedule::new(job.launches.goal.precision, budget, enough))
            }
            LaunchCount::Fixed(_) => None,
        };
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
        let expected = match (&self.schedule, self.launches.count) {
            (_, LaunchCount::Fixed(count)) => count,
            (Some(schedule), _) if self.done > 0 => {
                schedule.expected(self.done, self.since.elapsed() / self.done)
            }
            _ => LEAST_LAUNCHES,
        };
        (self.done + 1, expected.max(self.done + 1))
    }

    /// Begins a launch and returns the arguments of its ranks.
    pub(super) fn begin(&mut self) -> Vec<OsString> {
        self.started = Since::now();
        if self.launches.is_one() {
            return Vec::new();
        }
        let number = self.done + 1;
        let of = match self.launches.count {
            LaunchCount::Fixed(count) => count,
            LaunchCount::Until { .. } => MOST_LAUNCHES,
        };
        let launch = Launch { number, of, order: self.launches.seed.wrapping_add(u64::from(number)) };
        let mut words = vec![format!("--launch={launch}")];
        if self.most.is_some() {
            words.push(format!("--row-time={}us", self.row_time.as_micros()));
        }
        words.extend(launches::batches(&self.batches));
        words.into_iter().map(OsString::from).collect()
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
        self.done += 1;
        let Goal { precision, is_asked } = self.launches.goal;
        let ended = |why| Some(Ended { why, precision, is_asked });
        if self.are_sweeps {
            return ended(Ending::Fixed).filter(|_| !self.is_below_fixed());
        }
        if self.done == 1 {
            self.batches = cases.batches();
        }
        let spent = self.since.elapsed();
        let sampled = cases.all().flatten().filter_map(|row| row.phases).map(|phases| phases.sample_ns).sum();
        self.sampled_before = std::mem::replace(&mut self.sampled, Duration::from_nanos(sampled));
        if let Some(most) = self.most {
            let fixed = spent.saturating_sub(self.paused + self.sampled) / self.done;
            self.row_time = estimate::row_time(cases, fixed, most);
        }
        let rows: Vec<_> = cases.groups().iter().flat_map(estimate::Group::estimates).collect();
        let measured = || rows.iter().filter(|row| row.outcome == Outcome::Ok);
        if measured().next().is_none() {
            // Another launch would skip the same cases, or fail in the same way.
            return ended(Ending::Fixed);
        }
        let Some(schedule) = &mut self.schedule else {
            return ended(Ending::Fixed).filter(|_| !self.is_below_fixed());
        };
        let in_state = measured().map(Measurement::launches_in_state).min().unwrap_or(0) as u32;
        let reached = estimate::reached(&rows);
        let ending = schedule.ending(estimate::Progress { done: self.done, in_state, reached, spent });
        let late = self.timeout.is_some_and(|timeout| spent + spent / self.done > timeout);
        let ending = ending.or(late.then_some(Ending::Budget))?;
        if ending == Ending::Budget && self.done < LEAST_LONG_LAUNCHES {
            let each = (spent / self.done).as_secs_f64();
            let option = if late { "--timeout" } else { "--budget" };
            progress.suspend(|| {
                stderr_line!(
                    "ombx: {} instead of 6 launches, because each takes {each:.2} s: a 95 % interval needs 6. Give a \
                     longer {option}, or fewer cases",
                    self.done
                );
            });
        }
        ended(ending)
    }

    fn is_below_fixed(&self) -> bool {
        matches!(self.launches.count, LaunchCount::Fixed(count) if self.done < count)
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

#[cfg(test)]
mod tests {
    use super::*;

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
