//! Messages of element types and of derived datatypes: the options of benchmarks that have them.

use ombx_record::{error::Result, unit::Bytes};

use crate::{
    benchmark::{
        Case, ElementType, ParameterValue,
        payload::{BLOCK_LENGTH, BLOCKS, Blocks, Datatype, MOST_ALIGNED, MOST_PAYLOAD, STRIDE, Slots},
        reduction,
    },
    measure::{plan::Plan, session::Session},
};

/// The largest default size. All are powers of two.
const LARGEST_DEFAULT: Bytes = Bytes(4 << 20);

/// Runs a benchmark with each selected datatype.
///
/// # Errors
/// Those of `run`.
pub fn by_datatype(session: &mut Session<'_>, run: impl Fn(&mut Session<'_>) -> Result<()>) -> Result<()> {
    session.split(|session, _: Datatype| run(session))
}

/// Returns messages with the element type and the blocks that a case chooses.
///
/// # Errors
/// The blocks do not exist, or a message is not a whole number of them.
pub fn typed(slots: Slots, case: &Case) -> Result<Slots> {
    let blocks = Blocks::from_values(&case.values)?;
    blocks.map(|blocks| blocks.count(slots.bytes)).transpose()?;
    let element = element_in(reduction::message_type(case), slots.bytes, blocks);
    Ok(Slots { element, ..slots.of_blocks(blocks) })
}

/// Returns the element type of messages: the chosen one, but for `Widest` the one that divides the message, or its blocks.
pub fn element_in(chosen: ElementType, bytes: u64, blocks: Option<Blocks>) -> ElementType {
    chosen.of_size(blocks.map_or(bytes, Blocks::divided))
}

/// Returns the bytes of which messages of a case are multiples: an element, or a block, which is of whole elements.
pub fn block_bytes(case: &Case, _: &Plan) -> u64 {
    let blocks = Blocks::from_values(&case.values).ok().flatten();
    blocks.map_or(reduction::message_type(case).width(), |blocks| blocks.length)
}

/// Returns why the datatype of a case of an operation that moves elements does not exist under a plan, if so.
///
/// # Errors
/// The reason and what to choose.
pub fn check(case: &Case, plan: &Plan) -> std::result::Result<(), String> {
    let element = reduction::message_type(case);
    if case.get::<Datatype>() == Datatype::Struct && element != ElementType::Byte {
        return Err("--datatype struct: its members have types of their own; leave out --type, or choose \
                    --datatype vector or indexed"
            .to_owned());
    }
    check_blocks(case, plan, element)
}

/// Returns why blocks of elements do not exist under a plan, if so.
///
/// # Errors
/// The reason and what to choose.
pub fn check_blocks(case: &Case, plan: &Plan, element: ElementType) -> std::result::Result<(), String> {
    let (width, name) = (element.width(), element.name());
    let datatype: Datatype = case.get();
    let Some(blocks) = Blocks::from_values(&case.values).map_err(|e| e.to_string())? else {
        let has_blocks = [&BLOCK_LENGTH, &STRIDE, &BLOCKS].iter().any(|parameter| plan.chosen.has(parameter));
        let only_bytes = plan.chosen.texts(Datatype::PARAMETER).iter().all(|text| **text == *datatype.name());
        return if has_blocks && only_bytes {
            Err("--block-length, --stride and --blocks are for messages of derived datatypes: add \
                 --datatype vector, indexed or struct"
                .to_owned())
        } else {
            Ok(())
        };
    };
    let length = blocks.length;
    if datatype == Datatype::Indexed && width > MOST_ALIGNED && blocks.list.is_none() {
        return Err(format!(
            "--datatype indexed: its blocks are multiples of at most {MOST_ALIGNED} bytes, an element of \
             --type {name} has {width}; choose --datatype vector"
        ));
    }
    if datatype != Datatype::Struct && !blocks.divided().is_multiple_of(width) {
        return Err(format!(
            "blocks {blocks}: they are no whole elements of --type {name}; choose multiples of {width} \
             bytes for lengths and distances"
        ));
    }
    if plan.chosen.has(&BLOCKS) && !plan.chosen.includes(Datatype::Indexed) {
        return Err("--blocks lists the blocks of indexed datatypes: add --datatype indexed".to_owned());
    }
    if plan.sizes.is_none() && !(length.is_power_of_two() && length <= LARGEST_DEFAULT.0) {
        let option =
            if blocks.list.is_some() { "--blocks".to_owned() } else { format!("--block-length {length}") };
        return Err(format!(
            "{option}: no default size is a multiple of {length} bytes; choose some, as --sizes {length},{}",
            2 * length
        ));
    }
    match plan.sizes.iter().flatten().find(|size| **size > MOST_PAYLOAD) {
        Some(size) => Err(format!(
            "--sizes {size}: messages of a derived datatype have less than 2 GiB; choose smaller --sizes, \
             or --datatype contiguous"
        )),
        None => Ok(()),
    }
}
