//! `p2p.pingpong_mt` and others: two-sided patterns on several threads of each rank, each with a partner thread and a communicator.

use crate::{
    PING_PONG, STREAM,
    neighbours::{CHAIN, Exchange, Neighbours, PingPing, SendReceive},
};
use ombx_core::{
    benchmark::{AxisValue, Benchmark, Distance, Layout, Method, Pairing, Pairs},
    pacing::paced_threads::Many,
    two_sided::pattern::{BiStream, Buffers, PatternKernel, PingPong, Stream},
};
use ombx_mpi::{Channel, NeighbourChannel, OnThread};

type Messages<P> = PatternKernel<P, OnThread<Channel>>;
type Meeting<M> = Neighbours<M, OnThread<Box<NeighbourChannel>>>;

const PAIRS: Layout = Layout::Pairs(Pairs::Most);

/// Returns the description of what each thread does.
const fn method(timed: &'static str, like: &'static str) -> Method {
    Method {
        timed,
        untimed: "starting threads, their common start, communicators, buffers, filling and checking them",
        like,
    }
}

ombx_core::inventory::submit! {
    Benchmark::matched_threads::<Messages<PingPong>, Many>(
        "p2p.pingpong_mt", "blocking ping-pongs of several threads, each with its own partner thread, one way",
        method(
            "on each thread of the first rank of a pair, a batch of blocking sends and receives; the thread with its number on the \
             other rank answers. A sample is from the first start of a thread to the last end",
            "IMB-MT PingPongMT, which prints minimum, maximum and mean over threads",
        ),
    )
    .iterates(PING_PONG, "t / 2; t from the first start to the last end").sizes("0,1..4M").layout(PAIRS).axes(&[Pairing::AXIS])
}
ombx_core::inventory::submit! {
    Benchmark::matched_threads::<Messages<Stream>, Many>(
        "p2p.bw_mt", "windows of nonblocking sends of several threads, each acknowledged once",
        method(
            "on each thread of the first rank of a pair, windows of nonblocking sends, each with one acknowledgement; the thread with \
             its number on the other rank receives. A sample is from the first start of a thread to the last end",
            "IMB-MT UniBandMT, whose messages share a buffer",
        ),
    )
    .iterates(STREAM, "P T W S / t; t from the first start to the last end, T threads").streaming().layout(PAIRS)
    .axes(&[Buffers::AXIS, Pairing::AXIS])
}
ombx_core::inventory::submit! {
    Benchmark::matched_threads::<Messages<BiStream>, Many>(
        "p2p.bibw_mt", "windows of nonblocking messages of several threads in both directions at once",
        method(
            "on each thread of a pair, windows of nonblocking receives and sends, and waiting for all of them. A sample is from the \
             first start of a thread of the first rank to the last end",
            "IMB-MT BiBandMT, whose messages share a buffer and which acknowledges each window",
        ),
    )
    .iterates(&["MPI_Irecv", "MPI_Isend", "MPI_Waitall"], "2 P T W S / t; t from the first start to the last end, T threads")
    .streaming().layout(PAIRS).axes(&[Buffers::AXIS, Pairing::AXIS])
}
ombx_core::inventory::submit! {
    Benchmark::matched_threads::<Meeting<PingPing>, Many>(
        "p2p.pingping_mt", "threads of two ranks send to each other at the same time",
        method(
            "on each thread of a pair, a nonblocking send, a blocking receive of the partner thread's message, and the wait for the \
             send. A sample is from the first start of a thread of the first rank to the last end",
            "IMB-MT PingPingMT, which prints minimum, maximum and mean over threads",
        ),
    )
    .iterates(&["MPI_Isend", "MPI_Recv", "MPI_Wait"], "t from the first start to the last end").sizes("0,1..4M").layout(PAIRS)
    .axes(&[Pairing::AXIS])
}
ombx_core::inventory::submit! {
    Benchmark::matched_threads::<Meeting<SendReceive>, Many>(
        "p2p.sendrecv_mt", "every thread of a periodic chain of ranks sends to the next one",
        method(
            "on each thread of every rank, calls that send to the thread with its number on the next rank and receive from the \
             previous one. A sample is from the first start of a thread to the last end, on the slowest rank",
            "IMB-MT SendRecvMT, which prints minimum, maximum and mean over threads",
        ),
    )
    .iterates(&["MPI_Sendrecv"], CHAINED).sizes("0,1..4M").layout(CHAIN).axes(&[Distance::AXIS])
}
ombx_core::inventory::submit! {
    Benchmark::matched_threads::<Meeting<Exchange>, Many>(
        "p2p.exchange_mt", "every thread of a periodic chain of ranks exchanges messages with both neighbours",
        method(
            "on each thread of every rank, nonblocking sends to the threads with its number on both neighbours, blocking receives from \
             both, and the wait for the sends. A sample is from the first start of a thread to the last end, on the slowest rank",
            "IMB-MT ExchangeMT, which prints minimum, maximum and mean over threads",
        ),
    )
    .iterates(&["MPI_Isend", "MPI_Recv", "MPI_Waitall"], CHAINED).sizes("0,1..4M").layout(CHAIN).axes(&[Distance::AXIS])
}

/// Figure of messages in a chain.
const CHAINED: &str = "t of the slowest rank, from the first start of its threads to their last end";
