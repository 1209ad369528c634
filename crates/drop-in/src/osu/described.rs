//! OMB's options with parts: derived datatypes (`-D`) and neighbourhoods (`-N`).

use std::fmt::Display;

use ombx_core::benchmark::{
    Chosen, Parameter, ParameterValue, Topology, list_file,
    neighbourhood::{NEIGHBOURS, TORUS},
    payload::{BLOCK_LENGTH, BLOCKS, Blocks, Datatype, STRIDE},
};
use ombx_record::{
    error::{Error, Result},
    unit::Bytes,
};

use crate::osu::programs::Program;

/// Messages of a datatype.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Messages {
    Contiguous,
    /// Vectors, whose sizes include gaps in OMB.
    Vector(Blocks),
    /// The blocks of a file, whatever the size in OMB.
    Listed(Blocks),
}

impl Messages {
    /// Returns the payload of the message for each of OMB's sizes that has one, with that size.
    pub(super) fn payloads(self, sizes: &[Bytes]) -> Vec<(Bytes, Bytes)> {
        match self {
            Messages::Contiguous => sizes.iter().map(|size| (*size, *size)).collect(),
            Messages::Vector(Blocks { length, stride, .. }) => {
                let payload = |size: &Bytes| (Bytes(size.0 / stride * length), *size);
                sizes.iter().filter(|size| size.0 == 0 || size.0 >= stride).map(payload).collect()
            }
            Messages::Listed(Blocks { length, stride, .. }) => vec![(Bytes(length), Bytes(stride))],
        }
    }
}

fn refusal(option: &str, given: &str, why: &dyn Display) -> Error {
    Error::usage(format!("{option} {given}: {why}"))
}

/// Returns the values of a parameter with a fixed set, and of others that describe it.
fn values(value: impl ParameterValue, described: &[(&Parameter, String)]) -> Chosen {
    let mut chosen = Chosen::default().with(value);
    described.iter().for_each(|(parameter, text)| chosen.set(parameter.name, [text.as_str()]));
    chosen
}

/// Reads `-D cont`, `-D vect:STRIDE:BLOCK_LENGTH` and `-D indx:FILE`. Returns values of parameters, and the messages if the option is given.
///
/// # Errors
/// Usage error for another type, blocks that do not exist, and a program without derived datatypes.
pub(super) fn datatype(given: Option<&str>, program: &Program) -> Result<(Chosen, Option<Messages>)> {
    let Some(given) = given else { return Ok((Chosen::default(), None)) };
    let (kind, rest) = given.split_once(':').unwrap_or((given, ""));
    let refusal = |why: &dyn Display| refusal("-D", given, why);
    match kind.to_ascii_lowercase().as_str() {
        "cont" if rest.is_empty() => match program.parameter(Datatype::PARAMETER.name) {
            Some(_) => chosen(given, program, Datatype::Contiguous, &[]),
            None => Ok((Chosen::default(), Some(Messages::Contiguous))),
        },
        "vect" => {
            let numbers =
                rest.split_once(':').map(|(stride, length)| (stride.parse::<u64>(), length.parse::<u64>()));
            let Some((Ok(stride @ 1..), Ok(length @ 1..))) = numbers else {
                let why = "give bytes from block to block and bytes of a block, as in -D vect:16:8";
                return Err(refusal(&why));
            };
            if length > stride {
                let why = "blocks are longer than the distance between them, and MPI allows no overlap \
                           where data arrives: give the larger number first";
                return Err(refusal(&why));
            }
            let described = [(&STRIDE, stride.to_string()), (&BLOCK_LENGTH, length.to_string())];
            chosen(given, program, Datatype::Vector, &described)
        }
        "indx" if !rest.is_empty() => {
            let list = list_file::read("-D indx", rest)?;
            BLOCKS.read(&list).map_err(|e| refusal(&e))?;
            chosen(given, program, Datatype::Indexed, &[(&BLOCKS, list)])
        }
        _ => Err(refusal(&"give cont, vect:STRIDE:BLOCK_LENGTH or indx:FILE")),
    }
}

/// Returns the values of a datatype and what describes it, and its messages.
fn chosen(
    given: &str,
    program: &Program,
    datatype: Datatype,
    described: &[(&Parameter, String)],
) -> Result<(Chosen, Option<Messages>)> {
    if program.parameter(Datatype::PARAMETER.name).is_none() {
        let why = format!("{} sends contiguous messages only", program.osu.name);
        return Err(refusal("-D", given, &why));
    }
    let chosen = values(datatype, described);
    let blocks = Blocks::chosen(datatype, &chosen).map_err(|e| refusal("-D", given, &e))?;
    let messages = match (datatype, blocks) {
        (Datatype::Vector, Some(blocks)) => Messages::Vector(blocks),
        (_, Some(blocks)) => Messages::Listed(blocks),
        (_, None) => Messages::Contiguous,
    };
    Ok((chosen, Some(messages)))
}

/// Reads `-N cart:DIMENSIONS:RADIUS` and `-N graph:FILE`, and `-N graph` and `-N cartesian` of ombx.
///
/// # Errors
/// Usage error for another neighbourhood.
pub(super) fn neighbourhood(given: Option<&str>, program: &Program) -> Result<Chosen> {
    if program.parameter(Topology::PARAMETER.name).is_none() {
        return Ok(Chosen::default());
    }
    let given = given.unwrap_or("cart:1:1");
    let (kind, rest) = given.split_once(':').unwrap_or((given, ""));
    match (kind.to_ascii_lowercase().as_str(), rest) {
        ("cart", "") => Ok(values(Topology::Torus, &[])),
        ("cart", torus) => {
            TORUS.read(torus).map_err(|e| refusal("-N", given, &e))?;
            Ok(values(Topology::Torus, &[(&TORUS, torus.to_owned())]))
        }
        ("cartesian", "") => Ok(values(Topology::Cartesian, &[])),
        ("graph", "") => Ok(values(Topology::Graph, &[])),
        ("graph", path) => {
            let list = list_file::read("-N graph", path)?;
            NEIGHBOURS.read(&list).map_err(|e| refusal("-N", given, &e))?;
            Ok(values(Topology::Edges, &[(&NEIGHBOURS, list)]))
        }
        _ => Err(refusal("-N", given, &"give cart:DIMENSIONS:RADIUS or graph:FILE")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_vectors_include_gaps() {
        let blocks = Blocks { datatype: Datatype::Vector, length: 8, stride: 24, list: None };
        let sizes = [0, 8, 16, 32, 64].map(Bytes);
        let expected = [(0, 0), (8, 32), (16, 64)].map(|(payload, size)| (Bytes(payload), Bytes(size)));
        assert_eq!(Messages::Vector(blocks).payloads(&sizes), expected);
        assert_eq!(Messages::Listed(blocks).payloads(&sizes), [(Bytes(8), Bytes(24))]);
        assert_eq!(Messages::Contiguous.payloads(&sizes).len(), 5);
    }
}
