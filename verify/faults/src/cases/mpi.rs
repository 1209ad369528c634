//! MPI calls that fail, in every part of a job.

use Place::{Between, Calibration, Closing, End, Measuring, Open, Start, Verifying, WarmUp};
use ombx_host::environment;

use crate::{
    case::{Case, Place},
    stage::Stage,
};

/// MPI call that returns an error.
struct Row {
    call: &'static str,
    place: Place,
    bench: &'static str,
    options: &'static str,
    /// Number of the matching call on rank 1, from 1.
    nth: u64,
    /// Whether every change of ombx must pass the case.
    gate: bool,
}

/// Message size that nothing else has. 2 iterations warm up, 10 are measured, one more is verified.
const COUNTS: &str = "--iterations 10 --warmup 2 --batch 1 -n 2 --sizes 1000";
/// Directory of files, which is on every system.
const IO: &str = "--directory /tmp";
/// Messages in flight of benchmarks that always have several.
const WINDOW: &str = "--window 2";

const fn row(call: &'static str, place: Place, bench: &'static str, options: &'static str, nth: u64) -> Row {
    Row { call, place, bench, options, nth, gate: false }
}

const fn gate(call: &'static str, place: Place, bench: &'static str, options: &'static str, nth: u64) -> Row {
    Row { gate: true, ..row(call, place, bench, options, nth) }
}

