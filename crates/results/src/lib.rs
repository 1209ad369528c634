//! Work on measured rows: result files, comparison of runs, link verdicts, and output formats.
//!
//! | module | contents |
//! |---|---|
//! | [`estimate`] | one row per case from the rows of all launches |
//! | [`baseline`] | figures of good days, the limits that follow from them, and whether rows meet limits |
//! | [`compare`] | compares two sets of runs case by case |
//! | [`history`] | reads a directory of result files as series over time, and finds changes |
//! | [`matrix`] | writes the times of links as an array that NumPy reads |
//! | [`verdict`] | finds slow hosts, ranks and links in a sweep over links |
//! | [`methods`] | the method of a run as a paragraph, and how to cite ombx |
//! | [`model`] | parameters of LogGP, and sizes at which the protocol switches |
//! | [`provenance`] | lists where, when and how rows were measured |
//! | [`publishable`] | says which rows are fit to publish, why launches ended, and what precision they reached |
//! | [`render`] | writes rows as tables, CSV, OSU format, OpenMetrics and others |
//! | [`runs`] | where the next run lies, from earlier ones |
//! | [`samples`] | raw samples of each case, launch by launch |
//! | [`state`] | says which launches ran in the same state of the machine |
//! | [`plot`] | logarithmic axes and charts for terminals |
//!
//! # Compare two result files
//!
//! ```
//! use ombx_results::{compare::{Comparison, Settings, SideResults}, file, render};
//!
//! # fn main() -> Result<(), file::ReadError> {
//! let mut sides = ["before", "after"].map(SideResults::named);
//! for (side, path) in sides.iter_mut().zip(["../record/tests/golden/one_launch.jsonl"; 2]) {
//!     file::open(path)?.runs.iter().for_each(|run| side.run(run));
//! }
//! let comparison = Comparison::new(&sides[0], &sides[1], Settings::default());
//! let answer = render::compare::sentence(&comparison);
//! assert_eq!(answer, "undecided in both cases: about 4 runs a side could decide them");
//! # Ok(())
//! # }
//! ```

pub mod baseline;
pub mod causes;
pub mod compare;
pub mod estimate;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod history;
pub mod impact;
pub mod knee;
pub mod matrix;
pub mod methods;
pub mod model;
pub mod number;
pub mod percentiles;
pub mod plot;
pub mod provenance;
pub mod publishable;
pub mod render;
pub mod runs;
pub mod samples;
pub mod state;
pub mod verdict;

/// Returns the run of the golden file, a template for tests.
#[cfg(test)]
pub(crate) fn golden() -> ombx_record::file::RunWithRows {
    ombx_record::file::read(include_bytes!("../../record/tests/golden/one_launch.jsonl").as_slice())
        .unwrap()
        .runs
        .remove(0)
}
