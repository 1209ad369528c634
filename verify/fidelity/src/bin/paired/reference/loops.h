/* Common part of the plain C loops: what they work on, and the macros that time an iteration. */
#include <mpi.h>
#include <stddef.h>
#include <time.h>
#if defined(__x86_64__) || defined(__i386__)
#include <x86intrin.h>
#endif

enum { TAG = 1 };

/* `Handles` of crates/mpi/src/communicator.rs: what an open kernel of ombx works on. Loops copy it into locals, so that the
 * compiler may keep the fields in registers. */
struct setup {
    MPI_Comm team, comm;
    MPI_Win win;
    MPI_File file;
    MPI_Group partner;
    MPI_Datatype kind;
    MPI_Op op;
    MPI_Aint remote;
    char *out, *in, *compare;
    MPI_Request *requests;
    const int *counts, *starts;
    const MPI_Aint *offsets;
    const MPI_Datatype *kinds;
    const int *partners;
    const char *path;
    size_t stride, partner_stride;
    int bytes, elements, depth, rank, ranks, peer, source, partner_count;
};

typedef void loop(const struct setup *setup, long batch, long samples, unsigned long long *stamps);

/* Loops of the timed rank and of the rank that answers. */
struct row {
    const char *name;
    loop *active, *passive;
};

/* Raw time in ticks, after all earlier instructions: the TSC if there is one. */
static inline unsigned long long tick(void)
{
#if defined(__x86_64__) || defined(__i386__)
    _mm_lfence();
    return __rdtsc();
#else
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ULL + t.tv_nsec;
#endif
}

/* Compares the return code of a call, as OMB and ombx do. */
#define CHECK(CALL) (__builtin_expect((CALL) != MPI_SUCCESS, 0) ? fidelity_failed() : (void)0)
__attribute__((noreturn, cold)) void fidelity_failed(void);

#define LOOP(NAME) \
    static __attribute__((noinline)) void NAME(const struct setup *setup, long batch, long samples, unsigned long long *stamps)

/* Chained time stamps: the end of a sample is the start of the next. */
#define CHAINED(NAME, BEFORE, ACTIVE)                  \
    LOOP(fidelity_##NAME)                              \
    {                                                  \
        const struct setup s = *setup;                 \
        BEFORE;                                        \
        *stamps = tick();                              \
        for (long i = 1; i <= samples; i++) {          \
            for (long k = 0; k < batch; k++) {         \
                ACTIVE;                                \
            }                                          \
            stamps[i] = tick();                        \
        }                                              \
    }

/* The same iterations without time stamps. */
#define ANSWERED(NAME, BEFORE, PASSIVE)                \
    LOOP(answer_##NAME)                                \
    {                                                  \
        const struct setup s = *setup;                 \
        (void)stamps;                                  \
        BEFORE;                                        \
        for (long i = 0; i < batch * samples; i++) {   \
            PASSIVE;                                   \
        }                                              \
    }

/* A barrier before each sample, and a time stamp at both ends. */
#define AFTER(PACE, NAME, BEFORE, ACTIVE)              \
    LOOP(fidelity_##NAME)                              \
    {                                                  \
        const struct setup s = *setup;                 \
        BEFORE;                                        \
        for (long i = 0; i < samples; i++) {           \
            PACE;                                      \
            stamps[2 * i] = tick();                    \
            for (long k = 0; k < batch; k++) {         \
                ACTIVE;                                \
            }                                          \
            stamps[2 * i + 1] = tick();                \
        }                                              \
    }

/* Passive target: continues to the next barrier. */
__attribute__((unused)) LOOP(nothing)
{
    (void)setup, (void)batch, (void)samples, (void)stamps;
}