#[rustfmt::skip]
const ROWS: &[Row] = &[
    gate("Init", Start, "p2p.latency", "", 1),
    row("Init_thread", Start, "p2p.latency", "--threading funneled", 1),
    row("Comm_dup", Start, "p2p.latency", "", 1),
    row("Comm_set_errhandler", Start, "p2p.latency", "", 1),

    gate("Win_allocate", Open, "rma.put_bw", "", 1),
    row("Win_create", Open, "rma.put_bw", "--win create", 1),
    row("Alloc_mem", Open, "rma.get_bw", "--win alloc_mem", 1),
    row("Win_allocate_shared", Open, "rma.get_bw", "--win shared", 1),
    row("Win_create_dynamic", Open, "rma.put_latency", "--win dynamic", 1),
    row("Win_attach", Open, "rma.put_latency", "--win dynamic", 1),
    row("Win_get_attr", Open, "rma.acc_bw", "", 1),
    row("Win_set_errhandler", Open, "rma.put_latency", "", 1),
    gate("Recv_init", Open, "p2p.latency_persistent", "", 1),
    row("Send_init", Open, "p2p.bw_persistent", "", 1),
    row("Psend_init", Open, "p2p.latency_partitioned", "", 1),
    row("Precv_init", Open, "p2p.bw_partitioned", "", 1),
    gate("Bcast_init", Open, "collective.bcast_persistent", "", 1),
    row("Allreduce_init", Open, "collective.allreduce_persistent", "", 1),
    row("Cart_create", Open, "collective.neighbor_allgather", "", 1),
    row("Dist_graph_create_adjacent", Open, "collective.neighbor_alltoall", "--topology graph", 1),
    row("File_set_view", Open, "io.write", IO, 1),

    gate("Recv", WarmUp, "p2p.latency", "", 1),
    row("Isend", WarmUp, "p2p.bibw", "", 1),
    row("Put", WarmUp, "rma.put_bibw", "", 1),
    row("Allreduce", WarmUp, "collective.allreduce", "", 1),
    row("Startall", WarmUp, "p2p.bw_persistent", "", 1),

    gate("Recv", Measuring, "p2p.latency", "", 5),
    row("Send", Measuring, "p2p.latency", "", 5),
    row("Ssend", Measuring, "p2p.latency", "--send synchronous", 5),
    row("Bsend", Measuring, "p2p.latency", "--send buffered", 5),
    row("Rsend", Measuring, "p2p.latency", "--send ready", 5),
    gate("Irecv", Measuring, "p2p.bw", "", 9),
    row("Isend", Measuring, "p2p.bibw", "", 9),
    gate("Waitall", Measuring, "p2p.bw", "", 5),
    row("Start", Measuring, "p2p.latency_persistent", "", 9),
    row("Startall", Measuring, "p2p.bw_persistent", "", 5),
    row("Pready", Measuring, "p2p.latency_partitioned", "", 5),
    row("Recv", Measuring, "p2p.latency_mt", "--threads 2:2", 9),
    row("Recv", Measuring, "p2p.latency_mp", "", 9),
    row("Recv", Measuring, "p2p.link", "", 9),
    row("Waitall", Measuring, "p2p.fan_out", "", 5),
    row("Irecv", Measuring, "p2p.mbw_mr", "", 5),
    gate("Put", Measuring, "rma.put_latency", "", 5),
    row("Get", Measuring, "rma.get_bibw", "", 9),
    row("Accumulate", Measuring, "rma.acc_latency", "", 5),
    row("Get_accumulate", Measuring, "rma.get_acc_latency", "", 5),
    row("Win_fence", Measuring, "rma.put_bw", "--sync fence", 9),
    gate("Win_post", Measuring, "rma.put_bw", "", 5),
    row("Win_wait", Measuring, "rma.put_bw", "", 5),
    row("Win_start", Measuring, "rma.put_bibw", "", 5),
    row("Win_complete", Measuring, "rma.put_bibw", "", 5),
    row("Bcast", Measuring, "collective.bcast", "", 5),
    gate("Allreduce", Measuring, "collective.allreduce", "", 5),
    row("Alltoall", Measuring, "collective.alltoall", "", 5),
    row("Alltoallw", Measuring, "collective.alltoallw", "", 5),
    row("Reduce_scatter_block", Measuring, "collective.reduce_scatter_block", "", 5),
    row("Scan", Measuring, "collective.scan", "", 5),
    row("Scatterv", Measuring, "collective.scatterv", "", 5),
    row("Neighbor_allgather", Measuring, "collective.neighbor_allgather", "", 5),
    row("Iallgather", Measuring, "collective.iallgather", "", 5),
    row("Ireduce", Measuring, "collective.ireduce", "", 1),
    row("Start", Measuring, "collective.bcast_persistent", "", 5),
    row("Wait", Measuring, "collective.ibcast", "", 5),
    gate("File_write", Measuring, "io.write", IO, 5),
    row("File_sync", Measuring, "io.write", IO, 5),
    row("File_read", Measuring, "io.read", IO, 5),
    row("File_write_shared", Measuring, "io.write", "--directory /tmp --pointer shared", 5),
    row("File_iwrite", Measuring, "io.iwrite", IO, 5),
    row("File_write_all_end", Measuring, "io.iwrite", "--directory /tmp --access split", 5),
    row("File_open", Measuring, "io.open", IO, 5),
    row("Sendrecv_replace", Measuring, "p2p.sendrecv_replace", "", 5),

    row("Recv", Verifying, "p2p.latency", "", 13),
    gate("Put", Verifying, "rma.put_bibw", "", 25),
    row("Allreduce", Verifying, "collective.allreduce", "", 13),

    gate("Win_free", Closing, "rma.put_bw", "", 1),
    row("File_close", Closing, "io.read", IO, 1),
    row("Win_detach", Closing, "rma.put_bw", "--win dynamic", 1),
    row("Request_free", Closing, "p2p.bw_persistent", "", 1),
    row("Request_free", Closing, "collective.bcast_persistent", "", 1),
    row("Comm_free", Closing, "collective.neighbor_allgather", "", 1),

    gate("Barrier", Between, "p2p.latency", "", 2),
    row("Bcast", Between, "p2p.latency", "", 1),
    row("Bcast", Between, "p2p.latency", "", 2),
    row("Bcast", Between, "p2p.latency", "", 3),
    row("Gatherv", Between, "p2p.latency", "", 2),
];

