/* Collective loops: each operation in its blocking, nonblocking and persistent form, and acknowledged broadcasts. */
#include "rows.h"
#if defined(OPEN_MPI) && MPI_VERSION < 4
#include <mpi-ext.h>
#define INIT(NAME) MPIX_##NAME##_init
#else
#define INIT(NAME) MPI_##NAME##_init
#endif

#define WORDS (s.bytes / 8)
#define COUNTED s.counts, s.starts
#define BLOCK(BUFFER) s.BUFFER, s.bytes, MPI_BYTE
#define BLOCKS(BUFFER) s.BUFFER, COUNTED, MPI_BYTE
#define TYPED(BUFFER) s.BUFFER, COUNTED, s.kinds
#define OFFSET(BUFFER) s.BUFFER, s.counts, s.offsets, s.kinds
#define SUM s.out, s.in, WORDS, s.kind, MPI_SUM

/* Function, nonblocking form, initialisation of the persistent form, arguments. */
#define OPERATIONS(X)                                                                                \
    X(allgather, Allgather, Iallgather, lists, BLOCK(out), BLOCK(in), s.comm)                        \
    X(allgatherv, Allgatherv, Iallgatherv, lists, BLOCK(out), BLOCKS(in), s.comm)                    \
    X(allreduce, Allreduce, Iallreduce, lists, SUM, s.comm)                                          \
    X(alltoall, Alltoall, Ialltoall, lists, BLOCK(out), BLOCK(in), s.comm)                           \
    X(alltoallv, Alltoallv, Ialltoallv, lists, BLOCKS(out), BLOCKS(in), s.comm)                      \
    X(alltoallw, Alltoallw, Ialltoallw, lists, TYPED(out), TYPED(in), s.comm)                        \
    X(barrier, Barrier, Ibarrier, lists, s.comm)                                                     \
    X(bcast, Bcast, Ibcast, lists, BLOCK(out), 0, s.comm)                                            \
    X(exscan, Exscan, Iexscan, lists, SUM, s.comm)                                                   \
    X(gather, Gather, Igather, lists, BLOCK(out), BLOCK(in), 0, s.comm)                              \
    X(gatherv, Gatherv, Igatherv, lists, BLOCK(out), BLOCKS(in), 0, s.comm)                          \
    X(neighbor_allgather, Neighbor_allgather, Ineighbor_allgather, grid, BLOCK(out), BLOCK(in), s.comm)       \
    X(neighbor_allgatherv, Neighbor_allgatherv, Ineighbor_allgatherv, grid, BLOCK(out), BLOCKS(in), s.comm)   \
    X(neighbor_alltoall, Neighbor_alltoall, Ineighbor_alltoall, grid, BLOCK(out), BLOCK(in), s.comm)          \
    X(neighbor_alltoallv, Neighbor_alltoallv, Ineighbor_alltoallv, grid, BLOCKS(out), BLOCKS(in), s.comm)     \
    X(neighbor_alltoallw, Neighbor_alltoallw, Ineighbor_alltoallw, grid, OFFSET(out), OFFSET(in), s.comm)     \
    X(reduce, Reduce, Ireduce, lists, SUM, 0, s.comm)                                                \
    X(reduce_scatter, Reduce_scatter, Ireduce_scatter, portions, s.out, s.in, s.counts, s.kind, MPI_SUM, s.comm) \
    X(reduce_scatter_block, Reduce_scatter_block, Ireduce_scatter_block, lists, SUM, s.comm)         \
    X(scan, Scan, Iscan, lists, SUM, s.comm)                                                         \
    X(scatter, Scatter, Iscatter, lists, BLOCK(out), BLOCK(in), 0, s.comm)                           \
    X(scatterv, Scatterv, Iscatterv, lists, BLOCKS(out), BLOCK(in), 0, s.comm)

/* Counts and displacements of an operation with a block from and for each rank. */
static void list(struct setup *s, int blocks)
{
    s->counts = calloc(blocks, sizeof *s->counts);
    s->starts = calloc(blocks, sizeof *s->starts);
    s->offsets = calloc(blocks, sizeof *s->offsets);
    s->kinds = calloc(blocks, sizeof *s->kinds);
    s->requests = calloc(1, sizeof *s->requests);
    for (int i = 0; i < blocks; i++) {
        s->counts[i] = s->bytes;
        s->starts[i] = s->offsets[i] = i * s->bytes;
        s->kinds[i] = MPI_BYTE;
    }
}

static void lists(struct setup *s)
{
    list(s, s->ranks);
}

/* Elements per rank; the first ranks have one more. */
static void portions(struct setup *s)
{
    lists(s);
    for (int i = 0; i < s->ranks; i++)
        s->counts[i] = s->bytes / 8 / s->ranks + (i < s->bytes / 8 % s->ranks);
}

