/* Two-sided loops: messages between two ranks, one per iteration or a window of messages. */
#include "rows.h"

#define SEND(BYTES) MPI_Send(s.out, BYTES, MPI_BYTE, s.peer, TAG, s.comm)
#define RECEIVE(BYTES) MPI_Recv(s.in, BYTES, MPI_BYTE, s.peer, TAG, s.comm, MPI_STATUS_IGNORE)
#define SENDS(FIRST)                                                                                      \
    for (int w = 0; w < s.depth; w++)                                                                     \
    MPI_Isend(s.out + w * s.stride, s.bytes, MPI_BYTE, s.peer, TAG, s.comm, &s.requests[(FIRST) + w])
#define RECEIVES                                                                                          \
    for (int w = 0; w < s.depth; w++)                                                                     \
    MPI_Irecv(s.in + w * s.stride, s.bytes, MPI_BYTE, s.peer, TAG, s.comm, &s.requests[w])
#define WAIT(COUNT) MPI_Waitall(COUNT, s.requests, MPI_STATUSES_IGNORE)
#define SWAP RECEIVES; SENDS(s.depth); WAIT(2 * s.depth)

CHAINED(ping, , SEND(s.bytes); RECEIVE(s.bytes))
ANSWERED(ping, , RECEIVE(s.bytes); SEND(s.bytes))

CHAINED(stream, , SENDS(0); WAIT(s.depth); RECEIVE(0))
ANSWERED(stream, , RECEIVES; WAIT(s.depth); SEND(0))

CHAINED(both, , SWAP)
ANSWERED(both, , SWAP)

CHAINED(two_pings, , SWAP; SWAP)
ANSWERED(two_pings, , SWAP; SWAP)

CHAINED(one_way, , for (int w = 0; w < s.depth; w++) SEND(s.bytes); RECEIVE(0))
ANSWERED(one_way, , for (int w = 0; w < s.depth; w++) RECEIVE(s.bytes); SEND(0))

/* Persistent requests: receives, sends, acknowledgement in, acknowledgement out. */
#define ONE(AT) MPI_Start(&s.requests[AT]); MPI_Wait(&s.requests[AT], MPI_STATUS_IGNORE)
#define ALL(FIRST, COUNT)                            \
    MPI_Startall(COUNT, &s.requests[FIRST]);         \
    MPI_Waitall(COUNT, &s.requests[FIRST], MPI_STATUSES_IGNORE)

CHAINED(ping_persistent, , ONE(s.depth); ONE(0))
ANSWERED(ping_persistent, , ONE(0); ONE(s.depth))

CHAINED(stream_persistent, , ALL(s.depth, s.depth); ONE(2 * s.depth))
ANSWERED(stream_persistent, , ALL(0, s.depth); ONE(2 * s.depth + 1))

CHAINED(both_persistent, , ALL(0, 2 * s.depth))
ANSWERED(both_persistent, , ALL(0, 2 * s.depth))

static void ready(struct setup *s)
{
    s->requests = calloc(2 * s->depth + 2, sizeof *s->requests);
}

static void done(struct setup *s)
{
    free(s->requests);
}

static void persist(struct setup *s)
{
    ready(s);
    for (int w = 0; w < s->depth; w++) {
        MPI_Recv_init(s->in + w * s->stride, s->bytes, MPI_BYTE, s->peer, TAG, s->comm, &s->requests[w]);
        MPI_Send_init(s->out + w * s->stride, s->bytes, MPI_BYTE, s->peer, TAG, s->comm, &s->requests[s->depth + w]);
    }
    MPI_Recv_init(s->in, 0, MPI_BYTE, s->peer, TAG, s->comm, &s->requests[2 * s->depth]);
    MPI_Send_init(s->out, 0, MPI_BYTE, s->peer, TAG, s->comm, &s->requests[2 * s->depth + 1]);
}

static void forget(struct setup *s)
{
    for (int i = 0; i < 2 * s->depth + 2; i++)
        MPI_Request_free(&s->requests[i]);
    done(s);
}

/* One thread sends; the other answers with the received tag. */
CHAINED(ping_threads, , SEND(s.bytes); RECEIVE(s.bytes))
ANSWERED(ping_threads, MPI_Status status,
         MPI_Recv(s.in, s.bytes, MPI_BYTE, s.peer, MPI_ANY_TAG, s.comm, &status);
         MPI_Send(s.out, s.bytes, MPI_BYTE, s.peer, status.MPI_TAG, s.comm))

#if MPI_VERSION >= 4
/* Message with many partitions: message in, message out, acknowledgement in, acknowledgement out. */
#define PUSH                                   \
    MPI_Start(&s.requests[1]);                 \
    for (int w = 0; w < s.depth; w++)          \
        MPI_Pready(w, s.requests[1]);          \
    MPI_Wait(&s.requests[1], MPI_STATUS_IGNORE)

CHAINED(ping_partitioned, , PUSH; ONE(0))
ANSWERED(ping_partitioned, , ONE(0); PUSH)
CHAINED(stream_partitioned, , PUSH; ONE(2))
ANSWERED(stream_partitioned, , ONE(0); ONE(3))

static void partition(struct setup *s)
{
    ready(s);
    MPI_Precv_init(s->in, s->depth, s->bytes, MPI_BYTE, s->peer, TAG, s->comm, MPI_INFO_NULL, &s->requests[0]);
    MPI_Psend_init(s->out, s->depth, s->bytes, MPI_BYTE, s->peer, TAG, s->comm, MPI_INFO_NULL, &s->requests[1]);
    MPI_Recv_init(s->in, 0, MPI_BYTE, s->peer, TAG + 1, s->comm, &s->requests[2]);
    MPI_Send_init(s->out, 0, MPI_BYTE, s->peer, TAG + 1, s->comm, &s->requests[3]);
}

static void unite(struct setup *s)
{
    for (int i = 0; i < 4; i++)
        MPI_Request_free(&s->requests[i]);
    done(s);
}
#endif

#define ROW(NAME, FLAGS, OPEN, CLOSE) { #NAME, fidelity_##NAME, answer_##NAME, FLAGS, OPEN, CLOSE }

static const struct row ROWS[] = {
    ROW(ping, 0, NULL, NULL),
    { "ping_forked", fidelity_ping, answer_ping, FORKED, NULL, NULL },
    ROW(ping_threads, THREADED, NULL, NULL),
    ROW(stream, 0, ready, done),
    ROW(both, 0, ready, done),
    ROW(two_pings, 0, ready, done),
    ROW(one_way, 0, NULL, NULL),
    ROW(ping_persistent, 0, persist, forget),
    ROW(stream_persistent, 0, persist, forget),
    ROW(both_persistent, 0, persist, forget),
#if MPI_VERSION >= 4
    ROW(ping_partitioned, 0, partition, unite),
    ROW(stream_partitioned, 0, partition, unite),
#endif
};

int main(int argc, char **argv)
{
    return serve(argc, argv, ROWS, sizeof ROWS / sizeof *ROWS);
}