/// Returns whether the call is matched by the size of its message.
fn has_size(row: &Row) -> bool {
    let data = "end ecv Put Get ccumulate llre lltoall educe Scan catter gather File_write File_read";
    let is_data = data.split(' ').any(|part| row.call.contains(part)) || row.call == "Bcast";
    is_data
        && !row.call.ends_with("_end")
        && row.place != Between
        && !row.call.ends_with("_init")
        && !row.bench.contains("partitioned")
}

impl Row {
    fn case(&self, stage: &Stage) -> Case {
        let Self { call, place, bench, options, nth, gate } = *self;
        let size = if has_size(self) { ",bytes=1000" } else { "" };
        let rule = format!("call={call},do=error:ERR_OTHER,rank=1,nth={nth},times=1{size}");
        let streams = stage.bench(bench).is_some_and(|bench| {
            bench.streams && !["pattern", "file-sync"].iter().any(|axis| bench.axis(axis).is_some())
        });
        let words = format!("run {bench} {options} {COUNTS} {}", if streams { WINDOW } else { "" });
        let name = format!("MPI_{call}");
        let whole = format!("{bench}/");
        let fault = format!("MPI_{call} fails");
        let case = Case::new(&fault, place, &words, 6).rule(rule);
        // Before a case is open, a failure has no benchmark.
        let case = if matches!(place, Start | Between) { case } else { case.says(&[&whole]) };
        let case = case.says(&["rank 1", &environment::hostname(), &name]);
        case.skip_if(stage.unavailable(bench)).gate(gate)
    }
}

pub(crate) fn cases(stage: &Stage) -> Vec<Case> {
    let mut cases: Vec<Case> = ROWS.iter().map(|row| row.case(stage)).collect();
    let host = environment::hostname();
    let latency = format!("run p2p.latency {COUNTS}");
    let of = |fault, place, words: &str, rule: &str| {
        let case = Case::new(fault, place, words, 6).rule(format!("{rule},bytes=1000,rank=1"));
        case.says(&["rank 1", &host, "p2p.latency/"])
    };
    let calibrated = "run p2p.latency --sizes 1000 --max-time 20ms";
    let raised = "an MPI error goes through the handler";
    let threads = "fewer threads than asked for";
    let more = [
        of("MPI_Recv fails", Calibration, calibrated, "call=Recv,do=error:ERR_OTHER,nth=2")
            .says(&["MPI_Recv"]),
        of(raised, Measuring, &latency, "call=Recv,do=raise:ERR_INTERN,nth=5").says(&["MPI error"]),
        of("a message is longer than its receive", Measuring, &latency, "call=Recv,do=trunc,nth=5")
            .says(&["MPI error"]),
        // All rows are measured by then: the launcher may report success or failure.
        Case::new("MPI_Finalize fails", End, &latency, 0)
            .or_code(6)
            .rule("call=Finalize,do=error:ERR_OTHER,rank=1")
            .rows(1),
        // Rank 0 writes the results.
        Case::new("MPI_Recv fails on rank 0", Measuring, &format!("{latency},1008"), 6)
            .rule("call=Recv,do=error:ERR_OTHER,rank=0,bytes=1008,nth=5")
            .says(&["rank 0", &host, "p2p.latency/bytes=1008", "MPI_Recv"])
            .rows(1),
        Case::new(threads, Start, &format!("run p2p.latency_mt {COUNTS}"), 4)
            .rule("call=Query_thread,do=less")
            .says(&["MPI_THREAD_MULTIPLE"])
            .rows(1),
        Case::new("half of each message is sent", Verifying, &latency, 5)
            .rule("call=Send,do=short,rank=0,bytes=1000")
            .says(&["rank 1", "byte 500"]),
    ];
    cases.extend(more.map(|case| case.gate(true)));
    cases
}