static void grid(struct setup *s)
{
    list(s, 4);
    MPI_Cart_create(s->comm, 2, (int[]) { s->ranks, 1 }, (int[]) { 0, 0 }, 0, &s->comm);
}

static void unlist(struct setup *s)
{
    free(s->counts), free(s->starts), free(s->offsets), free(s->kinds), free(s->requests);
}

static void ungrid(struct setup *s)
{
    MPI_Comm_free(&s->comm);
    unlist(s);
}

#define BARRIER MPI_Barrier(s.comm)
#define DISSEMINATE                                                                                           \
    MPI_Sendrecv(NULL, 0, MPI_BYTE, s.peer, TAG, NULL, 0, MPI_BYTE, s.peer, TAG, s.comm, MPI_STATUS_IGNORE)

#define LOOPS(NAME, CALL, START, OPEN, ...)                                                                   \
    AFTER(BARRIER, NAME, , MPI_##CALL(__VA_ARGS__))                                                           \
    AFTER(BARRIER, NAME##_nonblocking, MPI_Request request,                                                   \
          MPI_##START(__VA_ARGS__, &request); MPI_Wait(&request, MPI_STATUS_IGNORE))                          \
    static void NAME##_init(struct setup *setup)                                                              \
    {                                                                                                         \
        OPEN(setup);                                                                                          \
        const struct setup s = *setup;                                                                        \
        INIT(CALL)(__VA_ARGS__, MPI_INFO_NULL, s.requests);                                                   \
    }
OPERATIONS(LOOPS)

AFTER(BARRIER, persistent, , MPI_Start(s.requests); MPI_Wait(s.requests, MPI_STATUS_IGNORE))
AFTER(DISSEMINATE, allreduce_disseminated, , MPI_Allreduce(SUM, s.comm))

/* Each rank is root in turn. */
CHAINED(bcast_round, int root = 0, int now = root; root = (root + 1) % s.ranks; MPI_Bcast(BLOCK(out), now, s.comm))

/* A broadcast and an empty message back, then round trips of empty messages, after one of each as warm-up. */
#define EMPTY_SEND MPI_Send(NULL, 0, MPI_BYTE, s.peer, TAG, s.comm)
#define EMPTY_RECEIVE MPI_Recv(NULL, 0, MPI_BYTE, s.peer, TAG, s.comm, MPI_STATUS_IGNORE)
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
IN_TURN(bcast_acked, MPI_Bcast(BLOCK(out), 0, s.comm); EMPTY_RECEIVE, MPI_Bcast(BLOCK(out), 0, s.comm); EMPTY_SEND)
IN_TURN(tree_acked, MPI_Send(BLOCK(out), s.peer, TAG, s.comm); EMPTY_RECEIVE,
        MPI_Recv(BLOCK(out), s.peer, TAG, s.comm, MPI_STATUS_IGNORE); EMPTY_SEND)

#define PACED_ROW(NAME, LOOP, OPEN, CLOSE) { NAME, fidelity_##LOOP, fidelity_##LOOP, PACED | EVERYONE, OPEN, CLOSE }
#define ROWS_OF(NAME, CALL, START, OPEN, ...)                            \
    PACED_ROW(#NAME, NAME, OPEN, closed_##OPEN),                         \
    PACED_ROW(#NAME "_nonblocking", NAME##_nonblocking, OPEN, closed_##OPEN), \
    PACED_ROW(#NAME "_persistent", persistent, NAME##_init, persisted_##OPEN),

#define CLOSES(OPEN, CLOSE)                                              \
    static void closed_##OPEN(struct setup *s)                           \
    {                                                                    \
        CLOSE(s);                                                        \
    }                                                                    \
    static void persisted_##OPEN(struct setup *s)                        \
    {                                                                    \
        MPI_Request_free(s->requests);                                   \
        CLOSE(s);                                                        \
    }
CLOSES(lists, unlist)
CLOSES(portions, unlist)
CLOSES(grid, ungrid)

static const struct row ROWS[] = {
    OPERATIONS(ROWS_OF)
    PACED_ROW("allreduce_disseminated", allreduce_disseminated, lists, unlist),
    { "bcast_round", fidelity_bcast_round, fidelity_bcast_round, EVERYONE, NULL, NULL },
    { "bcast_acked", fidelity_bcast_acked, answer_bcast_acked, TURNS, NULL, NULL },
    { "tree_acked", fidelity_tree_acked, answer_tree_acked, TURNS, NULL, NULL },
};

int main(int argc, char **argv)
{
    return serve(argc, argv, ROWS, sizeof ROWS / sizeof *ROWS);
}
