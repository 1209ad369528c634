//! `p2p.request`: requests at an offered rate.

use ombx_core::{
    benchmark::{Benchmark, Metric, ParameterValue, memory::BufferMemory},
    two_sided::request::{
        self,
        schedule::{Arrivals, Rate},
    },
};
use ombx_mpi::RequestChannel;

/// Calls for one request on both ranks.
const CALLS: &[&str] = &["MPI_Irecv", "MPI_Isend", "MPI_Testall", "MPI_Recv", "MPI_Send"];

ombx_core::inventory::submit! {
    Benchmark::custom(
        "p2p.request",
        "requests at an offered rate, latency from the scheduled time to the reply",
        Metric::Latency,
        request::method("none in OMB and IMB"),
        request::run_requests::<RequestChannel>,
    ).iterates(CALLS, request::FORMULA).sizes("64").streaming().with(&[Rate::PARAMETER, Arrivals::PARAMETER, BufferMemory::PARAMETER])
}
