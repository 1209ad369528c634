/* The plain C loops that ombx is compared with: what one would write to measure nothing but the MPI calls.
 *
 * usage: mpiexec -n 2 reference LOOP ITERATIONS WARMUP CHUNK
 *
 * Rank 0 prints one line of JSON: the nanoseconds of each chunk of iterations. One pair of readings of the system's clock
 * stands around all iterations; chunks are parts of that time. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__) || defined(__i386__)
#include <x86intrin.h>
#endif

enum { BYTES = 8, ROOM = 64, PAGE = 4096, TAG = 1 };

/* Copied into locals by each loop, so that the compiler may keep them in registers. */
struct setup {
    void *out, *in;
    int peer;
    MPI_Comm comm;
    MPI_Win win;
    MPI_Group partner;
};

typedef void loop(const struct setup *setup, long iterations);

static void ping_origin(const struct setup *setup, long iterations)
{
    const struct setup s = *setup;
    for (long i = 0; i < iterations; i++) {
        MPI_Send(s.out, BYTES, MPI_BYTE, s.peer, TAG, s.comm);
        MPI_Recv(s.in, BYTES, MPI_BYTE, s.peer, TAG, s.comm, MPI_STATUS_IGNORE);
    }
}

static void ping_target(const struct setup *setup, long iterations)
{
    const struct setup s = *setup;
    for (long i = 0; i < iterations; i++) {
        MPI_Recv(s.in, BYTES, MPI_BYTE, s.peer, TAG, s.comm, MPI_STATUS_IGNORE);
        MPI_Send(s.out, BYTES, MPI_BYTE, s.peer, TAG, s.comm);
    }
}

/* The loops of one operation under each synchronisation; those of flush are inside a lock that the caller holds. */
#define ONE_SIDED(NAME, OPERATION)                                              \
    static void NAME##_pscw_origin(const struct setup *setup, long iterations)  \
    {                                                                           \
        const struct setup s = *setup;                                          \
        for (long i = 0; i < iterations; i++) {                                 \
            MPI_Win_start(s.partner, 0, s.win);                                 \
            OPERATION;                                                          \
            MPI_Win_complete(s.win);                                            \
            MPI_Win_post(s.partner, 0, s.win);                                  \
            MPI_Win_wait(s.win);                                                \
        }                                                                       \
    }                                                                           \
    static void NAME##_pscw_target(const struct setup *setup, long iterations)  \
    {                                                                           \
        const struct setup s = *setup;                                          \
        for (long i = 0; i < iterations; i++) {                                 \
            MPI_Win_post(s.partner, 0, s.win);                                  \
            MPI_Win_wait(s.win);                                                \
            MPI_Win_start(s.partner, 0, s.win);                                 \
            OPERATION;                                                          \
            MPI_Win_complete(s.win);                                            \
        }                                                                       \
    }                                                                           \
    static void NAME##_fence_origin(const struct setup *setup, long iterations) \
    {                                                                           \
        const struct setup s = *setup;                                          \
        for (long i = 0; i < iterations; i++) {                                 \
            MPI_Win_fence(0, s.win);                                            \
            OPERATION;                                                          \
            MPI_Win_fence(0, s.win);                                            \
            MPI_Win_fence(0, s.win);                                            \
        }                                                                       \
    }                                                                           \
    static void NAME##_fence_target(const struct setup *setup, long iterations) \
    {                                                                           \
        const struct setup s = *setup;                                          \
        for (long i = 0; i < iterations; i++) {                                 \
            MPI_Win_fence(0, s.win);                                            \
            MPI_Win_fence(0, s.win);                                            \
            OPERATION;                                                          \
            MPI_Win_fence(0, s.win);                                            \
        }                                                                       \
    }                                                                           \
    static void NAME##_lock_origin(const struct setup *setup, long iterations)  \
    {                                                                           \
        const struct setup s = *setup;                                          \
        for (long i = 0; i < iterations; i++) {                                 \
            MPI_Win_lock(MPI_LOCK_SHARED, s.peer, 0, s.win);                    \
            OPERATION;                                                          \
            MPI_Win_unlock(s.peer, s.win);                                      \
        }                                                                       \
    }                                                                           \
    static void NAME##_flush_origin(const struct setup *setup, long iterations) \
    {                                                                           \
        const struct setup s = *setup;                                          \
        for (long i = 0; i < iterations; i++) {                                 \
            OPERATION;                                                          \
            MPI_Win_flush(s.peer, s.win);                                       \
        }                                                                       \
    }

