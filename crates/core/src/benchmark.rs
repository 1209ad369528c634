//! What a benchmark is: its entry in the registry, its kernel, and the cases that users choose.

mod case;
pub mod cold;
mod compute;
mod context;
mod depth;
pub mod derived;
mod entry;
mod fan;
pub(crate) mod figure;
mod groups;
mod imbalance;
mod initialization;
mod kernel;
mod layout;
pub mod memory;
pub mod neighbourhood;
mod pairs;
mod parameter;
pub mod payload;
mod rank_matrix;
pub mod reduction;
mod registry;
mod root;
mod threads;
mod work;

pub use self::{
    case::Case,
    compute::{Busy, Compute},
    context::{Context, MEMORY_LIMIT},
    depth::{Depth, parse_depths},
    entry::{
        Benchmark, Choice, Description, LETTERS, Medium, MessageSizes, OwnParameters, RankNeeds, Streams,
    },
    fan::{Fan, FanDirection},
    figure::{ALONE, ConnectionCounters, Figure, Figures, OVERLAPPING, interval_names},
    groups::Groups,
    imbalance::Imbalance,
    initialization::Initialization,
    kernel::Kernel,
    layout::{Aggregation, Assignment, Direction, Distance, Layout, PairCount, Pairing, Pairs},
    neighbourhood::{Neighbourhood, Topology},
    parameter::{
        ALL, CaseValues, Chosen, Heading, Named, Parameter, ParameterValue, Reader, Shown, Text, Values,
        if_chosen,
    },
    rank_matrix::RankMatrix,
    reduction::{ElementType, Numbers, ReductionOp},
    registry::Registry,
    root::Root,
    threads::{MATCHED_THREADS, SHARED_THREADS, Threading, Threads},
    work::{BusTraffic, Method, Metric, Role, Work},
};
pub use crate::benchmark::entry::{Osu, Preset};
pub use crate::benchmark::parameter::ParameterList;
