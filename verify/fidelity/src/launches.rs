//! One kind with one MPI: how much its rows do, and groups of launches of both programs.

use crate::{
    callgrind,
    counts::{Counts, Mode},
    document::{Circumstances, Compared, Pair},
    programs::{Launched, Programs, Samples},
    ratio::{self, Launch},
    row::{Kind, Row, Shape},
};
use ombx_toolchain::failure::{Failure, Result};

/// Time of a row in the launch from which its counts come, in milliseconds.
const TRIAL: u32 = 5;
/// Time of a row where ombx decides itself, in milliseconds at the most.
const OWN: u32 = 200;

/// The rows of a kind that run with an MPI.
pub(crate) struct Launches<'a> {
    pub(crate) programs: &'a Programs,
    kind: Kind,
    /// Where they stand among all that is compared.
    at: Vec<usize>,
    counts: Vec<Counts>,
    /// Those that are also measured as users run them, and the counts of ombx's previous launch of that kind.
    own: Vec<usize>,
    own_counts: Vec<Counts>,
}

impl<'a> Launches<'a> {
    /// Runs the rows of a kind once to see which can be run, and how long they take.
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
        for (at, told) in launches.at.iter().zip(trial.told) {
            match told {
                Ok(told) => {
                    let row = &compared[*at].row;
                    // The fastest: what else runs on the machine now says nothing of the row.
                    let least = told.samples.iter().copied().fold(f64::INFINITY, f64::min);
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

    /// What every row told; a row that ran before and now did not is an error.
    fn read(&self, compared: &[Compared], at: &[usize], launched: Launched) -> Result<Vec<Samples>> {
        let each = at.iter().zip(launched.told).map(|(at, told)| {
            told.map_err(|why| Failure::Missing(format!("{}: {why}", compared[*at].row.name)))
        });
        each.collect()
    }

    /// A launch of each: both programs with the same counts, ombx by itself, and the C loops with the counts of ombx's
    /// previous launch of that kind.
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
            if !row.pure && (fixed.batch, fixed.samples.len() as u64) != (counts.batch, counts.samples) {
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

    /// Counts instructions of every row.
    pub(crate) fn count(&self, compared: &mut [Compared]) -> Result<()> {
        for timed in [Shape::Chained, Shape::Paced, Shape::Turns].map(Shape::timed) {
            let is_timed = |at: &usize| compared[*at].row.shape.timed() == timed;
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

/// The same work again.
fn counts_of(told: &Samples) -> Counts {
    let samples = told.samples.len() as u64;
    Counts { batch: told.batch, samples, warmup: (told.batch * samples / 10).max(1) }
}

fn pair(row: &Row, plain: &[f64], ombx: &Samples) -> Result<Pair> {
    let of = |samples: &[f64]| {
        let legs: Vec<f64> = samples.iter().map(|ns| ns / ombx.legs as f64).collect();
        Launch::of(&legs).ok_or_else(|| Failure::Missing(format!("{}: nothing was measured", row.name)))
    };
    Ok(Pair { reference: of(plain)?, ombx: of(&ombx.samples)? })
}
