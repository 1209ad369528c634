//! Results over time: a directory of dated result files is read as one series per case, and the dates of its changes are found.
//!
//! | module | contents |
//! |---|---|
//! | `change_point` | finds the places where the level of a series changes |
//! | `dated` | what a series needs of a result file |
//! | `index` | the contents of files that were read before |
//! | `store` | reads a directory with its index |
//! | `series` | one series per case with its changes, and changes of several cases at the same time |

mod change_point;
mod dated;
mod index;
mod series;
mod store;

#[cfg(test)]
pub(crate) use self::series::tests::result;
pub use self::{
    change_point::{CONFIRMED_BY, LEAST_RUNS, change_points, confirmed_changes},
    dated::{DatedResult, DatedRow, Difference, SharedFacts, read},
    index::{Content, Index, Stamp},
    series::{Case, Change, Event, History, Point, Selection, Series, events},
    store::{INDEX, Store, indexed, newest, write_index},
};
