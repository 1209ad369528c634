//! Messages that are wrong now and then: the last timed iteration is usually right, so that only many verified iterations show them.

use crate::{
    case::{Case, Place},
    interpose::Rule,
    stage::Stage,
};
use ombx_toolchain::mpi::Flavour;

/// A benchmark with options, the call in which data goes wrong, what happens to it, and how often: once in so many calls.
type Fault = (&'static str, &'static str, &'static str, &'static str, u64);

/// Message size of all rows but those of one element.
const BYTES: u64 = 1000;

const FAULTS: [Fault; 10] = [
    ("p2p.latency", "", "Recv", "stale", 2),
    ("p2p.latency", "", "Recv", "stale", 3),
    ("p2p.latency", "", "Recv", "flip", 10),
    ("p2p.latency", "--verify full --iterations 2000", "Recv", "flip", 100),
    ("p2p.bw", "", "Irecv", "flip", 1000),
    ("collective.bcast", "", "Bcast", "stale", 2),
    ("collective.allreduce", "", "Allreduce", "stale", 2),
    ("rma.put_latency", "--sync lock,flush,pscw,fence", "Put", "lost", 3),
    ("rma.put_bw", "--sync lock,flush,pscw,fence", "Put", "lost", 1000),
    ("rma.cas_latency", "--sync all", "Compare_and_swap", "swap", 1),
];

pub(super) fn cases(stage: &Stage) -> impl Iterator<Item = Case> {
    FAULTS.into_iter().map(|(bench, options, call, what, of)| {
        let unavailable = stage.bench(bench).and_then(|bench| bench.unavailable.clone());
        let bytes = if bench == "rma.cas_latency" { 8 } else { BYTES };
        let often = if of == 1 { "every message".into() } else { format!("one message in {of}") };
        let happens = match what {
            "flip" => "has a wrong byte",
            "swap" => "is swapped without comparing",
            _ => "is lost",
        };
        // The receiver of one direction, so that the period does not fit to that of the benchmark; a put is lost at its origin.
        let rank = if call.ends_with("ecv") || call == "Bcast" { 1 } else { 0 };
        let words = format!("run {bench} --sizes {bytes} -n 2 {options}");
        let case = Case::of(&format!("{often} {happens}"), Place::Verifying, bench, &words, 5)
            .rule(Rule::new(call, what).on(rank).bytes(bytes).slot(of / 2, of).byte(7))
            .says(&["data arrived wrong at"])
            .skip_if(unavailable);
        if stage.mpi.flavour == Flavour::OpenMpi && bench == "rma.cas_latency" {
            // Open MPI 4 crashes in MPI_Compare_and_swap with its default component.
            return case.prepared(|command, _, _| {
                command.env("OMPI_MCA_osc", "^rdma");
                Ok(())
            });
        }
        case
    })
}
