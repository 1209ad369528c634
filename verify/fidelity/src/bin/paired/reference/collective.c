/* Collective loops: each operation in its blocking, nonblocking and persistent form, local reductions, and acknowledged broadcasts. */
#include "loops.h"

#define WORDS s.elements
#define COUNTED s.counts, s.starts
#define BYTES(BUFFER) s.BUFFER, s.bytes, MPI_BYTE
#define BLOCK(BUFFER) s.BUFFER, WORDS, s.kind
#define BLOCKS(BUFFER) s.BUFFER, COUNTED, s.kind
#define TYPED(BUFFER) s.BUFFER, COUNTED, s.kinds
#define OFFSET(BUFFER) s.BUFFER, s.counts, s.offsets, s.kinds
#define REDUCED s.out, s.in, WORDS, s.kind, s.op

/* Function, nonblocking form, arguments. */
#define OPERATIONS(X)                                                                                 \
    X(allgather, Allgather, Iallgather, BLOCK(out), BLOCK(in), s.comm)                                \
    X(allgatherv, Allgatherv, Iallgatherv, BLOCK(out), BLOCKS(in), s.comm)                            \
    X(allreduce, Allreduce, Iallreduce, REDUCED, s.comm)                                              \
    X(alltoall, Alltoall, Ialltoall, BLOCK(out), BLOCK(in), s.comm)                                   \
    X(alltoallv, Alltoallv, Ialltoallv, BLOCKS(out), BLOCKS(in), s.comm)                              \
    X(alltoallw, Alltoallw, Ialltoallw, TYPED(out), TYPED(in), s.comm)                                \
    X(barrier, Barrier, Ibarrier, s.comm)                                                             \
    X(bcast, Bcast, Ibcast, BLOCK(in), 0, s.comm)                                                     \
    X(exscan, Exscan, Iexscan, REDUCED, s.comm)                                                       \
    X(gather, Gather, Igather, BLOCK(out), BLOCK(in), 0, s.comm)                                      \
    X(gatherv, Gatherv, Igatherv, BLOCK(out), BLOCKS(in), 0, s.comm)                                  \
    X(neighbor_allgather, Neighbor_allgather, Ineighbor_allgather, BLOCK(out), BLOCK(in), s.comm)     \
    X(neighbor_allgatherv, Neighbor_allgatherv, Ineighbor_allgatherv, BLOCK(out), BLOCKS(in), s.comm) \
    X(neighbor_alltoall, Neighbor_alltoall, Ineighbor_alltoall, BLOCK(out), BLOCK(in), s.comm)        \
    X(neighbor_alltoallv, Neighbor_alltoallv, Ineighbor_alltoallv, BLOCKS(out), BLOCKS(in), s.comm)   \
    X(neighbor_alltoallw, Neighbor_alltoallw, Ineighbor_alltoallw, OFFSET(out), OFFSET(in), s.comm)   \
    X(reduce, Reduce, Ireduce, REDUCED, 0, s.comm)                                                    \
    X(reduce_scatter, Reduce_scatter, Ireduce_scatter, s.out, s.in, s.counts, s.kind, s.op, s.comm)   \
    X(reduce_scatter_block, Reduce_scatter_block, Ireduce_scatter_block, REDUCED, s.comm)             \
    X(scan, Scan, Iscan, REDUCED, s.comm)                                                             \
    X(scatter, Scatter, Iscatter, BLOCK(out), BLOCK(in), 0, s.comm)                                   \
    X(scatterv, Scatterv, Iscatterv, BLOCKS(out), BLOCK(in), 0, s.comm)

/* The other of two ranks. */
#define OTHER (1 - s.rank)
#define BARRIER CHECK(MPI_Barrier(s.team))
#define DISSEMINATE                                                                                           \
    CHECK(MPI_Sendrecv(NULL, 0, MPI_BYTE, OTHER, TAG, NULL, 0, MPI_BYTE, OTHER, TAG, s.comm, MPI_STATUS_IGNORE))

