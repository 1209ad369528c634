//! `p2p.pingpong_mt` and others: two-sided patterns on several threads of each rank, each with a partner thread and a communicator.

use crate::{
    PING_PONG, STREAM,
    neighbours::{CHAIN, Exchange, Neighbours, PingPing, SendReceive},
};
use ombx_core::{
    benchmark::{
        Benchmark, Distance, Kernel, Layout, Method, Pairing, Pairs, ParameterValue, derived,
        memory::BufferMemory, reduction::MESSAGE_TYPE,
    },
    pacing::paced_threads::Many,
    two_sided::pattern::{BiStream, Buffers, PatternKernel, PingPong, Stream},
};
use ombx_mpi::{Channel, NeighbourChannel, OnThread};

type Messages<P> = PatternKernel<P, OnThread<Channel>>;
type Meeting<M> = Neighbours<M, OnThread<Box<NeighbourChannel>>>;

const PAIRS: Layout = Layout::Pairs(Pairs::Most);

/// Returns the entry of a kernel on each thread, and what it times there.
#[track_caller]
const fn on_threads<K: Kernel + Send + 'static>(
    name: &'static str,
    about: &'static str,
    (timed, like): (&'static str, &'static str),
) -> Benchmark {
    let untimed = "starting threads, their common start, communicators, buffers, filling and checking them";
    Benchmark::matched_threads::<K, Many>(name, about, Method { timed, untimed, like })
        .made_of(derived::block_bytes, derived::check)
}

ombx_core::inventory::submit!(
    on_threads::<Messages<PingPong>>(
        "p2p.pingpong_mt",
        "blocking ping-pongs of several threads, each with its own partner thread, one way",
        (
            "on each thread of the first rank of a pair, a batch of blocking sends and receives; the \
             thread with its number on the other rank answers. A sample is from the first start of a \
             thread to the last end",
            "IMB-MT PingPongMT, which prints minimum, maximum and mean over threads",
        ),
    )
    .iterates(PING_PONG, "t / 2; t from the first start to the last end")
    .sizes("0,1..4M")
    .layout(PAIRS)
    .with(&[Pairing::PARAMETER, MESSAGE_TYPE, BufferMemory::PARAMETER])
);
ombx_core::inventory::submit!(
    on_threads::<Messages<Stream>>(
        "p2p.bw_mt",
        "windows of nonblocking sends of several threads, each acknowledged once",
        (
            "on each thread of the first rank of a pair, windows of nonblocking sends, waiting for all of \
             a window, and receiving its acknowledgement; the thread with its number on the other rank \
             posts all receives, waits, and acknowledges. A sample is from the first start of a thread to \
             the last end",
            "IMB-MT UniBandMT, whose messages share a buffer",
        ),
    )
    .iterates(STREAM, "P T W S / t; t from the first start to the last end, T threads")
    .streaming()
    .layout(PAIRS)
    .with(&[Buffers::PARAMETER, Pairing::PARAMETER, MESSAGE_TYPE, BufferMemory::PARAMETER])
);
ombx_core::inventory::submit!(
    on_threads::<Messages<BiStream>>(
        "p2p.bibw_mt",
        "windows of nonblocking messages of several threads in both directions at once",
        (
            "on each thread of a pair, windows of nonblocking receives and sends, and waiting for all of \
             them. A sample is from the first start of a thread of the first rank to the last end",
            "IMB-MT BiBandMT, whose messages share a buffer and which acknowledges each window",
        ),
    )
    .iterates(
        &["MPI_Irecv", "MPI_Isend", "MPI_Waitall"],
        "2 P T W S / t; t from the first start to the \
                                                           last end, T threads"
    )
    .streaming()
    .layout(PAIRS)
    .with(&[Buffers::PARAMETER, Pairing::PARAMETER, MESSAGE_TYPE, BufferMemory::PARAMETER])
);
ombx_core::inventory::submit!(
    on_threads::<Meeting<PingPing>>(
        "p2p.pingping_mt",
        "threads of two ranks send to each other at the same time",
        (
            "on each thread of a pair, a nonblocking send, a blocking receive of the partner thread's \
             message, and the wait for the send. A sample is from the first start of a thread of the first \
             rank to the last end",
            "IMB-MT PingPingMT, which prints minimum, maximum and mean over threads",
        ),
    )
    .iterates(&["MPI_Isend", "MPI_Recv", "MPI_Wait"], "t from the first start to the last end")
    .sizes("0,1..4M")
    .layout(PAIRS)
    .with(&[Pairing::PARAMETER, MESSAGE_TYPE, BufferMemory::PARAMETER])
);
ombx_core::inventory::submit!(
    on_threads::<Meeting<SendReceive>>(
        "p2p.sendrecv_mt",
        "every thread of a periodic chain of ranks sends to the next one",
        (
            "on each thread of every rank, calls that send to the thread with its number on the next rank \
             and receive from the previous one. A sample is from the first start of a thread to the last \
             end, on the slowest rank",
            "IMB-MT SendRecvMT, which prints minimum, maximum and mean over threads",
        ),
    )
    .iterates(&["MPI_Sendrecv"], CHAINED)
    .sizes("0,1..4M")
    .layout(CHAIN)
    .with(&[Distance::PARAMETER, MESSAGE_TYPE, BufferMemory::PARAMETER])
);
ombx_core::inventory::submit!(
    on_threads::<Meeting<Exchange>>(
        "p2p.exchange_mt",
        "every thread of a periodic chain of ranks exchanges messages with both neighbours",
        (
            "on each thread of every rank, nonblocking sends to the threads with its number on both \
             neighbours, blocking receives from both, and the wait for the sends. A sample is from the \
             first start of a thread to the last end, on the slowest rank",
            "IMB-MT ExchangeMT, which prints minimum, maximum and mean over threads",
        ),
    )
    .iterates(&["MPI_Isend", "MPI_Recv", "MPI_Waitall"], CHAINED)
    .sizes("0,1..4M")
    .layout(CHAIN)
    .with(&[Distance::PARAMETER, MESSAGE_TYPE, BufferMemory::PARAMETER])
);

/// Figure of messages in a chain.
const CHAINED: &str = "t of the slowest rank, from the first start of its threads to their last end";
