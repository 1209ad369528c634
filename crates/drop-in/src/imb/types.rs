//! Element types and derived datatypes of messages, as the options of IMB choose them.

use ombx_core::benchmark::{
    Benchmark, Chosen, ElementType, ParameterValue, ReductionOp,
    payload::{BLOCK_LENGTH, Datatype, STRIDE},
};
use ombx_record::order::each_once;

use crate::imb::options::TypeOptions;

/// Returns the element type of a benchmark. IMB always swaps MPI_INT.
pub(crate) fn element(options: &TypeOptions, bench: &Benchmark) -> ElementType {
    match bench.parameter(ElementType::PARAMETER.name) {
        _ if bench.name == "rma.cas_latency" => ElementType::Int32,
        // Benchmarks that reduce have another default.
        Some(parameter) if parameter.default == Some(ElementType::Byte.name()) => options.data_type,
        Some(_) => options.red_data_type,
        None => ElementType::Byte,
    }
}

/// Returns the bytes from one element of a message to the next, if a derived datatype is chosen and the benchmark moves such messages.
fn stride(options: &TypeOptions, bench: &Benchmark) -> Option<u64> {
    let moves = bench.has(Datatype::PARAMETER) && !bench.has(ReductionOp::PARAMETER);
    options.stride(element(options, bench).width()).filter(|_| moves)
}

/// Chooses the derived datatype of a benchmark, if it has one: one element per block.
pub(crate) fn choose_blocks(options: &TypeOptions, bench: &Benchmark, chosen: &mut Chosen) {
    let Some(stride) = stride(options, bench) else { return };
    chosen.choose([Datatype::Vector]);
    chosen.set(BLOCK_LENGTH.name, [element(options, bench).width().to_string()]);
    chosen.set(STRIDE.name, [stride.to_string()]);
}

/// Returns notes about benchmarks whose messages do not have what the options choose.
pub fn notes<'b>(
    options: &TypeOptions,
    benches: impl Iterator<Item = (&'static str, &'b Benchmark)>,
) -> Vec<String> {
    let sized: Vec<_> = benches.filter(|(_, bench)| bench.messages.sized).collect();
    let named = |is: &dyn Fn(&Benchmark) -> bool| {
        each_once(sized.iter().filter(|(_, bench)| is(bench)).map(|(name, _)| *name))
    };
    let of_bytes =
        named(&|bench| options.data_type != ElementType::Byte && !bench.has(ElementType::PARAMETER));
    let contiguous = named(&|bench| options.stride(1).is_some() && stride(options, bench).is_none());
    let notes = [("-data_type", of_bytes, "bytes"), ("-contig_type", contiguous, "contiguous")];
    let notes = notes.into_iter().filter(|(_, names, _)| !names.is_empty());
    notes
        .map(|(option, names, what)| format!("{option}: messages of {} are {what}", names.join(", ")))
        .collect()
}
