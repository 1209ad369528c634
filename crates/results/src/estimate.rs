//! Estimates over launches: one row per case from the rows of all launches, and when there are enough launches.
//!
//! Launches of the same binary differ by more than the samples of one launch show. The headline is therefore the median of the
//! launches' medians, with a distribution-free interval over launches.

mod case;
mod cases;
mod schedule;

pub(crate) use self::{
    case::is_within_a_launch,
    cases::{have_same_setup, without_samples},
};
pub use self::{
    case::{Interval, estimate, estimate_in, interval},
    cases::{Cases, Group, reached, tally},
    schedule::{
        Ending, FIRST_ROW_TIME, LEAST_LAUNCHES, LEAST_LONG_LAUNCHES, LOOKS, MOST_LAUNCHES, Progress,
        Schedule, USUAL_BUDGET, is_long, row_time,
    },
};
