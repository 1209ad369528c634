//! Start of a job: what `ombx run` adds to the time of the launcher with an empty MPI program, and to the memory of a rank; and what a
//! barrier of that program adds, where ranks share CPUs.

use ombx_host::environment;
use ombx_record::stats::median;
use ombx_toolchain::{Flavour, Result, table};

use crate::job::{self, Limits, Outcome, Programs};

/// Most that ombx may add.
const GOAL_MS: f64 = 50.0;
const GOAL_MB: f64 = 3.0;
/// Shortest job that measures something, and one that lasts until its memory was read.
const SHORT: &str = "run collective.barrier --iterations 1 --warmup 0 --no-verify";
const LONG: &str = "run collective.barrier --duration 2s";

/// Barriers that the empty program makes to show the time of one.
const BARRIERS: u32 = 10;

/// Starts of jobs with one number of ranks.
pub(crate) struct Starts {
    flavour: Flavour,
    ranks: u32,
    /// Seconds of the empty program, of ombx, and of the empty program with [`BARRIERS`] more, of each turn.
    seconds: Vec<[f64; 3]>,
    /// The same programs while their memory was read.
    memory: [Outcome; 2],
    /// Whether all jobs have ended before their deadline.
    is_complete: bool,
}

/// Starts all programs in turns, in six orders.
pub(crate) fn measure(programs: &Programs, limits: Limits, turns: u16) -> Result<Starts> {
    let mut starts = Starts {
        flavour: programs.mpi.flavour,
        ranks: limits.ranks,
        seconds: Vec::new(),
        memory: [job::bare(programs, &["stay"], limits)?, job::ombx(programs, LONG, limits)?],
        is_complete: true,
    };
    starts.is_complete = starts.memory.iter().all(|outcome| outcome.complete);
    for turn in 0..turns {
        let mut all = [0.0; 3];
        let mut order = [turn, turn + 1, turn + 2].map(|at| usize::from(at % 3));
        if turn % 2 == 1 {
            order.reverse();
        }
        for program in order {
            let outcome = match program {
                0 => job::bare(programs, &[], limits)?,
                1 => job::ombx(programs, SHORT, limits)?,
                _ => job::bare(programs, &[&BARRIERS.to_string()], limits)?,
            };
            all[program] = outcome.total_s;
            starts.is_complete &= outcome.complete;
        }
        starts.seconds.push(all);
        if !starts.is_complete {
            break;
        }
    }
    let [added, least, most] = starts.added_ms();
    println!(
        "   {}, {} ranks: {added:.0} ms ({least:.0} .. {most:.0}) and {:.1} MB more, a barrier {:.1} ms",
        starts.flavour,
        starts.ranks,
        starts.added_mb(),
        starts.barrier_ms()
    );
    Ok(starts)
}

impl Starts {
    /// Returns the median, over turns, of milliseconds that ombx takes longer, and the least and the most.
    fn added_ms(&self) -> [f64; 3] {
        let added: Vec<f64> = self.seconds.iter().map(|[bare, ombx, _]| (ombx - bare) * 1e3).collect();
        let [least, most] = added
            .iter()
            .fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], x| [low.min(*x), high.max(*x)]);
        [median(&added).unwrap_or(f64::NAN), least, most]
    }

    /// Returns the median, over turns, of milliseconds that a barrier of the empty program takes.
    fn barrier_ms(&self) -> f64 {
        let each = |[bare, _, more]: &[f64; 3]| (more - bare) * 1e3 / f64::from(BARRIERS);
        let each: Vec<f64> = self.seconds.iter().map(each).collect();
        median(&each).unwrap_or(f64::NAN)
    }

    /// Returns the MB that ombx adds to a rank.
    fn added_mb(&self) -> f64 {
        let [bare, ombx] = self.memory.each_ref().map(|outcome| outcome.rank_bytes as f64 / 1e6);
        ombx - bare
    }

    /// Returns whether ombx adds more than it may.
    pub(crate) fn missed(&self) -> bool {
        !self.is_complete || self.added_ms()[0] > GOAL_MS || self.added_mb() > GOAL_MB
    }

    /// Returns the line of the table.
    fn line(&self) -> String {
        let bare: Vec<f64> = self.seconds.iter().map(|[bare, ..]| bare * 1e3).collect();
        let [added, least, most] = self.added_ms();
        let private = self.memory.each_ref().map(|outcome| outcome.private_bytes as f64 / 1e6);
        format!(
            "{} | {} | {} | {:.0} | {added:.0} | {least:.0} .. {most:.0} | {:.2} | {:.1} | {:.1} | {:.1} | {:.1} | {}",
            self.flavour,
            self.ranks,
            self.seconds.len(),
            median(&bare).unwrap_or(f64::NAN),
            self.barrier_ms(),
            self.memory[0].rank_bytes as f64 / 1e6,
            private[0],
            self.added_mb(),
            private[1] - private[0],
            match (self.is_complete, self.missed()) {
                (false, _) => "not complete",
                (_, true) => "MISSED",
                _ => "met",
            },
        )
    }
}

/// Returns the section about starts: a line for each number of ranks and MPI.
pub(crate) fn document(all: &[Starts]) -> String {
    let head = "MPI | ranks | turns | empty program, ms | ombx run adds, ms | range | a barrier adds, ms | \
                empty rank, MB | private | ombx adds, MB | private | ";
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let table = table(head, all.iter().map(Starts::line));
    format!("{}, {cpus} CPUs shared by all ranks, release build.\n\n{table}", environment::timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ombx_adds_is_compared_with_the_goals() {
        let rank = |mb: u64| Outcome { rank_bytes: mb * 1_000_000, complete: true, ..Outcome::default() };
        let starts = |ombx_s: f64, ombx_mb: u64| Starts {
            flavour: Flavour::Mpich,
            ranks: 2,
            seconds: vec![[0.050, ombx_s, 0.080], [0.060, ombx_s + 0.010, 0.090], [0.050, 9.0, 0.080]],
            memory: [rank(4), rank(ombx_mb)],
            is_complete: true,
        };
        assert!(!starts(0.090, 6).missed());
        assert!(starts(0.110, 6).missed() && starts(0.090, 8).missed());
        let text = document(&[starts(0.090, 6)]);
        assert!(
            text.contains("| 40 ")
                && text.contains("| 3.00 ")
                && text.contains("| 2.0 ")
                && text.contains("| met "),
            "{text}"
        );
    }
}
