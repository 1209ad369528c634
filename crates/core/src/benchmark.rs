//! What a benchmark is: its entry in the registry, its kernel, and the cases that users choose.

mod axis;
mod case;
pub mod cold;
mod compute;
mod context;
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
pub mod payload;
mod preset;
mod rank_matrix;
pub mod reduction;
mod registry;
mod root;
mod setting;
mod threads;
mod work;

pub use self::{
    axis::{Axis, AxisValue, Named},
    case::Case,
    compute::{Busy, Compute},
    context::Context,
    entry::{Benchmark, Choice, LETTERS, Medium},
    fan::{Fan, FanDirection},
    figure::{ALONE, ConnectionCounters, Figure, Figures, OVERLAPPING, interval_names},
    groups::Groups,
    imbalance::{IMBALANCE, Imbalance},
    initialization::Initialization,
    kernel::Kernel,
    layout::{Aggregation, Assignment, Direction, Distance, Layout, Pairing, Pairs},
    neighbourhood::{Neighbourhood, Topology},
    preset::{Osu, Preset},
    rank_matrix::RankMatrix,
    reduction::{ElementType, Numbers, ReductionOp},
    registry::Registry,
    root::Root,
    setting::Setting,
    threads::{ThreadRoles, Threading, Threads},
    work::{BusTraffic, Method, Metric, Role, Work},
};
