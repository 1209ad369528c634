//! Kernels that let a known time pass. [`Probe`] also checks how the engine calls it.

use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use crate::{
    benchmark::{
        Case, Context, Kernel, Method, Metric, Role, Work,
        payload::{Check, Fill},
    },
    error::{Error, Result},
    testkit::thread_team::ThreadTeam,
    unit::Rank,
};

static OPENED: AtomicU64 = AtomicU64::new(0);

/// Kernel whose iterations take `ITERATION` ns on timed ranks, with special sizes.
///
/// Size 404 is unsupported on rank 1. Size 500 fails on rank 1 in `open`. From 1000 on, the first iteration is slow.
pub struct Probe<const ITERATION: u64> {
    team: ThreadTeam,
    role: Role,
    begun: bool,
    iterations: u64,
    cold: u64,
    id: u64,
}

impl<const ITERATION: u64> Kernel for Probe<ITERATION> {
    const METRIC: Metric = Metric::Latency;
    const METHOD: Method = Method { timed: "nothing", untimed: "everything", like: "nothing" };

    fn work(_: &Case) -> Work {
        Work { bytes: 0, ops: 1, legs: 1 }
    }

    fn open(cx: &Context<'_>, case: &Case) -> Result<Self> {
        match (case.bytes.0, cx.rank()) {
            (404, Rank(1)) => return Err(Error::unsupported("404 is not supported")),
            (500, Rank(1)) => return Err(Error::fabric("rank 1 broke")),
            _ => {}
        }
        let cold = if case.bytes.0 >= 1000 { 1 } else { 0 };
        let id = OPENED.fetch_add(1, Ordering::SeqCst);
        Ok(Probe {
            team: cx.fabric::<ThreadTeam>()?.clone(),
            role: cx.role,
            begun: false,
            iterations: 0,
            cold,
            id,
        })
    }

    fn fill(&mut self, _: Fill) -> Result<()> {
        assert!(!self.begun, "filled between begin and end");
        self.iterations = 0;
        Ok(())
    }

    fn begin(&mut self) -> Result<()> {
        assert!(!std::mem::replace(&mut self.begun, true), "begun twice ({})", self.id);
        Ok(())
    }

    fn active(&mut self) -> Result<()> {
        assert!(self.begun && self.role == Role::Active);
        self.iterations += 1;
        self.team.time.advance(ITERATION);
        if self.cold > 0 {
            self.cold -= 1;
            self.team.time.advance(1_000_000_000);
        }
        Ok(())
    }

    fn passive(&mut self) -> Result<()> {
        assert!(self.begun && self.role == Role::Passive);
        self.iterations += 1;
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        assert!(std::mem::replace(&mut self.begun, false), "ended without a beginning");
        Ok(())
    }

    fn check(&mut self, fill: Fill) -> Result<Check> {
        assert!(!self.begun);
        assert_eq!(self.iterations, fill.iterations, "the engine must know how many iterations it ran");
        Ok(Check::Passed)
    }
}

/// Kernel whose iterations take 1000 (r + 1) ns on rank r.
pub struct SlowerByRank {
    team: ThreadTeam,
}

impl Kernel for SlowerByRank {
    const METRIC: Metric = Metric::Latency;
    const METHOD: Method = Method { timed: "nothing", untimed: "everything", like: "nothing" };

    fn work(_: &Case) -> Work {
        Work { bytes: 0, ops: 1, legs: 1 }
    }

    fn open(cx: &Context<'_>, _: &Case) -> Result<Self> {
        Ok(SlowerByRank { team: cx.fabric::<ThreadTeam>()?.clone() })
    }

    fn active(&mut self) -> Result<()> {
        self.team.time.advance(1000 * (u64::from(self.team.rank) + 1));
        Ok(())
    }
}

/// Bytes with a meaning in one of our formats.
const SPECIAL_BYTES: &[u8] = b"\0\n\t\x1b \"',:;=-+.%@#*[]{}()09aeKMx\x7f\x80\xfe\xff";
/// Numbers at or beyond the limits of integer types.
const EXTREME_NUMBERS: [&str; 6] =
    ["4294967295", "4294967296", "18446744073709551615", "1e308", "-1", "99999999999999999999"];

