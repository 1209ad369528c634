/* Two-sided loops: messages between two ranks, one per iteration or a window of messages. */
#include "loops.h"
#include <stdlib.h>

#define SEND(BYTES) CHECK(MPI_Send(s.out, BYTES, MPI_BYTE, s.peer, TAG, s.comm))
#define RECEIVE(BYTES) CHECK(MPI_Recv(s.in, BYTES, MPI_BYTE, s.source, TAG, s.comm, MPI_STATUS_IGNORE))
#define SENDS(FIRST)                                                                                      \
    for (int w = 0; w < s.depth; w++)                                                                     \
    CHECK(MPI_Isend(s.out + w * s.stride, s.bytes, MPI_BYTE, s.peer, TAG, s.comm, &s.requests[(FIRST) + w]))
#define RECEIVES                                                                                          \
    for (int w = 0; w < s.depth; w++)                                                                     \
    CHECK(MPI_Irecv(s.in + w * s.stride, s.bytes, MPI_BYTE, s.source, TAG, s.comm, &s.requests[w]))
#define WAIT(COUNT) CHECK(MPI_Waitall(COUNT, s.requests, MPI_STATUSES_IGNORE))
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

/* Modes of sends. A ready send follows a message after whose receives are posted. */
#define SEND_BY(CALL) CHECK(CALL(s.out, s.bytes, MPI_BYTE, s.peer, TAG, s.comm))
#define SENDS_BY(CALL)                                                                                    \
    for (int w = 0; w < s.depth; w++)                                                                     \
    CHECK(CALL(s.out + w * s.stride, s.bytes, MPI_BYTE, s.peer, TAG, s.comm, &s.requests[w]))
#define STARTS_BY(CALL)                                                                                   \
    for (int w = 0; w < s.depth; w++)                                                                     \
    CHECK(CALL(s.out + w * s.stride, s.bytes, MPI_BYTE, s.peer, TAG, s.comm, &s.requests[s.depth + w]))
