//! The data types that IMB's options give the messages of a benchmark.

use std::collections::BTreeMap;

use ombx_core::benchmark::{
    AxisValue, Benchmark, ElementType, ReductionOp,
    payload::{BLOCK_LENGTH, Datatype, STRIDE},
};

use super::arguments::types::TypeArgs;

fn has(bench: &Benchmark, name: &str) -> bool {
    bench.axes.iter().any(|axis| axis.name == name)
}

/// Returns the element type of a benchmark. IMB swaps MPI_INT in any case.
pub(super) fn element(args: &TypeArgs, bench: &Benchmark) -> ElementType {
    match bench.axes.iter().find(|axis| axis.name == ElementType::AXIS.name) {
        _ if bench.name == "rma.cas_latency" => ElementType::Int32,
        Some(axis) if axis.default == ElementType::Byte.name() => args.moved(),
        Some(_) => args.reduced(),
        None => ElementType::Byte,
    }
}

/// Returns the bytes from one element of a message to the next, if a derived datatype is chosen and the benchmark moves such messages.
pub(super) fn distance(args: &TypeArgs, bench: &Benchmark) -> Option<u64> {
    let moves = has(bench, Datatype::AXIS.name) && !has(bench, ReductionOp::AXIS.name);
    args.distance(element(args, bench).width()).filter(|_| moves)
}

/// Returns the settings of the derived datatype of a benchmark: one element per block.
pub(super) fn blocks(args: &TypeArgs, bench: &Benchmark) -> BTreeMap<String, String> {
    let width = element(args, bench).width();
    let settings = |stride| {
        [(BLOCK_LENGTH, width), (STRIDE, stride)]
            .map(|(setting, bytes)| (setting.name.to_owned(), bytes.to_string()))
    };
    distance(args, bench).into_iter().flat_map(settings).collect()
}

/// Returns notes about benchmarks whose messages do not have what the options choose.
pub(super) fn notes<'b>(
    args: &TypeArgs,
    benches: impl Iterator<Item = (&'static str, &'b Benchmark)>,
) -> Vec<String> {
    let (mut of_bytes, mut contiguous) = (Vec::new(), Vec::new());
    for (name, bench) in benches.filter(|(_, bench)| bench.sized) {
        if !has(bench, ElementType::AXIS.name)
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
