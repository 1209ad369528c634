//! IMB's options of data types.

use clap::{Args, ValueEnum};
use ombx_core::benchmark::ElementType;

#[derive(Debug, Args)]
pub(crate) struct TypeArgs {
    /// Element type of messages of benchmarks that move data [default: byte]
    #[arg(long, value_name = "TYPE", value_enum, ignore_case = true, help_heading = "As IMB")]
    pub(crate) data_type: Option<MovedType>,
    /// Element type of reductions and accumulates [default: float]
    #[arg(long, value_name = "TYPE", value_enum, ignore_case = true, help_heading = "As IMB")]
    pub(crate) red_data_type: Option<ReducedType>,
    /// Datatype of messages of benchmarks that move data [default: base]
    #[arg(long, value_name = "KIND", value_enum, ignore_case = true, help_heading = "As IMB")]
    pub(crate) contig_type: Option<ContigType>,
}

/// Element type of messages that are moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MovedType {
    /// MPI_BYTE
    Byte,
    /// MPI_SIGNED_CHAR
    Char,
    /// MPI_INT
    Int,
    /// MPI_FLOAT
    Float,
    /// MPI_DOUBLE
    Double,
}

/// Element type of reductions and accumulates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReducedType {
    /// MPI_SIGNED_CHAR
    Char,
    /// MPI_INT
    Int,
    /// MPI_FLOAT
    Float,
    /// MPI_DOUBLE
    Double,
}

/// How the elements of a message lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum ContigType {
    /// Elements of the type
    Base,
    /// An MPI_Type_vector of them without gaps
    BaseVec,
    /// An MPI_Type_vector of them, each with a gap as long as an element after it
    Resize,
    /// The same
    ResizeVec,
}

impl TypeArgs {
    /// Returns the element type of messages that are moved.
    pub(in crate::commands::imb) fn moved(&self) -> ElementType {
        match self.data_type {
            None | Some(MovedType::Byte) => ElementType::Byte,
            Some(MovedType::Char) => ElementType::Char,
            Some(MovedType::Int) => ElementType::Int32,
            Some(MovedType::Float) => ElementType::Float,
            Some(MovedType::Double) => ElementType::Double,
        }
    }

    /// Returns the element type of reductions and accumulates.
    pub(in crate::commands::imb) fn reduced(&self) -> ElementType {
        match self.red_data_type {
            Some(ReducedType::Char) => ElementType::Char,
            Some(ReducedType::Int) => ElementType::Int32,
            None | Some(ReducedType::Float) => ElementType::Float,
            Some(ReducedType::Double) => ElementType::Double,
        }
    }

    /// Returns the bytes from one element of this width to the next, if elements are in a derived datatype.
    pub(in crate::commands::imb) fn distance(&self, width: u64) -> Option<u64> {
        match self.contig_type.unwrap_or(ContigType::Base) {
            ContigType::Base => None,
            ContigType::BaseVec => Some(width),
            ContigType::Resize | ContigType::ResizeVec => Some(2 * width),
        }
    }
}
