//! Options of IMB-MT, the program of IMB with several threads per process.

use clap::{Args, ValueEnum};
use ombx_core::benchmark::ElementType;

use crate::arguments::values;

/// Options that IMB-MT alone has.
#[derive(Debug, Args)]
pub(crate) struct ThreadArgs {
    /// Numbers of elements of a message of IMB-MT, for example: -count 1,1024 [default: 1,2,4,8]
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', value_parser = values::number::<u64>(0..=i32::MAX as u64), help_heading = "As IMB-MT")]
    pub(in crate::commands::imb) count: Vec<u64>,
    /// Element of messages of IMB-MT [default: int]
    #[arg(long, value_name = "int|char", value_enum, help_heading = "As IMB-MT")]
    pub(in crate::commands::imb) datatype: Option<Datatype>,
    /// Timed iterations of IMB-MT [default: 1000]
    #[arg(long, value_name = "N", value_parser = values::number::<u64>(1..=1 << 32), help_heading = "As IMB-MT")]
    pub(in crate::commands::imb) repeat: Option<u64>,
    /// Untimed iterations of IMB-MT [default: 100]
    #[arg(long, value_name = "N", value_parser = values::number::<u64>(0..=1 << 32), help_heading = "As IMB-MT")]
    pub(in crate::commands::imb) warmup: Option<u64>,
    /// Distance of the two ranks of a pair of IMB-MT: 1, or 0 for half of the ranks [default: 0]
    #[arg(long, value_name = "N", value_parser = values::number::<u32>(0..=u32::MAX), help_heading = "As IMB-MT")]
    pub(in crate::commands::imb) stride: Option<u32>,
    /// Print no title of IMB-MT
    #[arg(long, help_heading = "As IMB-MT")]
    pub(in crate::commands::imb) noheader: bool,
    #[arg(long, hide = true, value_enum)]
    pub(in crate::commands::imb) barrier: Option<Barrier>,
    #[arg(long, hide = true, value_parser = values::number::<u64>(1..=1 << 32))]
    pub(in crate::commands::imb) malloc_align: Option<u64>,
    #[arg(long, hide = true, value_enum)]
    pub(in crate::commands::imb) malloc_algo: Option<Allocation>,
    #[arg(long, hide = true)]
    pub(in crate::commands::imb) check: Option<String>,
}

/// IMB-MT's `-datatype`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::commands::imb) enum Datatype {
    /// MPI_INT
    Int,
    /// MPI_CHAR
    Char,
}

/// IMB-MT's `-barrier`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::commands::imb) enum Barrier {
    /// MPI_Barrier
    On,
    /// None
    Off,
    /// Messages
    Special,
}

/// IMB-MT's `-malloc_algo`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::commands::imb) enum Allocation {
    Serial,
    Continuous,
    Parallel,
}

impl Datatype {
    pub(in crate::commands::imb) fn element(self) -> ElementType {
        match self {
            Datatype::Int => ElementType::Int32,
            Datatype::Char => ElementType::Char,
        }
    }
}

impl ThreadArgs {
    /// Returns the name of an option that is given; `None` if none is.
    pub(in crate::commands::imb) fn given(&self) -> Option<&'static str> {
        let given = [
            ("-count", !self.count.is_empty()),
            ("-datatype", self.datatype.is_some()),
            ("-repeat", self.repeat.is_some()),
            ("-warmup", self.warmup.is_some()),
            ("-stride", self.stride.is_some()),
            ("-noheader", self.noheader),
            ("-barrier", self.barrier.is_some()),
            ("-malloc_align", self.malloc_align.is_some()),
            ("-malloc_algo", self.malloc_algo.is_some()),
            ("-check", self.check.is_some()),
        ];
        given.iter().find(|(_, given)| *given).map(|(name, _)| *name)
    }
}
