//! Results over time: a directory of dated result files is read as one series per case, and the dates of its changes are found.
//!
//! | module | contents |
//! |---|---|
//! | `change_point` | finds the places where the level of a series changes |
//! | `dated` | what a series needs of a result file |
//! | `store` | reads a directory |
//! | `series` | one series per case with its changes, and changes of several cases at the same time |

mod change_point;
mod dated;
mod series;
mod store;

#[cfg(test)]
pub(crate) use self::series::tests::result;
pub use self::{
    change_point::{CONFIRMED_BY, LEAST_RUNS, change_points, confirmed_changes},
    dated::{DatedResult, DatedRow, Difference, read},
    series::{Case, Change, ChangeEvent, History, Point, Selection, Series, events},
    store::{Store, newest},
};