/// Calls `reads` with each seed of a fuzz target, which are the files in `fuzz/seeds/TARGET`, and with `tries` mutated seeds.
///
/// Mutations follow from [`seed`](super::seed). Panics with the input for which `reads` panicked.
pub fn hostile(target: &str, tries: u32, reads: impl Fn(&[u8])) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let entries = fs::read_dir(&directory).unwrap_or_else(|e| panic!("{}: {e}", directory.display()));
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let seeds: Vec<Vec<u8>> = paths.iter().filter_map(|path| fs::read(path).ok()).collect();
    assert!(!seeds.is_empty(), "{} has no seeds", directory.display());
    let mut random = Random(super::seed());
    let mutated = (0..tries).map(|_| mutated(&seeds, &mut random));
    for input in seeds.iter().cloned().chain(mutated) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| reads(&input))) {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked");
            panic!("{target}, input b\"{}\": {text}", input.escape_ascii());
        }
    }
}

/// Random numbers by SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) % bound.max(1) as u64) as usize
    }

    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let from = self.below(length + 1);
        from..from + self.below((length - from).min(64) + 1)
    }
}

fn mutated(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = seeds[random.below(seeds.len())].clone();
    for _ in 0..=random.below(6) {
        let at = random.below(bytes.len() + 1);
        match random.below(8) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 => bytes.insert(at, SPECIAL_BYTES[random.below(SPECIAL_BYTES.len())]),
            2 => drop(bytes.splice(at..at, EXTREME_NUMBERS[random.below(EXTREME_NUMBERS.len())].bytes())),
            3 => drop(bytes.drain(random.range(bytes.len()))),
            4 => {
                let again = bytes[random.range(bytes.len())].to_vec();
                bytes.splice(at..at, again);
            }
            5 => {
                let other = &seeds[random.below(seeds.len())];
                bytes.splice(at..at, other[random.range(other.len())].iter().copied());
            }
            6 => bytes.truncate(at),
            _ => {
                let range = random.range(bytes.len());
                bytes[range].iter_mut().for_each(|byte| *byte = random.below(256) as u8);
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        benchmark::{Benchmark, Layout},
        measure::plan::{Effort, Plan},
        result::Outcome,
        testkit::measure,
        unit::parse_sizes,
    };
    use std::time::Duration;

    static FAST: Benchmark = Benchmark::of::<Probe<50>>("probe.fast", "50 ns").sizes("8");
    static SLOW: Benchmark = Benchmark::of::<Probe<50_000_000>>("probe.slow", "50 ms").sizes("8");
    static ALL: Benchmark =
        Benchmark::of::<Probe<3000>>("probe.all", "3 us").sizes("8").layout(Layout::Everyone { least: 1 });

    #[test]
    fn a_batch_makes_the_cost_of_the_clock_negligible() {
        let row = measure(2, &FAST, &Plan::default()).unwrap().rows.remove(0);
        assert_eq!(row.samples[0].batch, 18, "9 ns per stamp are 1 % of 18 x 50 ns");
        let summary = row.summary.unwrap();
        assert_eq!((summary.median, summary.ci95), (50.0, Some([50.0 - 1.0 / 18.0, 50.0 + 1.0 / 18.0])));
        assert_eq!((summary.tail_n, row.tail[0].batch, row.tail[0].elapsed_ns.len()), (5000, 1, 5000));
        assert!(summary.n >= 30 && row.trust.iter().all(|n| n.code != "not_converged"));
    }

    #[test]
    fn fixed_counts_are_exact() {
        let plan = Plan { effort: Effort::Fixed { iterations: 1000, warmup: 7 }, ..Plan::default() };
        let row = measure(2, &FAST, &plan).unwrap().rows.remove(0);
        assert_eq!(row.samples[0].elapsed_ns.len() as u64 * row.samples[0].batch, 1000);
        let row = measure(2, &FAST, &Plan { batch: Some(1), ..plan }).unwrap().rows.remove(0);
        assert_eq!((row.samples[0].batch, row.samples[0].elapsed_ns.len()), (1, 1000));
    }

    #[test]
    fn fixed_counts_end_at_a_time_limit() {
        let effort = Effort::Fixed { iterations: 1000, warmup: 0 };
        let counted = |bench, ms| {
            let plan = Plan { effort, most_time: Some(Duration::from_millis(ms)), ..Plan::default() };
            let samples = measure(2, bench, &plan).unwrap().rows.remove(0).samples.remove(0);
            samples.elapsed_ns.len() as u64 * samples.batch
        };
        assert_eq!(
            [(&SLOW, 210), (&SLOW, 1), (&FAST, 210)].map(|(bench, ms)| counted(bench, ms)),
            [4, 1, 1000]
        );
    }

    #[test]
    fn a_slow_row_ends_at_its_time_limit_with_an_interval() {
        let hasty = Effort::Precision { precision: 1e-9, max_time: Duration::from_millis(100) };
        let row = measure(2, &SLOW, &Plan { effort: hasty, ..Plan::default() }).unwrap().rows.remove(0);
        assert_eq!(row.summary.unwrap().n, 6);
    }

    #[test]
    fn percentiles_get_their_single_iterations_within_the_time_of_the_row() {
        // In batches, one by one, and too long for the time.
        let single = [&FAST, &ALL, &SLOW].map(|bench| {
            let plan = Plan { least_tail: 6000, ..Plan::default() };
            measure(2, bench, &plan).unwrap().rows.remove(0).summary.unwrap().tail_n
        });
        assert!(single[0] >= 6000 && single[1] >= 6000 && single[2] < 30, "{single:?}");
    }

    #[test]
    fn cold_iterations_are_not_measured() {
        let plan = Plan { sizes: Some(parse_sizes("1000").unwrap()), ..Plan::default() };
        let row = measure(2, &FAST, &plan).unwrap().rows.remove(0);
        assert_eq!(row.summary.unwrap().max, 50.0);
    }

    #[test]
    fn a_row_has_the_time_of_each_phase() {
        let plan = Plan { sizes: Some(parse_sizes("1000").unwrap()), ..Plan::default() };
        let row = measure(2, &FAST, &plan).unwrap().rows.remove(0);
        let phases = row.phases.unwrap();
        // Only iterations take time: the slow first one in the warm-up, and those that are verified, in 2 ms.
        let sampled: u64 = [&row.samples[0], &row.tail[0]].iter().flat_map(|s| &s.elapsed_ns).sum();
        assert_eq!((phases.sample_ns, phases.verify_ns), (sampled, 50 * row.checked));
        assert_eq!(row.checked, 40_000);
        assert!(phases.warm_up_ns >= 1_000_000_000, "{phases:?}");
        assert_eq!(phases.total_ns(), phases.warm_up_ns + sampled + phases.verify_ns);
    }

    #[test]
    fn a_case_that_one_rank_cannot_run_is_skipped_on_all() {
        let plan = Plan { sizes: Some(parse_sizes("8,404,16").unwrap()), ..Plan::default() };
        let memory = measure(2, &FAST, &plan).unwrap();
        let outcomes: Vec<_> = memory.rows.iter().map(|r| &r.outcome).collect();
        let skipped = Outcome::Skipped("404 is not supported".into());
        assert_eq!(outcomes, [&Outcome::Ok, &skipped, &Outcome::Ok]);
        assert_eq!(memory.tally.unwrap().exit_code(false), 4);
    }

    #[test]
    fn an_error_in_open_ends_all_ranks_and_names_the_case() {
        let plan = Plan { sizes: Some(parse_sizes("500").unwrap()), ..Plan::default() };
        let error = measure(2, &FAST, &plan).unwrap_err();
        assert_eq!(error.to_string(), "probe.fast/bytes=500: rank 1 broke");
    }

    #[test]
    fn too_few_ranks_are_a_skipped_row() {
        let memory = measure(1, &FAST, &Plan::default()).unwrap();
        let Outcome::Skipped(why) = &memory.rows[0].outcome else { panic!("{:?}", memory.rows) };
        assert!(why.contains("needs 2 ranks, has 1"), "{why}");
    }

    #[test]
    fn every_rank_of_a_collective_keeps_its_samples() {
        for ranks in [1, 2, 3, 5] {
            let row = measure(ranks, &ALL, &Plan::default()).unwrap().rows.remove(0);
            assert_eq!((row.ranks, row.samples.len()), (ranks, ranks as usize));
            assert_eq!(row.summary.unwrap().median, 3000.0);
        }
    }
}
