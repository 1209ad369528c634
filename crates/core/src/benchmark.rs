//! What a benchmark is: its entry in the registry, its kernel, and the cases that users choose.

mod case;
mod context;
mod depth;
pub mod derived;
mod entry;
mod groups;
mod kernel;
mod layout;
pub mod memory;
pub mod neighbourhood;
mod parameter;
pub mod payload;
pub mod reduction;
mod root;
mod threads;
mod work;

pub use self::{
    case::Case,
    context::{Context, MEMORY_LIMIT},
    depth::{Depth, parse_depths},
    entry::{
        Benchmark, Choice, Description, LETTERS, Medium, MessageSizes, OwnParameters, RankNeeds, Streams,
    },
    groups::Groups,
    kernel::Kernel,
    layout::{Aggregation, Assignment, Direction, Distance, Layout, PairCount, Pairing, Pairs},
    neighbourhood::{Neighbourhood, Topology},
    parameter::{
        ALL, CaseValues, Chosen, Heading, Named, Parameter, ParameterValue, Reader, Shown, Text, Values,
        if_chosen,
    },
    reduction::{ElementType, Numbers, ReductionOp},
    root::Root,
    threads::{MATCHED_THREADS, SHARED_THREADS, Threading, Threads},
    work::{BusTraffic, Method, Metric, Role, Work},
};
pub use crate::benchmark::derived::{
    ALONE, ConnectionCounters, Figure, Figures, OVERLAPPING, interval_names,
};
pub use crate::benchmark::entry::Registry;
pub use crate::benchmark::entry::{Osu, Preset};
pub use crate::benchmark::groups::RankMatrix;
pub use crate::benchmark::layout::{Fan, FanDirection};
pub use crate::benchmark::parameter::ParameterList;
pub use crate::benchmark::root::Imbalance;
pub use crate::benchmark::threads::Initialization;
pub use crate::benchmark::work::{Busy, Compute};
