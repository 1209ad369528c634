//! Results of the jobs: link matrix and verdicts.

mod matrix;
mod verdicts;

use std::{fs::File, io::BufReader};

use ombx_core::wire::{self, RunWithRows};

pub(crate) use self::{
    matrix::matrix,
    verdicts::{judge_pairs, judge_together},
};
use crate::{cluster::Cluster, plan::Job};

/// Reads all runs of a job, also those of incomplete attempts.
fn runs(cluster: &Cluster, job: &Job) -> Vec<RunWithRows> {
    let files = cluster.record.results(job).into_iter().filter_map(|path| File::open(path).ok());
    files.filter_map(|file| wire::read(BufReader::new(file)).ok()).flat_map(|file| file.runs).collect()
}
