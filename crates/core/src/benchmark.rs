//! What a benchmark is: its entry in the registry, its kernel, and the cases that users choose.

/// Declares functions of a description that return it with other values of some fields.
macro_rules! settings {
    ($(
        $( #[doc = $doc:literal] )+
        $name:ident($($value:ident: $Value:ty),*) sets $( $($field:ident).+ = $new:expr ),+;
    )+) => {
        $(
            $( #[doc = $doc] )+
            #[must_use]
            pub const fn $name(mut self $(, $value: $Value)*) -> Self {
                $( self.$($field).+ = $new; )+
                self
            }
        )+
    };
}

mod case;
pub mod cold;
pub mod derived;
mod entry;
mod groups;
mod kernel;
mod layout;
pub mod list_file;
pub mod memory;
pub mod neighbourhood;
mod parameter;
pub mod payload;
mod position;
pub mod reduction;
mod root;
mod threads;

pub use ombx_record::result::{
    ALONE, Aggregation, BusTraffic, ConnectionCounters, Figure, Figures, Metric, OVERLAPPING, Work,
    interval_names,
};

pub use self::{
    case::Case,
    entry::{
        Benchmark, Choice, Description, LETTERS, Medium, MessageSizes, Osu, OwnParameters, Preset, RankNeeds,
        Registry, Streams,
    },
    groups::{Depth, Groups, RankMatrix, parse_depths},
    kernel::{Busy, Compute, Context, Kernel, MEMORY_LIMIT, Method, Role},
    layout::{Assignment, Direction, Distance, Fan, FanDirection, Layout, PairCount, Pairing, Pairs},
    neighbourhood::{Edges, Neighbourhood, Topology, Torus},
    parameter::{
        ALL, CaseValues, Chosen, Heading, Named, Parameter, ParameterList, ParameterValue, Reader, Shown,
        Value, Values, if_chosen,
    },
    position::{ALIGNMENT, Position, position},
    reduction::{ElementType, Numbers, ReductionOp},
    root::{Imbalance, Root},
    threads::{Initialization, MATCHED_THREADS, SHARED_THREADS, Threading, Threads},
};
