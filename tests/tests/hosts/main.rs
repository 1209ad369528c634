//! Tests between hosts of `cargo xtask testbed`, whose network has a known delay and rate. They need root and are otherwise skipped.

mod accuracy;
mod broadcast;
mod congestion;
mod failures;
mod model;
mod monitoring;
mod network;
mod reframe;
mod slurm;
mod smoke;
mod starting;
mod testbed;
mod verdicts;
mod walkthrough;
