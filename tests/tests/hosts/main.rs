//! Several hosts on one machine, made by `cargo xtask testbed`, with links whose truth is known. Needs root; skips with a reason.

mod bed;
mod failures;
mod network;
mod slurm;
mod smoke;
mod truth;
mod verdicts;
mod ways;
