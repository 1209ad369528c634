//! The data types that IMB's options give the messages of a benchmark.

use ombx_core::benchmark::{
    Benchmark, Chosen, ElementType, ParameterValue, ReductionOp,
    payload::{BLOCK_LENGTH, Datatype, STRIDE},
};

use super::arguments::types::TypeArgs;

/// Returns the element type of a benchmark. IMB swaps MPI_INT in any case.
pub(super) fn element(args: &TypeArgs, bench: &Benchmark) -> ElementType {
    match bench.parameter(ElementType::PARAMETER.name) {
        _ if bench.name == "rma.cas_latency" => ElementType::Int32,
        Some(parameter) if parameter.default == Some(ElementType::Byte.name()) => args.moved(),
        Some(_) => args.reduced(),
        None => ElementType::Byte,
    }
}

/// Returns the bytes from one element of a message to the next, if a derived datatype is chosen and the benchmark moves such messages.
pub(super) fn distance(args: &TypeArgs, bench: &Benchmark) -> Option<u64> {
    let moves = bench.has(Datatype::PARAMETER) && !bench.has(ReductionOp::PARAMETER);
    args.distance(element(args, bench).width()).filter(|_| moves)
}

/// Chooses the derived datatype of a benchmark, if it has one: one element per block.
pub(super) fn choose_blocks(args: &TypeArgs, bench: &Benchmark, chosen: &mut Chosen) {
    let Some(stride) = distance(args, bench) else { return };
    chosen.choose([Datatype::Vector]);
    chosen.set(BLOCK_LENGTH.name, [element(args, bench).width().to_string()]);
    chosen.set(STRIDE.name, [stride.to_string()]);
}

/// Returns notes about benchmarks whose messages do not have what the options choose.
pub(super) fn notes<'b>(
    args: &TypeArgs,
    benches: impl Iterator<Item = (&'static str, &'b Benchmark)>,
) -> Vec<String> {
    let (mut of_bytes, mut contiguous) = (Vec::new(), Vec::new());
    for (name, bench) in benches.filter(|(_, bench)| bench.messages.sized) {
        if !bench.has(ElementType::PARAMETER)
            && args.moved() != ElementType::Byte
            && !of_bytes.contains(&name)
        {
            of_bytes.push(name);
        }
        if args.distance(1).is_some() && distance(args, bench).is_none() && !contiguous.contains(&name) {
            contiguous.push(name);
        }
    }
    let of = |option: &str, names: Vec<&str>, what: &str| {
        (!names.is_empty()).then(|| format!("{option}: messages of {} are {what}", names.join(", ")))
    };
    of("-data_type", of_bytes, "bytes")
        .into_iter()
        .chain(of("-contig_type", contiguous, "contiguous"))
        .collect()
}
