//! Results of the jobs: link matrix and verdicts.

mod matrix;
mod verdicts;

pub(crate) use self::{
    matrix::matrix,
    verdicts::{judge_pairs, judge_together},
};