#define LOOPS(NAME, CALL, START, ...)                       \
    AFTER(BARRIER, NAME, , CHECK(MPI_##CALL(__VA_ARGS__)))  \
    AFTER(BARRIER, NAME##_nonblocking, MPI_Request request, \
          CHECK(MPI_##START(__VA_ARGS__, &request)); CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE)))
OPERATIONS(LOOPS)

AFTER(BARRIER, persistent, , CHECK(MPI_Start(s.requests)); CHECK(MPI_Wait(s.requests, MPI_STATUS_IGNORE)))
AFTER(DISSEMINATE, allreduce_disseminated, , CHECK(MPI_Allreduce(REDUCED, s.comm)))

CHAINED(reduce_local, , CHECK(MPI_Reduce_local(s.out, s.in, WORDS, s.kind, s.op)))

/* Each rank is root in turn. */
CHAINED(bcast_round, int root = 0, int now = root; root = (root + 1) % s.ranks; CHECK(MPI_Bcast(BYTES(out), now, s.comm)))

/* A broadcast and an empty message back, then round trips of empty messages, after one of each as warm-up. */
#define EMPTY_SEND CHECK(MPI_Send(NULL, 0, MPI_BYTE, OTHER, TAG, s.comm))
#define EMPTY_RECEIVE CHECK(MPI_Recv(NULL, 0, MPI_BYTE, OTHER, TAG, s.comm, MPI_STATUS_IGNORE))
#define IN_TURN(NAME, WORK, ANSWER)                                                                           \
    LOOP(fidelity_##NAME)                                                                                     \
    {                                                                                                         \
        const struct setup s = *setup;                                                                        \
        for (long i = 0; i < samples; i++) {                                                                  \
            WORK;                                                                                             \
            stamps[4 * i] = tick();                                                                           \
            for (long k = 0; k < batch; k++) {                                                                \
                WORK;                                                                                         \
            }                                                                                                 \
            stamps[4 * i + 1] = tick();                                                                       \
            EMPTY_SEND;                                                                                       \
            EMPTY_RECEIVE;                                                                                    \
            stamps[4 * i + 2] = tick();                                                                       \
            for (long k = 0; k < batch; k++) {                                                                \
                EMPTY_SEND;                                                                                   \
                EMPTY_RECEIVE;                                                                                \
            }                                                                                                 \
            stamps[4 * i + 3] = tick();                                                                       \
        }                                                                                                     \
    }                                                                                                         \
    LOOP(answer_##NAME)                                                                                       \
    {                                                                                                         \
        const struct setup s = *setup;                                                                        \
        (void)stamps;                                                                                         \
        for (long i = 0; i < samples; i++) {                                                                  \
            for (long k = 0; k <= batch; k++) {                                                               \
                ANSWER;                                                                                       \
            }                                                                                                 \
            for (long k = 0; k <= batch; k++) {                                                               \
                EMPTY_RECEIVE;                                                                                \
                EMPTY_SEND;                                                                                   \
            }                                                                                                 \
        }                                                                                                     \
    }
IN_TURN(bcast_acked, CHECK(MPI_Bcast(BYTES(out), 0, s.comm)); EMPTY_RECEIVE, CHECK(MPI_Bcast(BYTES(out), 0, s.comm)); EMPTY_SEND)
IN_TURN(tree_acked, CHECK(MPI_Send(BYTES(out), OTHER, TAG, s.comm)); EMPTY_RECEIVE,
        CHECK(MPI_Recv(BYTES(out), OTHER, TAG, s.comm, MPI_STATUS_IGNORE)); EMPTY_SEND)

#define ROWS_OF(NAME, CALL, START, ...)                                   \
    { #NAME, fidelity_##NAME, nothing },                                  \
    { #NAME "_nonblocking", fidelity_##NAME##_nonblocking, nothing },

const struct row fidelity_collective[] = {
    OPERATIONS(ROWS_OF)
    { "persistent", fidelity_persistent, nothing },
    { "allreduce_disseminated", fidelity_allreduce_disseminated, nothing },
    { "reduce_local", fidelity_reduce_local, nothing },
    { "bcast_round", fidelity_bcast_round, nothing },
    { "bcast_acked", fidelity_bcast_acked, answer_bcast_acked },
    { "tree_acked", fidelity_tree_acked, answer_tree_acked },
    { NULL, NULL, NULL },
};
