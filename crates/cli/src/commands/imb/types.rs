//! The data types of IMB: element types of messages and of reductions, and the gaps between elements.

use std::collections::BTreeMap;

use ombx_core::{
    benchmark::{
        AxisValue, Benchmark, ElementType, ReductionOp,
        payload::{BLOCK_LENGTH, Datatype, STRIDE},
    },
    error::{Error, Result},
};

use super::arguments::ImbArgs;

/// Returns the element type of messages that are moved.
pub(super) fn moved(args: &ImbArgs) -> Result<ElementType> {
    named("-data_type", args.other.data_type.as_deref(), ElementType::Byte)
}

/// Returns the element type of reductions and accumulates.
pub(super) fn reduced(args: &ImbArgs) -> Result<ElementType> {
    match named("-red_data_type", args.other.red_data_type.as_deref(), ElementType::Float)? {
        ElementType::Byte => {
            Err(Error::usage("-red_data_type byte: bytes have no sum; give char, int, float or double"))
        }
        element => Ok(element),
    }
}

fn named(option: &str, given: Option<&str>, usual: ElementType) -> Result<ElementType> {
    let Some(given) = given else { return Ok(usual) };
    match given.to_ascii_lowercase().as_str() {
        "byte" => Ok(ElementType::Byte),
        "char" => Ok(ElementType::Char),
        "int" => Ok(ElementType::Int32),
        "float" => Ok(ElementType::Float),
        "double" => Ok(ElementType::Double),
        _ => Err(Error::usage(format!("{option} {given}: ombx has byte, char, int, float and double"))),
    }
}

/// Returns the element type of a benchmark. IMB swaps MPI_INT in any case.
pub(super) fn of(args: &ImbArgs, bench: &Benchmark) -> Result<ElementType> {
    let has = |name: &str| bench.axes.iter().find(|axis| axis.name == name);
    match (has(ReductionOp::AXIS.name), has(ElementType::AXIS.name)) {
        (Some(_), _) => reduced(args),
        (None, Some(axis)) if axis.default == ElementType::Byte.name() => moved(args),
        (None, _) => Ok(ElementType::Int32),
    }
}

/// Returns the bytes from one element of a message to the next, if `-contig_type` puts elements of this width into a derived datatype.
pub(super) fn distance(args: &ImbArgs, width: u64) -> Result<Option<u64>> {
    let Some(given) = args.other.contig_type.as_deref() else { return Ok(None) };
    match given.to_ascii_lowercase().as_str() {
        "base" => Ok(None),
        "base_vec" => Ok(Some(width)),
        "resize" | "resize_vec" => Ok(Some(2 * width)),
        _ => Err(Error::usage(format!(
            "-contig_type {given} is not one of base, base_vec, resize and resize_vec"
        ))),
    }
}

/// Returns whether a benchmark moves messages of derived datatypes and combines none.
pub(super) fn has_derived(bench: &Benchmark) -> bool {
    let has = |name: &str| bench.axes.iter().any(|axis| axis.name == name);
    has(Datatype::AXIS.name) && !has(ReductionOp::AXIS.name)
}

/// Returns the settings of the derived datatype of a benchmark: one element per block.
pub(super) fn blocks(args: &ImbArgs, bench: &Benchmark) -> Result<BTreeMap<String, String>> {
    let width = of(args, bench)?.width();
    let settings = |stride: u64| {
        [(BLOCK_LENGTH, width), (STRIDE, stride)]
            .map(|(setting, bytes)| (setting.name.to_owned(), bytes.to_string()))
    };
    let distance = distance(args, width)?.filter(|_| has_derived(bench));
    Ok(distance.into_iter().flat_map(settings).collect())
}