#define MODE(NAME, SEND_CALL, START_CALL)                                              \
    CHAINED(ping_##NAME, , SEND_BY(SEND_CALL); RECEIVE(s.bytes))                       \
    ANSWERED(ping_##NAME, , RECEIVE(s.bytes); SEND_BY(SEND_CALL))                      \
    CHAINED(stream_##NAME, , SENDS_BY(START_CALL); WAIT(s.depth); RECEIVE(0))          \
    ANSWERED(stream_##NAME, , RECEIVES; WAIT(s.depth); SEND(0))                        \
    CHAINED(both_##NAME, , RECEIVES; STARTS_BY(START_CALL); WAIT(2 * s.depth))         \
    ANSWERED(both_##NAME, , RECEIVES; STARTS_BY(START_CALL); WAIT(2 * s.depth))

MODE(synchronous, MPI_Ssend, MPI_Issend)
MODE(buffered, MPI_Bsend, MPI_Ibsend)

#define TAKEN CHECK(MPI_Wait(&s.requests[0], MPI_STATUS_IGNORE))

CHAINED(ping_ready, , RECEIVES; SEND_BY(MPI_Rsend); TAKEN)
ANSWERED(ping_ready, , TAKEN; RECEIVES; SEND_BY(MPI_Rsend))
CHAINED(stream_ready, , SENDS_BY(MPI_Irsend); WAIT(s.depth); RECEIVE(0))
ANSWERED(stream_ready, , WAIT(s.depth); RECEIVES; SEND(0))

/* Derived datatypes: messages are elements of `kind`. */
#define SEND_KIND(COUNT) CHECK(MPI_Send(s.out, COUNT, s.kind, s.peer, TAG, s.comm))
#define RECEIVE_KIND(COUNT) CHECK(MPI_Recv(s.in, COUNT, s.kind, s.source, TAG, s.comm, MPI_STATUS_IGNORE))
#define SENDS_KIND(FIRST)                                                                                 \
    for (int w = 0; w < s.depth; w++)                                                                     \
    CHECK(MPI_Isend(s.out + w * s.stride, s.elements, s.kind, s.peer, TAG, s.comm, &s.requests[(FIRST) + w]))
#define RECEIVES_KIND                                                                                     \
    for (int w = 0; w < s.depth; w++)                                                                     \
    CHECK(MPI_Irecv(s.in + w * s.stride, s.elements, s.kind, s.source, TAG, s.comm, &s.requests[w]))

CHAINED(ping_derived, , SEND_KIND(s.elements); RECEIVE_KIND(s.elements))
ANSWERED(ping_derived, , RECEIVE_KIND(s.elements); SEND_KIND(s.elements))
CHAINED(stream_derived, , SENDS_KIND(0); WAIT(s.depth); RECEIVE_KIND(0))
ANSWERED(stream_derived, , RECEIVES_KIND; WAIT(s.depth); SEND_KIND(0))
CHAINED(both_derived, , RECEIVES_KIND; SENDS_KIND(s.depth); WAIT(2 * s.depth))
ANSWERED(both_derived, , RECEIVES_KIND; SENDS_KIND(s.depth); WAIT(2 * s.depth))

/* Persistent requests: receives, sends, acknowledgement in, acknowledgement out. */
#define ONE(AT) CHECK(MPI_Start(&s.requests[AT])); CHECK(MPI_Wait(&s.requests[AT], MPI_STATUS_IGNORE))
#define ALL(FIRST, COUNT)                           \
    CHECK(MPI_Startall(COUNT, &s.requests[FIRST])); \
    CHECK(MPI_Waitall(COUNT, &s.requests[FIRST], MPI_STATUSES_IGNORE))

CHAINED(ping_persistent, , ONE(s.depth); ONE(0))
ANSWERED(ping_persistent, , ONE(0); ONE(s.depth))

CHAINED(stream_persistent, , ALL(s.depth, s.depth); ONE(2 * s.depth))
ANSWERED(stream_persistent, , ALL(0, s.depth); ONE(2 * s.depth + 1))

CHAINED(both_persistent, , ALL(0, 2 * s.depth))
ANSWERED(both_persistent, , ALL(0, 2 * s.depth))

/* One thread sends; the other answers with the received tag. */
CHAINED(ping_threads, , SEND(s.bytes); RECEIVE(s.bytes))
ANSWERED(ping_threads, MPI_Status status,
         CHECK(MPI_Recv(s.in, s.bytes, MPI_BYTE, s.peer, MPI_ANY_TAG, s.comm, &status));
         CHECK(MPI_Send(s.out, s.bytes, MPI_BYTE, s.peer, status.MPI_TAG, s.comm)))

/* Benchmarks of several threads, here of one. Ranks leave a barrier before each sample. */
#define BARRIER CHECK(MPI_Barrier(s.team))
#define TOGETHER(NAME, ACTIVE, PASSIVE)                \
    AFTER(BARRIER, NAME, , ACTIVE)                     \
    LOOP(answer_##NAME)                                \
    {                                                  \
        const struct setup s = *setup;                 \
        (void)stamps;                                  \
        for (long i = 0; i < samples; i++) {           \
            BARRIER;                                   \
            for (long k = 0; k < batch; k++) {         \
                PASSIVE;                               \
            }                                          \
        }                                              \
    }

TOGETHER(pingpong_mt, SEND(s.bytes); RECEIVE(s.bytes), RECEIVE(s.bytes); SEND(s.bytes))
TOGETHER(bw_mt, SENDS(0); WAIT(s.depth); RECEIVE(0), RECEIVES; WAIT(s.depth); SEND(0))
TOGETHER(bibw_mt, SWAP, SWAP)

#if MPI_VERSION >= 4
/* Message with many partitions: message in, message out, acknowledgement in, acknowledgement out. */
#define PUSH                                 \
    CHECK(MPI_Start(&s.requests[1]));        \
    for (int w = 0; w < s.depth; w++)        \
        CHECK(MPI_Pready(w, s.requests[1])); \
    CHECK(MPI_Wait(&s.requests[1], MPI_STATUS_IGNORE))

CHAINED(ping_partitioned, , PUSH; ONE(0))
ANSWERED(ping_partitioned, , ONE(0); PUSH)
CHAINED(stream_partitioned, , PUSH; ONE(2))
ANSWERED(stream_partitioned, , ONE(0); ONE(3))
#endif

/* A number of elements and their type. */
#define BYTES s.bytes, MPI_BYTE
#define ELEMENTS s.elements, s.kind

/* Windows of messages to several partners: the first of each, then the second, and so on. */
struct message {
    int partner;
    size_t offset;
};

static const struct message *messages_of(const struct setup *s)
{
    static struct message *table;
    struct message *next = table = realloc(table, sizeof *table * s->depth * s->partner_count);
    if (table == NULL) abort();
    for (int w = 0; w < s->depth; w++)
        for (int p = 0; p < s->partner_count; p++)
            *next++ = (struct message){ s->partners[p], w * s->stride + p * s->partner_stride };
    return table;
}

#define FAN(CALL, BUFFER, ...)                                                                                          \
    for (int m = 0; m < count; m++)                                                                                     \
        CHECK(CALL(s.BUFFER + messages[m].offset, __VA_ARGS__, messages[m].partner, TAG, s.comm, &s.requests[m]));      \
    WAIT(count)
#define MESSAGES const struct message *messages = messages_of(&s); const int count = s.depth * s.partner_count

#define FANS(SUFFIX, ...)                                                                                               \
    CHAINED(fan##SUFFIX, MESSAGES, FAN(MPI_Isend, out, __VA_ARGS__); for (int p = 0; p < s.partner_count; p++)          \
            CHECK(MPI_Recv(s.in, 0, MPI_BYTE, s.partners[p], TAG, s.comm, MPI_STATUS_IGNORE)))                          \
    ANSWERED(fan##SUFFIX, MESSAGES, FAN(MPI_Irecv, in, __VA_ARGS__); for (int p = 0; p < s.partner_count; p++)          \
             CHECK(MPI_Send(s.out, 0, MPI_BYTE, s.partners[p], TAG, s.comm)))

FANS(, BYTES)
FANS(_derived, ELEMENTS)

/* Messages that meet: partners are the right and the left neighbour. The last arguments are a number of elements and their type. */
#define START(SIDE, ...) \
    CHECK(MPI_Isend(s.out + (SIDE) * s.partner_stride, __VA_ARGS__, s.partners[SIDE], TAG, s.comm, &s.requests[SIDE]))
#define TAKE(SIDE, SOURCE, ...)                                                                                      \
    CHECK(MPI_Recv(s.in + (SIDE) * s.partner_stride, __VA_ARGS__, SOURCE, TAG, s.comm, MPI_STATUS_IGNORE))
#define PING_PING(...) START(0, __VA_ARGS__); TAKE(0, s.source, __VA_ARGS__); CHECK(MPI_Wait(&s.requests[0], MPI_STATUS_IGNORE))
#define SEND_RECEIVE(...) \
    CHECK(MPI_Sendrecv(s.out, __VA_ARGS__, s.partners[0], TAG, s.in, __VA_ARGS__, s.source, TAG, s.comm, MPI_STATUS_IGNORE))
#define EXCHANGE(...) START(0, __VA_ARGS__); START(1, __VA_ARGS__); TAKE(0, s.partners[1], __VA_ARGS__); TAKE(1, s.partners[0], __VA_ARGS__); WAIT(2)

TOGETHER(pingping_mt, PING_PING(BYTES), PING_PING(BYTES))
AFTER(BARRIER, sendrecv_mt, , SEND_RECEIVE(BYTES))
AFTER(BARRIER, exchange_mt, , EXCHANGE(BYTES))
CHAINED(sendrecv_replace, , CHECK(MPI_Sendrecv_replace(s.in, s.bytes, MPI_BYTE, s.partners[0], TAG, s.source, TAG, s.comm,
                                                       MPI_STATUS_IGNORE)))

/* Partners are those of each side. A message to a side arrives at the opposite side of the partner, whose number differs by one. */
#define SIDES(CALL, BUFFER, SIDE, ...)                                                              \
    at = s.BUFFER;                                                                                  \
    for (int p = 0; p < s.partner_count; p++, at += s.partner_stride)                               \
    CHECK(CALL(at, __VA_ARGS__, s.partners[p], TAG + (SIDE), s.comm, next++))
#define HALO(...)                                                                                  \
    char *at; MPI_Request *next = s.requests; SIDES(MPI_Irecv, in, p ^ 1, __VA_ARGS__); SIDES(MPI_Isend, out, p, __VA_ARGS__); \
    WAIT(2 * s.partner_count)

#define NEIGHBOURS(SUFFIX, ...)                         \
    CHAINED(pingping##SUFFIX, , PING_PING(__VA_ARGS__))        \
    ANSWERED(pingping##SUFFIX, , PING_PING(__VA_ARGS__))       \
    CHAINED(sendrecv##SUFFIX, , SEND_RECEIVE(__VA_ARGS__))     \
    CHAINED(exchange##SUFFIX, , EXCHANGE(__VA_ARGS__))         \
    CHAINED(halo##SUFFIX, , HALO(__VA_ARGS__))

NEIGHBOURS(, BYTES)
NEIGHBOURS(_derived, ELEMENTS)

/* Drawn partners: two numbers per step, the rank that gets a message and the rank that sends one. Counts are the first step of each
 * round, and partner_count is the number of rounds. A block goes on with the next round, as that of ombx does. */
#define DRAWN(NAME, STEP)                                                            \
    CHAINED(NAME, static int round,                                                     \
            const int *step = s.partners + 2 * s.counts[round];                      \
            const int *end = s.partners + 2 * s.counts[round + 1];                   \
            for (; step < end; step += 2) { STEP; }                                  \
            if (++round == s.partner_count) round = 0)
#define FROM(SIDE, RANK, ...) \
    CHECK(MPI_Irecv(s.in + (SIDE) * s.partner_stride, __VA_ARGS__, RANK, TAG + (SIDE), s.comm, &s.requests[SIDE]))
#define TO(SIDE, RANK, ...) \
    CHECK(MPI_Isend(s.out + (SIDE) * s.partner_stride, __VA_ARGS__, RANK, TAG + (SIDE), s.comm, &s.requests[2 + (SIDE)]))
#define SEND_FIRST(...) CHECK(MPI_Send(s.out, __VA_ARGS__, step[0], TAG, s.comm))
#define MEET(...) FROM(0, step[1], __VA_ARGS__); SEND_FIRST(__VA_ARGS__); CHECK(MPI_Wait(&s.requests[0], MPI_STATUS_IGNORE))
#define RANDOM(SUFFIX, ...)                                                                                           \
    DRAWN(unirandom##SUFFIX, if (step[0] >= 0) SEND_FIRST(__VA_ARGS__);                                               \
          else CHECK(MPI_Recv(s.in, __VA_ARGS__, step[1], TAG, s.comm, MPI_STATUS_IGNORE)))                           \
    DRAWN(birandom##SUFFIX, MEET(__VA_ARGS__))                                                                        \
    DRAWN(corandom##SUFFIX, MEET(__VA_ARGS__))                                                                        \
    DRAWN(random_ring##SUFFIX, FROM(0, step[1], __VA_ARGS__); FROM(1, step[0], __VA_ARGS__); TO(0, step[0], __VA_ARGS__); \
          TO(1, step[1], __VA_ARGS__); WAIT(4))

RANDOM(, BYTES)
RANDOM(_derived, ELEMENTS)

#define ROW(NAME) { #NAME, fidelity_##NAME, answer_##NAME }

const struct row fidelity_two_sided[] = {
    ROW(ping), ROW(ping_threads), ROW(stream), ROW(both), ROW(two_pings), ROW(one_way), ROW(fan), ROW(fan_derived), ROW(pingping),
    { "sendrecv", fidelity_sendrecv, nothing }, { "sendrecv_replace", fidelity_sendrecv_replace, nothing },
    { "exchange", fidelity_exchange, nothing },
    { "halo", fidelity_halo, nothing },
    ROW(pingping_derived), { "sendrecv_derived", fidelity_sendrecv_derived, nothing },
    { "exchange_derived", fidelity_exchange_derived, nothing }, { "halo_derived", fidelity_halo_derived, nothing },
    ROW(pingpong_mt), ROW(bw_mt), ROW(bibw_mt), ROW(pingping_mt),
    { "sendrecv_mt", fidelity_sendrecv_mt, nothing }, { "exchange_mt", fidelity_exchange_mt, nothing },
    { "unirandom", fidelity_unirandom, nothing }, { "birandom", fidelity_birandom, nothing },
    { "corandom", fidelity_corandom, nothing }, { "random_ring", fidelity_random_ring, nothing },
    { "unirandom_derived", fidelity_unirandom_derived, nothing }, { "birandom_derived", fidelity_birandom_derived, nothing },
    { "corandom_derived", fidelity_corandom_derived, nothing }, { "random_ring_derived", fidelity_random_ring_derived, nothing },
    ROW(ping_synchronous), ROW(ping_buffered), ROW(ping_ready),
    ROW(stream_synchronous), ROW(stream_buffered), ROW(stream_ready), ROW(both_synchronous), ROW(both_buffered),
    ROW(ping_derived), ROW(stream_derived), ROW(both_derived),
    ROW(ping_persistent), ROW(stream_persistent), ROW(both_persistent),
#if MPI_VERSION >= 4
    ROW(ping_partitioned), ROW(stream_partitioned),
#endif
    { NULL, NULL, NULL },
};
