//! Programs that watch a cluster with ombx: alerts of Prometheus, and checks of ReFrame.

mod prometheus;
mod reframe;
