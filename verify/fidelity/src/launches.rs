//! Launches of both programs on the rows of one kind with one MPI.

use crate::{
    callgrind,
    counts::{Counts, Mode},
    document::{Circumstances, Compared, Pair},
    programs::{Launched, Programs, Samples},
    ratio::{self, Launch},
    row::{FAN_IN, Kind, Row, Shape},
};
use ombx_toolchain::failure::{Failure, Result};

/// Time limit of a row in the trial launch that determines its counts, in milliseconds.
const TRIAL: u32 = 5;
/// Time limit of a row if ombx decides the counts, in milliseconds.
const OWN: u32 = 200;

/// Rows of one kind that run with one MPI, and their counts.
pub(crate) struct Launches<'a> {
    pub(crate) programs: &'a Programs,
    kind: Kind,
    /// Positions of the rows among all compared rows.
    at: Vec<usize>,
    counts: Vec<Counts>,
    /// Rows that are also measured by default settings, and the counts of the previous such launch of ombx.
    own: Vec<usize>,
    own_counts: Vec<Counts>,
}

impl<'a> Launches<'a> {
    /// Runs the rows of a kind once to find which of them run, and how long they take.
    pub(crate) fn open(
        programs: &'a Programs,
        kind: Kind,
        quick: bool,
        compared: &mut [Compared],
    ) -> Result<Option<Self>> {
        let is_here = |one: &Compared| one.flavour == programs.mpi.flavour && one.row.kind == kind;
        let here: Vec<usize> = (0..compared.len()).filter(|at| is_here(&compared[*at])).collect();
        if here.is_empty() {
            return Ok(None);
        }
        let mut launches = Launches {
            programs,
            kind,
            at: here,
            counts: Vec::new(),
            own: Vec::new(),
            own_counts: Vec::new(),
        };
        let milliseconds = if quick { 1 } else { TRIAL };
        let trial = launches.run(compared, &launches.at, Mode::Own { milliseconds })?;
        let mut runs = Vec::new();
        for (at, samples) in launches.at.iter().zip(trial.rows) {
            match samples {
                Ok(samples) => {
                    let row = &compared[*at].row;
                    // The fastest sample depends least on other load of the machine.
                    let least = samples.ns.iter().copied().fold(f64::INFINITY, f64::min);
                    launches.counts.push(if quick { Counts::few(row) } else { Counts::of(row, least) });
                    runs.push(*at);
                }
                Err(why) => compared[*at].skipped = Some(why),
            }
        }
        launches.at = runs;
        launches.own = launches.at.iter().copied().filter(|at| compared[*at].row.default && !quick).collect();
        if !launches.own.is_empty() {
            let own = launches.run(compared, &launches.own, Mode::Own { milliseconds: OWN })?;
            launches.own_counts =
                launches.read(compared, &launches.own, own)?.iter().map(counts_of).collect();
        }
        Ok(Some(launches))
    }

    fn rows<'r>(compared: &'r [Compared], at: &[usize]) -> Vec<&'r Row> {
        at.iter().map(|at| &compared[*at].row).collect()
    }

    fn run(&self, compared: &[Compared], at: &[usize], mode: Mode<'_>) -> Result<Launched> {
        self.programs.run_ombx(self.kind, &Self::rows(compared, at), mode)
    }

    /// Returns the samples of every row. An error if a row did not run this time.
    fn read(&self, compared: &[Compared], at: &[usize], launched: Launched) -> Result<Vec<Samples>> {
        let each = at.iter().zip(launched.rows).map(|(at, samples)| {
            samples.map_err(|why| Failure::Missing(format!("{}: {why}", compared[*at].row.name)))
        });
        each.collect()
    }

    /// Runs a group of launches in random order: both programs with the same counts, ombx by default settings, and the C loops
    /// with the counts of the previous such launch.
    pub(crate) fn group(
        &mut self,
        compared: &mut [Compared],
        about: &mut Circumstances,
        seed: &mut u64,
    ) -> Result<()> {
        let mut order = [0, 1, 2, 3];
        ratio::shuffle(&mut order, seed);
        let (mut plain, mut fixed, mut plain_own, mut own) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for which in order {
            let rows = if which < 2 { &self.at } else { &self.own };
            if rows.is_empty() {
                continue;
            }
            match which {
                0 => plain = self.reference(compared, rows, &self.counts)?,
                1 => {
                    let launched = self.run(compared, rows, Mode::Fixed(&self.counts))?;
                    about.met(&launched);
                    fixed = self.read(compared, rows, launched)?;
                }
                2 => plain_own = self.reference(compared, rows, &self.own_counts)?,
                _ => {
                    let launched = self.run(compared, rows, Mode::Own { milliseconds: OWN })?;
                    own = self.read(compared, rows, launched)?;
                }
            }
        }
        for ((at, counts), (plain, fixed)) in self.at.iter().zip(&self.counts).zip(plain.iter().zip(&fixed)) {
            let row = &compared[*at].row;
            if !row.pure && (fixed.batch, fixed.ns.len() as u64) != (counts.batch, counts.samples) {
                return Err(Failure::Missing(format!("{}: the programs did not do the same", row.name)));
            }
            let pair = pair(row, plain, fixed)?;
            compared[*at].same.push(pair);
        }
        for (at, (plain, own)) in self.own.iter().zip(plain_own.iter().zip(&own)) {
            let pair = pair(&compared[*at].row, plain, own)?;
            compared[*at].default.push(pair);
        }
        self.own_counts = own.iter().map(counts_of).collect();
        Ok(())
    }

    fn reference(&self, compared: &[Compared], at: &[usize], counts: &[Counts]) -> Result<Vec<Vec<f64>>> {
        self.programs.run_reference(self.kind, &Self::rows(compared, at), counts)
    }

    /// Counts the instructions of every row that times rank 0.
    pub(crate) fn count(&self, compared: &mut [Compared]) -> Result<()> {
        for timed in [Shape::Chained, Shape::Paced, Shape::Turns].map(Shape::timed) {
            let is_timed = |at: &usize| {
                let row = &compared[*at].row;
                row.shape.timed() == timed && row.benchmark != FAN_IN
            };
            let here: Vec<usize> = self.at.iter().copied().filter(is_timed).collect();
            let rows = Self::rows(compared, &here);
            let counts = callgrind::count(self.programs, self.kind, &rows)?;
            for (at, count) in here.iter().zip(counts) {
                compared[*at].count = Some(count);
            }
        }
        Ok(())
    }
}

/// Returns the counts that repeat the work of a launch of ombx.
fn counts_of(of: &Samples) -> Counts {
    let samples = of.ns.len() as u64;
    Counts { batch: of.batch, samples, warmup: (of.batch * samples / 10).max(1) }
}

fn pair(row: &Row, plain: &[f64], ombx: &Samples) -> Result<Pair> {
    let of = |samples: &[f64]| {
        let legs: Vec<f64> = samples.iter().map(|ns| ns / ombx.legs as f64).collect();
        Launch::of(&legs).ok_or_else(|| Failure::Missing(format!("{}: nothing was measured", row.name)))
    };
    Ok(Pair { reference: of(plain)?, ombx: of(&ombx.ns)? })
}
