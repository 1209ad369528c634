//! The parts of a run that the options of IMB-MT give, the program of IMB with several threads per process.

use std::env;

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
use ombx_record::{
    error::{Error, Result},
    unit::Bytes,
};

use crate::imb::{
    ImbBenchmark, ImbClass,
    options::{ImbOptions, ThreadOptions},
    plan::{WINDOW, usable},
};

/// Variable with the number of threads of IMB-MT.
pub const THREADS: &str = "OMP_NUM_THREADS";

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

/// Rejects values of options of IMB-MT that ombx does not have.
///
/// # Errors
/// Usage error with the first of them.
pub fn reject(options: &ImbOptions, ranks: Option<u32>) -> Result<()> {
    far(options, ranks)?;
    match options.threads.malloc_align.filter(|align| !PAGE.is_multiple_of(*align)) {
        Some(align) => Err(Error::usage(format!(
            "-malloc_align {align}: buffers are aligned to {PAGE} bytes; give a divisor of it"
        ))),
        None => Ok(()),
    }
}

/// Returns differences from IMB-MT that the user should know.
pub fn notes(options: &ImbOptions) -> Vec<String> {
    let ThreadOptions { barrier, malloc_align, malloc_algo, check, .. } = &options.threads;
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
    if options.thread_level != Some(Threading::Multiple)
        && env::var_os(THREADS).is_some_and(|number| number != "1")
    {
        notes.push(format!("one thread per process: add -thread_level multiple to have {THREADS} threads"));
    }
    notes
}

/// Returns the threads of each process. Only `-thread_level multiple` has several, as many as the variable says.
fn threads(options: &ImbOptions) -> Result<Threads> {
    match (options.thread_level, env::var(THREADS)) {
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
fn far(options: &ImbOptions, ranks: Option<u32>) -> Result<bool> {
    match (options.threads.stride.unwrap_or(0), ranks) {
        (0, _) => Ok(true),
        (stride, Some(ranks)) if stride == ranks / 2 => Ok(true),
        (1, _) => Ok(false),
        _ => Err(Error::usage(
            "-stride: ombx has pairs of neighbours and of ranks that are half of all ranks apart; give 1 or 0",
        )),
    }
}

/// Returns the message sizes.
fn sizes(options: &ImbOptions) -> Vec<Bytes> {
    let ThreadOptions { count, datatype, .. } = &options.threads;
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
///
/// # Errors
/// Usage error for another distance of pairs, and for a variable that is no number of threads.
pub fn parts(
    options: &ImbOptions,
    choice: Choice,
    table: &ImbBenchmark,
    ranks: Option<u32>,
) -> Result<Vec<Part>> {
    let (bench, own) = (choice.bench, &options.threads);
    let ranks_used = ranks.map(|ranks| usable(bench.ranks.layout, ranks));
    let is_far = far(options, ranks)?;
    let mut chosen =
        Chosen::default().with(Depth(options.window_size.unwrap_or(WINDOW))).with(threads(options)?);
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
    chosen.set(MEMORY_LIMIT.name, options.mem.map(|limit| limit.to_string()));
    let repeat = own.repeat.unwrap_or(REPEAT);
    let is_collective = matches!(table.class, ImbClass::ThreadCollective | ImbClass::ThreadBarrier);
    let plan = Plan {
        sizes: bench.messages.sized.then(|| sizes(options)),
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
