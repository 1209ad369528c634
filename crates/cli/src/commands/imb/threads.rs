//! The parts of a run that the options of IMB-MT give, the program of IMB with several threads per process.

use std::env;

use clap::{ArgMatches, Command};
use ombx_core::{
    benchmark::{
        Choice, Chosen, Depth, Distance, ElementType, MEMORY_LIMIT, PairCount, Pairing, ParameterValue,
        Threading, Threads,
    },
    measure::{
        plan::{Effort, Plan},
        runner::Part,
    },
};
use ombx_drop_in::imb::{ImbBenchmark, ImbClass};
use ombx_launch::this_process::THREADS;
use ombx_record::{
    error::{Error, Result},
    unit::Bytes,
};

use super::{
    arguments::{ImbArgs, OF_IMB, OF_THREADS, ThreadArgs},
    plan::{WINDOW, usable},
    programs::Program,
};
use crate::arguments::argv;

/// Alignment of buffers in bytes.
const PAGE: u64 = 4096;
/// Default numbers of elements.
const COUNTS: [u64; 4] = [1, 2, 4, 8];
/// Default numbers of timed and untimed iterations.
const REPEAT: u64 = 1000;
const WARM_UP: u64 = 100;
/// Minimum number of samples of a row, and maximum number of iterations of a sample.
const SAMPLES: u64 = 10;
const MOST_OF_SAMPLE: u64 = 10_000;

/// Options of the other programs of IMB that IMB-MT has too.
const SHARED: [&str; 8] =
    ["list", "window-size", "mem", "thread-level", "include", "exclude", "input", "help"];

