//! Programs that watch a cluster with ombx: alerts of Prometheus, checks of ReFrame, and recipes of the guide for Slurm and NHC.

mod prometheus;
mod recipes;
mod reframe;
