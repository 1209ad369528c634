//! Marks: what could have disturbed a row, and what to do about it. A row without marks had no such problem.

mod effect;
mod phrase;
mod row;
mod standing;

pub use self::{
    phrase::phrase,
    row::{
        RowFacts, below_one_way, clocks_apart, costly_clock, late_starts, of_row, of_samples, one_byte,
        saturated, starts_apart, throttled, wrong_clock,
    },
    standing::{crowded_threads, far_device, idle_ranks, oversubscribed, standing, thread_multiple},
};

/// Codes of the marks that make the interval of a row unreliable.
pub const SPOILS_THE_INTERVAL: [&str; 4] = ["no_interval", "not_converged", "autocorrelated", "bimodal"];