/// Rejects options of other programs of IMB. `imb` is the command that has all options.
pub(super) fn reject_of_others(imb: &Command, matches: &ArgMatches, program: &Program) -> Result<()> {
    for (option, _) in argv::given_options(imb, matches) {
        let long = option.get_long().unwrap_or_default();
        let name = format!("-{}", long.replace('-', "_"));
        match option.get_help_heading() {
            Some(OF_THREADS) if !program.has_threads() => {
                return Err(Error::usage(format!("{name} is an option of IMB-MT: leave it out")));
            }
            Some(OF_IMB) if program.has_threads() && !SHARED.contains(&long) => {
                return Err(Error::usage(format!(
                    "{name} is not an option of IMB-MT: its sizes are -count and -datatype, its iterations \
                     -repeat and -warmup"
                )));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Rejects values of options of IMB-MT that ombx does not have.
pub(super) fn reject(args: &ImbArgs, ranks: Option<u32>) -> Result<()> {
    far(args, ranks)?;
    match args.threads.malloc_align.filter(|align| !PAGE.is_multiple_of(*align)) {
        Some(align) => Err(Error::usage(format!(
            "-malloc_align {align}: buffers are aligned to {PAGE} bytes; give a divisor of it"
        ))),
        None => Ok(()),
    }
}

/// Returns differences from IMB-MT that the user should know.
pub(super) fn notes(args: &ImbArgs) -> Vec<String> {
    let ThreadArgs { barrier, malloc_align, malloc_algo, check, .. } = &args.threads;
    let mut notes = Vec::new();
    if *barrier == Some(false) {
        notes.push("-barrier has no effect: all threads leave a barrier before each sample".to_owned());
    }
    if malloc_align.is_some() || malloc_algo.is_some() {
        notes.push(
            "-malloc_align and -malloc_algo have no effect: the buffers of a thread begin at pages, which \
             it touches first"
                .to_owned(),
        );
    }
    if check.is_some() {
        notes.push("-check has no effect: every run verifies its data".to_owned());
    }
    if args.thread_level != Some(Threading::Multiple)
        && env::var_os(THREADS).is_some_and(|number| number != "1")
    {
        notes.push(format!("one thread per process: add -thread_level multiple to have {THREADS} threads"));
    }
    notes
}

/// Returns the threads of each process. Only `-thread_level multiple` has several, as many as the variable says.
fn threads(args: &ImbArgs) -> Result<Threads> {
    match (args.thread_level, env::var(THREADS)) {
        (Some(Threading::Multiple), Ok(text)) => of_variable(&text),
        _ => Ok(Threads::Each(1)),
    }
}

/// Reads the number of threads of the first level of nested parallel regions.
fn of_variable(text: &str) -> Result<Threads> {
    let first = text.split(',').next().unwrap_or_default().trim();
    let threads = Threads::parse(first).ok().filter(|threads| threads.is_one_number());
    threads.ok_or_else(|| {
        Error::usage(format!("{THREADS} is {text:?}: set it to a number of threads from 1 to 64"))
    })
}

/// Returns whether the ranks of a pair are half of all ranks apart; otherwise they are neighbours.
fn far(args: &ImbArgs, ranks: Option<u32>) -> Result<bool> {
    match (args.threads.stride.unwrap_or(0), ranks) {
        (0, _) => Ok(true),
        (stride, Some(ranks)) if stride == ranks / 2 => Ok(true),
        (1, _) => Ok(false),
        _ => Err(Error::usage(
            "-stride: ombx has pairs of neighbours and of ranks that are half of all ranks apart; give 1 or 0",
        )),
    }
}

/// Returns the message sizes.
fn sizes(args: &ImbArgs) -> Vec<Bytes> {
    let ThreadArgs { count, datatype, .. } = &args.threads;
    let counts = if count.is_empty() { &COUNTS[..] } else { count };
    let width = datatype.unwrap_or(ElementType::Int32).width();
    counts.iter().map(|count| Bytes(count * width)).collect()
}

/// Returns the iterations of a sample: so many that a row has ten samples or more, and exactly the repetitions.
fn batch(repeat: u64) -> u64 {
    (1..=(repeat / SAMPLES).min(MOST_OF_SAMPLE))
        .rev()
        .find(|batch| repeat.is_multiple_of(*batch))
        .unwrap_or(1)
}

/// Returns the part of a benchmark, which runs with all processes only.
pub(super) fn parts(
    args: &ImbArgs,
    choice: Choice,
    table: &ImbBenchmark,
    ranks: Option<u32>,
) -> Result<Vec<Part>> {
    let (bench, own) = (choice.bench, &args.threads);
    let ranks_used = ranks.map(|ranks| usable(bench.ranks.layout, ranks));
    let is_far = far(args, ranks)?;
    let mut chosen = Chosen::default().with(Depth(args.window_size.unwrap_or(WINDOW))).with(threads(args)?);
    if bench.has(Pairing::PARAMETER) && !is_far {
        chosen.choose([Pairing::Adjacent]);
    }
    if bench.has(Distance::PARAMETER) && is_far {
        chosen.choose([Distance::Half]);
    }
    if bench.has(ElementType::PARAMETER) {
        chosen.choose([own.datatype.unwrap_or(ElementType::Int32)]);
    }
    let pairs = ranks_used.filter(|_| bench.ranks.layout.has_pairs()).map(|ranks| PairCount(ranks / 2));
    chosen.choose(pairs);
    chosen.set(MEMORY_LIMIT.name, args.mem.map(|limit| limit.to_string()));
    let repeat = own.repeat.unwrap_or(REPEAT);
    let is_collective = matches!(table.class, ImbClass::ThreadCollective | ImbClass::ThreadBarrier);
    let plan = Plan {
        sizes: bench.messages.sized.then(|| sizes(args)),
        chosen,
        ranks: ranks_used,
        effort: Effort::Fixed { iterations: repeat, warmup: own.warmup.unwrap_or(WARM_UP) },
        // A sample of a collective is one iteration.
        batch: (!is_collective).then(|| batch(repeat)),
        ..Plan::default()
    };
    Ok(vec![Part { choices: vec![choice], plan }])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_make_up_the_repetitions() {
        assert_eq!([1, 10, 100, 1000, 997, 1 << 32].map(batch), [1, 1, 10, 100, 1, 8192]);
    }

    #[test]
    fn the_first_number_of_threads_counts() {
        assert_eq!(of_variable("4").unwrap(), Threads::Each(4));
        assert_eq!(of_variable(" 2,3").unwrap(), Threads::Each(2));
        for text in ["", "0", "x", "1:2", "65"] {
            assert!(of_variable(text).unwrap_err().to_string().contains("OMP_NUM_THREADS"), "{text}");
        }
    }
}