ONE_SIDED(put, MPI_Put(s.out, BYTES, MPI_BYTE, s.peer, 0, BYTES, MPI_BYTE, s.win))
ONE_SIDED(get, MPI_Get(s.in, BYTES, MPI_BYTE, s.peer, 0, BYTES, MPI_BYTE, s.win))
ONE_SIDED(fop, MPI_Fetch_and_op(s.out, s.in, MPI_UINT64_T, s.peer, 0, MPI_SUM, s.win))

/* A passive target: it goes on to the next barrier. */
static void nothing(const struct setup *setup, long iterations)
{
    (void)setup;
    (void)iterations;
}

static const struct {
    const char *name;
    loop *origin, *target;
    int held;
} LOOPS[] = {
    { "ping", ping_origin, ping_target, 0 },
    { "put_pscw", put_pscw_origin, put_pscw_target, 0 },
    { "put_fence", put_fence_origin, put_fence_target, 0 },
    { "put_lock", put_lock_origin, nothing, 0 },
    { "put_flush", put_flush_origin, nothing, 1 },
    { "get_pscw", get_pscw_origin, get_pscw_target, 0 },
    { "get_fence", get_fence_origin, get_fence_target, 0 },
    { "get_lock", get_lock_origin, nothing, 0 },
    { "get_flush", get_flush_origin, nothing, 1 },
    { "fop_pscw", fop_pscw_origin, fop_pscw_target, 0 },
    { "fop_fence", fop_fence_origin, fop_fence_target, 0 },
    { "fop_lock", fop_lock_origin, nothing, 0 },
    { "fop_flush", fop_flush_origin, nothing, 1 },
};

static long long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Cheaper where it can be, in a unit of its own. */
static long long tick(void)
{
#if defined(__x86_64__) || defined(__i386__)
    return (long long)__rdtsc();
#else
    return now();
#endif
}

static void *room(void)
{
    void *start = NULL;
    if (posix_memalign(&start, PAGE, ROOM) != 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
    return memset(start, 0, ROOM);
}

int main(int argc, char **argv)
{
    int provided, rank;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    size_t which = 0, loops = sizeof LOOPS / sizeof *LOOPS;
    while (argc == 5 && which < loops && strcmp(LOOPS[which].name, argv[1]) != 0)
        which++;
    if (argc != 5 || which == loops) {
        fprintf(stderr, "usage: mpiexec -n 2 %s LOOP ITERATIONS WARMUP CHUNK\n", argv[0]);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    long iterations = atol(argv[2]), warmup = atol(argv[3]), chunk = atol(argv[4]), chunks = iterations / chunk;

    struct setup s = { .out = room(), .in = room(), .peer = 1 - rank };
    MPI_Comm_dup(MPI_COMM_WORLD, &s.comm);
    /* A window slows two-sided calls in some libraries, so only the loops that use one have one. */
    int one_sided = LOOPS[which].origin != ping_origin;
    if (one_sided) {
        void *exposed;
        MPI_Win_allocate(ROOM, 1, MPI_INFO_NULL, s.comm, &exposed, &s.win);
        memset(exposed, 0, ROOM);
        MPI_Group whole;
        MPI_Comm_group(s.comm, &whole);
        MPI_Group_incl(whole, 1, &s.peer, &s.partner);
    }
    long long *stamps = malloc((chunks + 1) * sizeof *stamps);
    memset(stamps, 255, (chunks + 1) * sizeof *stamps);

    loop *run = rank == 0 ? LOOPS[which].origin : LOOPS[which].target;
    int hold = rank == 0 && LOOPS[which].held;
    MPI_Barrier(s.comm);
    if (hold)
        MPI_Win_lock(MPI_LOCK_SHARED, s.peer, 0, s.win);
    run(&s, warmup);
    MPI_Barrier(s.comm);
    long long start = now();
    stamps[0] = tick();
    for (long c = 0; c < chunks; c++) {
        run(&s, chunk);
        stamps[c + 1] = tick();
    }
    double whole = now() - start;
    if (hold)
        MPI_Win_unlock(s.peer, s.win);
    MPI_Barrier(s.comm);

    if (rank == 0) {
        double unit = whole / (stamps[chunks] - stamps[0]);
        printf("{\"elapsed_ns\":[");
        for (long c = 0; c < chunks; c++)
            printf("%s%.1f", c ? "," : "", (stamps[c + 1] - stamps[c]) * unit);
        printf("]}\n");
    }
    if (strstr(LOOPS[which].name, "fence") != NULL)
        MPI_Win_fence(MPI_MODE_NOSUCCEED, s.win);
    if (one_sided)
        MPI_Win_free(&s.win);
    return MPI_Finalize();
}
